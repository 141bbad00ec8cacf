//! What the tests of workloads share: small databases, short runs, and what checks have found.

use std::time::Duration;

use ensilo::Engine;
use ensilo::generic::Database;

use crate::database::DatabaseOptions;
use crate::driver::{AbortKind, Check, Interrupt, RunOptions, RunResult, View, Workload, run};

/// Opens a database in memory with epochs short enough that snapshots are fresh within milliseconds.
pub(crate) fn database<E: Engine>() -> Database<E> {
    database_with_retries(None)
}

/// The same, where a transaction runs again so many times after a conflict; `None` as often as by default.
pub(crate) fn database_with_retries<E: Engine>(retries: Option<u32>) -> Database<E> {
    let options = DatabaseOptions {
        epoch_interval: Some(Duration::from_millis(1)),
        epochs_per_snapshot: Some(4),
        retries,
        ..DatabaseOptions::default()
    };
    options.open(None).unwrap()
}

pub(crate) fn run_for(workload: &impl Workload, workers: usize, milliseconds: u64) -> RunResult {
    let options = RunOptions {
        workers,
        warmup: Duration::ZERO,
        measured: Duration::from_millis(milliseconds),
        pin: false,
    };
    run(workload, &options, "run", &mut View::silent(), &Interrupt::new()).unwrap()
}

/// Runs the workload until a run has all types commit, and a rollback where `rolls_back`: on a busy machine a short one may not get as far, so that
/// each is longer than the one before.
pub(crate) fn run_all_types(workload: &impl Workload, workers: usize, milliseconds: u64, rolls_back: bool) {
    let has_all = (0..6).any(|doubling| {
        let made = run_for(workload, workers, milliseconds << doubling).measurements;
        let is_rolled_back = made.aborts().of(AbortKind::Rollback) > 0;
        made.types().iter().all(|of_type| of_type.committed > 0) && (is_rolled_back || !rolls_back)
    });
    assert!(has_all, "a type never commits, or nothing is rolled back");
}

pub(crate) fn check(workload: &impl Workload) -> Vec<Check> {
    workload.check(&mut View::silent(), &Interrupt::new()).unwrap()
}

/// Returns the names of the checks that have found something.
pub(crate) fn failed(workload: &impl Workload) -> Vec<&'static str> {
    check(workload).iter().filter(|check| !check.passed()).map(|check| check.name).collect()
}

pub(crate) fn assert_hold(checks: &[Check]) {
    for check in checks {
        assert!(check.passed(), "{} {}: {:?}", check.name, check.condition, check.examples);
        assert!(check.examined > 0, "{} examined nothing", check.name);
    }
}
