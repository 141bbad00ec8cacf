//! What victims work on, and what must hold of it at every moment.

use std::time::Duration;

use ensilo::generic::{Database, Table};
use ensilo::{Columns, Engine, Error, Options, Result, Row};

/// Workers of the victim.
pub(super) const WORKERS: u32 = 3;

pub(super) const ACCOUNTS: u32 = 50;
const BALANCE: i64 = 1000;

/// How far a worker is, and how much it has moved.
#[derive(Clone, Debug, PartialEq, Eq, Row)]
#[row(table = "counter")]
pub(super) struct Counter {
    #[row(key)]
    pub(super) worker: u32,
    pub(super) step: u64,
    /// The sum of all steps, so that a step that is left out shows.
    pub(super) sum: u64,
}

/// An account.
#[derive(Clone, Debug, PartialEq, Eq, Row)]
#[row(table = "account", index(name = "by_balance", columns(balance)))]
pub(super) struct Account {
    #[row(key)]
    id: u32,
    balance: i64,
    filler: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Columns)]
#[columns(of = Account)]
pub(super) struct Balance {
    pub(super) balance: i64,
}

/// A row for each step; old ones are deleted.
#[derive(Clone, Debug, PartialEq, Eq, Row)]
#[row(table = "journal")]
pub(super) struct Journal {
    #[row(key)]
    pub(super) worker: u32,
    #[row(key)]
    pub(super) step: u64,
    pub(super) text: String,
}

/// So many rows of the journal a worker keeps.
pub(super) const JOURNAL_LEN: u64 = 30;

pub(super) fn journal_text(worker: u32, step: u64) -> String {
    format!("{worker} {step} ").repeat(1 + (step % 90) as usize)
}

pub(super) fn options() -> Options {
    Options::default()
        .log_file_bytes(1 << 20)
        .checkpoint_log_bytes(2 << 20)
        .checkpoint_interval(Duration::from_millis(300))
        .recovery_threads(2)
        .pool_threads(1)
}

pub(super) struct Tables<E: Engine> {
    pub(super) counters: Table<Counter, E>,
    pub(super) accounts: Table<Account, E>,
    pub(super) journal: Table<Journal, E>,
}

impl<E: Engine> Tables<E> {
    /// Opens those that are there.
    pub(super) fn existing(db: &Database<E>) -> Result<Self> {
        Ok(Tables { counters: db.open_table()?, accounts: db.open_table()?, journal: db.open_table()? })
    }

    /// Opens them, and creates what is missing.
    pub(super) fn open(db: &Database<E>) -> Result<Self> {
        let tables = Tables {
            counters: open_or_create(db)?,
            accounts: open_or_create(db)?,
            journal: open_or_create(db)?,
        };
        db.transact(|tx| {
            if tables.accounts.get(tx, 0)?.is_some() {
                return Ok(());
            }
            for id in 0..ACCOUNTS {
                let filler = "f".repeat(id as usize);
                tables.accounts.insert(tx, &Account { id, balance: BALANCE, filler })?;
            }
            (0..WORKERS).try_for_each(|worker| {
                tables.counters.insert(tx, &Counter { worker, step: 0, sum: 0 }).map(|_| ())
            })
        })?;
        Ok(tables)
    }
}

fn open_or_create<T: Row, E: Engine>(db: &Database<E>) -> Result<Table<T, E>> {
    match db.create_table() {
        Err(Error::TableExists(_)) => db.open_table(),
        created => created,
    }
}

/// Checks what must hold at every moment; returns the workers' steps.
pub(super) fn check_rows<E: Engine>(db: &Database<E>, tables: &Tables<E>) -> Result<Vec<u64>> {
    let wrong = |what: String| Err(Error::rollback(what));
    let (counters, accounts, journal) = db.transact(|tx| {
        Ok((
            tables.counters.scan().rows(tx)?,
            tables.accounts.scan().rows(tx)?,
            tables.journal.scan().rows(tx)?,
        ))
    })?;
    let (counters, accounts, journal): (Vec<Counter>, Vec<Account>, Vec<Journal>) =
        (counters, accounts, journal);
    let sum: i64 = accounts.iter().map(|account| account.balance).sum();
    if accounts.len() != ACCOUNTS as usize || sum != BALANCE * i64::from(ACCOUNTS) {
        return wrong(format!("{} accounts with {sum} together", accounts.len()));
    }
    if let Some(account) = accounts.iter().find(|account| account.filler != "f".repeat(account.id as usize)) {
        return wrong(format!("a wrong account: {account:?}"));
    }
    let by_balance = tables.accounts.index::<i64>("by_balance")?;
    let keys = db.transact(|tx| by_balance.scan().primary_keys(tx))?;
    let mut expected: Vec<_> = accounts.iter().map(|account| (account.balance, account.id)).collect();
    expected.sort_unstable();
    if keys != expected.iter().map(|&(_, id)| id).collect::<Vec<_>>() {
        return wrong("the index disagrees with its table".to_owned());
    }
    if counters.len() != WORKERS as usize {
        return wrong(format!("{} counters", counters.len()));
    }
    for counter in &counters {
        let (step, worker) = (counter.step, counter.worker);
        if counter.sum != step * (step + 1) / 2 {
            return wrong(format!("steps are missing: {counter:?}"));
        }
        let rows: Vec<_> = journal.iter().filter(|row| row.worker == worker).collect();
        let first = (step + 1).saturating_sub(JOURNAL_LEN).max(1);
        let is_right = rows.iter().map(|row| row.step).eq(first..=step)
            && rows.iter().all(|row| row.text == journal_text(worker, row.step));
        if !is_right {
            let steps: Vec<_> = rows.iter().map(|row| row.step).collect();
            return wrong(format!("journal of worker {worker} at step {step}: {steps:?}"));
        }
    }
    Ok(counters.into_iter().map(|counter| counter.step).collect())
}
