//! The conditions that concern a district: all but 1 and 8.

use std::collections::BTreeSet;

use ensilo::{Columns, Engine, ReadTransaction, Result, Timestamp};

use super::condition::{Conditions, GAPS};
use super::history::HistorySums;
use crate::tpcc::options::Scale;
use crate::tpcc::schema::{Customer, District, Money, NewOrder, Order, OrderLine};
use crate::tpcc::tables::Tables;

#[derive(Columns)]
#[columns(of = District)]
struct DistrictSums {
    d_ytd: Money,
    d_next_o_id: u32,
}

#[derive(Columns)]
#[columns(of = NewOrder)]
struct KeyOnly {}

#[derive(Columns)]
#[columns(of = Order)]
struct OrderState {
    o_id: u32,
    o_c_id: u16,
    o_carrier_id: Option<u8>,
    o_ol_cnt: u8,
}

#[derive(Columns)]
#[columns(of = OrderLine)]
struct LineState {
    ol_delivery_d: Option<Timestamp>,
    ol_amount: Money,
}

#[derive(Columns)]
#[columns(of = Customer)]
struct CustomerAccount {
    c_id: u16,
    c_balance: Money,
    c_ytd_payment: Money,
    c_delivery_cnt: u32,
}

/// What the lines of orders say.
#[derive(Debug)]
struct Lines {
    /// By customer's number, the sum of delivered lines.
    delivered: Vec<Money>,
    count: u64,
}

/// The district that is checked.
pub(super) struct CheckedDistrict<'a, E: Engine> {
    pub(super) tables: &'a Tables<E>,
    pub(super) warehouse: u16,
    pub(super) district: u8,
    /// The number of the district's next order, where that stands outside of the database.
    pub(super) next_order: Option<u32>,
}

/// Checks a district and returns its `d_ytd`.
pub(super) fn check<'t, E: Engine>(
    place: &CheckedDistrict<'_, E>,
    scale: Scale,
    tx: &mut impl ReadTransaction<'t, E>,
    history: &HistorySums,
    conditions: &mut Conditions,
) -> Result<Money> {
    let key = (place.warehouse, place.district);
    let new_orders = check_new_orders(place, tx, conditions)?;
    let orders = place.tables.orders.prefix(key).columns::<OrderState>().rows(tx)?;
    let lines = check_orders(place, scale, tx, &orders, &new_orders, conditions)?;
    let deliveries = check_customers(place, tx, history, &lines, conditions)?;

    let at = format!("warehouse {}, district {}", place.warehouse, place.district);
    let promised: u64 = orders.iter().map(|order| u64::from(order.o_ol_cnt)).sum();
    conditions.of(4).expect(promised == lines.count, || {
        format!("{at}: sum of o_ol_cnt {promised}, order lines {}", lines.count)
    });
    let old_orders = orders.len() as i64 - new_orders.len() as i64;
    let expected = i64::from(scale.delivered_orders()) + deliveries as i64;
    conditions.of(11).expect(old_orders == expected, || {
        format!("{at}: orders less new orders {old_orders}, loaded and delivered {expected}")
    });
    check_district_row(place, tx, history, &orders, &new_orders, conditions)
}

/// Condition 3. Returns the district's new orders.
fn check_new_orders<'t, E: Engine>(
    place: &CheckedDistrict<'_, E>,
    tx: &mut impl ReadTransaction<'t, E>,
    conditions: &mut Conditions,
) -> Result<BTreeSet<u32>> {
    let mut orders = BTreeSet::new();
    let scan = place.tables.new_orders.prefix((place.warehouse, place.district)).columns::<KeyOnly>();
    scan.for_each(tx, |(_, _, order), KeyOnly {}| {
        orders.insert(order);
    })?;
    let span = orders.first().zip(orders.last()).map_or(0, |(first, last)| u64::from(last - first) + 1);
    conditions.of(GAPS).expect(span == orders.len() as u64, || {
        format!(
            "warehouse {}, district {}: highest less lowest no_o_id plus 1 is {span}, new orders {}",
            place.warehouse,
            place.district,
            orders.len()
        )
    });
    Ok(orders)
}

/// Conditions 2 and 9. Returns `d_ytd`.
fn check_district_row<'t, E: Engine>(
    place: &CheckedDistrict<'_, E>,
    tx: &mut impl ReadTransaction<'t, E>,
    history: &HistorySums,
    orders: &[OrderState],
    new_orders: &BTreeSet<u32>,
    conditions: &mut Conditions,
) -> Result<Money> {
    let CheckedDistrict { tables, warehouse, district, .. } = *place;
    let at = format!("warehouse {warehouse}, district {district}");
    let row = tables.districts.get_columns::<DistrictSums>(tx, (warehouse, district))?;
    let Some(DistrictSums { d_ytd, d_next_o_id }) = row else {
        conditions.of(2).expect(false, || format!("{at}: there is no such district"));
        return Ok(Money::default());
    };
    let highest = orders.last().map_or(0, |order| order.o_id);
    let highest_new = new_orders.last().copied();
    let last = place.next_order.unwrap_or(d_next_o_id).wrapping_sub(1);
    let holds = match place.next_order {
        None => last == highest && highest_new.is_none_or(|new| new == last),
        Some(_) => last >= highest && highest_new.is_none_or(|new| new == highest),
    };
    conditions.of(2).expect(holds, || {
        format!("{at}: d_next_o_id - 1 is {last}, highest o_id {highest}, highest no_o_id {highest_new:?}")
    });
    let paid = history.of_district(warehouse, district);
    conditions.of(9).expect(d_ytd == paid, || format!("{at}: d_ytd {d_ytd}, sum of h_amount {paid}"));
    Ok(d_ytd)
}

/// Conditions 5, 6 and 7: walks orders and order lines side by side.
fn check_orders<'t, E: Engine>(
    place: &CheckedDistrict<'_, E>,
    scale: Scale,
    tx: &mut impl ReadTransaction<'t, E>,
    orders: &[OrderState],
    new_orders: &BTreeSet<u32>,
    conditions: &mut Conditions,
) -> Result<Lines> {
    let CheckedDistrict { tables, warehouse, district, .. } = *place;
    let at = |order| format!("warehouse {warehouse}, district {district}, order {order}");
    let mut lines = Lines { delivered: vec![Money::default(); usize::from(scale.customers) + 1], count: 0 };
    let mut lines_of = vec![0u64; orders.len()];
    let mut position = 0;
    let scan = tables.order_lines.prefix((warehouse, district)).columns::<LineState>();
    scan.for_each(tx, |(_, _, order_number, line_number), line| {
        lines.count += 1;
        while orders.get(position).is_some_and(|order| order.o_id < order_number) {
            position += 1;
        }
        let Some(order) = orders.get(position).filter(|order| order.o_id == order_number) else {
            conditions.of(6).expect(false, || format!("{}: lines without an order", at(order_number)));
            return;
        };
        lines_of[position] += 1;
        let (date, carrier) = (line.ol_delivery_d, order.o_carrier_id);
        conditions.of(7).expect(date.is_none() == carrier.is_none(), || {
            format!(
                "{}, line {line_number}: ol_delivery_d {date:?}, o_carrier_id {carrier:?}",
                at(order_number)
            )
        });
        if let Some(sum) = lines.delivered.get_mut(usize::from(order.o_c_id)).filter(|_| date.is_some()) {
            *sum += line.ol_amount;
        }
    })?;
    for (order, count) in orders.iter().zip(lines_of) {
        let OrderState { o_id, o_carrier_id, o_ol_cnt, .. } = *order;
        let is_new = new_orders.contains(&o_id);
        conditions.of(5).expect(o_carrier_id.is_none() == is_new, || {
            format!("{}: o_carrier_id {o_carrier_id:?}, is a new order: {is_new}", at(o_id))
        });
        conditions.of(6).expect(u64::from(o_ol_cnt) == count, || {
            format!("{}: o_ol_cnt {o_ol_cnt}, order lines {count}", at(o_id))
        });
    }
    Ok(lines)
}

/// Conditions 10 and 12. Returns the deliveries to all customers of the district.
fn check_customers<'t, E: Engine>(
    place: &CheckedDistrict<'_, E>,
    tx: &mut impl ReadTransaction<'t, E>,
    history: &HistorySums,
    lines: &Lines,
    conditions: &mut Conditions,
) -> Result<u64> {
    let CheckedDistrict { tables, warehouse, district, .. } = *place;
    let mut deliveries = 0;
    let scan = tables.customers.prefix((warehouse, district)).columns::<CustomerAccount>();
    scan.for_each(tx, |_, customer| {
        let CustomerAccount { c_id, c_balance, c_ytd_payment, c_delivery_cnt } = customer;
        deliveries += u64::from(c_delivery_cnt);
        let at = || format!("warehouse {warehouse}, district {district}, customer {c_id}");
        let delivered = lines.delivered.get(usize::from(c_id)).copied().unwrap_or_default();
        let paid = history.of_customer(warehouse, district, c_id);
        conditions.of(10).expect(c_balance == delivered - paid, || {
            format!("{}: c_balance {c_balance}, delivered {delivered}, sum of h_amount {paid}", at())
        });
        conditions.of(12).expect(c_balance + c_ytd_payment == delivered, || {
            format!("{}: c_balance {c_balance}, c_ytd_payment {c_ytd_payment}, delivered {delivered}", at())
        });
    })?;
    Ok(deliveries)
}
