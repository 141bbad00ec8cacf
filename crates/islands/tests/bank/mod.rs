//! A program for tests: accounts at each instance, and a book of what has happened.

use std::thread;
use std::time::{Duration, Instant};

use ensilo::{Database, Error, Result, Row, Snapshot, Table, Transaction};
use ensilo_islands::commit::{Request, SiteId};
use ensilo_islands::{
    InstanceNumber, Instances, Islands, IslandsOptions, Placement, Plan, Program, RequestSource, Topology,
};
use serde::{Deserialize, Serialize};

pub(crate) const ACCOUNTS: u32 = 8;
pub(crate) const BALANCE: i64 = 1000;

/// Has the source of the first instance panic.
pub(crate) const PANIC: &[u8] = &[1];
/// Has a source keep its worker busy for [`READY_AFTER`] before there are transactions.
pub(crate) const GET_READY: &[u8] = &[2];
pub(crate) const READY_AFTER: Duration = Duration::from_millis(120);

#[derive(Row)]
#[row(table = "account")]
pub(crate) struct Account {
    #[row(key)]
    pub(crate) id: u32,
    pub(crate) balance: i64,
}

/// A part that has happened here.
#[derive(Row)]
#[row(table = "entry")]
pub(crate) struct Entry {
    #[row(key)]
    pub(crate) number: u64,
    pub(crate) amount: i64,
}

/// What a part does.
#[derive(Serialize, Deserialize)]
pub(crate) enum Part {
    /// Changes an account, and notes that under a number.
    Add {
        id: u32,
        amount: i64,
        number: Option<u64>,
    },
    Balance {
        id: u32,
    },
    /// The sum of all accounts.
    Sum,
    /// The numbers of all that has happened here.
    Numbers,
    /// Empties an account, and returns what it had.
    Empty {
        id: u32,
    },
    /// Adds to an account what the others have returned; carried out with them it adds nothing.
    Collect {
        id: u32,
    },
    Panic,
    /// A reply of so many bytes.
    Fill {
        bytes: usize,
    },
}

impl Part {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        postcard::to_allocvec(self).unwrap()
    }
}

/// Accounts, the same ids at each instance.
#[derive(Debug)]
pub(crate) struct Bank {
    pub(crate) accounts: Table<Account>,
    entries: Table<Entry>,
    number: InstanceNumber,
}

impl Program for Bank {
    fn open(db: &Database, number: InstanceNumber) -> Result<Self> {
        if let (Ok(accounts), Ok(entries)) = (db.open_table(), db.open_table()) {
            return Ok(Bank { accounts, entries, number });
        }
        let accounts = db.create_table::<Account>()?;
        db.transact(|tx| {
            (0..ACCOUNTS).try_for_each(|id| accounts.upsert(tx, &Account { id, balance: BALANCE }))
        })?;
        Ok(Bank { accounts, entries: db.create_table()?, number })
    }

    fn execute(&self, tx: &mut Transaction<'_>, part: &[u8]) -> Result<Vec<u8>> {
        match postcard::from_bytes(part).map_err(|error| Error::rollback(error.to_string()))? {
            Part::Add { id, amount, number } => {
                let Some(mut account) = self.accounts.get(tx, id)? else {
                    return Err(Error::rollback("no such account"));
                };
                account.balance += amount;
                if account.balance < 0 {
                    return Err(Error::rollback("not enough money"));
                }
                self.accounts.replace(tx, &account)?;
                if let Some(number) = number {
                    self.entries.insert(tx, &Entry { number, amount })?;
                }
                Ok(account.balance.to_le_bytes().to_vec())
            }
            Part::Empty { id } => {
                let balance = self.accounts.get(tx, id)?.map_or(0, |account| account.balance);
                self.accounts.replace(tx, &Account { id, balance: 0 })?;
                Ok(balance.to_le_bytes().to_vec())
            }
            Part::Collect { id } => self.execute(tx, &Part::Balance { id }.bytes()),
            Part::Balance { id } => {
                let balance = self.accounts.get(tx, id)?.map_or(0, |account| account.balance);
                Ok(balance.to_le_bytes().to_vec())
            }
            Part::Sum => {
                let mut sum = 0;
                self.accounts.scan().for_each(tx, |_, account: Account| sum += account.balance)?;
                Ok(sum.to_le_bytes().to_vec())
            }
            Part::Numbers => {
                let mut numbers = Vec::new();
                self.entries.scan().for_each(tx, |number, _: Entry| numbers.extend(number.to_le_bytes()))?;
                Ok(numbers)
            }
            Part::Panic => panic!("a part that panics"),
            Part::Fill { bytes } => Ok(vec![7; bytes]),
        }
    }

    fn conclude(
        &self,
        tx: &mut Transaction<'_>,
        part: &[u8],
        replies: &[(SiteId, Vec<u8>)],
    ) -> Result<Vec<u8>> {
        let Ok(Part::Collect { id }) = postcard::from_bytes(part) else { return self.execute(tx, part) };
        let amount = |reply: &[u8]| i64::from_le_bytes(reply.try_into().unwrap());
        let amount = replies.iter().map(|(_, reply)| amount(reply)).sum();
        self.execute(tx, &Part::Add { id, amount, number: None }.bytes())
    }

    /// The sum of all accounts; a part that is not empty panics.
    fn read(&self, snapshot: &mut Snapshot<'_>, part: &[u8]) -> Result<Vec<u8>> {
        assert!(part.is_empty(), "a read that panics");
        let mut sum = 0;
        self.accounts.scan().for_each(snapshot, |_, account: Account| sum += account.balance)?;
        Ok(sum.to_le_bytes().to_vec())
    }

    /// Transfers between any two instances, and looks at two.
    fn requests(&self, of: SiteId, description: &[u8]) -> Result<RequestSource> {
        match description {
            PANIC if of.instance == 0 => return Ok(Box::new(|| panic!("a source that panics"))),
            GET_READY => {
                let begin = Instant::now();
                while begin.elapsed() < READY_AFTER {
                    thread::yield_now();
                }
            }
            _ => {}
        }
        let InstanceNumber { instance, instances } = self.number;
        let mut random = fastrand::Rng::with_seed(u64::from(of.instance) + 1);
        Ok(Box::new(move || {
            let to = (instance + random.u16(1..instances)) % instances;
            let (from_id, to_id) = (random.u32(..ACCOUNTS), random.u32(..ACCOUNTS));
            if random.u8(..4) == 0 {
                let part = Part::Balance { id: to_id }.bytes();
                return Request::new(Some(part.clone()), vec![(site(to), part)]);
            }
            transfer(to, (from_id, to_id), random.i64(0..20), None)
        }))
    }
}

pub(crate) fn site(instance: u16) -> SiteId {
    SiteId { instance, worker: 0 }
}

pub(crate) fn options(instances: usize) -> IslandsOptions {
    let topology = Topology::of_this_machine().unwrap();
    IslandsOptions::new(Plan::new(&topology, Instances::Count(instances), Placement::System)).workers(1)
}

/// Moves money from an account of the instance where it begins to one of another instance.
pub(crate) fn transfer(to: u16, (from_id, to_id): (u32, u32), amount: i64, number: Option<u64>) -> Request {
    Request::new(
        Some(Part::Add { id: from_id, amount: -amount, number }.bytes()),
        vec![(site(to), Part::Add { id: to_id, amount, number }.bytes())],
    )
}

/// The sum of all accounts of all instances, at one point.
pub(crate) fn sum_of_all(islands: &Islands<Bank>) -> i64 {
    let parts: Vec<_> = (0..islands.instances() as u16).map(|instance| (instance, Vec::new())).collect();
    let sums = islands.read_all(&parts).unwrap();
    sums.into_iter().map(|sum| i64::from_le_bytes(sum.try_into().unwrap())).sum()
}
