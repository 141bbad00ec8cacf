//! A loaded YCSB database as the driver runs it.

use ensilo::generic::Database;
use ensilo::{Engine, Silo};

use super::check;
use super::options::YcsbOptions;
use super::record::{FIXED_LEN, Record100, RecordAny, RecordIndexed};
use super::session::RecordSession;
use super::table::YcsbTable;
use crate::driver::{Aborts, Check, Failure, Interrupt, Outcome, Session, View, Workload};

/// YCSB: the table of the options, loaded.
#[derive(Debug)]
pub struct Ycsb<E: Engine = Silo> {
    table: AnyTable<E>,
}

#[derive(Debug)]
enum AnyTable<E: Engine> {
    Fixed(YcsbTable<Record100, E>),
    Any(YcsbTable<RecordAny, E>),
    Indexed(YcsbTable<RecordIndexed, E>),
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
    Indexed(RecordSession<'a, RecordIndexed, E>),
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
        let table = match (options.indexes, options.value_bytes) {
            (Some(_), _) => AnyTable::Indexed(YcsbTable::load(options, database, view, interrupt)?),
            (None, FIXED_LEN) => AnyTable::Fixed(YcsbTable::load(options, database, view, interrupt)?),
            (None, _) => AnyTable::Any(YcsbTable::load(options, database, view, interrupt)?),
        };
        Ok(Self { table })
    }

    /// The workload of a `database` that was loaded with the same options before.
    ///
    /// # Errors
    /// A failure of the database.
    pub fn open(options: YcsbOptions, database: Database<E>) -> Result<Self, Failure> {
        let table = match (options.indexes, options.value_bytes) {
            (Some(_), _) => AnyTable::Indexed(YcsbTable::open(options, database)?),
            (None, FIXED_LEN) => AnyTable::Fixed(YcsbTable::open(options, database)?),
            (None, _) => AnyTable::Any(YcsbTable::open(options, database)?),
        };
        Ok(Self { table })
    }
}

impl<E: Engine> Workload for Ycsb<E> {
    type Engine = E;
    type Session<'a> = YcsbSession<'a, E>;

    fn transaction_types(&self) -> &'static [&'static str] {
        match &self.table {
            AnyTable::Fixed(table) => table.transaction_types(),
            AnyTable::Any(table) => table.transaction_types(),
            AnyTable::Indexed(table) => table.transaction_types(),
        }
    }

    fn session(&self, worker: usize) -> YcsbSession<'_, E> {
        let session = match &self.table {
            AnyTable::Fixed(table) => AnySession::Fixed(RecordSession::new(table, worker)),
            AnyTable::Any(table) => AnySession::Any(RecordSession::new(table, worker)),
            AnyTable::Indexed(table) => AnySession::Indexed(RecordSession::new(table, worker)),
        };
        YcsbSession { session }
    }

    fn database(&self) -> Option<&Database<E>> {
        match &self.table {
            AnyTable::Fixed(table) => Some(&table.database),
            AnyTable::Any(table) => Some(&table.database),
            AnyTable::Indexed(table) => Some(&table.database),
        }
    }

    fn check(&self, view: &mut View, interrupt: &Interrupt) -> Result<Vec<Check>, Failure> {
        match &self.table {
            AnyTable::Fixed(table) => check::check(table, view, interrupt),
            AnyTable::Any(table) => check::check(table, view, interrupt),
            AnyTable::Indexed(table) => check::check(table, view, interrupt),
        }
    }

    fn count_effects(&self) -> Result<Vec<u64>, Failure> {
        match &self.table {
            AnyTable::Fixed(table) => check::count_effects(table),
            AnyTable::Any(table) => check::count_effects(table),
            AnyTable::Indexed(table) => check::count_effects(table),
        }
    }
}

impl<E: Engine> Session for YcsbSession<'_, E> {
    fn runs_batches(&self) -> bool {
        match &self.session {
            AnySession::Fixed(session) => session.runs_batches(),
            AnySession::Any(session) => session.runs_batches(),
            AnySession::Indexed(session) => session.runs_batches(),
        }
    }

    fn run_batch(&mut self, now_unix_us: i64, ended: &mut Vec<(Outcome, Aborts)>) -> Result<(), Failure> {
        match &mut self.session {
            AnySession::Fixed(session) => session.run_batch(now_unix_us, ended),
            AnySession::Any(session) => session.run_batch(now_unix_us, ended),
            AnySession::Indexed(session) => session.run_batch(now_unix_us, ended),
        }
    }

    #[inline]
    fn run_one(&mut self, now_unix_us: i64, aborts: &mut Aborts) -> Result<Outcome, Failure> {
        match &mut self.session {
            AnySession::Fixed(session) => session.run_one(now_unix_us, aborts),
            AnySession::Any(session) => session.run_one(now_unix_us, aborts),
            AnySession::Indexed(session) => session.run_one(now_unix_us, aborts),
        }
    }

    fn finish(self) {
        match self.session {
            AnySession::Fixed(session) => session.finish(),
            AnySession::Any(session) => session.finish(),
            AnySession::Indexed(session) => session.finish(),
        }
    }
}
