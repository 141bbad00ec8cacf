//! Random transactions by many threads over ERMIA's engine: with the serial safety net every history is serializable, without it every one
//! is of snapshot isolation, and mistakes in both are found.
//!
//! `ENSILO_STRESS_SECONDS=600 cargo test --profile quick -p ensilo-check --test ermia` runs longer than the default of some seconds;
//! `ENSILO_STRESS_SEED=N` begins with run `N`.
#![allow(clippy::unwrap_used, reason = "tests")]

mod engine;

use std::time::{Duration, Instant};

use engine::levels::{
    EvictingUsed, NoMisses, NoNodes, NoPassedOver, NoReaders, NoWaiting, NoWaitingSnapshots, NoWindow,
    Overwriting, OverwritingSnapshots, Recorded, RecordedSnapshots,
};
use engine::plan::Plan;
use engine::stress::run;
use ensilo_check::IsolationLevel;
use ensilo_ermia::{Ermia, Isolation};
use ensilo_txn::{AbortReason, EngineStatistics};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().expect("a whole number"))
}

/// The serial safety net promises a serial order, and no more: a transaction may come before an earlier one of its own session.
fn plan(seed: u64) -> Plan {
    Plan { has_program_order: false, ..Plan::of_seed(seed) }
}

/// The same, held to snapshot isolation alone.
fn snapshot_plan(seed: u64) -> Plan {
    Plan { isolation: IsolationLevel::SnapshotIsolation, ..plan(seed) }
}

/// Runs such plans for as long as was asked for, and checks them. Returns what each has counted.
fn clean_runs(plan: fn(u64) -> Plan) -> Vec<EngineStatistics> {
    let deadline = Instant::now() + Duration::from_secs(setting("ENSILO_STRESS_SECONDS", 10));
    let first = setting("ENSILO_STRESS_SEED", 1);
    let mut runs = Vec::new();
    while runs.len() < 5 || Instant::now() < deadline {
        let seed = first + runs.len() as u64;
        let outcome = run::<Ermia<Recorded>>(&plan(seed));
        assert!(
            outcome.is_clean(),
            "{outcome}\nreplay: ENSILO_STRESS_SEED={seed} cargo test --profile quick -p ensilo-check --test ermia"
        );
        runs.push(outcome.statistics);
    }
    println!("{} runs from seed {first} on", runs.len());
    runs
}

#[test]
fn histories_of_random_transactions_are_serializable() {
    let mut sums = [0; 6];
    for EngineStatistics { transactions, .. } in clean_runs(plan) {
        let aborts = |reason: AbortReason| transactions.aborts[reason.index()];
        let conflicts = [
            AbortReason::ReadValidation,
            AbortReason::NodeValidation,
            AbortReason::KeyExists,
            AbortReason::LockHeld,
        ];
        let counts = [transactions.commits, transactions.snapshots].into_iter().chain(conflicts.map(aborts));
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    println!(
        "commits, snapshots; aborts by read validation, node validation, key exists, lock held: {sums:?}"
    );
    assert!(sums.iter().all(|sum| *sum > 0), "the runs left something out: {sums:?}");
}

/// The same over rows that leave memory as soon as nobody uses them, which is true of most. Many transactions last longer than that
/// takes.
fn cold_plan(seed: u64) -> Plan {
    Plan {
        leaves_memory: true,
        keys_at_a_time: 8,
        lingers_one_in: 400,
        lingers_for: 5,
        memory_limit_bytes: None,
        ..plan(seed)
    }
}

#[test]
fn histories_over_rows_that_leave_memory_are_serializable() {
    let runs = clean_runs(cold_plan);
    let sum = |count: fn(&EngineStatistics) -> u64| runs.iter().map(count).sum::<u64>();
    let counts = [sum(|run| run.cold.evicted), sum(|run| run.cold.loaded)];
    println!("rows that left memory and that came back: {counts:?}");
    assert!(counts.iter().all(|count| *count > 10 * runs.len() as u64), "hardly a row: {counts:?}");
}

#[test]
fn histories_of_snapshots_over_rows_that_leave_memory_are_of_snapshot_isolation() {
    for seed in 1..12 {
        let plan = Plan { isolation: IsolationLevel::SnapshotIsolation, ..cold_plan(seed) };
        let outcome = run::<Ermia<RecordedSnapshots>>(&plan);
        assert!(outcome.is_clean(), "{outcome}");
    }
}

#[test]
fn a_row_that_leaves_memory_while_it_is_used_is_caught() {
    assert!((1..200).any(|seed| !run::<Ermia<EvictingUsed>>(&cold_plan(seed)).is_clean()));
}

/// Returns whether some run finds what is wrong at this level.
fn is_found<I: Isolation>() -> bool {
    (1..200).any(|seed| !run::<Ermia<I>>(&plan(seed)).is_clean())
}

/// Returns whether some run finds what is wrong with snapshot isolation at this level.
fn is_found_of_snapshots<I: Isolation>() -> bool {
    (1..200).any(|seed| !run::<Ermia<I>>(&snapshot_plan(seed)).is_clean())
}

#[test]
fn snapshot_isolation_is_not_serializable() {
    assert!(is_found::<RecordedSnapshots>());
}

#[test]
fn histories_without_the_safety_net_are_of_snapshot_isolation() {
    for seed in 1..12 {
        let outcome = run::<Ermia<RecordedSnapshots>>(&snapshot_plan(seed));
        assert!(outcome.is_clean(), "{outcome}");
        assert!(outcome.verdict.is_snapshot_isolated());
    }
}

#[test]
fn an_uncommitted_version_that_is_overwritten_is_caught() {
    assert!(is_found::<Overwriting>());
}

#[test]
fn an_uncommitted_version_that_is_overwritten_is_no_snapshot_isolation() {
    assert!(is_found_of_snapshots::<OverwritingSnapshots>());
}

#[test]
fn a_commit_in_the_past_that_is_skipped_is_no_snapshot_isolation() {
    assert!(is_found_of_snapshots::<NoWaitingSnapshots>());
}

#[test]
fn a_commit_without_the_exclusion_window_is_caught() {
    assert!(is_found::<NoWindow>());
}

#[test]
fn readers_that_leave_no_stamp_are_caught() {
    assert!(is_found::<NoReaders>());
}

#[test]
fn a_commit_in_the_past_that_is_skipped_is_caught() {
    assert!(is_found::<NoWaiting>());
}

#[test]
fn a_commit_without_the_node_set_is_caught() {
    assert!(is_found::<NoNodes>());
}

#[test]
fn misses_that_leave_no_stamp_are_caught() {
    assert!(is_found::<NoMisses>());
}

#[test]
fn inserts_that_were_passed_over_are_caught() {
    assert!(is_found::<NoPassedOver>());
}
