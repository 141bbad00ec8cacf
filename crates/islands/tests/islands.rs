//! Transactions over several instances, through the public API.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use ensilo::{Database, Error, Result, Row, Table, Transaction};
use ensilo_islands::commit::{Outcome, RefusalReason, Request, SiteId};
use ensilo_islands::{
    ChannelKind, Instances, Islands, IslandsOptions, LoadTime, Place, Placement, Plan, Program, Topology,
};
use serde::{Deserialize, Serialize};

const ACCOUNTS: u32 = 8;
const BALANCE: i64 = 1000;

#[derive(Row)]
#[row(table = "account")]
struct Account {
    #[row(key)]
    id: u32,
    balance: i64,
}

/// What a part does.
#[derive(Serialize, Deserialize)]
enum Part {
    Add { id: u32, amount: i64 },
    Balance { id: u32 },
    Panic,
}

impl Part {
    fn bytes(&self) -> Vec<u8> {
        postcard::to_allocvec(self).unwrap()
    }
}

/// Accounts, the same numbers at each instance.
struct Bank {
    accounts: Table<Account>,
}

impl Program for Bank {
    fn open(db: &Database, _: Place) -> Result<Self> {
        if let Ok(accounts) = db.open_table() {
            return Ok(Bank { accounts });
        }
        let accounts = db.create_table::<Account>()?;
        db.transact(|tx| {
            (0..ACCOUNTS).try_for_each(|id| accounts.insert(tx, &Account { id, balance: BALANCE }).map(drop))
        })?;
        Ok(Bank { accounts })
    }

    fn execute(&self, tx: &mut Transaction<'_>, part: &[u8]) -> Result<Vec<u8>> {
        match postcard::from_bytes(part).map_err(|error| Error::rollback(error.to_string()))? {
            Part::Add { id, amount } => {
                let Some(mut account) = self.accounts.get(tx, id)? else {
                    return Err(Error::rollback("no such account"));
                };
                account.balance += amount;
                if account.balance < 0 {
                    return Err(Error::rollback("not enough money"));
                }
                self.accounts.replace(tx, &account)?;
                Ok(account.balance.to_le_bytes().to_vec())
            }
            Part::Balance { id } => {
                let balance = self.accounts.get(tx, id)?.map_or(0, |account| account.balance);
                Ok(balance.to_le_bytes().to_vec())
            }
            Part::Panic => panic!("a part that panics"),
        }
    }
}

fn site(instance: u16) -> SiteId {
    SiteId { instance, worker: 0 }
}

fn options(instances: usize) -> IslandsOptions {
    let topology = Topology::of_this_machine().unwrap();
    IslandsOptions::new(Plan::new(&topology, Instances::Count(instances), Placement::System)).workers(1)
}

/// Moves money from an account of instance 0 to one of another instance.
fn transfer(to: u16, from_id: u32, to_id: u32, amount: i64) -> Request {
    Request {
        local: Some(Part::Add { id: from_id, amount: -amount }.bytes()),
        remote: vec![(site(to), Part::Add { id: to_id, amount }.bytes())],
    }
}

fn balances(islands: &Islands<Bank>) -> Vec<i64> {
    let balances_at = |instance: u16| {
        let bank = islands.program(instance);
        let sum = islands.database(instance).transact(|tx| {
            let mut sum = 0;
            bank.accounts.scan().for_each(tx, |_, account: Account| sum += account.balance)?;
            Ok(sum)
        });
        sum.unwrap()
    };
    (0..islands.instances() as u16).map(balances_at).collect()
}

#[test]
fn money_goes_from_one_instance_to_another_or_stays() {
    for kind in ChannelKind::all() {
        let islands = options(3).channel(kind).open::<Bank>().unwrap();
        let outcome = islands.transact(0, &transfer(2, 1, 5, 300));
        let Outcome::Committed { local: Some(local), remote } = outcome else { panic!("{outcome:?}") };
        assert_eq!(local, 700i64.to_le_bytes());
        assert_eq!(remote, [(site(2), 1300i64.to_le_bytes().to_vec())]);
        for refused in [transfer(2, 1, 5, 701), transfer(2, 1, ACCOUNTS, 1), transfer(2, 1, 5, -1301)] {
            let outcome = islands.transact(0, &refused);
            let Outcome::Aborted(refusal) = outcome else { panic!("{outcome:?}") };
            assert_eq!(refusal.reason, RefusalReason::Rejected);
        }
        assert_eq!(balances(&islands), [7700, 8000, 8300]);
    }
}

#[test]
fn a_part_that_panics_ends_its_transaction_alone() {
    let islands = options(2).open::<Bank>().unwrap();
    for request in [
        Request {
            local: Some(Part::Panic.bytes()),
            remote: vec![(site(1), Part::Add { id: 1, amount: 1 }.bytes())],
        },
        Request {
            local: Some(Part::Add { id: 1, amount: 1 }.bytes()),
            remote: vec![(site(1), Part::Panic.bytes())],
        },
    ] {
        let outcome = islands.transact(0, &request);
        assert!(matches!(outcome, Outcome::Aborted(_)), "{outcome:?}");
    }
    assert!(matches!(islands.transact(0, &transfer(1, 1, 1, 1)), Outcome::Committed { .. }));
    assert_eq!(balances(&islands), [7999, 8001]);
}

/// A small generator: each worker's transactions follow from its number.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

#[test]
fn workers_that_send_to_each_other_all_the_time_lose_and_make_no_money() {
    for instances in [2u16, 4] {
        let islands = options(instances.into()).open::<Bank>().unwrap();
        let time = LoadTime { warmup: Duration::ZERO, measured: Duration::from_millis(500) };
        let report = islands.run_load(3, time, |of| {
            let mut state = u64::from(of.instance) + 1;
            Box::new(move || {
                let mut draw = |bound: u64| random(&mut state) % bound;
                let to = (of.instance + 1 + draw(u64::from(instances) - 1) as u16) % instances;
                let (from_id, to_id) = (draw(ACCOUNTS.into()) as u32, draw(ACCOUNTS.into()) as u32);
                if draw(4) == 0 {
                    let part = Part::Balance { id: to_id }.bytes();
                    return Request { local: Some(part.clone()), remote: vec![(site(to), part)] };
                }
                transfer(to, from_id, to_id, draw(20) as i64)
            })
        });
        assert!(report.committed > 100, "{report:?}");
        assert_eq!(balances(&islands).iter().sum::<i64>(), i64::from(instances) * 8000);
    }
}

#[test]
fn what_was_answered_is_there_after_the_next_opening() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let islands = options(2).directory(directory.path()).open::<Bank>().unwrap();
        assert_eq!(balances(&islands), [8000 - 10 * round, 8000 + 10 * round]);
        for _ in 0..10 {
            let outcome = islands.transact(0, &transfer(1, 1, 2, 1));
            assert!(matches!(outcome, Outcome::Committed { .. }), "{outcome:?}");
        }
    }
    let other = options(3).directory(directory.path()).open::<Bank>();
    assert!(other.is_err_and(|error| error.to_string().contains("instance 0 of 2")));
}
