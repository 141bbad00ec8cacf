//! Order-status: a customer asks for their last order (clause 2.6).

use std::hint::black_box;
use std::ops::ControlFlow;

use ensilo::generic::ReadTransaction;
use ensilo::{Columns, Result, Text, Timestamp};
use serde::{Deserialize, Serialize};

use super::arrangement::Arrangement;
use super::customer::customer_number;
use super::input::{CustomerChoice, Inputs};
use super::new_order::missing;
use super::schema::{Customer, Money, Order, OrderLine};

/// What the terminal enters.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OrderStatusInput {
    /// The customer's warehouse.
    pub warehouse: u16,
    /// The customer's district.
    pub district: u8,
    /// The customer.
    pub customer: CustomerChoice,
}

/// What the terminal shows, but for the lines.
pub(super) struct OrderStatusOutput {
    #[allow(dead_code, reason = "what a terminal would show; nobody looks at it here")]
    shown: (CustomerShown, Option<OrderShown>),
}

#[derive(Columns)]
#[columns(of = Customer)]
#[allow(dead_code, reason = "what a terminal would show; nobody looks at it here")]
struct CustomerShown {
    c_first: Text<16>,
    c_middle: Text<2>,
    c_last: Text<16>,
    c_balance: Money,
}

#[derive(Columns)]
#[columns(of = Order)]
#[allow(dead_code, reason = "what a terminal would show; nobody looks at it here")]
struct OrderShown {
    o_id: u32,
    o_entry_d: Timestamp,
    o_carrier_id: Option<u8>,
}

#[derive(Columns)]
#[columns(of = OrderLine)]
struct LineShown {
    ol_supply_w_id: u16,
    ol_i_id: u32,
    ol_quantity: u8,
    ol_amount: Money,
    ol_delivery_d: Option<Timestamp>,
}

impl OrderStatusInput {
    /// Draws a question of a customer of `warehouse` (clause 2.6.1).
    pub(super) fn draw(inputs: &mut Inputs<'_>, warehouse: u16) -> Self {
        Self { warehouse, district: inputs.district(), customer: inputs.customer_choice() }
    }

    /// The warehouse that it is about.
    pub(super) fn warehouse(&self) -> u16 {
        self.warehouse
    }

    /// Runs the transaction (clause 2.6.2.2).
    pub(super) fn run<'t, A: Arrangement>(
        &self,
        tables: &A,
        tx: &mut impl ReadTransaction<'t, A::Engine>,
        numbers: &mut Vec<u16>,
    ) -> Result<OrderStatusOutput> {
        let (warehouse, district) = (self.warehouse, self.district);
        let tables = tables.of(warehouse);
        let number = customer_number(&self.customer, warehouse, district, tables, tx, numbers)?;
        let customer_key = (warehouse, district, number);
        let customer = tables.customers.get_columns(tx, customer_key)?.ok_or_else(missing)?;
        let mut last_order = None;
        let orders = tables.orders_by_customer.prefix(customer_key).reverse();
        orders.for_each_primary_key(tx, |order| {
            last_order = Some(order);
            ControlFlow::Break(())
        })?;
        let Some(order_key) = last_order else { return Ok(OrderStatusOutput { shown: (customer, None) }) };
        let order = tables.orders.get_columns(tx, order_key)?.ok_or_else(missing)?;
        let lines = tables.order_lines.prefix(order_key).columns::<LineShown>();
        lines.for_each(tx, |_, line| {
            black_box((
                line.ol_supply_w_id,
                line.ol_i_id,
                line.ol_quantity,
                line.ol_amount,
                line.ol_delivery_d,
            ));
        })?;
        Ok(OrderStatusOutput { shown: (customer, Some(order)) })
    }
}
