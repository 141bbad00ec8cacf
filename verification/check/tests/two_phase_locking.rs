//! Random transactions by many threads over two-phase locking: every history is serializable, and a mistake is found.
//!
//! `ENSILO_STRESS_SECONDS=600 cargo test --profile quick -p ensilo-check --test two_phase_locking` runs longer than the default of some
//! seconds; `ENSILO_STRESS_SEED=N` begins with run `N`.
#![allow(clippy::unwrap_used, reason = "tests")]

mod engine;

use std::time::{Duration, Instant};

use engine::plan::{Mix, Plan};
use engine::stress::run;
use ensilo_2pl::{Locking, TwoPhaseLocking};
use ensilo_check::Anomaly;
use ensilo_txn::{AbortReason, Fault, Variant};

/// Declares a way to treat who meets a lock, which records its history.
macro_rules! recording {
    ($name:ident, $waits:literal, $fault:expr, $docs:literal) => {
        #[doc = $docs]
        #[derive(Copy, Clone, Debug)]
        struct $name;

        impl Variant for $name {
            const VALIDATES: bool = false;
            const RECORDS_HISTORY: bool = true;
            const FAULT: Option<Fault> = $fault;
        }

        impl Locking for $name {
            const WAITS: bool = $waits;
        }
    };
}

recording!(Waiting, true, None, "`WAIT_DIE`.");
recording!(NotWaiting, false, None, "`NO_WAIT`.");
recording!(NoRangeLocks, true, Some(Fault::SkipRangeLocks), "Reads ranges without locking them.");

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().expect("a whole number"))
}

/// Runs plans for as long as was asked for, and checks them.
fn assert_serializable<L: Locking>() {
    let deadline = Instant::now() + Duration::from_secs(setting("ENSILO_STRESS_SECONDS", 10));
    let first = setting("ENSILO_STRESS_SEED", 1);
    let (mut runs, mut sums) = (0, [0; 6]);
    while runs < 5 || Instant::now() < deadline {
        let seed = first + runs;
        let outcome = run::<TwoPhaseLocking<L>>(&Plan::of_seed(seed));
        assert!(
            outcome.is_clean(),
            "{outcome}\nreplay: ENSILO_STRESS_SEED={seed} cargo test --profile quick -p ensilo-check --test two_phase_locking"
        );
        runs += 1;
        let statistics = &outcome.statistics.transactions;
        let aborts = |reason: AbortReason| statistics.aborts[reason.index()];
        let refused = [AbortReason::LockHeld, AbortReason::PreparedLock, AbortReason::PreparedRead];
        let counts = [statistics.commits, statistics.snapshots, outcome.prepared];
        for (sum, count) in sums.iter_mut().zip(counts.into_iter().chain(refused.map(aborts))) {
            *sum += count;
        }
        assert_eq!(aborts(AbortReason::NodeValidation), 0, "nothing is validated");
    }
    println!("{runs} runs from seed {first} on");
    println!("commits, snapshots, prepared; aborts by locks, a prepared one's lock, its read: {sums:?}");
    assert!(sums.iter().all(|sum| *sum > 0), "the runs left something out: {sums:?}");
}

#[test]
fn histories_of_transactions_of_which_older_ones_wait_are_serializable() {
    assert_serializable::<Waiting>();
}

#[test]
fn histories_of_transactions_that_do_not_wait_are_serializable() {
    assert_serializable::<NotWaiting>();
}

#[test]
fn ranges_that_are_not_locked_are_caught() {
    let plans = (1..200).map(|seed| Plan { mix: Mix::Phantoms, ..Plan::of_seed(seed) });
    let mut anomalies = plans.map(|plan| run::<TwoPhaseLocking<NoRangeLocks>>(&plan).anomalies());
    assert!(anomalies.any(|found| found.contains(&Anomaly::G2)), "no phantom was found");
}
