//! Stock-level: how many items of a district's last 20 orders are low in stock (clause 2.8).

use std::ops::Range;

use ensilo::generic::ReadTransaction;
use ensilo::{Columns, Result};
use serde::{Deserialize, Serialize};

use super::arrangement::Arrangement;
use super::input::Inputs;
use super::new_order::missing;
use super::schema::{District, OrderLine, Stock};

/// Orders that are looked at.
const ORDERS: u32 = 20;

/// What the terminal enters. Clause 2.8.1.1 binds a terminal to one district; a worker stands for all terminals of its
/// warehouses and draws one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StockLevelInput {
    /// The warehouse.
    pub warehouse: u16,
    /// The district of the orders that are read.
    pub district: u8,
    /// What a stock has to be below of.
    pub threshold: i16,
}

/// Scratch memory of the transaction: the distinct stocks to look at.
#[derive(Debug)]
pub struct StockLevelScratch {
    keys: Vec<(u16, u32)>,
    /// One bit for each item, set for those in `keys`.
    seen: Vec<u64>,
}

impl StockLevelScratch {
    /// For stocks of this many items.
    pub fn new(items: u32) -> Self {
        Self { keys: Vec::new(), seen: vec![0; items as usize / 64 + 1] }
    }

    /// Forgets all stocks, which is quicker by those that there are than by all that there may be.
    pub fn clear(&mut self) {
        for (_, item) in self.keys.drain(..) {
            self.seen[item as usize / 64] = 0;
        }
    }

    /// The stocks, by warehouse and item.
    pub fn keys(&self) -> &[(u16, u32)] {
        &self.keys
    }

    /// Adds a stock unless it is there.
    #[inline]
    pub fn add(&mut self, warehouse: u16, item: u32) {
        let bit = 1 << (item % 64);
        // A number that no item has belongs to no stock either.
        let Some(word) = self.seen.get_mut(item as usize / 64) else { return };
        if *word & bit == 0 {
            *word |= bit;
            self.keys.push((warehouse, item));
        }
    }
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

    /// The orders to look at where the next order has this number.
    #[inline]
    pub fn last_orders(next: u32) -> Range<u32> {
        next.saturating_sub(ORDERS)..next
    }

    /// The warehouse that it is about.
    pub(super) fn warehouse(&self) -> u16 {
        self.warehouse
    }

    /// Runs the transaction (clause 2.8.2.2) and returns the number of items below the threshold.
    pub(super) fn run<'t, A: Arrangement>(
        &self,
        arrangement: &A,
        tx: &mut impl ReadTransaction<'t, A::Engine>,
        scratch: &mut StockLevelScratch,
    ) -> Result<usize> {
        let (warehouse, district) = (self.warehouse, self.district);
        let tables = arrangement.of(warehouse);
        let row =
            tables.districts.get_columns::<NextOrder>(tx, (warehouse, district))?.ok_or_else(missing)?;
        let next =
            if A::HAS_FAST_IDS { arrangement.next_order(warehouse, district) } else { row.d_next_o_id };
        let last_orders = Self::last_orders(next);
        let range = (warehouse, district, last_orders.start, 0)..(warehouse, district, last_orders.end, 0);
        scratch.clear();
        let lines = tables.order_lines.range(range).columns::<LineItem>();
        lines.for_each(tx, |_, line| scratch.add(warehouse, line.ol_i_id))?;
        let mut low = 0;
        tables.stocks.get_columns_many::<Quantity>(tx, &scratch.keys, |_, stock| {
            low += usize::from(stock.is_some_and(|stock| stock.s_quantity < self.threshold));
        })?;
        Ok(low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stocks_are_looked_at_once() {
        let mut scratch = StockLevelScratch::new(100);
        for items in [vec![1, 64, 1, 100], vec![64, 2, 2]] {
            scratch.clear();
            items.iter().for_each(|&item| scratch.add(7, item));
            let mut distinct: Vec<u32> = items;
            distinct.sort_unstable();
            distinct.dedup();
            let mut seen: Vec<u32> = scratch.keys.iter().map(|&(_, item)| item).collect();
            seen.sort_unstable();
            assert_eq!(seen, distinct);
        }
    }
}
