//! Mistakes that are built into the protocol on purpose are noticed: the checker and the stress test deserve belief.
//!
//! Some of the mistakes let the engine free what is still in use. Their runs are processes of their own, so that a crash
//! ends such a run only; it does not count as noticed.
#![allow(clippy::unwrap_used, reason = "tests")]

mod engine;

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use engine::plan::Plan;
use engine::stress::run;
use engine::{
    EarlyEpoch, ForgetDeleted, ForgetRemovals, IgnoreAbsent, NoNodeValidation, NoReadValidation, Recording,
    RenewNeededCopies, UnorderedLocks, UnprotectedReads,
};
use ensilo_check::Anomaly;
use ensilo_txn::{AbortReason, Engine, EngineOptions, Session, Silo, Store, TableId, Variant, Write};

/// A fault must show within so many runs.
const RUNS_MAX: u64 = 60;

/// A run takes a fraction of a second; one that got stuck is given up.
const RUN_DURATION_MAX: Duration = Duration::from_secs(10);

/// What a child process is asked to run: a fault and a seed.
const REQUEST: &str = "ENSILO_PLANTED_FAULT";

/// The run that a child process is asked for; nothing when this is no child process.
#[test]
fn planted_run() {
    let Ok(request) = std::env::var(REQUEST) else { return };
    let (fault, seed) = request.split_once(':').unwrap();
    let plan = Plan::of_seed(seed.parse().unwrap());
    let outcome = match fault {
        "no read validation" => run::<Silo<NoReadValidation>>(&plan),
        "no node validation" => run::<Silo<NoNodeValidation>>(&plan),
        "unprotected prepared reads" => run::<Silo<UnprotectedReads>>(&plan),
        "early epoch" => run::<Silo<EarlyEpoch>>(&plan),
        "forgotten deleted records" => run::<Silo<ForgetDeleted>>(&plan),
        // Snapshots that read much, and often last while others begin, over few keys.
        "renewed copies that are needed" => run::<Silo<RenewNeededCopies>>(&Plan {
            keys_at_a_time: 20,
            operations_max: 100,
            epochs_per_snapshot: 1,
            lingers_one_in: 300,
            ..plan
        }),
        "forgotten removals" => run::<Silo<ForgetRemovals>>(&plan),
        // Short, because records are soon freed that are in use.
        "ignored absent bit" => run::<Silo<IgnoreAbsent>>(&Plan { transactions_per_thread: 100, ..plan }),
        _ => panic!("no such fault: {fault}"),
    };
    println!("{outcome}");
}

/// What a run in a child process reported, as far as it came.
fn report_of(fault: &str, seed: u64) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "planted_run", "--nocapture"])
        .env(REQUEST, format!("{fault}:{seed}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut report = Vec::new();
        stdout.read_to_end(&mut report).map(|_| String::from_utf8_lossy(&report).into_owned())
    });
    let deadline = Instant::now() + RUN_DURATION_MAX;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    reader.join().unwrap().unwrap()
}

/// Runs seed after seed until a report contains one of these texts.
fn notice(fault: &str, texts: &[&str]) {
    for seed in 1..=RUNS_MAX {
        let report = report_of(fault, seed);
        if texts.iter().any(|text| report.contains(text)) {
            println!("{report}");
            return;
        }
    }
    panic!("not noticed within {RUNS_MAX} runs");
}

/// How a report names an anomaly that the checker found.
fn found(anomaly: Anomaly) -> String {
    format!(" x {anomaly}")
}

#[test]
fn a_commit_without_read_validation_is_caught() {
    notice("no read validation", &[&found(Anomaly::G2Item)]);
}

#[test]
fn a_commit_without_node_validation_is_caught() {
    notice("no node validation", &[&found(Anomaly::G2)]);
}

/// Another transaction overwrites what a prepared one has read, and commits in an earlier epoch than its decision.
#[test]
fn prepared_reads_that_are_not_protected_are_caught() {
    notice("unprotected prepared reads", &[&found(Anomaly::EpochOrder), &found(Anomaly::G2Item)]);
}

/// With assertions on the engine itself notices that a TID would lie before one that was read.
#[test]
fn an_epoch_read_too_early_is_caught() {
    let texts = [found(Anomaly::EpochOrder), found(Anomaly::SnapshotRead)];
    let assertion = if cfg!(debug_assertions) { "a TID of a future epoch was observed" } else { &texts[0] };
    notice("early epoch", &[&texts[0], &texts[1], assertion]);
}

#[test]
fn deleted_records_that_a_snapshot_forgets_are_caught() {
    notice("forgotten deleted records", &[&found(Anomaly::SnapshotRead)]);
}

#[test]
fn needed_versions_that_are_overwritten_are_caught() {
    notice("renewed copies that are needed", &[&found(Anomaly::SnapshotRead)]);
}

/// A row that is inserted again gets a TID before that of its deletion.
#[test]
fn removals_that_a_commit_forgets_are_caught() {
    notice("forgotten removals", &[&found(Anomaly::G2Item)]);
}

#[test]
fn an_ignored_absent_bit_is_caught() {
    notice("ignored absent bit", &[&found(Anomaly::G1b)]);
}

/// A deadlock ends after a bounded wait, and is counted: a broken lock order shows in the counter. With an unbroken one the wait is only in
/// vain where the system lets the holder of a lock stand still for that long.
#[test]
fn a_broken_lock_order_is_noticed() {
    let began = Instant::now();
    let (mut in_disorder, mut times) = (0, 0);
    while in_disorder < 20 && began.elapsed() < Duration::from_secs(30) {
        in_disorder += deadlocks::<UnorderedLocks>();
        times += 1;
    }
    let in_order: u64 = (0..times).map(|_| deadlocks::<Recording>()).sum();
    println!("{in_disorder} deadlocks, with the locks in order {in_order}");
    assert!(in_disorder > 10 * in_order, "{in_disorder} deadlocks, with the locks in order {in_order}");
}

/// Lets two threads write all rows at once, one from the last to the first, again and again, and says how often a lock was waited for in
/// vain.
fn deadlocks<V: Variant>() -> u64 {
    const ROUNDS: usize = 50;
    let engine = Silo::<V>::start(EngineOptions::default()).unwrap();
    let store = engine.new_store(TableId(1)).unwrap();
    let keys: Vec<[u8; 2]> = (0..1000u16).map(u16::to_be_bytes).collect();
    let mut worker = engine.session();
    let mut load = worker.begin();
    for key in &keys {
        assert!(load.insert(&store, key, &[0], 8).unwrap());
    }
    load.commit().unwrap();
    let (arrived, deadlocks) = (AtomicUsize::new(0), AtomicU64::new(0));
    // Both come from it within a moment: neither sleeps.
    let meet = || {
        // Relaxed: what the threads share comes in order by itself.
        let meeting = arrived.fetch_add(1, Ordering::Relaxed) / 2;
        while arrived.load(Ordering::Relaxed) / 2 == meeting {
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        for is_reversed in [false, true] {
            let (engine, store, keys, meet, deadlocks) = (&engine, &store, &keys, &meet, &deadlocks);
            scope.spawn(move || {
                let mut worker = engine.session();
                for _ in 0..ROUNDS {
                    let transaction = write_all(worker.begin(), store, keys, is_reversed);
                    meet();
                    let outcome = transaction.commit();
                    let is_deadlock = outcome.is_err_and(|abort| abort.reason() == AbortReason::LockHeld);
                    deadlocks.fetch_add(u64::from(is_deadlock), Ordering::Relaxed);
                    meet();
                }
            });
        }
    });
    deadlocks.into_inner()
}

fn write_all<W: Write<Store = Store>>(
    mut transaction: W,
    store: &Store,
    keys: &[[u8; 2]],
    is_reversed: bool,
) -> W {
    let mut rows = Vec::new();
    transaction.find_many(store, keys, |_, found| rows.extend(found)).unwrap();
    if is_reversed {
        rows.reverse();
    }
    for found in rows {
        transaction.patch(found, &[(0, 1)]).unwrap();
    }
    transaction
}
