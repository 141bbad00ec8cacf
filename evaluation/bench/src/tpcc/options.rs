//! What a TPC-C run can be asked for.

use serde::{Deserialize, Serialize};

use crate::mix::{Mix, MixError, Share};

/// The names of the transaction types, in the order of the mix.
pub const TRANSACTION_TYPES: [&str; 5] = ["new_order", "payment", "order_status", "delivery", "stock_level"];

/// The default share of each transaction type: the least that clause 5.2.3 allows of all but new-order.
pub const DEFAULT_MIX: [f64; 5] = [45.0, 43.0, 4.0, 4.0, 4.0];

/// The place of each transaction type in [`TRANSACTION_TYPES`].
pub(super) const NEW_ORDER: usize = 0;
pub(super) const PAYMENT: usize = 1;
pub(super) const ORDER_STATUS: usize = 2;
pub(super) const DELIVERY: usize = 3;
pub(super) const STOCK_LEVEL: usize = 4;

/// Districts of a warehouse.
pub const DISTRICTS: u8 = 10;

/// The most lines of an order.
pub const LINES_MAX: usize = 15;

/// Options of a TPC-C database and its workers.
#[derive(Debug, Clone)]
pub struct TpccOptions {
    /// Warehouses, at least 1.
    pub warehouses: u16,
    /// How much there is of everything else.
    pub scale: Scale,
    /// The shares of the transaction types.
    pub mix: Mix,
    /// How order-status and stock-level run.
    pub read_only: ReadOnly,
    /// How a transaction's warehouse is chosen.
    pub warehouse_choice: WarehouseChoice,
    /// The share of an order's items that come from another warehouse; clause 2.4.1.5 wants 1 of 100.
    pub remote_items: Share,
    /// The share of payments by customers of another warehouse; clause 2.5.1.2 wants 15 of 100.
    pub remote_customers: Share,
    /// Into how many partitions tables are split by warehouse where they are split, from 1 to as many as there are warehouses; `None` for
    /// as many.
    pub partitions: Option<u16>,
    /// Where all random numbers come from.
    pub seed: u64,
    /// Workers that there will be; decides which warehouses are the homes of each.
    pub workers: usize,
}

/// Rows per warehouse and items; the specification's unless a test wants fewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scale {
    /// Items, hence stocks of a warehouse.
    pub items: u32,
    /// Customers of a district, and as many orders.
    pub customers: u16,
}

impl Scale {
    /// Clause 1.2.1.
    pub const SPECIFICATION: Self = Self { items: 100_000, customers: 3_000 };

    /// Orders of a district that are delivered when loaded: 2100 of 3000.
    pub(super) fn delivered_orders(self) -> u32 {
        u32::from(self.customers) - u32::from(self.customers) * 3 / 10
    }
}

impl Default for Scale {
    fn default() -> Self {
        Self::SPECIFICATION
    }
}

/// How the read-only transactions run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadOnly {
    /// Against a snapshot about a second old; they never abort.
    #[default]
    Snapshot,
    /// As ordinary transactions, validated at commit.
    Ordinary,
}

/// How a transaction's warehouse is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum WarehouseChoice {
    /// Each worker has its own, as the terminals of clause 4.2.2 do.
    #[default]
    #[serde(rename = "home")]
    Home,
    /// Any, with equal chances.
    #[serde(rename = "uniform")]
    Uniform,
    /// 80 of 100 transactions go to the first fifth of the warehouses.
    #[serde(rename = "80-20")]
    EightyTwenty,
}

impl TpccOptions {
    /// One warehouse per worker and everything else as specified.
    pub fn new(workers: usize) -> Self {
        Self {
            warehouses: u16::try_from(workers).unwrap_or(u16::MAX).max(1),
            scale: Scale::SPECIFICATION,
            mix: default_mix(),
            read_only: ReadOnly::default(),
            warehouse_choice: WarehouseChoice::default(),
            remote_items: Share::ONE_OF_100,
            remote_customers: Share::FIFTEEN_OF_100,
            partitions: None,
            seed: 1,
            workers,
        }
    }

    /// Into how many partitions tables are split where they are.
    pub fn partitions(&self) -> u16 {
        self.partitions.unwrap_or(self.warehouses)
    }

    /// Bytes of the loaded rows, roughly.
    pub(crate) fn loaded_bytes(&self) -> u64 {
        /// Of an item's stocks and of a customer with orders and lines.
        const STOCK_BYTES: u64 = 350;
        const CUSTOMER_BYTES: u64 = 10 * 2_000;
        let Scale { items, customers } = self.scale;
        let warehouse = u64::from(items) * STOCK_BYTES + u64::from(customers) * CUSTOMER_BYTES;
        u64::from(self.warehouses) * warehouse + u64::from(items) * 100
    }

    /// The options as the report shows them.
    pub fn parameters(&self) -> serde_json::Value {
        let mix: serde_json::Map<_, _> = TRANSACTION_TYPES
            .iter()
            .enumerate()
            .map(|(at, &name)| (name.to_owned(), self.mix.percent(at).into()))
            .collect();
        serde_json::json!({
            "warehouses": self.warehouses,
            "items": self.scale.items,
            "customers_per_district": self.scale.customers,
            "mix": mix,
            "read_only": self.read_only,
            "warehouse_choice": self.warehouse_choice,
            "remote_item_percent": self.remote_items.percent(),
            "seed": self.seed,
        })
    }
}

/// Reads a mix like `45/43/4/4/4` or `new-order=50,payment=50`.
///
/// # Errors
/// Any [`MixError`].
pub fn parse_mix(text: &str) -> Result<Mix, MixError> {
    Mix::parse(text, &TRANSACTION_TYPES)
}

fn default_mix() -> Mix {
    Mix::new(&DEFAULT_MIX).unwrap_or_else(|error| unreachable!("the default mix is a mix: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specification_delivers_2100_of_3000_orders() {
        assert_eq!(Scale::SPECIFICATION.delivered_orders(), 2_100);
        assert_eq!(Scale { items: 10, customers: 10 }.delivered_orders(), 7);
    }

    #[test]
    fn the_default_mix_is_the_specifications() {
        assert_eq!(TpccOptions::new(2).mix, parse_mix("45/43/4/4/4").unwrap());
        assert!(parse_mix("45/43/4/4").is_err());
    }
}
