//! The twelve consistency conditions of clause 3.3.2, held against what a snapshot shows.
//!
//! A warehouse is checked in one pass over each of its tables: orders with their lines are walked side by side, and sums
//! are kept by customer. Only the history is not kept by warehouse; it is summed up first, for all of them.
//!
//! # Source
//! TPC-C revision 5.11, clause 3.3.2. Condition 3.3.2.11 there says that all orders but the new ones are 2100 in each
//! district, which holds when the database is loaded and until the first delivery. Deliveries are counted in the customers, so it
//! is checked that these orders are the loaded 2100 and the deliveries since.
//!
//! Where orders get their numbers outside of their transactions, numbers of orders that were rolled back are missing: condition 3.3.2.3
//! does not hold and is not checked, and of 3.3.2.2 what remains is that no order has a number that was not given out.

mod condition;
mod district;
mod history;
mod warehouse;

use ensilo::Engine;
use ensilo::{Result as DatabaseResult, generic::ReadTransaction};

use condition::Conditions;
pub(super) use history::HistorySums;

use super::arrangement::Arrangement;
use super::loaded::TpccOf;
use super::options::Scale;
use crate::database;
use crate::driver::{Check, Division, Failure, Interrupt, View, parallel};

/// Checks every warehouse, several at a time, once a snapshot shows all that was committed. Where there are no snapshots nobody changes
/// anything meanwhile.
pub(super) fn check<A: Arrangement>(
    tpcc: &TpccOf<A>,
    view: &mut View,
    interrupt: &Interrupt,
) -> Result<Vec<Check>, Failure> {
    let TpccOf { options, database, tables } = tpcc;
    database::make_fresh_snapshot(database)?;
    let sums = if A::Engine::SNAPSHOTS {
        database.read_stale(|tx| HistorySums::collect(tables, options, tx))
    } else {
        database.transact(|tx| HistorySums::collect(tables, options, tx))
    }?;
    let warehouses = u64::from(options.warehouses);
    let division = Division {
        workers: options.workers,
        tasks: warehouses,
        stage: "checking consistency",
        total: warehouses,
        unit: "warehouses",
    };
    let parts = parallel(division, view, interrupt, |task, reporter| {
        let warehouse = task as u16 + 1;
        let conditions = if A::Engine::SNAPSHOTS {
            database.read_stale(|tx| warehouse::check(tables, options.scale, tx, warehouse, &sums))
        } else {
            database.transact(|tx| warehouse::check(tables, options.scale, tx, warehouse, &sums))
        }?;
        reporter.advance(1)?;
        Ok(conditions)
    })?;
    let mut whole = Conditions::new();
    parts.into_iter().for_each(|part| whole.add(part));
    Ok(whole.into_checks(A::HAS_FAST_IDS))
}

/// Checks one warehouse, where `sums` are those of all.
pub(super) fn check_warehouse<'t, A: Arrangement>(
    tables: &A,
    scale: Scale,
    tx: &mut impl ReadTransaction<'t, A::Engine>,
    warehouse: u16,
    sums: &HistorySums,
) -> DatabaseResult<Vec<Check>> {
    Ok(warehouse::check(tables, scale, tx, warehouse, sums)?.into_checks(A::HAS_FAST_IDS))
}

/// Checks every warehouse in one transaction.
#[cfg(test)]
pub(super) fn check_in<'t, A: Arrangement>(
    tpcc: &TpccOf<A>,
    tx: &mut impl ReadTransaction<'t, A::Engine>,
) -> DatabaseResult<Vec<Check>> {
    let TpccOf { options, tables, .. } = tpcc;
    let sums = HistorySums::collect(tables, options, tx)?;
    let mut conditions = Conditions::new();
    for warehouse in 1..=options.warehouses {
        conditions.add(warehouse::check(tables, options.scale, tx, warehouse, &sums)?);
    }
    Ok(conditions.into_checks(A::HAS_FAST_IDS))
}
