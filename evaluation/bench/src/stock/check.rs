//! The consistency of the table after a run: no update lost, none made up.

use ensilo::{Engine, Result};

use super::session::OrderCount;
use super::table::StockTable;
use crate::database;
use crate::driver::Check;

/// What all rows show together.
#[derive(Debug)]
pub(super) struct StockCounts {
    rows: u64,
    pub(super) updates: u64,
}

/// Checks the table.
pub(super) fn check<E: Engine>(table: &StockTable<E>) -> Result<Vec<Check>> {
    let StockCounts { rows, updates } = read_all(table)?;
    let loaded = u64::from(table.options.warehouses) * u64::from(table.options.items);
    let mut row_check = Check::new("row_count", "there are as many stocks as were loaded");
    row_check.expect(rows == loaded, || format!("{rows} stocks, {loaded} loaded"));
    let mut checks = vec![row_check];
    // How many there should be is not known after a crash: then the effects show it.
    if let Some(committed) = table.updates() {
        let mut check = Check::new("update_sum", "s_order_cnt adds up to the committed updates");
        check.expect(updates == committed, || format!("it adds up to {updates}, {committed} committed"));
        checks.push(check);
    }
    Ok(checks)
}

/// Reads every row from a snapshot that shows all that was committed.
pub(super) fn read_all<E: Engine>(table: &StockTable<E>) -> Result<StockCounts> {
    database::make_fresh_snapshot(&table.database)?;
    table.database.read_stale(|tx| {
        let mut counts = StockCounts { rows: 0, updates: 0 };
        table.stocks.scan().columns::<OrderCount>().for_each(tx, |_, stock| {
            counts.rows += 1;
            counts.updates += u64::from(stock.s_order_cnt);
        })?;
        Ok(counts)
    })
}
