//! The check after TPC-C holds on a correct store, and says what a faulty one has lost.

#![allow(clippy::unwrap_used, reason = "tests")]

mod faulty;

use std::time::Duration;

use ensilo_bench::driver::{Interrupt, RunOptions, View, Workload, run};
use ensilo_bench::tpcc::{Scale, TpccOptions};
use ensilo_peers::engine::OrderedTable;
use ensilo_peers::workload::{LoadedRows, OrderedTpcc, PeerTpcc};

use faulty::{Fault, Faulty};

/// The names of the checks that do not hold after a run.
fn violated_with(fault: Fault) -> Vec<&'static str> {
    let options =
        TpccOptions { warehouses: 2, scale: Scale { items: 200, customers: 30 }, ..TpccOptions::new(2) };
    let (mut view, interrupt) = (View::silent(), Interrupt::new());
    let rows = LoadedRows::new(&options, &mut view, &interrupt).unwrap();
    let tpcc = PeerTpcc::new(OrderedTpcc::load(Faulty::with(fault), &rows).unwrap(), options);
    let measured = Duration::from_secs(1);
    let options = RunOptions { workers: 2, warmup: measured / 10, measured, pin: false };
    let result = run(&tpcc, &options, "run", &mut view, &interrupt).unwrap();
    assert!(result.measurements.committed() > 0);
    let has_planted = tpcc.peer().store().has_planted();
    assert!(fault == Fault::None || has_planted, "the fault was not planted in a second");
    let checks = tpcc.check(&mut view, &interrupt).unwrap();
    assert_eq!(checks.len(), 12 + 2, "the conditions of clause 3.3.2, the indexes, and what was committed");
    checks.iter().filter(|check| !check.passed()).map(|check| check.name).collect()
}

#[test]
fn all_conditions_hold_where_nothing_is_lost() {
    assert_eq!(violated_with(Fault::None), [""; 0]);
}

#[test]
fn a_lost_row_is_noticed() {
    assert_eq!(violated_with(Fault::LostPut(OrderedTable::Warehouses)), ["3.3.2.1", "3.3.2.8"]);
    assert_eq!(violated_with(Fault::LostPut(OrderedTable::OrdersByCustomer)), ["index_entries"]);
    let of_history = violated_with(Fault::LostPut(OrderedTable::History));
    assert_eq!(of_history, ["3.3.2.8", "3.3.2.9", "3.3.2.10", "effects"]);
}

#[test]
fn a_lost_transaction_or_rollback_is_noticed() {
    assert!(violated_with(Fault::LostTransaction).contains(&"effects"));
    assert!(violated_with(Fault::LostRollback).contains(&"effects"));
}

#[test]
fn an_order_that_is_delivered_twice_is_noticed() {
    let violated = violated_with(Fault::LostDelete(OrderedTable::NewOrders));
    assert!(violated.contains(&"3.3.2.11") || violated.contains(&"3.3.2.5"), "{violated:?}");
}
