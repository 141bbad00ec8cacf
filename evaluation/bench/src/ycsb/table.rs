//! A loaded table of records, or several that share them: the record of a key lies in the table that the key's remainder says.

use std::sync::{Mutex, PoisonError};

use ensilo::generic::{Database, Table};
use ensilo::{Engine, Order, Result, Row};

use super::options::{BATCH_TYPES, OPERATIONS, UPDATE, YcsbOptions};
use super::record::{INDEXES, Record};
use super::value;
use crate::database;
use crate::driver::{Division, Failure, Interrupt, View, parallel};

/// Records that one transaction of the loader inserts.
const BATCH_ROWS: u64 = 500;

/// The tables with records of the type `R`.
#[derive(Debug)]
pub(super) struct YcsbTable<R: Record, E: Engine> {
    pub(super) options: YcsbOptions,
    pub(super) database: Database<E>,
    /// At least one.
    pub(super) tables: Vec<Table<R, E>>,
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
        let tables = create_tables(&options, &database)?;
        let loaded = Self { options, database, tables, tally: Mutex::new(Some(Tally::default())) };
        loaded.fill(view, interrupt)?;
        Ok(loaded)
    }

    /// Inserts the records that are to be there at first.
    fn fill(&self, view: &mut View, interrupt: &Interrupt) -> Result<(), Failure> {
        let Self { options, database, .. } = self;
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
                    self.table_of(key).insert(tx, &row).map(|_| ())
                })
            })?;
            reporter.advance(last - first)
        })?;
        Ok(database::wait_until_stored(database)?)
    }

    pub(super) fn open(options: YcsbOptions, database: Database<E>) -> Result<Self, Failure> {
        let open = |at| database.open_table_named(&table_name::<R>(at));
        let tables = (0..options.tables).map(open).collect::<Result<_>>()?;
        Ok(Self { options, database, tables, tally: Mutex::new(None) })
    }

    /// The table that the record of this key is in.
    #[inline]
    pub(super) fn table_of(&self, key: u64) -> &Table<R, E> {
        match &self.tables[..] {
            [table] => table,
            tables => &tables[(key % tables.len() as u64) as usize],
        }
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

/// The name of the table of this number; the first one has the usual name.
fn table_name<R: Row>(at: usize) -> String {
    let name = R::schema().name();
    if at == 0 { name.to_owned() } else { format!("{name}_{at}") }
}

/// Creates the tables with their indexes, empty.
fn create_tables<R: Record, E: Engine>(
    options: &YcsbOptions,
    database: &Database<E>,
) -> Result<Vec<Table<R, E>>> {
    let indexes = &INDEXES[..options.indexes.unwrap_or(0)];
    let create = |at| {
        let name = table_name::<R>(at);
        let table = database.create_table_named(&name)?;
        for &(index, column) in indexes {
            database.create_index(&name, index, [(column, Order::Ascending)])?;
        }
        Ok(table)
    };
    (0..options.tables).map(create).collect()
}
