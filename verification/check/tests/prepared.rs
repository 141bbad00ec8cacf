//! Why what a prepared transaction has read has to stay as it is: a script of three transactions, with the protection and without.
#![allow(clippy::unwrap_used, reason = "tests")]

mod engine;

use std::ops::ControlFlow;

use engine::{Recording, UnprotectedReads, transaction_of};
use ensilo_check::{Anomaly, History, Options, TransactionId, Verdict, check};
use ensilo_txn::{
    Abort, AbortReason, Advance, Direction, Engine, EngineOptions, KeyBounds, Prepared, Read, Session, Silo,
    Store, TableId, Variant, Write,
};

const EPOCHS_PER_SNAPSHOT: u64 = 2;

const ALL: KeyBounds<'static> = (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);

fn count(transaction: &mut impl Read<Store = Store>, store: &Store) -> usize {
    let mut rows = 0;
    let each = |_, ()| {
        rows += 1;
        ControlFlow::Continue(())
    };
    transaction.scan(store, ALL, Direction::Forward, |_, _| (), each).unwrap();
    rows
}

fn set(transaction: &mut impl Write<Store = Store>, store: &Store, key: &str) {
    let found = transaction.find(store, key.as_bytes()).unwrap().unwrap();
    transaction.patch(found, &[(0, 7)]).unwrap();
}

/// How what the prepared transaction has read changes before its decision.
#[derive(Copy, Clone, Debug)]
enum Way {
    Overwritten,
    Deleted,
    Joined,
}

/// `P` reads all rows of one store, writes one of another, and is prepared. Another transaction changes what it has read and commits, epochs go by, a
/// snapshot reads all, and the decision comes. Returns what became of the other one, and the verdict on the history.
fn script<V: Variant>(way: Way) -> (Option<AbortReason>, Verdict) {
    let mut options = EngineOptions::default();
    options.epochs.advance = Advance::Manual;
    options.epochs.epochs_per_snapshot = EPOCHS_PER_SNAPSHOT;
    let engine = Silo::<V>::start(options).unwrap();
    let [read, written] = [1, 3].map(|id| engine.new_store(TableId(id)).unwrap());
    let mut workers = [engine.session(), engine.session(), engine.session()];
    let [first, other, reader] = workers.each_mut();
    let mut load = first.begin();
    assert!(load.insert(&read, b"x", &[1], 8).unwrap() && load.insert(&written, b"y", &[1], 8).unwrap());
    load.commit().unwrap();
    let pass = || (0..4 * EPOCHS_PER_SNAPSHOT).for_each(|_| engine.epochs().advance());
    pass();
    let mut transaction = first.begin();
    assert_eq!(count(&mut transaction, &read), 1);
    set(&mut transaction, &written, "y");
    let prepared = transaction.prepare().unwrap();
    let mut change = || -> Result<(), Abort> {
        let mut transaction = other.begin();
        match way {
            Way::Overwritten => set(&mut transaction, &read, "x"),
            Way::Deleted => {
                let found = transaction.find(&read, b"x")?.unwrap();
                transaction.delete(found)?;
            }
            Way::Joined => assert!(transaction.insert(&read, b"z", &[1], 8)?),
        }
        transaction.commit().map(drop)
    };
    let refused = change().err().map(|abort| abort.reason());
    pass();
    let mut snapshot = reader.begin_snapshot();
    count(&mut snapshot, &read);
    count(&mut snapshot, &written);
    drop(snapshot);
    prepared.commit().unwrap();
    let mut history = History::default();
    for (number, worker) in (0..).zip(&mut workers) {
        for (sequence, record) in (0..).zip(worker.take_history()) {
            let id = TransactionId { worker: number, sequence };
            history.transactions.push(transaction_of(id, &record));
        }
    }
    (refused, check(&history, &Options::default()))
}

#[test]
fn what_a_prepared_transaction_has_read_changes_after_its_decision_only() {
    for way in [Way::Overwritten, Way::Deleted, Way::Joined] {
        let (refused, verdict) = script::<Recording>(way);
        assert_eq!(refused, Some(AbortReason::PreparedRead), "{way:?}");
        assert!(verdict.is_serializable(), "{way:?}: {verdict}");
    }
}

/// The prepared one did not see the change, the snapshot sees it, and does not see what the prepared one wrote.
#[test]
fn without_protection_a_snapshot_closes_a_cycle() {
    for (way, anomaly) in
        [(Way::Overwritten, Anomaly::G2Item), (Way::Deleted, Anomaly::G2Item), (Way::Joined, Anomaly::G2)]
    {
        let (refused, verdict) = script::<UnprotectedReads>(way);
        assert_eq!(refused, None, "{way:?}");
        let Verdict::Violated(report) = &verdict else { panic!("{way:?}: {verdict}") };
        assert!(report.anomalies().contains(&anomaly), "{way:?}: {verdict}");
        println!("{way:?}: {verdict}");
    }
}
