//! A process that may not call `membarrier(2)`: every history is serializable all the same. It is the only test here: which barrier is
//! used is decided once per process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod engine;
#[path = "../../../crates/sync/tests/seccomp/mod.rs"]
mod seccomp;

use engine::Recording;
use engine::plan::Plan;
use engine::stress::run;
use ensilo_txn::Silo;

#[test]
fn histories_are_serializable_by_fences() {
    seccomp::refuse_membarrier();
    assert!(!ensilo_sync::barrier::wait_for_registration(), "the filter has no effect");
    let mut commits = 0;
    for seed in 1..=5 {
        let outcome = run::<Silo<Recording>>(&Plan::of_seed(seed));
        assert!(outcome.is_clean(), "seed {seed}: {outcome}");
        commits += outcome.statistics.transactions.commits;
    }
    assert!(commits > 0);
}
