//! The configurations that Silo is compared with lose none of its guarantees: their histories are serializable too.
//!
//! `ENSILO_STRESS_SECONDS=60 cargo test --profile quick -p ensilo-check --test variants` runs longer than the default of two seconds each.
#![allow(clippy::unwrap_used, reason = "tests")]

mod engine;

use std::time::{Duration, Instant};

use engine::Recorded;
use engine::plan::Plan;
use engine::stress::run;
use ensilo_txn::{Allocator, GlobalTid, NoGc, NoSnapshots, Silo, Simple, Variant};

/// Runs random transactions on the variant for a while and checks every history.
fn check<V: Variant>() {
    let seconds = std::env::var("ENSILO_STRESS_SECONDS").map_or(2, |value| value.parse().unwrap());
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let (mut seed, mut commits) = (0, 0);
    while seed < 3 || Instant::now() < deadline {
        seed += 1;
        let outcome = run::<Silo<Recorded<V>>>(&Plan::of_seed(seed));
        assert!(outcome.is_clean(), "{outcome}");
        commits += outcome.statistics.transactions.commits;
    }
    println!("{seed} runs, {commits} commits");
    assert!(commits > 1_000);
}

#[test]
fn tids_from_one_counter_are_as_good() {
    check::<GlobalTid>();
}

#[test]
fn so_are_transactions_without_snapshots_beside_them() {
    check::<NoSnapshots>();
}

#[test]
fn and_records_of_the_general_allocator_that_are_never_overwritten() {
    check::<Simple>();
}

#[test]
fn and_records_in_slabs_that_are_never_overwritten() {
    check::<Allocator>();
}

#[test]
fn and_memory_that_is_never_freed() {
    check::<NoGc>();
}
