#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use ensilo_engine::{Addition, Engine, Read, Session, TableId, Tid, Write};
use ensilo_epoch::{Advance, Epoch, EpochOptions};

use crate::silo::context::Context;
use crate::silo::write_set::RecordChange;
use crate::store::Store;
use crate::{AbortReason, EngineOptions, Silo};

/// Returns an engine with epochs that begin at `first` and are moved on by nobody.
fn engine(first: Epoch) -> (Arc<Silo>, Arc<Store>) {
    let epochs = EpochOptions {
        first_epoch: first,
        epochs_per_snapshot: 1,
        advance: Advance::Manual,
        ..EpochOptions::default()
    };
    let mut options = EngineOptions::default();
    options.epochs = epochs;
    let engine = Silo::start(options).unwrap();
    let store = engine.new_store(TableId(1)).unwrap();
    (engine, store)
}

/// The words of the first write, which is a patch.
fn first_patch(context: &Context) -> Vec<(usize, u64)> {
    match context.writes[0].change {
        RecordChange::Patch(patch) => context.patch_words(patch).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_worker_whose_tids_run_out_moves_the_epoch_on() {
    let (engine, store) = engine(Epoch::new(100));
    let mut worker = engine.session();
    let epoch = engine.epochs().global_epoch();
    let (_, state) = worker.parts();
    state.context.last_tid = Tid::from_raw(Tid::before(Epoch::new(epoch.get() + 1)).get() - 1);
    let mut tx = worker.begin();
    tx.insert(&store, b"key", &[1], 8).unwrap();
    let committed = tx.commit().unwrap();
    assert_eq!(committed.epoch, Epoch::new(epoch.get() + 1));
    assert_eq!(engine.epochs().global_epoch(), committed.epoch);
}

/// It locks what it adds to, lets go of it to move the epoch on, and locks it again, whatever others have made of it meanwhile.
#[test]
fn additions_of_a_commit_that_has_to_wait_are_made_to_what_is_there_then() {
    let (engine, store) = engine(Epoch::new(100));
    let mut worker = engine.session();
    let mut tx = worker.begin();
    tx.insert(&store, b"key", &[1], 8).unwrap();
    tx.commit().unwrap();
    let mut tx = worker.begin();
    let one = Addition { word: 0, shift: 0, bits: 64, is_signed: false, is_subtraction: false, amount: 1 };
    for _ in 0..2 {
        assert!(tx.add(&store, b"key", Epoch::new(0), &[one, one]).unwrap());
    }
    tx.order_write_set().unwrap();
    for expected in [5, 105] {
        let _ = tx.lock_write_set().unwrap();
        assert_eq!((tx.context.reads.len(), first_patch(tx.context)), (1, vec![(0, expected)]));
        tx.unlock_write_set();
        tx.context.take_sums_back(0);
        assert!(tx.context.reads.is_empty());
        // Another one adds.
        let record = tx.context.writes[0].record;
        record.store_row([101].into_iter(), 8);
    }
    tx.context.lock_order.clear();
    let epoch = engine.epochs().global_epoch();
    tx.context.last_tid = Tid::from_raw(Tid::before(Epoch::new(epoch.get() + 1)).get() - 1);
    assert_eq!(tx.commit().unwrap().epoch, Epoch::new(epoch.get() + 1));
    let mut tx = worker.begin();
    assert_eq!(tx.get(&store, b"key", |row| row.word(0)).unwrap(), Some(105));
}

#[test]
fn nothing_commits_in_the_last_epoch_and_reads_go_on() {
    let (engine, store) = engine(Epoch::new(Epoch::LAST.get() - 1));
    let mut worker = engine.session();
    let mut tx = worker.begin();
    tx.insert(&store, b"before", &[1], 8).unwrap();
    assert_eq!(tx.commit().unwrap().epoch, Epoch::new(Epoch::LAST.get() - 1));
    for _ in 0..3 {
        engine.epochs().advance();
        assert_eq!(engine.epochs().global_epoch(), Epoch::LAST);
        let mut tx = worker.begin();
        tx.insert(&store, b"after", &[1], 8).unwrap();
        let abort = tx.commit().unwrap_err();
        assert!(abort.reason() == AbortReason::EpochsExhausted && !abort.is_retryable());
    }
    let mut tx = worker.begin();
    assert_eq!(tx.get(&store, b"before", |row| row.word(0)).unwrap(), Some(1));
    assert_eq!(tx.get(&store, b"after", |row| row.word(0)).unwrap(), None);
    tx.commit().unwrap();
}
