//! The loaded table as the driver runs it.

use std::sync::{Mutex, PoisonError};

use ensilo::generic::{Database, Table};
use ensilo::{Engine, Silo};

use super::check;
use super::options::{StockOptions, TRANSACTION_TYPES};
use super::session::StockSession;
use crate::database;
use crate::driver::{Check, Division, Failure, Interrupt, View, Workload, parallel};
use crate::random::Random;
use crate::tpcc::{Stock, Strings, new_stock};

/// Rows that one transaction of the loader inserts.
const BATCH_ROWS: u32 = 500;

/// The table of stocks of the options, loaded.
#[derive(Debug)]
pub struct StockTable<E: Engine = Silo> {
    pub(super) options: StockOptions,
    pub(super) database: Database<E>,
    pub(super) stocks: Table<Stock, E>,
    /// Updates that committed since the load; `None` when transactions were run that this process knows nothing of.
    updates: Mutex<Option<u64>>,
}

impl<E: Engine> StockTable<E> {
    /// Loads `database`, which is empty. All is stored in the end, if it ever is in this database.
    ///
    /// # Errors
    /// A failure of the database, or [`Failure::Interrupted`].
    pub fn load(
        options: StockOptions,
        database: Database<E>,
        view: &mut View,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let stocks = database.create_table::<Stock>()?;
        let batches = options.items.div_ceil(BATCH_ROWS);
        let division = Division {
            workers: options.workers,
            tasks: u64::from(options.warehouses) * u64::from(batches),
            stage: "loading",
            total: u64::from(options.warehouses) * u64::from(options.items),
            unit: "rows",
        };
        parallel(division, view, interrupt, |task, reporter| {
            let warehouse = (task / u64::from(batches)) as u16 + 1;
            let first = (task % u64::from(batches)) as u32 * BATCH_ROWS + 1;
            let last = options.items.min(first + BATCH_ROWS - 1);
            let mut random = Random::for_stream(options.seed, task);
            let mut strings = Strings::default();
            database::load_request(&database).transact(|tx| {
                (first..=last).try_for_each(|item| {
                    let row = new_stock(warehouse, item, &mut random, &mut strings);
                    stocks.insert(tx, &row).map(|_| ())
                })
            })?;
            reporter.advance(u64::from(last - first + 1))
        })?;
        database::wait_until_stored(&database)?;
        Ok(Self { options, database, stocks, updates: Mutex::new(Some(0)) })
    }

    /// The workload of a `database` that was loaded with the same options before.
    ///
    /// # Errors
    /// A failure of the database.
    pub fn open(options: StockOptions, database: Database<E>) -> Result<Self, Failure> {
        let stocks = database.open_table()?;
        Ok(Self { options, database, stocks, updates: Mutex::new(None) })
    }

    /// Adds the updates that a session committed.
    pub(super) fn add_updates(&self, updates: u64) {
        if let Some(sum) = self.updates.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            *sum += updates;
        }
    }

    /// The updates that all sessions committed that have finished, if there were no others.
    pub(super) fn updates(&self) -> Option<u64> {
        *self.updates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E: Engine> Workload for StockTable<E> {
    type Engine = E;
    type Session<'a> = StockSession<'a, E>;

    fn transaction_types(&self) -> &'static [&'static str] {
        &TRANSACTION_TYPES
    }

    fn session(&self, worker: usize) -> StockSession<'_, E> {
        StockSession::new(self, worker)
    }

    fn database(&self) -> Option<&Database<E>> {
        Some(&self.database)
    }

    fn check(&self, _view: &mut View, _interrupt: &Interrupt) -> Result<Vec<Check>, Failure> {
        Ok(check::check(self)?)
    }

    fn count_effects(&self) -> Result<Vec<u64>, Failure> {
        Ok(vec![check::read_all(self)?.updates])
    }
}
