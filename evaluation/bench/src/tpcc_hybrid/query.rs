//! CH-Q2*: of the suppliers of a region, the stock that each has least of, restocked where that is little.
//!
//! # Source
//! ERMIA (SIGMOD 2016) §4.2: query 2 of CH-benCHmark for a random region, over a part of the suppliers that gives the transaction its
//! size. A transaction goes over suppliers that lie side by side, from a random one on, and around the end.

use std::hint::black_box;
use std::ops::Range;

use ensilo::generic::Transaction;
use ensilo::{Columns, Engine, Result, Text};

use super::load::HybridTables;
use super::schema::{Nation, REGIONS, Region, Supplier};
use super::supplier_stocks::SupplierStocks;
use crate::random::Random;
use crate::tpcc::{Item, Stock, Tables, missing};

/// A stock of fewer is restocked. The least that new-orders leave is 10, the most 100.
pub(super) const THRESHOLD: i16 = 15;
/// How many come when it is restocked.
pub(super) const RESTOCKED: i16 = 50;

/// What a CH-Q2* is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Query {
    pub(super) region: u8,
    pub(super) first_supplier: u32,
    pub(super) suppliers: u32,
}

/// The tables that it touches.
#[derive(Debug)]
pub(super) struct QueryTables<'a, E: Engine> {
    pub(super) tpcc: &'a Tables<E>,
    pub(super) hybrid: &'a HybridTables<E>,
    pub(super) supplier_stocks: &'a SupplierStocks,
}

/// Scratch memory of the transaction.
#[derive(Debug, Default)]
pub(super) struct QueryScratch {
    /// The suppliers of the region, with the name that the list shows.
    suppliers: Vec<(u32, Text<25>)>,
}

#[derive(Columns)]
#[columns(of = Region)]
struct RegionName {
    r_name: Text<25>,
}

#[derive(Columns)]
#[columns(of = Nation)]
struct NationRegion {
    n_name: Text<25>,
    n_regionkey: u8,
}

#[derive(Columns)]
#[columns(of = Supplier)]
struct ListedSupplier {
    su_name: Text<25>,
    su_address: Text<40>,
    su_nationkey: u8,
    su_phone: Text<15>,
    su_comment: Text<101>,
}

#[derive(Columns)]
#[columns(of = Item)]
struct ListedItem {
    i_name: Text<24>,
    i_data: Text<50>,
}

/// What there is of a stock.
#[derive(Columns)]
#[columns(of = Stock)]
pub(super) struct Quantity {
    pub(super) s_quantity: i16,
}

impl Query {
    /// Draws a query over so many of `all` suppliers.
    pub(super) fn draw(random: &mut Random, suppliers: u32, all: u32) -> Self {
        Self {
            region: random.below(REGIONS.len() as u64) as u8,
            first_supplier: random.below(u64::from(all)) as u32,
            suppliers,
        }
    }

    /// The suppliers that it covers, of `all` that there are: up to the last one, and on from the first.
    fn ranges(&self, all: u32) -> [Range<u32>; 2] {
        let end = self.first_supplier + self.suppliers;
        [self.first_supplier..end.min(all), 0..end.saturating_sub(all)]
    }

    /// Runs the transaction and returns how many stocks it restocked.
    pub(super) fn run<'t, E: Engine>(
        &self,
        tables: &QueryTables<'_, E>,
        tx: &mut Transaction<'t, E>,
        scratch: &mut QueryScratch,
    ) -> Result<u16> {
        self.find_suppliers(tables, tx, scratch)?;
        let mut restocked = 0;
        for &(supplier, name) in &scratch.suppliers {
            let Some((stock, quantity)) = least(tables, tx, supplier)? else { continue };
            let item = tables.tpcc.items.get_columns::<ListedItem>(tx, stock.1)?;
            // CH-benCHmark lists items by the end of their text alone.
            let listed = item.filter(|item| item.i_data.as_str().ends_with('b'));
            black_box(listed.map(|item| (name, item.i_name, quantity)));
            if quantity < THRESHOLD {
                restock(tables, tx, stock, quantity)?;
                restocked += 1;
            }
        }
        Ok(restocked)
    }

    /// Notes down those of the suppliers whose nation is one of the region.
    fn find_suppliers<'t, E: Engine>(
        &self,
        tables: &QueryTables<'_, E>,
        tx: &mut Transaction<'t, E>,
        scratch: &mut QueryScratch,
    ) -> Result<()> {
        let HybridTables { regions, nations, suppliers } = tables.hybrid;
        black_box(regions.get_columns::<RegionName>(tx, self.region)?);
        let mut nations_of_region = 0_u32;
        nations.scan().columns::<NationRegion>().for_each(tx, |key, nation| {
            if nation.n_regionkey == self.region {
                black_box(nation.n_name);
                nations_of_region |= 1 << key;
            }
        })?;
        scratch.suppliers.clear();
        for range in self.ranges(tables.supplier_stocks.suppliers()) {
            suppliers.range(range).columns::<ListedSupplier>().for_each(tx, |key, supplier| {
                if nations_of_region & 1 << supplier.su_nationkey != 0 {
                    black_box((supplier.su_address, supplier.su_phone, supplier.su_comment));
                    scratch.suppliers.push((key, supplier.su_name));
                }
            })?;
        }
        Ok(())
    }
}

/// The stock that a supplier has least of, with how much there is; `None` if it supplies nothing.
fn least<'t, E: Engine>(
    tables: &QueryTables<'_, E>,
    tx: &mut Transaction<'t, E>,
    supplier: u32,
) -> Result<Option<((u16, u32), i16)>> {
    let keys = tables.supplier_stocks.of(supplier);
    let mut least: Option<((u16, u32), i16)> = None;
    tables.tpcc.stocks.get_columns_many::<Quantity>(tx, keys, |at, stock| {
        let quantity = stock.map(|stock| stock.s_quantity);
        if let Some(quantity) = quantity.filter(|&quantity| least.is_none_or(|(_, least)| quantity < least)) {
            least = Some((keys[at], quantity));
        }
    })?;
    Ok(least)
}

fn restock<'t, E: Engine>(
    tables: &QueryTables<'_, E>,
    tx: &mut Transaction<'t, E>,
    stock: (u16, u32),
    quantity: i16,
) -> Result<()> {
    let found = tables.tpcc.stocks.find(tx, stock)?.ok_or_else(missing)?;
    found.set(tx, Quantity { s_quantity: quantity + RESTOCKED })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_goes_around_the_end() {
        let query = |first_supplier, suppliers| Query { region: 0, first_supplier, suppliers };
        assert_eq!(query(2, 3).ranges(10), [2..5, 0..0]);
        assert_eq!(query(7, 3).ranges(10), [7..10, 0..0]);
        assert_eq!(query(8, 5).ranges(10), [8..10, 0..3]);
        assert_eq!(query(0, 10).ranges(10), [0..10, 0..0]);
        assert_eq!(query(9, 10).ranges(10), [9..10, 0..9]);
    }
}
