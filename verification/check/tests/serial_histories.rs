//! Histories of transactions that ran one at a time pass; the same histories with one thing changed do not.
#![allow(clippy::unwrap_used, reason = "tests")]

mod reference;

use std::collections::BTreeMap;

use ensilo_check::{Anomaly, Epoch, History, Key, Tid, Transaction, TransactionId, Verdict};
use proptest::prelude::*;
use proptest::sample::Index;
use reference::{Interpreter, Operation, Step, epoch_of, judge};

const KEYS: u8 = 12;

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        3 => (0..KEYS).prop_map(Operation::Get),
        3 => (0..KEYS).prop_map(Operation::Put),
        3 => (0..KEYS).prop_map(Operation::Insert),
        2 => (0..KEYS).prop_map(Operation::Delete),
        1 => (0..KEYS, 0..KEYS).prop_map(|(low, high)| Operation::Scan(low, high)),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let operations = || prop::collection::vec(operation(), 1..6);
    let step = prop_oneof![
        10 => (0u8..4, operations()).prop_map(|(worker, operations)| Step::Transaction(worker, operations)),
        2 => (0u8..4, operations()).prop_map(|(worker, operations)| Step::Snapshot(worker, operations)),
        1 => (0..KEYS).prop_map(Step::AbortedInsert),
        3 => Just(Step::Advance),
    ];
    prop::collection::vec(step, 1..120)
}

/// The versions of each key in the order in which they were written, with their writers.
fn versions(history: &History) -> BTreeMap<Key, Vec<(Tid, bool, TransactionId)>> {
    let mut versions: BTreeMap<Key, Vec<_>> = BTreeMap::new();
    for transaction in &history.transactions {
        for write in &transaction.writes {
            versions.entry(write.key.clone()).or_default().push((
                transaction.tid,
                write.absent,
                transaction.id,
            ));
        }
    }
    versions
}

/// Picks one of the places of all reads that satisfy a condition.
fn pick_read(
    history: &History,
    selector: Index,
    condition: impl Fn(&Transaction, &ensilo_check::Read) -> bool,
) -> Option<(usize, usize)> {
    let mut places = Vec::new();
    for (index, transaction) in history.transactions.iter().enumerate() {
        for (position, read) in transaction.reads.iter().enumerate() {
            if condition(transaction, read) {
                places.push((index, position));
            }
        }
    }
    (!places.is_empty()).then(|| *selector.get(&places))
}

fn caught(history: &History) -> Vec<Anomaly> {
    match judge(history) {
        Verdict::Violated(report) => report.anomalies(),
        _ => Vec::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 20_000, failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn serial_histories_pass(steps in steps(), shuffled in any::<bool>()) {
        let mut history = Interpreter::run(&steps);
        if shuffled {
            history.transactions.sort_by_key(|transaction| transaction.id);
        }
        let verdict = judge(&history);
        prop_assert!(verdict.is_serializable(), "{}", verdict);
    }

    /// Where the next version is of an earlier epoch, by the same worker, or overwritten by the reader itself.
    #[test]
    fn a_stale_read_is_caught(steps in steps(), selector in any::<Index>()) {
        let mut history = Interpreter::run(&steps);
        let versions = versions(&history);
        let settled = |transaction: &Transaction, read: &ensilo_check::Read| {
            let writes = transaction.writes.iter().any(|write| write.key == read.key);
            let of_worker = versions.get(&read.key).is_some_and(|versions| {
                versions.iter().any(|version| version.0 == read.version && version.2.worker == transaction.id.worker)
            });
            read.version != Tid(0)
                && (transaction.snapshot.is_some()
                    || epoch_of(read.version) < transaction.epoch || writes || of_worker)
        };
        let picked = pick_read(&history, selector, settled);
        prop_assume!(picked.is_some());
        let (index, position) = picked.unwrap();
        let read = &mut history.transactions[index].reads[position];
        let order = &versions[&read.key];
        let place = order.iter().position(|version| version.0 == read.version).unwrap();
        // A snapshot may take a delete for a key that never existed, or one that was unhooked.
        prop_assume!(place > 0 || !read.absent);
        (read.version, read.absent) = match place.checked_sub(1) {
            Some(before) => (order[before].0, order[before].1),
            None => (Tid(0), true),
        };
        prop_assert!(!caught(&history).is_empty());
    }

    #[test]
    fn a_wrong_absent_bit_is_caught(steps in steps(), selector in any::<Index>()) {
        let mut history = Interpreter::run(&steps);
        let picked = pick_read(&history, selector, |_, _| true);
        prop_assume!(picked.is_some());
        let (index, position) = picked.unwrap();
        let read = &mut history.transactions[index].reads[position];
        read.absent = !read.absent;
        prop_assert!(caught(&history).contains(&Anomaly::G1b));
    }

    #[test]
    fn an_overlooked_row_is_caught(steps in steps(), selector in any::<Index>()) {
        let mut history = Interpreter::run(&steps);
        let in_a_range = |transaction: &Transaction, read: &ensilo_check::Read| {
            let key = &read.key;
            let in_range = transaction.ranges.iter().any(|range| {
                use std::ops::RangeBounds;
                (range.low.clone(), range.high.clone()).contains(&key.bytes)
            });
            let named_once = transaction.reads.iter().filter(|other| other.key == *key).count() == 1
                && transaction.writes.iter().all(|write| write.key != *key);
            let settled = epoch_of(read.version) < transaction.epoch;
            in_range && named_once && !read.absent && settled
        };
        let picked = pick_read(&history, selector, in_a_range);
        prop_assume!(picked.is_some());
        let (index, position) = picked.unwrap();
        history.transactions[index].reads.remove(position);
        prop_assert!(!caught(&history).is_empty());
    }

    #[test]
    fn an_epoch_before_that_of_a_version_read_is_caught(steps in steps(), selector in any::<Index>()) {
        let mut history = Interpreter::run(&steps);
        let picked = pick_read(&history, selector, |_, read| read.version != Tid(0));
        prop_assume!(picked.is_some());
        let (index, position) = picked.unwrap();
        let reader = &mut history.transactions[index];
        let epoch = Epoch(epoch_of(reader.reads[position].version).0 - 1);
        let expected = match &mut reader.snapshot {
            Some(snapshot) => { *snapshot = epoch; Anomaly::SnapshotRead }
            None => { reader.epoch = epoch; Anomaly::EpochOrder }
        };
        prop_assert!(caught(&history).contains(&expected));
    }

    #[test]
    fn a_lost_commit_is_caught_by_its_readers(steps in steps(), selector in any::<Index>()) {
        let mut history = Interpreter::run(&steps);
        let picked = pick_read(&history, selector, |_, read| read.version != Tid(0));
        prop_assume!(picked.is_some());
        let (index, position) = picked.unwrap();
        let read = history.transactions[index].reads[position].clone();
        history.transactions.retain(|transaction| {
            transaction.tid != read.version || transaction.writes.iter().all(|write| write.key != read.key)
        });
        prop_assert!(caught(&history).contains(&Anomaly::G1a));
    }

    #[test]
    fn a_repeated_tid_is_caught(steps in steps(), selector in any::<Index>()) {
        let mut history = Interpreter::run(&steps);
        let overwrites = |transaction: &Transaction, read: &ensilo_check::Read| {
            read.version != Tid(0) && transaction.writes.iter().any(|write| write.key == read.key)
        };
        let picked = pick_read(&history, selector, overwrites);
        prop_assume!(picked.is_some());
        let (index, position) = picked.unwrap();
        let writer = &mut history.transactions[index];
        writer.tid = writer.reads[position].version;
        let anomalies = caught(&history);
        prop_assert!(anomalies.contains(&Anomaly::DuplicateVersion) && anomalies.contains(&Anomaly::TidOrder));
    }
}

/// A long run in constant space: enough to notice a check that is not close to linear.
#[test]
fn a_large_history_is_checked() {
    let mut state = 1u64;
    let mut random = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % bound) as u8
    };
    let mut steps = Vec::new();
    for _ in 0..60_000 {
        let operations = (0..8)
            .map(|_| match random(8) {
                0..3 => Operation::Get(random(100)),
                3..5 => Operation::Put(random(100)),
                5 => Operation::Insert(random(100)),
                6 => Operation::Delete(random(100)),
                _ => {
                    let low = random(90);
                    Operation::Scan(low, low + 10)
                }
            })
            .collect();
        steps.push(match random(40) {
            0 => Step::Advance,
            1..5 => Step::Snapshot(random(4), operations),
            _ => Step::Transaction(random(4), operations),
        });
    }
    let history = Interpreter::run(&steps);
    let verdict = judge(&history);
    assert!(verdict.is_serializable(), "{verdict}");
}
