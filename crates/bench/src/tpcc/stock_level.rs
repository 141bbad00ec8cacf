//! Stock-level: how many items of a district's last 20 orders are low in stock (clause 2.8).

use ensilo::{Columns, ReadTransaction, Result, Silo};

use super::input::Inputs;
use super::new_order::missing;
use super::schema::{District, OrderLine, Stock};
use super::tables::Tables;

/// Orders that are looked at.
const ORDERS: u32 = 20;

/// What the terminal enters. Clause 2.8.1.1 binds a terminal to one district; a worker stands for all terminals of its
/// warehouses and draws one.
#[derive(Debug, Clone)]
pub(super) struct StockLevelInput {
    warehouse: u16,
    district: u8,
    threshold: i16,
}

/// Scratch memory of the transaction.
#[derive(Debug, Default)]
pub(super) struct StockLevelScratch {
    keys: Vec<(u16, u32)>,
}

#[derive(Columns)]
#[columns(of = District)]
struct NextOrder {
    d_next_o_id: u32,
}

#[derive(Columns)]
#[columns(of = OrderLine)]
struct LineItem {
    ol_i_id: u32,
}

#[derive(Columns)]
#[columns(of = Stock)]
struct Quantity {
    s_quantity: i16,
}

impl StockLevelInput {
    /// Draws a question about a district of `warehouse` (clause 2.8.1).
    pub(super) fn draw(inputs: &mut Inputs<'_>, warehouse: u16) -> Self {
        Self { warehouse, district: inputs.district(), threshold: inputs.random.between(10, 20) as i16 }
    }

    /// Runs the transaction (clause 2.8.2.2) and returns the number of items below the threshold.
    pub(super) fn run<'t>(
        &self,
        tables: &Tables,
        tx: &mut impl ReadTransaction<'t, Silo>,
        scratch: &mut StockLevelScratch,
    ) -> Result<usize> {
        let (warehouse, district) = (self.warehouse, self.district);
        let next =
            tables.districts.get_columns::<NextOrder>(tx, (warehouse, district))?.ok_or_else(missing)?;
        let last_orders = next.d_next_o_id.saturating_sub(ORDERS)..next.d_next_o_id;
        let range = (warehouse, district, last_orders.start, 0)..(warehouse, district, last_orders.end, 0);
        let keys = &mut scratch.keys;
        keys.clear();
        let lines = tables.order_lines.range(range).columns::<LineItem>();
        lines.for_each(tx, |_, line| keys.push((warehouse, line.ol_i_id)))?;
        keys.sort_unstable();
        keys.dedup();
        let mut low = 0;
        tables.stocks.get_columns_many::<Quantity>(tx, keys, |_, stock| {
            low += usize::from(stock.is_some_and(|stock| stock.s_quantity < self.threshold));
        })?;
        Ok(low)
    }
}
