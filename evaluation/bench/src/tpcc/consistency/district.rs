//! The conditions that concern a district: all but 1 and 8.

use std::collections::BTreeSet;

use ensilo::generic::ReadTransaction;
use ensilo::{Columns, Engine, Result, Timestamp};

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
struct OrderLineSums {
    /// By customer's number, the sum of delivered lines.
    delivered: Vec<Money>,
    count: u64,
}

/// A district that is checked.
pub(super) struct CheckedDistrict<'a, E: Engine> {
    pub(super) tables: &'a Tables<E>,
    pub(super) warehouse: u16,
    pub(super) district: u8,
    /// The number of the district's next order, where that stands outside of the database.
    pub(super) next_order: Option<u32>,
    pub(super) scale: Scale,
    pub(super) history: &'a HistorySums,
    pub(super) conditions: &'a mut Conditions,
}

impl<E: Engine> CheckedDistrict<'_, E> {
    /// Checks all conditions of the district and returns its `d_ytd`.
    pub(super) fn check<'t>(mut self, tx: &mut impl ReadTransaction<'t, E>) -> Result<Money> {
        let new_orders = self.check_new_orders(tx)?;
        let orders = self.tables.orders.prefix(self.key()).columns::<OrderState>().rows(tx)?;
        let lines = self.check_orders(tx, &orders, &new_orders)?;
        let deliveries = self.check_customers(tx, &lines)?;

        let promised: u64 = orders.iter().map(|order| u64::from(order.o_ol_cnt)).sum();
        self.expect(4, promised == lines.count, || {
            format!(": sum of o_ol_cnt {promised}, order lines {}", lines.count)
        });
        let old_orders = orders.len() as i64 - new_orders.len() as i64;
        let expected = i64::from(self.scale.delivered_orders()) + deliveries as i64;
        self.expect(11, old_orders == expected, || {
            format!(": orders less new orders {old_orders}, loaded and delivered {expected}")
        });
        self.check_district_row(tx, &orders, &new_orders)
    }

    fn key(&self) -> (u16, u8) {
        (self.warehouse, self.district)
    }

    /// Holds condition 3.3.2.`number` against something of the district. `describe` says of what, and what is wrong if it does not hold.
    fn expect(&mut self, number: usize, holds: bool, describe: impl FnOnce() -> String) {
        let (warehouse, district) = self.key();
        let describe = || format!("warehouse {warehouse}, district {district}{}", describe());
        self.conditions.of(number).expect(holds, describe);
    }

    /// Condition 3. Returns the district's new orders.
    fn check_new_orders<'t>(&mut self, tx: &mut impl ReadTransaction<'t, E>) -> Result<BTreeSet<u32>> {
        let mut orders = BTreeSet::new();
        let scan = self.tables.new_orders.prefix(self.key()).columns::<KeyOnly>();
        scan.for_each(tx, |(_, _, order), KeyOnly {}| {
            orders.insert(order);
        })?;
        let span = orders.first().zip(orders.last()).map_or(0, |(first, last)| u64::from(last - first) + 1);
        self.expect(GAPS, span == orders.len() as u64, || {
            format!(": highest less lowest no_o_id plus 1 is {span}, new orders {}", orders.len())
        });
        Ok(orders)
    }

    /// Conditions 2 and 9. Returns `d_ytd`.
    fn check_district_row<'t>(
        &mut self,
        tx: &mut impl ReadTransaction<'t, E>,
        orders: &[OrderState],
        new_orders: &BTreeSet<u32>,
    ) -> Result<Money> {
        let row = self.tables.districts.get_columns::<DistrictSums>(tx, self.key())?;
        let Some(DistrictSums { d_ytd, d_next_o_id }) = row else {
            self.expect(2, false, || ": there is no such district".to_owned());
            return Ok(Money::default());
        };
        let highest = orders.last().map_or(0, |order| order.o_id);
        let highest_new = new_orders.last().copied();
        let last = self.next_order.unwrap_or(d_next_o_id).wrapping_sub(1);
        let holds = match self.next_order {
            None => last == highest && highest_new.is_none_or(|new| new == last),
            Some(_) => last >= highest && highest_new.is_none_or(|new| new == highest),
        };
        self.expect(2, holds, || {
            format!(": d_next_o_id - 1 is {last}, highest o_id {highest}, highest no_o_id {highest_new:?}")
        });
        let paid = self.history.of_district(self.warehouse, self.district);
        self.expect(9, d_ytd == paid, || format!(": d_ytd {d_ytd}, sum of h_amount {paid}"));
        Ok(d_ytd)
    }

    /// Conditions 5, 6 and 7: walks orders and order lines side by side.
    fn check_orders<'t>(
        &mut self,
        tx: &mut impl ReadTransaction<'t, E>,
        orders: &[OrderState],
        new_orders: &BTreeSet<u32>,
    ) -> Result<OrderLineSums> {
        let customers = usize::from(self.scale.customers);
        let mut lines = OrderLineSums { delivered: vec![Money::default(); customers + 1], count: 0 };
        let mut lines_of = vec![0u64; orders.len()];
        let mut position = 0;
        let scan = self.tables.order_lines.prefix(self.key()).columns::<LineState>();
        scan.for_each(tx, |(_, _, number, line_number), line| {
            lines.count += 1;
            while orders.get(position).is_some_and(|order| order.o_id < number) {
                position += 1;
            }
            let Some(order) = orders.get(position).filter(|order| order.o_id == number) else {
                self.expect(6, false, || format!(", order {number}: lines without an order"));
                return;
            };
            lines_of[position] += 1;
            let (date, carrier) = (line.ol_delivery_d, order.o_carrier_id);
            self.expect(7, date.is_none() == carrier.is_none(), || {
                format!(
                    ", order {number}, line {line_number}: ol_delivery_d {date:?}, o_carrier_id {carrier:?}"
                )
            });
            let delivered = lines.delivered.get_mut(usize::from(order.o_c_id)).filter(|_| date.is_some());
            if let Some(sum) = delivered {
                *sum += line.ol_amount;
            }
        })?;
        for (order, count) in orders.iter().zip(lines_of) {
            let OrderState { o_id, o_carrier_id, o_ol_cnt, .. } = *order;
            let is_new = new_orders.contains(&o_id);
            self.expect(5, o_carrier_id.is_none() == is_new, || {
                format!(", order {o_id}: o_carrier_id {o_carrier_id:?}, is a new order: {is_new}")
            });
            self.expect(6, u64::from(o_ol_cnt) == count, || {
                format!(", order {o_id}: o_ol_cnt {o_ol_cnt}, order lines {count}")
            });
        }
        Ok(lines)
    }

    /// Conditions 10 and 12. Returns the deliveries to all customers of the district.
    fn check_customers<'t>(
        &mut self,
        tx: &mut impl ReadTransaction<'t, E>,
        lines: &OrderLineSums,
    ) -> Result<u64> {
        let mut deliveries = 0;
        let scan = self.tables.customers.prefix(self.key()).columns::<CustomerAccount>();
        scan.for_each(tx, |_, customer| {
            let CustomerAccount { c_id, c_balance, c_ytd_payment, c_delivery_cnt } = customer;
            deliveries += u64::from(c_delivery_cnt);
            let delivered = lines.delivered.get(usize::from(c_id)).copied().unwrap_or_default();
            let paid = self.history.of_customer(self.warehouse, self.district, c_id);
            self.expect(10, c_balance == delivered - paid, || {
                format!(", customer {c_id}: c_balance {c_balance}, delivered {delivered}, sum of h_amount {paid}")
            });
            self.expect(12, c_balance + c_ytd_payment == delivered, || {
                format!(
                    ", customer {c_id}: c_balance {c_balance}, c_ytd_payment {c_ytd_payment}, delivered {delivered}"
                )
            });
        })?;
        Ok(deliveries)
    }
}
