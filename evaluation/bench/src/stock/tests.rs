//! Runs on small tables.

use ensilo::Engine;
use ensilo::Silo;
use ensilo::ermia::{Ermia, SnapshotIsolation};
use ensilo::two_phase_locking::{NoWait, TwoPhaseLocking};

use super::{StockOptions, StockTable, WritePercent};
use crate::driver::{Aborts, Interrupt, Session, View, Workload};
use crate::tests::{assert_hold, check, database_with_retries, failed, run_for};

fn small(reads: u16, percent: f64) -> StockOptions {
    let write_percent = WritePercent::new(percent).unwrap();
    StockOptions { warehouses: 2, items: 700, reads, write_percent, ..StockOptions::new(3) }
}

fn loaded<E: Engine>(options: StockOptions, retries: Option<u32>) -> StockTable<E> {
    StockTable::load(options, database_with_retries(retries), &mut View::silent(), &Interrupt::new()).unwrap()
}

fn assert_no_update_is_lost<E: Engine>() {
    for (reads, percent) in [(10, 100.0), (300, 1.0)] {
        for retries in [None, Some(0)] {
            let table = loaded::<E>(small(reads, percent), retries);
            assert!(run_for(&table, table.options.workers, 100).measurements.committed() > 0);
            let checks = check(&table);
            assert_eq!(
                checks.iter().map(|check| check.name).collect::<Vec<_>>(),
                ["row_count", "update_sum"]
            );
            assert_hold(&checks);
        }
    }
}

#[test]
fn no_update_is_lost_on_any_engine() {
    assert_no_update_is_lost::<Silo>();
    assert_no_update_is_lost::<Ermia>();
    assert_no_update_is_lost::<Ermia<SnapshotIsolation>>();
    assert_no_update_is_lost::<TwoPhaseLocking>();
    assert_no_update_is_lost::<TwoPhaseLocking<NoWait>>();
}

#[test]
fn the_rows_show_what_was_committed() {
    let table = loaded::<Silo>(small(20, 25.0), None);
    let mut session = table.session(0);
    let effects: u64 =
        (0..40).map(|_| u64::from(session.run_one(0, &mut Aborts::default()).unwrap().effects)).sum();
    assert_eq!((effects, table.count_effects().unwrap()), (200, vec![200]));
}

#[test]
fn an_update_that_nobody_made_is_noticed() {
    let table = loaded::<Silo>(small(10, 10.0), None);
    table
        .database
        .transact(|tx| {
            table.stocks.update(tx, (1, 1), |row: &mut super::session::OrderCount| row.s_order_cnt += 1)
        })
        .unwrap();
    assert_eq!(failed(&table), ["update_sum"]);
}
