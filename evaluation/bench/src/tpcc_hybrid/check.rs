//! What must hold beside TPC-C's twelve conditions, none of which is about the quantities that CH-Q2* changes.
//!
//! # Quantities
//! A new-order takes what it sells from `s_quantity`, adds it to `s_ytd`, and fills up by 91 where less than 10 would be left (TPC-C,
//! clause 2.4.2.2). A CH-Q2* adds 50. Hence the sum of both columns grows by 91 times one number and 50 times another, and the second one,
//! modulo 91, shows whether all that committed is there, and nothing else: 50 and 91 have no common divisor.

use ensilo::{Columns, Engine, Result};

use super::query::RESTOCKED;
use super::schema::{NATIONS, Nation, REGIONS, Region, Supplier};
use super::workload::{StockTally, TpccHybrid};
use crate::driver::Check;
use crate::tpcc::{Arrangement, Stock};

/// By how much a new-order fills up a stock.
const FILLED_UP: u64 = 91;
/// What a stock has at least and at most.
const QUANTITY: std::ops::RangeInclusive<i16> = 10..=100;

/// The columns in which a stock's quantity is accounted for.
#[derive(Columns)]
#[columns(of = Stock)]
struct QuantityAndSold {
    s_quantity: i16,
    s_ytd: u32,
}

#[derive(Columns)]
#[columns(of = Nation)]
struct NationRegion {
    n_regionkey: u8,
}

#[derive(Columns)]
#[columns(of = Supplier)]
struct SupplierNation {
    su_nationkey: u8,
}

#[derive(Columns)]
#[columns(of = Region)]
struct RegionKey {}

/// What all stocks show together.
#[derive(Debug)]
pub(super) struct StockSum {
    /// The sum of `s_quantity` and `s_ytd`.
    pub(super) quantity_and_sold: u64,
    bounds: Check,
}

/// Makes the checks, on a snapshot.
pub(super) fn check<E: Engine>(workload: &TpccHybrid<E>) -> Result<Vec<Check>> {
    let StockSum { quantity_and_sold, bounds } = sum_stocks(workload)?;
    let mut checks = vec![check_suppliers(workload)?, bounds];
    if let Some(tally) = workload.tally() {
        checks.push(check_restocked(quantity_and_sold, tally));
    }
    Ok(checks)
}

/// Goes over all stocks.
pub(super) fn sum_stocks<E: Engine>(workload: &TpccHybrid<E>) -> Result<StockSum> {
    workload.tpcc.database.read_stale(|tx| {
        let mut sum = StockSum {
            quantity_and_sold: 0,
            bounds: Check::new("stock_quantity", "s_quantity is 10 to 100"),
        };
        let stocks = &workload.tpcc.tables.of(1).stocks;
        stocks.scan().columns::<QuantityAndSold>().for_each(tx, |key, stock| {
            sum.quantity_and_sold += stock.s_quantity.max(0) as u64 + u64::from(stock.s_ytd);
            let holds = QUANTITY.contains(&stock.s_quantity);
            sum.bounds.expect(holds, || format!("stock {key:?}: s_quantity {}", stock.s_quantity));
        })?;
        Ok(sum)
    })
}

fn check_restocked(quantity_and_sold: u64, tally: StockTally) -> Check {
    let StockTally { loaded, restocked } = tally;
    let mut check =
        Check::new("restocked", "s_quantity and s_ytd add up to what was loaded and restocked, modulo 91");
    let expected = loaded + restocked * RESTOCKED as u64;
    check.expect(quantity_and_sold % FILLED_UP == expected % FILLED_UP, || {
        format!("the sum is {quantity_and_sold}; {loaded} loaded, {restocked} stocks restocked")
    });
    check
}

/// Holds the keys of the tables that nobody changes against each other.
fn check_suppliers<E: Engine>(workload: &TpccHybrid<E>) -> Result<Check> {
    let mut check = Check::new("suppliers", "every supplier is there, with a nation and a region");
    workload.tpcc.database.read_stale(|tx| {
        let tables = &workload.tables;
        let (mut regions, mut nations, mut suppliers) = (0_usize, 0_usize, 0_u32);
        tables.regions.scan().columns::<RegionKey>().for_each(tx, |_, RegionKey {}| regions += 1)?;
        tables.nations.scan().columns::<NationRegion>().for_each(tx, |key, nation| {
            let holds = usize::from(nation.n_regionkey) < regions && usize::from(key) == nations;
            check.expect(holds, || format!("nation {key} of region {}", nation.n_regionkey));
            nations += 1;
        })?;
        tables.suppliers.scan().columns::<SupplierNation>().for_each(tx, |key, supplier| {
            let holds = usize::from(supplier.su_nationkey) < nations && key == suppliers;
            check.expect(holds, || format!("supplier {key} of nation {}", supplier.su_nationkey));
            suppliers += 1;
        })?;
        let counts = (regions, nations, suppliers);
        let expected = (REGIONS.len(), NATIONS.len(), workload.options.suppliers);
        check.expect(counts == expected, || {
            format!("{counts:?} regions, nations and suppliers, not {expected:?}")
        });
        Ok(())
    })?;
    Ok(check)
}
