//! The twelve consistency conditions of clause 3.3.2, held against what a snapshot shows.
//!
//! A warehouse is checked in one pass over each of its tables: orders with their lines are walked side by side, and sums
//! are kept by customer. Only the history is not kept by warehouse; it is summed up first, for all of them.
//!
//! # Source
//! TPC-C revision 5.11, clause 3.3.2. Condition 3.3.2.11 there says that all orders but the new ones are 2100 in each
//! district, which holds when the database is loaded and until the first delivery. Deliveries are counted in the customers, so it
//! is checked that these orders are the loaded 2100 and the deliveries since.

mod condition;
mod district;
mod history;
mod warehouse;

#[cfg(test)]
use ensilo::{ReadTransaction, Result as DatabaseResult, Silo};

use condition::Conditions;
use history::HistorySums;

use super::tables::Tables;
use super::workload::Tpcc;
use crate::database;
use crate::driver::{Check, Division, Failure, Interrupt, View, parallel};

/// Checks every warehouse, several at a time, once a snapshot shows all that was committed.
pub(super) fn check(tpcc: &Tpcc, view: &mut View, interrupt: &Interrupt) -> Result<Vec<Check>, Failure> {
    database::wait_for_fresh_snapshot(&tpcc.database)?;
    let sums = tpcc.database.snapshot(|tx| HistorySums::collect(tpcc, tx))?;
    let warehouses = u64::from(tpcc.options.warehouses);
    let division = Division {
        workers: tpcc.options.workers,
        tasks: warehouses,
        stage: "checking consistency",
        total: warehouses,
        unit: "warehouses",
    };
    let parts = parallel(division, view, interrupt, |task, reporter| {
        let mut conditions = Conditions::new();
        let warehouse = task as u16 + 1;
        tpcc.database.snapshot(|tx| warehouse::check(tpcc, tx, warehouse, &sums, &mut conditions))?;
        reporter.advance(1)?;
        Ok(conditions)
    })?;
    let mut whole = Conditions::new();
    parts.into_iter().for_each(|part| whole.add(part));
    Ok(whole.into_checks())
}

/// Checks every warehouse in one transaction.
#[cfg(test)]
pub(super) fn check_in<'t>(
    tpcc: &Tpcc,
    tx: &mut impl ReadTransaction<'t, Silo>,
) -> DatabaseResult<Vec<Check>> {
    let sums = HistorySums::collect(tpcc, tx)?;
    let mut conditions = Conditions::new();
    for warehouse in 1..=tpcc.options.warehouses {
        warehouse::check(tpcc, tx, warehouse, &sums, &mut conditions)?;
    }
    Ok(conditions.into_checks())
}

/// What all parts of a check are given.
struct Place<'a> {
    tables: &'a Tables,
    warehouse: u16,
    district: u8,
}
