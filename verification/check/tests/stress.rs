//! Random transactions by many threads: every history is serializable.
//!
//! `ENSILO_STRESS_SECONDS=600 cargo test --profile quick -p ensilo-check --test stress` runs longer than the default of
//! some seconds; `ENSILO_STRESS_SEED=N` begins with run `N`. Threads are scheduled by the system: a seed brings back what is
//! run, not how it interleaves.
#![allow(clippy::unwrap_used, reason = "tests")]

mod engine;

use std::time::{Duration, Instant};

use engine::Recording;
use engine::plan::Plan;
use engine::stress::run;
use ensilo_txn::{AbortReason, Silo};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().expect("a whole number"))
}

#[test]
fn histories_of_random_transactions_are_serializable() {
    let deadline = Instant::now() + Duration::from_secs(setting("ENSILO_STRESS_SECONDS", 10));
    let first = setting("ENSILO_STRESS_SEED", 1);
    let mut runs = 0;
    let mut sums = [0; 8];
    while runs < 5 || Instant::now() < deadline {
        let outcome = run::<Silo<Recording>>(&Plan::of_seed(first + runs));
        assert!(
            outcome.is_clean(),
            "{outcome}\nreplay: ENSILO_STRESS_SEED={} cargo test --profile quick -p ensilo-check --test stress",
            first + runs
        );
        runs += 1;
        let statistics = &outcome.statistics.transactions;
        let aborts = |reason: AbortReason| statistics.aborts[reason.index()];
        let conflicts = [
            AbortReason::ReadValidation,
            AbortReason::NodeValidation,
            AbortReason::KeyExists,
            AbortReason::PreparedLock,
            AbortReason::PreparedRead,
        ];
        let counts = [statistics.commits, statistics.snapshots, outcome.prepared];
        let counts = counts.into_iter().chain(conflicts.map(aborts));
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    println!("{runs} runs from seed {first} on");
    println!("commits, snapshots, prepared; aborts by read validation, node validation, key exists,");
    println!("a prepared one's lock, a prepared one's read: {sums:?}");
    assert!(sums.iter().all(|sum| *sum > 0), "the runs left something out: {sums:?}");
}
