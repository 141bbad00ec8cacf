//! Loads and whole runs.

use std::time::Duration;

use ensilo::ermia::{Ermia, SnapshotIsolation};
use ensilo::{Engine, Silo};

use super::super::loaded::Tpce;
use super::super::options::TpceOptions;
use super::{loaded, reduced, small};
use crate::driver::{Check, Interrupt, RunOptions, RunResult, View, Workload, run};

pub(super) fn run_for<E: Engine>(tpce: &Tpce<E>, milliseconds: u64) -> RunResult {
    let options = RunOptions {
        workers: tpce.options.workers,
        warmup: Duration::ZERO,
        measured: Duration::from_millis(milliseconds),
        pin: false,
    };
    run(tpce, &options, "run", &mut View::silent(), &Interrupt::new()).unwrap()
}

pub(super) fn check<E: Engine>(tpce: &Tpce<E>) -> Vec<Check> {
    tpce.check(&mut View::silent(), &Interrupt::new()).unwrap()
}

pub(super) fn assert_consistent(checks: &[Check]) {
    for check in checks {
        assert!(check.passed(), "{}: {:?}", check.name, check.examples);
        assert!(check.examined > 0, "{} examined nothing", check.name);
    }
}

#[test]
fn a_loaded_database_is_consistent() {
    let tpce: Tpce<Silo> = loaded(small(2));
    let checks = check(&tpce);
    assert_consistent(&checks);
    assert_eq!(checks.len(), 12);
}

fn assert_runs<E: Engine>(options: TpceOptions) {
    let tpce: Tpce<E> = loaded(options);
    let result = run_for(&tpce, 400);
    for (name, of_type) in tpce.transaction_types().iter().zip(result.measurements.types()) {
        assert!(of_type.committed > 0, "no {name} committed");
    }
    assert_consistent(&check(&tpce));
}

#[test]
fn a_run_of_all_types_leaves_the_database_consistent() {
    assert_runs::<Silo>(small(2));
}

#[test]
fn evaluations_of_assets_leave_the_database_consistent() {
    assert_runs::<Silo>(reduced(TpceOptions::hybrid(2, 20)));
}

#[test]
fn every_condition_holds_on_the_engine_of_ermia() {
    assert_runs::<Ermia>(reduced(TpceOptions::hybrid(2, 20)));
}

#[test]
fn every_condition_holds_under_snapshot_isolation() {
    assert_runs::<Ermia<SnapshotIsolation>>(reduced(TpceOptions::hybrid(2, 20)));
}
