//! A loaded YCSB database as the driver runs it.

use std::sync::{Mutex, PoisonError};

use ensilo::{Database, Engine, Silo, Table};

use super::check;
use super::options::{BATCH_TYPES, OPERATIONS, YcsbOptions};
use super::record::{FIXED_LEN, Record, Record100, RecordAny};
use super::session::{RecordSession, UPDATE};
use super::value;
use crate::database;
use crate::driver::{
    Aborts, Check, Division, Failure, Interrupt, Outcome, Session, View, Workload, parallel,
};

/// Records that one transaction of the loader inserts.
const BATCH_ROWS: u64 = 500;

/// YCSB: the table of the options, loaded.
#[derive(Debug)]
pub struct Ycsb<E: Engine = Silo> {
    table: AnyTable<E>,
}

#[derive(Debug)]
enum AnyTable<E: Engine> {
    Fixed(YcsbTable<Record100, E>),
    Any(YcsbTable<RecordAny, E>),
}

/// A worker's stream of YCSB transactions.
#[derive(Debug)]
pub struct YcsbSession<'a, E: Engine = Silo> {
    session: AnySession<'a, E>,
}

#[derive(Debug)]
enum AnySession<'a, E: Engine> {
    Fixed(RecordSession<'a, Record100, E>),
    Any(RecordSession<'a, RecordAny, E>),
}

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

impl<E: Engine> Ycsb<E> {
    /// Loads `database`, which is empty. All is stored in the end, if it ever is in this database.
    ///
    /// # Errors
    /// A failure of the database, or [`Failure::Interrupted`].
    pub fn load(
        options: YcsbOptions,
        database: Database<E>,
        view: &mut View,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let table = if options.value_bytes == FIXED_LEN {
            AnyTable::Fixed(YcsbTable::load(options, database, view, interrupt)?)
        } else {
            AnyTable::Any(YcsbTable::load(options, database, view, interrupt)?)
        };
        Ok(Self { table })
    }

    /// The workload of a `database` that was loaded with the same options before.
    ///
    /// # Errors
    /// A failure of the database.
    pub fn open(options: YcsbOptions, database: Database<E>) -> Result<Self, Failure> {
        let table = if options.value_bytes == FIXED_LEN {
            AnyTable::Fixed(YcsbTable::open(options, database)?)
        } else {
            AnyTable::Any(YcsbTable::open(options, database)?)
        };
        Ok(Self { table })
    }
}

impl<R: Record, E: Engine> YcsbTable<R, E> {
    fn load(
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

    fn open(options: YcsbOptions, database: Database<E>) -> Result<Self, Failure> {
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

impl<E: Engine> Workload for Ycsb<E> {
    type Engine = E;
    type Session<'a> = YcsbSession<'a, E>;

    fn transaction_types(&self) -> &'static [&'static str] {
        match &self.table {
            AnyTable::Fixed(table) => table.transaction_types(),
            AnyTable::Any(table) => table.transaction_types(),
        }
    }

    fn session(&self, worker: usize) -> YcsbSession<'_, E> {
        let session = match &self.table {
            AnyTable::Fixed(table) => AnySession::Fixed(RecordSession::new(table, worker)),
            AnyTable::Any(table) => AnySession::Any(RecordSession::new(table, worker)),
        };
        YcsbSession { session }
    }

    fn database(&self) -> Option<&Database<E>> {
        match &self.table {
            AnyTable::Fixed(table) => Some(&table.database),
            AnyTable::Any(table) => Some(&table.database),
        }
    }

    fn check(&self, view: &mut View, interrupt: &Interrupt) -> Result<Vec<Check>, Failure> {
        match &self.table {
            AnyTable::Fixed(table) => check::check(table, view, interrupt),
            AnyTable::Any(table) => check::check(table, view, interrupt),
        }
    }

    fn count_effects(&self) -> Result<Vec<u64>, Failure> {
        match &self.table {
            AnyTable::Fixed(table) => check::count_effects(table),
            AnyTable::Any(table) => check::count_effects(table),
        }
    }
}

impl<E: Engine> Session for YcsbSession<'_, E> {
    #[inline]
    fn run_one(&mut self, now_unix_us: i64, aborts: &mut Aborts) -> Result<Outcome, Failure> {
        match &mut self.session {
            AnySession::Fixed(session) => session.run_one(now_unix_us, aborts),
            AnySession::Any(session) => session.run_one(now_unix_us, aborts),
        }
    }

    fn finish(self) {
        match self.session {
            AnySession::Fixed(session) => session.finish(),
            AnySession::Any(session) => session.finish(),
        }
    }
}
