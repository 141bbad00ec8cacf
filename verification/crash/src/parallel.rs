//! A workload of several threads. Its serial order is known by epochs and by the versions of the rows.
//!
//! Workers move money between accounts, and accounts between two tables. Each transaction writes down its epoch, and of each account
//! that it changed the version that it made. So what the transactions of some epochs lead to can be computed, without knowing in
//! which order they ran.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ensilo::generic::{Database, Table, Transaction};
use ensilo::{Columns, Engine, Error, Result, Row};
use ensilo_test_disk::Recorder;

use crate::explore::{Acknowledged, Oracle};
use crate::random::Random;
use crate::schema::{Progress, Step};

/// An account.
#[derive(Clone, Debug, PartialEq, Eq, Row)]
#[row(table = "account", index(name = "account_by_balance", columns(balance)))]
pub struct Account {
    /// Its number.
    #[row(key)]
    pub id: u32,
    /// The money.
    pub balance: i64,
    /// How often it was changed.
    pub version: u64,
    /// The worker that changed it last.
    pub worker: u32,
    /// With which transaction.
    pub step: u64,
    /// Something that never changes.
    pub name: String,
}

/// What a transfer changes.
#[derive(Clone, Debug, Columns)]
#[columns(of = Account)]
pub struct Change {
    balance: i64,
    version: u64,
    worker: u32,
    step: u64,
}

/// Where accounts are kept that nobody uses for a while.
#[derive(Clone, Debug, PartialEq, Eq, Row)]
#[row(table = "parked")]
pub struct Parked {
    /// As in [`Account`].
    #[row(key)]
    pub id: u32,
    /// As in [`Account`].
    pub balance: i64,
    /// As in [`Account`].
    pub version: u64,
    /// As in [`Account`].
    pub worker: u32,
    /// As in [`Account`].
    pub step: u64,
}

/// What a workload is made of.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Where all numbers come from.
    pub seed: u64,
    /// Threads.
    pub workers: u32,
    /// Transactions of each.
    pub steps: u64,
    /// Accounts; few of them make conflicts.
    pub accounts: u32,
    /// How many of 100 transactions wait until they are stored.
    pub stored_percent: u64,
    /// Whether checkpoints are made all the time.
    pub checkpoints: bool,
}

/// One account as a transaction left it.
#[derive(Clone, Copy, Debug)]
struct Written {
    account: u32,
    version: u64,
    added: i64,
    is_parked: bool,
}

/// One committed transaction.
#[derive(Clone, Debug)]
struct Committed {
    epoch: u64,
    written: Vec<Written>,
}

/// What all workers did; transaction `n` of a worker is the `n - 1`st of its list.
#[derive(Debug)]
pub struct Transfers {
    accounts: u32,
    workers: Vec<Vec<Committed>>,
}

const BALANCE: i64 = 1000;

fn account_name(id: u32) -> String {
    format!("account {id} {}", "-".repeat(id as usize % 40))
}

/// Creates the tables and their rows.
///
/// # Errors
/// Those of the database.
pub fn load<E: Engine>(db: &Database<E>, plan: &Plan) -> Result<()> {
    let accounts: Table<Account, E> = db.create_table()?;
    db.create_table::<Parked>()?;
    let progress: Table<Progress, E> = db.create_table()?;
    db.transact(|tx| {
        for id in 0..plan.accounts {
            let name = account_name(id);
            accounts.insert(tx, &Account { id, balance: BALANCE, version: 0, worker: 0, step: 0, name })?;
        }
        (0..plan.workers)
            .try_for_each(|worker| progress.insert(tx, &Progress { worker, step: 0 }).map(|_| ()))
    })
}

/// Does the workload on a database that was loaded; `recorder` gets the acknowledgements.
///
/// # Errors
/// The first error of the database.
pub fn run<E: Engine>(db: &Database<E>, recorder: &Recorder, plan: &Plan) -> Result<Transfers> {
    let is_over = AtomicBool::new(false);
    let failure = Mutex::new(Ok(()));
    let workers = thread::scope(|scope| {
        if plan.checkpoints {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    if let Err(error) = db.checkpoint() {
                        failure.lock().map(|mut failure| *failure = Err(error)).unwrap_or_default();
                        return;
                    }
                }
            });
        }
        let workers: Vec<_> = (0..plan.workers)
            .map(|worker| scope.spawn(move || Worker::open(db, recorder, plan, worker)?.run(plan)))
            .collect();
        let done: Vec<_> = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        is_over.store(true, Ordering::Relaxed);
        done.into_iter().collect::<Result<Vec<_>>>()
    })?;
    failure.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())?;
    Ok(Transfers { accounts: plan.accounts, workers })
}

struct Tables<E: Engine> {
    accounts: Table<Account, E>,
    parked: Table<Parked, E>,
    progress: Table<Progress, E>,
}

impl<E: Engine> Tables<E> {
    fn open(db: &Database<E>) -> Result<Self> {
        Ok(Tables { accounts: db.open_table()?, parked: db.open_table()?, progress: db.open_table()? })
    }
}

struct Worker<'w, E: Engine> {
    db: &'w Database<E>,
    recorder: &'w Recorder,
    tables: Tables<E>,
    worker: u32,
    random: Random,
    committed: Vec<Committed>,
}

impl<'w, E: Engine> Worker<'w, E> {
    fn open(db: &'w Database<E>, recorder: &'w Recorder, plan: &Plan, worker: u32) -> Result<Self> {
        let random = Random::new(plan.seed ^ (u64::from(worker) + 1) << 32);
        Ok(Worker { db, recorder, tables: Tables::open(db)?, worker, random, committed: Vec::new() })
    }

    fn run(mut self, plan: &Plan) -> Result<Vec<Committed>> {
        for step in 1..=plan.steps {
            let mut accounts: Vec<_> = (0..2).map(|_| self.random.small(plan.accounts)).collect();
            accounts.dedup();
            let (amount, way) = (self.random.below(100) as i64, self.random.below(10));
            let (written, ticket) = self
                .db
                .request()
                .transact_with_ticket(|tx| self.transfer(tx, &accounts, amount, way, step))?;
            self.committed.push(Committed { epoch: ticket.epoch(), written });
            if self.random.percent(plan.stored_percent) {
                ticket.wait()?;
                self.recorder.note(Acknowledged::mark(self.worker, step));
            }
        }
        Ok(self.committed)
    }

    fn transfer(
        &self,
        tx: &mut Transaction<'_, E>,
        accounts: &[u32],
        amount: i64,
        way: u64,
        step: u64,
    ) -> Result<Vec<Written>> {
        let Tables { accounts: table, parked, progress } = &self.tables;
        let mut written = Vec::new();
        for (at, &id) in accounts.iter().enumerate() {
            let added = if accounts.len() == 1 { 0 } else { [amount, -amount][at] };
            let worker = self.worker;
            let changed = |balance, version| Parked {
                id,
                balance: balance + added,
                version: version + 1,
                worker,
                step,
            };
            let is_parked = match table.get(tx, id)? {
                Some(row) if way == 0 => {
                    table.delete(tx, id)?;
                    parked.insert(tx, &changed(row.balance, row.version))?;
                    written.push(Written { account: id, version: row.version + 1, added, is_parked: true });
                    continue;
                }
                Some(row) if way == 1 => {
                    // Away and back again within one transaction.
                    table.delete(tx, id)?;
                    table.insert(tx, &back(changed(row.balance, row.version)))?;
                    written.push(Written { account: id, version: row.version + 1, added, is_parked: false });
                    continue;
                }
                found => found.is_none(),
            };
            let version = if is_parked {
                let Some(row) = parked.get(tx, id)? else {
                    return Err(Error::rollback("an account is lost"));
                };
                parked.delete(tx, id)?;
                table.insert(tx, &back(changed(row.balance, row.version)))?;
                row.version + 1
            } else {
                let mut version = 0;
                table.update(tx, id, |row: &mut Change| {
                    version = row.version + 1;
                    *row = Change { balance: row.balance + added, version, worker, step };
                })?;
                version
            };
            written.push(Written { account: id, version, added, is_parked: false });
        }
        progress.update(tx, self.worker, |row: &mut Step| row.step = step)?;
        Ok(written)
    }
}

fn back(row: Parked) -> Account {
    let Parked { id, balance, version, worker, step } = row;
    Account { id, balance, version, worker, step, name: account_name(id) }
}

/// An account as it must be found.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Expected {
    balance: i64,
    version: u64,
    last: (u32, u64),
    is_parked: bool,
}

/// What has to be found: what was acknowledged, whole epochs, and what the transactions of these epochs lead to.
impl<E: Engine> Oracle<E> for Transfers {
    /// How far each worker was.
    type Seen = Vec<u64>;

    fn check(&self, db: &Database<E>, acknowledged: &Acknowledged) -> Result<Vec<u64>, String> {
        let (steps, found) = read(db, self.workers.len()).map_err(|error| error.to_string())?;
        for (worker, &step) in (0u32..).zip(&steps) {
            let needed = acknowledged.of(worker);
            if step < needed {
                return Err(format!(
                    "step {needed} of worker {worker} was acknowledged, {step} was recovered"
                ));
            }
        }
        self.check_epochs(&steps)?;
        let expected = self.expected(&steps)?;
        for id in 0..self.accounts {
            if found.get(&id) != expected.get(&id) {
                let (found, expected) = (found.get(&id), expected.get(&id));
                return Err(format!("account {id} at steps {steps:?}: {found:?} instead of {expected:?}"));
            }
        }
        Ok(steps)
    }
}

impl Transfers {
    /// Returns whether an epoch was recovered in part.
    fn check_epochs(&self, steps: &[u64]) -> Result<(), String> {
        let recovered = |worker: usize| &self.workers[worker][..steps[worker] as usize];
        let last = (0..steps.len()).flat_map(recovered).map(|committed| committed.epoch).max();
        for (worker, committed) in self.workers.iter().enumerate() {
            let lost = &committed[steps[worker] as usize..];
            if let Some(lost) = lost.iter().find(|lost| Some(lost.epoch) <= last) {
                return Err(format!(
                    "a transaction of epoch {last:?} was recovered, and one of worker {worker} and epoch {} was not: {steps:?}",
                    lost.epoch
                ));
            }
        }
        Ok(())
    }

    /// Returns the accounts after so many steps of each worker.
    fn expected(&self, steps: &[u64]) -> Result<BTreeMap<u32, Expected>, String> {
        let before = Expected { balance: BALANCE, version: 0, last: (0, 0), is_parked: false };
        let mut accounts: BTreeMap<_, _> = (0..self.accounts).map(|id| (id, before.clone())).collect();
        let mut changes = vec![0u64; self.accounts as usize];
        for (worker, committed) in (0u32..).zip(&self.workers) {
            let recovered = committed.iter().take(steps[worker as usize] as usize);
            for (step, written) in
                (1..).zip(recovered).flat_map(|(step, one)| one.written.iter().map(move |w| (step, w)))
            {
                let Some(account) = accounts.get_mut(&written.account) else { continue };
                account.balance += written.added;
                changes[written.account as usize] += 1;
                if written.version > account.version {
                    account.version = written.version;
                    account.last = (worker, step);
                    account.is_parked = written.is_parked;
                }
            }
        }
        match accounts.iter().find(|(id, account)| changes[**id as usize] != account.version) {
            Some((id, account)) => {
                Err(format!("versions of account {id} up to {} are missing", account.version))
            }
            None => Ok(accounts),
        }
    }
}

/// Returns the steps of the workers, and the accounts of both tables.
fn read<E: Engine>(db: &Database<E>, workers: usize) -> Result<(Vec<u64>, BTreeMap<u32, Expected>)> {
    let tables = Tables::open(db)?;
    let mut steps = vec![0; workers];
    let progress: Vec<Progress> = db.transact(|tx| tables.progress.scan().rows(tx))?;
    progress.iter().for_each(|row| steps[row.worker as usize] = row.step);
    let rows: Vec<Account> = db.transact(|tx| tables.accounts.scan().rows(tx))?;
    let parked: Vec<Parked> = db.transact(|tx| tables.parked.scan().rows(tx))?;
    let by_balance = tables.accounts.index::<i64>("account_by_balance")?;
    let keys = db.transact(|tx| by_balance.scan().primary_keys(tx))?;
    let mut in_order: Vec<_> = rows.iter().map(|row| (row.balance, row.id)).collect();
    in_order.sort_unstable();
    if keys != in_order.iter().map(|&(_, id)| id).collect::<Vec<_>>() {
        return Err(Error::rollback("the index disagrees with its table"));
    }
    let mut found = BTreeMap::new();
    for row in rows {
        if row.name != account_name(row.id) {
            return Err(Error::rollback(format!("a wrong name: {row:?}")));
        }
        let Account { id, balance, version, worker, step, .. } = row;
        found.insert(id, Expected { balance, version, last: (worker, step), is_parked: false });
    }
    for Parked { id, balance, version, worker, step } in parked {
        if found.insert(id, Expected { balance, version, last: (worker, step), is_parked: true }).is_some() {
            return Err(Error::rollback(format!("account {id} is in both tables")));
        }
    }
    Ok((steps, found))
}
