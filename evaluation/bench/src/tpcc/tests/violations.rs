//! Each consistency condition, violated on purpose: the check names exactly the conditions that do not hold.

use ensilo::{Result, Silo, Transaction};

use super::super::arrangement::Arrangement;
use super::super::consistency;
use super::super::schema::{Customer, District, History, Money, Order, OrderLine, Warehouse};
use super::super::tables::Tables;
use super::{loaded, small};

/// An order that is delivered, and one that is new, of 30 of which the last nine are new.
const DELIVERED: (u16, u8, u32) = (1, 1, 3);
const NEW: (u16, u8, u32) = (1, 1, 25);
const CENT: Money = Money::from_scaled(1);

/// Asserts that after `violate` the conditions with these numbers fail and no other.
fn assert_violates(numbers: &[usize], violate: impl Fn(&Tables<Silo>, &mut Transaction<'_>) -> Result<()>) {
    let tpcc = loaded(small(1, 1));
    tpcc.database.transact(|tx| violate(tpcc.tables.of(1), tx)).unwrap();
    let checks = tpcc.database.transact(|tx| consistency::check_in(&tpcc, tx)).unwrap();
    let failed: Vec<usize> =
        (1..).zip(&checks).filter(|(_, check)| !check.passed()).map(|(number, _)| number).collect();
    assert_eq!(failed, numbers);
    for check in checks.iter().filter(|check| !check.passed()) {
        assert!(check.examples[0].contains("warehouse 1"), "{:?}", check.examples);
    }
}

#[test]
fn condition_1_the_warehouses_sum() {
    assert_violates(&[1, 8], |tables, tx| {
        tables.warehouses.update(tx, 1, |row: &mut Warehouse| row.w_ytd += CENT)
    });
}

#[test]
fn condition_2_the_next_order() {
    assert_violates(&[2], |tables, tx| {
        tables.districts.update(tx, (1, 4), |row: &mut District| row.d_next_o_id += 1)
    });
}

#[test]
fn condition_3_new_orders_without_a_gap() {
    assert_violates(&[3, 5, 11], |tables, tx| tables.new_orders.delete(tx, NEW).map(|_| ()));
}

#[test]
fn condition_4_the_number_of_lines() {
    assert_violates(&[4, 6], |tables, tx| {
        tables.orders.update(tx, DELIVERED, |row: &mut Order| row.o_ol_cnt += 1)
    });
}

#[test]
fn condition_5_no_carrier_for_new_orders() {
    assert_violates(&[5, 7], |tables, tx| {
        tables.orders.update(tx, NEW, |row: &mut Order| row.o_carrier_id = Some(1))
    });
}

#[test]
fn condition_6_the_lines_of_an_order() {
    assert_violates(&[6], |tables, tx| {
        tables.orders.update(tx, DELIVERED, |row: &mut Order| row.o_ol_cnt += 1)?;
        tables.orders.update(tx, NEW, |row: &mut Order| row.o_ol_cnt -= 1)
    });
}

#[test]
fn condition_7_the_lines_delivery() {
    assert_violates(&[7], |tables, tx| {
        let (warehouse, district, order) = DELIVERED;
        let key = (warehouse, district, order, 1);
        tables.order_lines.update(tx, key, |row: &mut OrderLine| row.ol_delivery_d = None)
    });
}

#[test]
fn condition_8_the_warehouses_history() {
    assert_violates(&[8, 9], |tables, tx| {
        tables.warehouses.update(tx, 1, |row: &mut Warehouse| row.w_ytd += CENT)?;
        tables.districts.update(tx, (1, 4), |row: &mut District| row.d_ytd += CENT)
    });
}

#[test]
fn condition_9_the_districts_history() {
    assert_violates(&[9], |tables, tx| change_history(tables, tx, |row| row.h_d_id = row.h_d_id % 10 + 1));
}

#[test]
fn condition_10_the_customers_history() {
    assert_violates(&[10], |tables, tx| change_history(tables, tx, |row| row.h_c_id = row.h_c_id % 30 + 1));
}

#[test]
fn condition_11_the_deliveries() {
    assert_violates(&[11], |tables, tx| {
        tables.customers.update(tx, (1, 1, 1), |row: &mut Customer| row.c_delivery_cnt += 1)
    });
}

#[test]
fn condition_12_the_customers_payments() {
    assert_violates(&[12], |tables, tx| {
        tables.customers.update(tx, (1, 1, 1), |row: &mut Customer| row.c_ytd_payment += CENT)
    });
}

fn change_history(
    tables: &Tables<Silo>,
    tx: &mut Transaction<'_>,
    change: impl FnOnce(&mut History),
) -> Result<()> {
    let (key, _) = tables.history.scan().first(tx)?.expect("the load leaves a history");
    tables.history.update(tx, key, change)
}
