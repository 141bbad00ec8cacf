//! The loaded bank as the driver runs it.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use ensilo::generic::{Database, Table, Transaction};
use ensilo::{Engine, Result as DatabaseResult, Silo};

use super::check;
use super::options::{TRANSACTION_TYPES, TpcbOptions};
use super::schema::{Account, Branch, FILLER, History, ROW_FILLER_BYTES, TELLERS_PER_BRANCH, Teller};
use super::session::TpcbSession;
use crate::database;
use crate::driver::{Check, Division, Failure, Interrupt, View, Workload, parallel};

/// Rows that one transaction of the loader inserts.
const BATCH_ROWS: u64 = 500;

/// The bank of the options, loaded.
#[derive(Debug)]
pub struct Tpcb<E: Engine = Silo> {
    pub(super) options: TpcbOptions,
    pub(super) database: Database<E>,
    pub(super) tables: Tables<E>,
    /// Transactions that committed since the load; `None` when some were run that this process knows nothing of.
    committed: Mutex<Option<u64>>,
}

/// Handles to the four tables.
#[derive(Debug)]
pub(super) struct Tables<E: Engine> {
    pub(super) branches: Table<Branch, E>,
    pub(super) tellers: Table<Teller, E>,
    pub(super) accounts: Table<Account, E>,
    pub(super) history: Table<History, E>,
}

impl<E: Engine> Tables<E> {
    fn create(database: &Database<E>) -> DatabaseResult<Self> {
        Ok(Self {
            branches: database.create_table()?,
            tellers: database.create_table()?,
            accounts: database.create_table()?,
            history: database.create_table()?,
        })
    }

    fn open(database: &Database<E>) -> DatabaseResult<Self> {
        Ok(Self {
            branches: database.open_table()?,
            tellers: database.open_table()?,
            accounts: database.open_table()?,
            history: database.open_table()?,
        })
    }

    /// Inserts a branch with its tellers.
    fn insert_branch(&self, tx: &mut Transaction<'_, E>, id: u64) -> DatabaseResult<()> {
        let filler = [FILLER; ROW_FILLER_BYTES];
        self.branches.insert(tx, &Branch { id, balance: 0, filler })?;
        for id in tellers_of(id) {
            self.tellers.insert(tx, &Teller { id, balance: 0, filler })?;
        }
        Ok(())
    }

    fn insert_accounts(&self, tx: &mut Transaction<'_, E>, ids: Range<u64>) -> DatabaseResult<()> {
        let filler = [FILLER; ROW_FILLER_BYTES];
        ids.into_iter()
            .try_for_each(|id| self.accounts.insert(tx, &Account { id, balance: 0, filler }).map(|_| ()))
    }
}

/// The ids of the tellers of a branch.
pub(super) fn tellers_of(branch: u64) -> Range<u64> {
    branch * TELLERS_PER_BRANCH..(branch + 1) * TELLERS_PER_BRANCH
}

impl<E: Engine> Tpcb<E> {
    /// Loads `database`, which is empty. All is stored in the end, if it ever is in this database.
    ///
    /// # Errors
    /// A failure of the database, or [`Failure::Interrupted`].
    pub fn load(
        options: TpcbOptions,
        database: Database<E>,
        view: &mut View,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let tables = Tables::create(&database)?;
        let batches = options.accounts.div_ceil(BATCH_ROWS);
        let division = Division {
            workers: options.workers,
            tasks: options.branches * batches,
            stage: "loading",
            total: options.branches * options.accounts,
            unit: "accounts",
        };
        parallel(division, view, interrupt, |task, reporter| {
            let (branch, batch) = (task / batches, task % batches);
            let first = batch * BATCH_ROWS;
            let last = options.accounts.min(first + BATCH_ROWS);
            let ids = branch * options.accounts + first..branch * options.accounts + last;
            database::load_request(&database).transact(|tx| {
                if batch == 0 {
                    tables.insert_branch(tx, branch)?;
                }
                tables.insert_accounts(tx, ids.clone())
            })?;
            reporter.advance(last - first)
        })?;
        database::wait_until_stored(&database)?;
        Ok(Self { options, database, tables, committed: Mutex::new(Some(0)) })
    }

    /// The workload of a `database` that was loaded with the same options before.
    ///
    /// # Errors
    /// A failure of the database.
    pub fn open(options: TpcbOptions, database: Database<E>) -> Result<Self, Failure> {
        let tables = Tables::open(&database)?;
        Ok(Self { options, database, tables, committed: Mutex::new(None) })
    }

    /// The ids of the accounts of a branch.
    pub(super) fn accounts_of(&self, branch: u64) -> Range<u64> {
        branch * self.options.accounts..(branch + 1) * self.options.accounts
    }

    /// Adds the transactions that a session committed.
    pub(super) fn add_committed(&self, transactions: u64) {
        if let Some(sum) = self.committed.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            *sum += transactions;
        }
    }

    /// The transactions that all sessions committed that have finished, if there were no others.
    pub(super) fn committed(&self) -> Option<u64> {
        *self.committed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E: Engine> Workload for Tpcb<E> {
    type Engine = E;
    type Session<'a> = TpcbSession<'a, E>;

    fn transaction_types(&self) -> &'static [&'static str] {
        &TRANSACTION_TYPES
    }

    fn session(&self, worker: usize) -> TpcbSession<'_, E> {
        TpcbSession::new(self, worker)
    }

    fn database(&self) -> Option<&Database<E>> {
        Some(&self.database)
    }

    fn check(&self, view: &mut View, interrupt: &Interrupt) -> Result<Vec<Check>, Failure> {
        check::check(self, view, interrupt)
    }

    fn count_effects(&self) -> Result<Vec<u64>, Failure> {
        Ok(vec![check::count_history(self)?])
    }
}
