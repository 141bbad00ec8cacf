//! Delivery: the oldest new order of each district is delivered (clause 2.7).
//!
//! All ten districts are one transaction; clause 2.7.4 would allow ten.
//!
//! New orders are a queue: rising numbers come in at one end, and the lowest goes out. So what a worker has once seen to
//! be the lowest bounds the district's new orders from below for ever, and the search may begin there
//! ([`QueueHeads`]). It spares the search the deleted rows that snapshots still need.

use ensilo::generic::Transaction;
use ensilo::{Columns, Engine, Result, Timestamp};
use serde::{Deserialize, Serialize};

use super::arrangement::Arrangement;
use super::input::Inputs;
use super::new_order::missing;
use super::options::{DISTRICTS, LINES_MAX};
use super::schema::{Customer, Money, NewOrder, Order, OrderLine};
use super::tables::Tables;
use super::wire;

/// What the terminal enters.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeliveryInput {
    /// The warehouse.
    pub warehouse: u16,
    /// Who carries the orders.
    pub carrier: u8,
    /// When.
    #[serde(with = "wire::micros")]
    pub date: Timestamp,
}

/// The order delivered in each district, if there was one.
pub type DeliveryOutput = [Option<u32>; DISTRICTS as usize];

/// For each district, a number that no new order there is below.
#[derive(Debug)]
pub struct QueueHeads(Vec<[u32; DISTRICTS as usize]>);

impl QueueHeads {
    /// What a worker knows at first: nothing.
    pub fn new(warehouses: u16) -> Self {
        Self(vec![[0; DISTRICTS as usize]; usize::from(warehouses)])
    }

    /// Notes what a delivery that has committed took from the queues.
    pub fn note(&mut self, input: &DeliveryInput, delivered: &DeliveryOutput) {
        let heads = &mut self.0[usize::from(input.warehouse) - 1];
        for (head, order) in heads.iter_mut().zip(delivered) {
            *head = order.map_or(*head, |order| order + 1);
        }
    }

    /// By district of the warehouse.
    pub fn of(&self, warehouse: u16) -> &[u32; DISTRICTS as usize] {
        &self.0[usize::from(warehouse) - 1]
    }
}

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

    /// The warehouse that it is about.
    pub(super) fn warehouse(&self) -> u16 {
        self.warehouse
    }

    /// Runs the transaction (clause 2.7.4.2).
    pub(super) fn run<A: Arrangement>(
        &self,
        tables: &A,
        tx: &mut Transaction<'_, A::Engine>,
        heads: &QueueHeads,
    ) -> Result<DeliveryOutput> {
        let mut delivered = [None; DISTRICTS as usize];
        let (tables, heads) = (tables.of(self.warehouse), heads.of(self.warehouse));
        for ((district, &head), delivered) in (1..=DISTRICTS).zip(heads).zip(&mut delivered) {
            *delivered = self.deliver(tables, tx, district, head)?;
        }
        Ok(delivered)
    }

    /// Delivers the oldest new order of a district, if there is one, and returns its number.
    fn deliver<E: Engine>(
        &self,
        tables: &Tables<E>,
        tx: &mut Transaction<'_, E>,
        district: u8,
        head: u32,
    ) -> Result<Option<u32>> {
        let queue = (self.warehouse, district, head)..=(self.warehouse, district, u32::MAX);
        let queue = tables.new_orders.range(queue).columns::<Oldest>();
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
    fn deliver_lines<E: Engine>(
        &self,
        tables: &Tables<E>,
        tx: &mut Transaction<'_, E>,
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
