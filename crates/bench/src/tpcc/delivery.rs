//! Delivery: the oldest new order of each district is delivered (clause 2.7).
//!
//! All ten districts are one transaction; clause 2.7.4 would allow ten.

use ensilo::{Columns, Result, Timestamp, Transaction};

use super::input::Inputs;
use super::new_order::{LINES_MAX, missing};
use super::options::DISTRICTS;
use super::schema::{Customer, Money, NewOrder, Order, OrderLine};
use super::tables::Tables;

/// What the terminal enters.
#[derive(Debug, Clone)]
pub(super) struct DeliveryInput {
    warehouse: u16,
    carrier: u8,
    date: Timestamp,
}

/// The order delivered in each district, if there was one.
pub(super) type DeliveryOutput = [Option<u32>; DISTRICTS as usize];

#[derive(Columns)]
#[columns(of = NewOrder)]
struct Oldest {}

#[derive(Columns)]
#[columns(of = Order)]
struct OrderCustomer {
    o_c_id: u16,
}

#[derive(Columns)]
#[columns(of = Order)]
struct Carrier {
    o_carrier_id: Option<u8>,
}

#[derive(Columns)]
#[columns(of = OrderLine)]
struct Amount {
    ol_amount: Money,
}

#[derive(Columns)]
#[columns(of = OrderLine)]
struct Delivered {
    ol_delivery_d: Option<Timestamp>,
}

#[derive(Columns)]
#[columns(of = Customer)]
struct Received {
    c_balance: Money,
    c_delivery_cnt: u32,
}

impl DeliveryInput {
    /// Draws a delivery for `warehouse` (clause 2.7.1).
    pub(super) fn draw(inputs: &mut Inputs<'_>, warehouse: u16, date: Timestamp) -> Self {
        Self { warehouse, carrier: inputs.random.between(1, 10) as u8, date }
    }

    /// Runs the transaction (clause 2.7.4.2).
    pub(super) fn run(&self, tables: &Tables, tx: &mut Transaction<'_>) -> Result<DeliveryOutput> {
        let mut delivered = [None; DISTRICTS as usize];
        for (district, delivered) in (1..=DISTRICTS).zip(&mut delivered) {
            *delivered = self.deliver(tables, tx, district)?;
        }
        Ok(delivered)
    }

    /// Delivers the oldest new order of a district, if there is one, and returns its number.
    fn deliver(&self, tables: &Tables, tx: &mut Transaction<'_>, district: u8) -> Result<Option<u32>> {
        let queue = tables.new_orders.prefix((self.warehouse, district)).columns::<Oldest>();
        let Some((oldest, _)) = queue.first_found(tx)? else { return Ok(None) };
        let order_key = *oldest.key();
        oldest.delete(tx)?;
        let order = tables.orders.find(tx, order_key)?.ok_or_else(missing)?;
        let OrderCustomer { o_c_id } = order.columns(tx)?;
        order.set(tx, Carrier { o_carrier_id: Some(self.carrier) })?;
        let sum = self.deliver_lines(tables, tx, order_key)?;
        tables.customers.update(tx, (self.warehouse, district, o_c_id), |customer: &mut Received| {
            customer.c_balance += sum;
            customer.c_delivery_cnt = customer.c_delivery_cnt.wrapping_add(1);
        })?;
        Ok(Some(order_key.2))
    }

    /// Dates the lines of an order and returns the sum of their amounts.
    fn deliver_lines(
        &self,
        tables: &Tables,
        tx: &mut Transaction<'_>,
        order_key: (u16, u8, u32),
    ) -> Result<Money> {
        let mut sum = Money::default();
        let mut lines = [const { None }; LINES_MAX];
        let mut count = 0;
        let scan = tables.order_lines.prefix(order_key).columns::<Amount>();
        scan.for_each_found(tx, |line, Amount { ol_amount }| {
            sum += ol_amount;
            lines[count] = Some(line);
            count += 1;
        })?;
        for line in lines.into_iter().take(count).flatten() {
            line.set(tx, Delivered { ol_delivery_d: Some(self.date) })?;
        }
        Ok(sum)
    }
}
