//! A loaded table of records.

use std::sync::{Mutex, PoisonError};

use ensilo::Engine;
use ensilo::generic::{Database, Table};

use super::options::{BATCH_TYPES, OPERATIONS, UPDATE, YcsbOptions};
use super::record::Record;
use super::value;
use crate::database;
use crate::driver::{Division, Failure, Interrupt, View, parallel};

/// Records that one transaction of the loader inserts.
const BATCH_ROWS: u64 = 500;

/// The table with records of the type `R`.
#[derive(Debug)]
pub(super) struct YcsbTable<R: Record, E: Engine> {
    pub(super) options: YcsbOptions,
    pub(super) database: Database<E>,
    pub(super) table: Table<R, E>,
    /// `None` when transactions were run that this process knows nothing of.
    tally: Mutex<Option<Tally>>,
}

/// What committed since the load, the warm-up included.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Tally {
    pub(super) inserts: u64,
    pub(super) rmws: u64,
}

impl<R: Record, E: Engine> YcsbTable<R, E> {
    pub(super) fn load(
        options: YcsbOptions,
        database: Database<E>,
        view: &mut View,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let table = database.create_table::<R>()?;
        // Small tasks taken in turn: the threads append side by side to the end of the tree, which leaves its nodes full.
        let division = Division {
            workers: options.workers,
            tasks: options.records.div_ceil(BATCH_ROWS),
            stage: "loading",
            total: options.records,
            unit: "records",
        };
        parallel(division, view, interrupt, |task, reporter| {
            let first = task * BATCH_ROWS;
            let last = options.records.min(first + BATCH_ROWS);
            database.transact(|tx| {
                (first..last).try_for_each(|key| {
                    let row = R::new(key, options.value_bytes, |bytes| value::fill(bytes, key, 0));
                    table.insert(tx, &row).map(|_| ())
                })
            })?;
            reporter.advance(last - first)
        })?;
        database::wait_until_stored(&database)?;
        Ok(Self { options, database, table, tally: Mutex::new(Some(Tally::default())) })
    }

    pub(super) fn open(options: YcsbOptions, database: Database<E>) -> Result<Self, Failure> {
        let table = database.open_table::<R>()?;
        Ok(Self { options, database, table, tally: Mutex::new(None) })
    }

    /// Adds what a session committed.
    pub(super) fn add_tally(&self, session: &Tally) {
        if let Some(sum) = self.tally.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            sum.inserts += session.inserts;
            sum.rmws += session.rmws;
        }
    }

    /// What all sessions committed that have finished, if there were no others.
    pub(super) fn tally(&self) -> Option<Tally> {
        *self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the counters of records add up to the read-modify-writes: blind updates leave marks in their place.
    pub(super) fn counts_rmws(&self) -> bool {
        self.options.mix.shares.percent(UPDATE) == 0.0
    }

    pub(super) fn transaction_types(&self) -> &'static [&'static str] {
        if self.options.operations == 1 { &OPERATIONS } else { &BATCH_TYPES }
    }
}
