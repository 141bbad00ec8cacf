//! What the database shows of the transactions since the load: orders entered, payments booked, orders delivered.

use ensilo::{Columns, Result};

use super::arrangement::Arrangement;
use super::loaded::TpccOf;
use super::new_order::NextOrder;
use super::options::{DELIVERY, DISTRICTS, NEW_ORDER, PAYMENT, TRANSACTION_TYPES};
use super::schema::{Customer, History, Order};

#[derive(Columns)]
#[columns(of = Customer)]
struct Deliveries {
    c_delivery_cnt: u32,
}

#[derive(Columns)]
#[columns(of = History)]
struct PaymentKey {}

#[derive(Columns)]
#[columns(of = Order)]
struct OrderKey {}

/// By transaction type, in one transaction.
pub(super) fn count<A: Arrangement>(tpcc: &TpccOf<A>) -> Result<Vec<u64>> {
    let customers = u64::from(tpcc.options.scale.customers);
    let districts = u64::from(tpcc.options.warehouses) * u64::from(DISTRICTS);
    tpcc.database.transact(|tx| {
        let (mut orders, mut payments, mut delivered) = (0, 0, 0);
        for tables in tpcc.tables.sets() {
            if A::HAS_FAST_IDS {
                tables.orders.scan().columns::<OrderKey>().for_each(tx, |_, OrderKey {}| orders += 1)?;
            } else {
                tables.districts.scan().columns::<NextOrder>().for_each(tx, |_, district| {
                    orders += u64::from(district.d_next_o_id) - 1;
                })?;
            }
            tables.history.scan().columns::<PaymentKey>().for_each(tx, |_, PaymentKey {}| payments += 1)?;
            tables.customers.scan().columns::<Deliveries>().for_each(tx, |_, customer| {
                delivered += u64::from(customer.c_delivery_cnt);
            })?;
        }
        let mut effects = vec![0; TRANSACTION_TYPES.len()];
        // The load enters an order for each customer and books a payment of each; it delivers through nobody.
        effects[NEW_ORDER] = u64::saturating_sub(orders, districts * customers);
        effects[PAYMENT] = u64::saturating_sub(payments, districts * customers);
        effects[DELIVERY] = delivered;
        Ok(effects)
    })
}
