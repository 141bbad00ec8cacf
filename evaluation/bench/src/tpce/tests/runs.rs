//! Loads and whole runs.

use ensilo::ermia::{Ermia, SnapshotIsolation};
use ensilo::{Engine, Silo};

use super::super::loaded::Tpce;
use super::super::options::TpceOptions;
use super::{loaded, reduced, small};
use crate::tests::{assert_hold, check, run_all_types};

#[test]
fn a_loaded_database_is_consistent() {
    let tpce: Tpce<Silo> = loaded(small(2));
    let checks = check(&tpce);
    assert_hold(&checks);
    assert_eq!(checks.len(), 12);
}

fn assert_runs<E: Engine>(options: TpceOptions) {
    let tpce: Tpce<E> = loaded(options);
    run_all_types(&tpce, tpce.options.workers, 400, false);
    assert_hold(&check(&tpce));
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
