//! Mistakes that are built into the protocol on purpose are noticed: the checker and the stress test deserve belief.
#![allow(clippy::unwrap_used, reason = "tests")]

mod engine;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use engine::plan::Plan;
use engine::stress::{Outcome, run};
use engine::{EarlyEpoch, IgnoreAbsent, NoNodeValidation, NoReadValidation, Recording, UnorderedLocks};
use ensilo_check::{Anomaly, Verdict};
use ensilo_txn::{Abort, AbortReason, Engine, EngineOptions, Protocol, Silo, Store, TableId, Write};

/// A fault must show within so many runs.
const RUNS_MAX: u64 = 60;

/// Runs seed after seed until an outcome satisfies `is_noticed`.
fn notice<P: Protocol>(is_noticed: impl Fn(&Outcome) -> bool) -> Outcome {
    for seed in 1..=RUNS_MAX {
        let outcome = run::<P>(&Plan::of_seed(seed));
        if is_noticed(&outcome) {
            println!("{outcome}");
            return outcome;
        }
    }
    panic!("not noticed within {RUNS_MAX} runs");
}

/// Whether the checker named one of these anomalies.
fn shows(outcome: &Outcome, anomalies: &[Anomaly]) -> bool {
    matches!(outcome.verdict, Verdict::Violated(_))
        && outcome.anomalies().iter().any(|anomaly| anomalies.contains(anomaly))
}

#[test]
fn a_commit_without_read_validation_is_caught() {
    notice::<Silo<NoReadValidation>>(|outcome| shows(outcome, &[Anomaly::G2Item]));
}

#[test]
fn a_commit_without_node_validation_is_caught() {
    notice::<Silo<NoNodeValidation>>(|outcome| shows(outcome, &[Anomaly::G2]));
}

/// With assertions on the engine itself notices that a TID would lie before one that was read.
#[test]
fn an_epoch_read_too_early_is_caught() {
    notice::<Silo<EarlyEpoch>>(|outcome| {
        shows(outcome, &[Anomaly::EpochOrder, Anomaly::SnapshotRead])
            || cfg!(debug_assertions) && !outcome.panics.is_empty()
    });
}

#[test]
fn an_ignored_absent_bit_is_caught() {
    notice::<Silo<IgnoreAbsent>>(|outcome| shows(outcome, &[Anomaly::G1b]));
}

/// A deadlock ends after a bounded wait, and is counted: a broken lock order shows in the counter, an unbroken one does not
/// in as much time.
#[test]
fn a_broken_lock_order_is_noticed() {
    let began = Instant::now();
    let in_disorder = deadlocks_within::<Silo<UnorderedLocks>>(Duration::from_secs(30));
    let duration = began.elapsed().min(Duration::from_secs(3));
    let in_order = deadlocks_within::<Silo<Recording>>(duration);
    println!("{in_disorder} deadlocks, with the locks in order {in_order} in {duration:?}");
    assert!(in_disorder > 0 && in_order == 0, "{in_disorder} deadlocks, with the locks in order {in_order}");
}

/// Lets several threads write all rows again and again until a lock was waited for in vain, and says how often it was.
fn deadlocks_within<P: Protocol>(duration: Duration) -> u64 {
    let engine = Engine::<P>::new(EngineOptions::default());
    let store = engine.new_store(TableId(1)).unwrap();
    let keys: Vec<[u8; 2]> = (0..1000u16).map(u16::to_be_bytes).collect();
    let mut worker = engine.worker();
    let mut load = worker.begin();
    for key in &keys {
        assert!(load.insert(&store, key, &[0], 8).unwrap());
    }
    load.commit().unwrap();
    let deadline = Instant::now() + duration;
    let deadlocks = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut worker = engine.worker();
                // Relaxed: a hint to stop.
                while Instant::now() < deadline && deadlocks.load(Ordering::Relaxed) == 0 {
                    let outcome = write_all(worker.begin(), &store, &keys);
                    let is_deadlock = outcome.is_err_and(|abort| abort.reason() == AbortReason::LockHeld);
                    deadlocks.fetch_add(u64::from(is_deadlock), Ordering::Relaxed);
                }
            });
        }
    });
    deadlocks.into_inner()
}

fn write_all(mut transaction: impl Write, store: &Store, keys: &[[u8; 2]]) -> Result<(), Abort> {
    let mut rows = Vec::new();
    transaction.find_many(store, keys, |_, found| rows.extend(found))?;
    for found in rows {
        transaction.patch(found, &[(0, 1)])?;
    }
    transaction.commit()?;
    Ok(())
}
