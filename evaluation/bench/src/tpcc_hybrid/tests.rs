//! CH-Q2* on small databases, alone and beside TPC-C.

use ensilo::ermia::{Ermia, SnapshotIsolation};
use ensilo::two_phase_locking::TwoPhaseLocking;
use ensilo::{Engine, Silo};

use super::options::{CH_Q2, DEFAULT_MIX, HybridOptions, SupplierPercent, parse_mix};
use super::query::{Quantity, Query, QueryScratch, RESTOCKED, THRESHOLD};
use super::schema::NATIONS;
use super::workload::TpccHybrid;
use crate::database;
use crate::driver::{Aborts, Interrupt, Session, View, Workload};
use crate::tests::{assert_hold, check, database_with_retries, failed, run_all_types, run_for};
use crate::tpcc::{Arrangement, Scale, TpccOptions};

const SUPPLIERS: u32 = 100;

fn small(mix: &str, percent: u8, workers: usize) -> HybridOptions {
    let scale = Scale { items: 200, customers: 30 };
    let tpcc = TpccOptions { warehouses: 2, scale, ..TpccOptions::new(workers) };
    let percent = SupplierPercent::new(percent).unwrap();
    HybridOptions::new(tpcc, parse_mix(mix).unwrap(), SUPPLIERS, percent)
}

fn loaded<E: Engine>(options: HybridOptions, retries: Option<u32>) -> TpccHybrid<E> {
    TpccHybrid::load(options, database_with_retries(retries), &mut View::silent(), &Interrupt::new()).unwrap()
}

/// The quantities of all stocks, with their keys.
fn quantities<E: Engine>(workload: &TpccHybrid<E>) -> Vec<((u16, u32), i16)> {
    let stocks = &workload.tpcc.tables.of(1).stocks;
    let rows = workload.tpcc.database.transact(|tx| stocks.scan().columns::<Quantity>().collect(tx)).unwrap();
    rows.into_iter().map(|(key, stock)| (key, stock.s_quantity)).collect()
}

fn assert_runs<E: Engine>(retries: Option<u32>) {
    let workload = loaded::<E>(small(DEFAULT_MIX, 20, 3), retries);
    run_all_types(&workload, workload.options.tpcc.workers, 300, false);
    let checks = check(&workload);
    assert_hold(&checks);
    assert_eq!(checks.len(), 12 + 3);
}

#[test]
fn every_engine_leaves_the_database_consistent() {
    assert_runs::<Silo>(None);
    assert_runs::<Ermia>(None);
    assert_runs::<Ermia<SnapshotIsolation>>(None);
    assert_runs::<TwoPhaseLocking>(None);
}

#[test]
fn transactions_that_are_not_tried_again_leave_the_database_consistent() {
    assert_runs::<Silo>(Some(0));
    assert_runs::<Ermia>(Some(0));
}

/// What a query over all suppliers has to restock, by the definition: among each supplier of the region's stocks the first of the
/// least ones, if that is below the threshold.
fn expected<E: Engine>(workload: &TpccHybrid<E>, region: u8) -> Vec<((u16, u32), i16)> {
    let suppliers = &workload.tables.suppliers;
    let suppliers = workload.tpcc.database.transact(|tx| suppliers.scan().rows(tx)).unwrap();
    let mut stocks = quantities(workload);
    let of_region =
        suppliers.iter().filter(|supplier| NATIONS[usize::from(supplier.su_nationkey)].1 == region);
    for supplier in of_region {
        let is_theirs =
            |(warehouse, item): (u16, u32)| u32::from(warehouse) * item % SUPPLIERS == supplier.su_suppkey;
        let of_supplier = stocks.iter_mut().filter(|(key, _)| is_theirs(*key));
        let least = of_supplier.min_by_key(|(_, quantity)| *quantity);
        if let Some((_, quantity)) = least.filter(|(_, quantity)| *quantity < THRESHOLD) {
            *quantity += RESTOCKED;
        }
    }
    stocks
}

#[test]
fn a_query_restocks_what_its_suppliers_have_least_of() {
    let workload = loaded::<Silo>(small("ch-q2=100", 100, 1), None);
    let mut restocked = 0;
    for region in 0..5 {
        let expected = expected(&workload, region);
        let query = Query { region, first_supplier: 37, suppliers: SUPPLIERS };
        let (tables, scratch) = (workload.query_tables(), &mut QueryScratch::default());
        restocked += workload.tpcc.database.transact(|tx| query.run(&tables, tx, scratch)).unwrap();
        assert_eq!(quantities(&workload), expected, "region {region}");
    }
    assert!(restocked > 0);
}

#[test]
fn a_query_over_some_suppliers_touches_no_others_stocks() {
    let workload = loaded::<Silo>(small("ch-q2=100", 100, 1), None);
    let before = quantities(&workload);
    for region in 0..5 {
        let query = Query { region, first_supplier: 95, suppliers: 10 };
        let (tables, scratch) = (workload.query_tables(), &mut QueryScratch::default());
        workload.tpcc.database.transact(|tx| query.run(&tables, tx, scratch)).unwrap();
    }
    let changed: Vec<_> = before.iter().zip(quantities(&workload)).filter(|(a, b)| **a != *b).collect();
    assert!(!changed.is_empty());
    for ((key, _), _) in &changed {
        let supplier = u32::from(key.0) * key.1 % SUPPLIERS;
        assert!(!(5..95).contains(&supplier), "{key:?}");
    }
}

#[test]
fn a_lost_restocking_is_noticed() {
    let workload = loaded::<Silo>(small("ch-q2=100", 100, 1), None);
    let mut session = workload.session(0);
    while session.query(&mut Aborts::default()).unwrap().0 == 0 {}
    assert_eq!(session.run_one(0, &mut Aborts::default()).unwrap().transaction, CH_Q2);
    session.finish();
    assert_eq!(failed(&workload), Vec::<&str>::new());
    let take_back = |quantity: i16| {
        let stocks = &workload.tpcc.tables.of(1).stocks;
        let (key, _) = quantities(&workload).into_iter().find(|&(_, has)| has > quantity + 10).unwrap();
        let change = |stock: &mut Quantity| stock.s_quantity -= quantity;
        workload.tpcc.database.transact(|tx| stocks.update(tx, key, change)).unwrap();
    };
    take_back(RESTOCKED);
    assert_eq!(failed(&workload), ["restocked"]);
}

#[test]
fn a_quantity_that_nothing_leads_to_is_noticed() {
    let workload = loaded::<Silo>(small("ch-q2=100", 10, 1), None);
    let stocks = &workload.tpcc.tables.of(1).stocks;
    let empty = |stock: &mut Quantity| stock.s_quantity = 9;
    workload.tpcc.database.transact(|tx| stocks.update(tx, (2, 7), empty)).unwrap();
    assert!(failed(&workload).contains(&"stock_quantity"));
}

#[test]
fn a_supplier_that_is_missing_is_noticed() {
    let workload = loaded::<Silo>(small("ch-q2=100", 10, 1), None);
    let suppliers = &workload.tables.suppliers;
    workload.tpcc.database.transact(|tx| suppliers.delete(tx, 99).map(|_| ())).unwrap();
    assert_eq!(failed(&workload), ["suppliers"]);
}

#[test]
fn a_database_that_is_opened_again_is_checked_without_what_the_sessions_counted() {
    let options = small(DEFAULT_MIX, 20, 1);
    let workload = loaded::<Silo>(options.clone(), None);
    run_for(&workload, workload.options.tpcc.workers, 300);
    let again = TpccHybrid::open(options, workload.tpcc.database.clone()).unwrap();
    database::make_fresh_snapshot(&again.tpcc.database).unwrap();
    let checks = check(&again);
    assert_hold(&checks);
    assert_eq!((checks.len(), again.count_effects().unwrap().len()), (14, 6));
}
