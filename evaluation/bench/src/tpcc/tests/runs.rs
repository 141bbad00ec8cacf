//! Loads and whole runs.

use super::super::arrangement::Arrangement;
use super::super::consistency;
use super::super::options::{DISTRICTS, ReadOnly, TpccOptions, WarehouseChoice};
use super::{loaded, small};
use crate::driver::{Aborts, Check, Session, Workload};
use crate::tests::{assert_hold, check, run_all_types, run_for};

pub(super) fn assert_consistent(checks: &[Check]) {
    assert_hold(checks);
    assert_eq!(checks.len(), 12);
}

#[test]
fn a_loaded_database_has_the_specifications_rows() {
    let tpcc = loaded(small(2, 2));
    let statistics = tpcc.database.statistics().unwrap();
    let rows = |table: &str| statistics.table(table).unwrap().records;
    let (districts, customers) = (2 * u64::from(DISTRICTS), 30);
    assert_eq!(rows("warehouse"), 2);
    assert_eq!(rows("district"), districts);
    assert_eq!(rows("customer"), districts * customers);
    assert_eq!(rows("history"), districts * customers);
    assert_eq!(rows("order"), districts * customers);
    assert_eq!(rows("new_order"), districts * 9);
    assert_eq!(rows("item"), 200);
    assert_eq!(rows("stock"), 400);
    assert!((5..=15).contains(&(rows("order_line") / rows("order"))));
}

#[test]
fn a_loaded_database_is_consistent() {
    assert_consistent(&check(&loaded(small(2, 2))));
}

#[test]
fn a_seed_loads_the_same_database_with_any_number_of_workers() {
    let names = |workers| {
        let tpcc = loaded(TpccOptions { seed: 5, ..small(1, workers) });
        tpcc.database.read_stale(|tx| tpcc.tables.of(1).customers.scan().rows(tx)).unwrap()
    };
    let (one, three) = (names(1), names(3));
    assert!(one.iter().zip(&three).all(|(a, b)| a.c_first == b.c_first && a.c_data == b.c_data));
}

#[test]
fn a_run_of_all_types_leaves_the_database_consistent() {
    let tpcc = loaded(small(2, 2));
    run_all_types(&tpcc, tpcc.options.workers, 400, true);
    assert_consistent(&check(&tpcc));
}

#[test]
fn the_database_shows_the_effects_of_what_was_committed() {
    let tpcc = loaded(small(2, 1));
    assert_eq!(tpcc.count_effects().unwrap(), [0; 5]);
    let mut expected = [0; 5];
    let mut session = tpcc.session(0);
    for _ in 0..500 {
        let outcome = session.run_one(1_700_000_000_000_000, &mut Aborts::default()).unwrap();
        expected[outcome.transaction] += u64::from(outcome.effects);
    }
    assert!(expected[0] > 0 && expected[1] > 0 && expected[3] > 0, "{expected:?}");
    assert_eq!(tpcc.count_effects().unwrap(), expected);
}

#[test]
fn contended_runs_leave_the_database_consistent() {
    for (read_only, warehouse_choice) in [
        (ReadOnly::Ordinary, WarehouseChoice::Home),
        (ReadOnly::Ordinary, WarehouseChoice::Uniform),
        (ReadOnly::Snapshot, WarehouseChoice::EightyTwenty),
    ] {
        let tpcc = loaded(TpccOptions { read_only, warehouse_choice, ..small(1, 4) });
        run_for(&tpcc, tpcc.options.workers, 250);
        assert_consistent(&check(&tpcc));
    }
}

#[test]
fn snapshots_are_consistent_while_others_write() {
    let tpcc = loaded(small(2, 2));
    std::thread::scope(|scope| {
        let running = scope.spawn(|| run_for(&tpcc, tpcc.options.workers, 400));
        while !running.is_finished() {
            assert_consistent(&tpcc.database.read_stale(|tx| consistency::check_in(&tpcc, tx)).unwrap());
        }
        assert!(running.join().unwrap().measurements.committed() > 0);
    });
}
