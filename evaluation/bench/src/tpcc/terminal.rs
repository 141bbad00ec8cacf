//! What terminals enter: one worker's stream of requests, the same whatever database answers them.

use ensilo::Timestamp;
use serde::{Deserialize, Serialize};

use super::delivery::DeliveryInput;
use super::input::{Homes, Inputs};
use super::new_order::NewOrderInput;
use super::options::{DELIVERY, NEW_ORDER, ORDER_STATUS, PAYMENT, STOCK_LEVEL, TpccOptions};
use super::order_status::OrderStatusInput;
use super::payment::PaymentInput;
use super::random::{NuRand, Strings};
use super::stock_level::StockLevelInput;
use crate::random::Random;

/// The terminals of one worker.
#[derive(Debug)]
pub struct Terminal {
    options: TpccOptions,
    random: Random,
    strings: Strings,
    nu_rand: NuRand,
    homes: Homes,
}

/// What is entered for one transaction.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Entered {
    /// An order.
    NewOrder(NewOrderInput),
    /// A payment.
    Payment(PaymentInput),
    /// A question for a customer's last order.
    OrderStatus(OrderStatusInput),
    /// That each district's oldest new order is delivered.
    Delivery(DeliveryInput),
    /// A question for what is low in stock.
    StockLevel(StockLevelInput),
}

impl Terminal {
    /// The terminals of `worker`, one of `options.workers`.
    pub fn new(options: &TpccOptions, worker: usize) -> Self {
        let (_, nu_rand) = NuRand::of_seed(options.seed);
        Self {
            options: options.clone(),
            // Streams of the loader's tasks count from 0, those of workers down from the last.
            random: Random::for_stream(options.seed, u64::MAX - worker as u64),
            strings: Strings::default(),
            nu_rand,
            homes: Homes::new(options.warehouse_choice, options.warehouses, worker, options.workers),
        }
    }

    /// What is entered next, at the time `now`.
    #[inline]
    pub fn enter(&mut self, now: Timestamp) -> Entered {
        let transaction = self.options.mix.draw(&mut self.random);
        let warehouse = self.homes.draw(&mut self.random);
        let mut inputs = Inputs {
            random: &mut self.random,
            strings: &mut self.strings,
            nu_rand: &self.nu_rand,
            scale: self.options.scale,
            warehouses: self.options.warehouses,
            remote_items: self.options.remote_items,
            remote_customers: self.options.remote_customers,
        };
        match transaction {
            NEW_ORDER => Entered::NewOrder(NewOrderInput::draw(&mut inputs, warehouse, now)),
            PAYMENT => Entered::Payment(PaymentInput::draw(&mut inputs, warehouse, now)),
            ORDER_STATUS => Entered::OrderStatus(OrderStatusInput::draw(&mut inputs, warehouse)),
            DELIVERY => Entered::Delivery(DeliveryInput::draw(&mut inputs, warehouse, now)),
            STOCK_LEVEL => Entered::StockLevel(StockLevelInput::draw(&mut inputs, warehouse)),
            _ => unreachable!("the mix has five types"),
        }
    }
}

impl Entered {
    /// The transaction's type, a place in [`TRANSACTION_TYPES`](super::TRANSACTION_TYPES).
    #[inline]
    pub fn transaction_type(&self) -> usize {
        match self {
            Self::NewOrder(_) => NEW_ORDER,
            Self::Payment(_) => PAYMENT,
            Self::OrderStatus(_) => ORDER_STATUS,
            Self::Delivery(_) => DELIVERY,
            Self::StockLevel(_) => STOCK_LEVEL,
        }
    }
}
