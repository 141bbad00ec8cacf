//! Typed tables over instances in processes of their own, which are killed while transactions run.
//!
//! This program is its own instances, so it has a `main` of its own.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ensilo::{Database, Row};
use ensilo_islands::{
    ChannelKind, CommitUnit, Instances, IslandDatabase, IslandError, IslandRead, IslandTable,
    IslandTransaction, IslandsOptions, Partitioning, Placement, Plan, Redistribution, TableProgram, Topology,
    run_if_instance,
};

const INSTANCES: usize = 3;
const ACCOUNTS: u32 = 12;
const BALANCE: i64 = 1000;

/// How many processes are killed in all.
const KILLS: usize = 9;

#[derive(Debug, Row)]
#[row(table = "account")]
struct Account {
    #[row(key)]
    id: u32,
    balance: i64,
}

/// A transfer that has happened.
#[derive(Debug, Row)]
#[row(table = "entry")]
struct Entry {
    #[row(key)]
    number: u64,
    from: u32,
    to: u32,
}

/// How many transfers have happened.
#[derive(Debug, Row)]
#[row(table = "total")]
struct Total {
    #[row(key)]
    key: u8,
    transfers: u64,
}

fn main() -> ExitCode {
    if let Some(ended) = run_if_instance::<TableProgram>(Database::options) {
        return ended;
    }
    for kind in ChannelKind::all() {
        statements_reach_processes(kind);
    }
    for unit in CommitUnit::all() {
        what_is_open_goes_with_its_instance(unit);
        what_was_answered_survives_killed_processes(unit);
        files_of_a_crash_are_redistributed(unit);
    }
    ExitCode::SUCCESS
}

fn options() -> IslandsOptions {
    let this_program = || Command::new(std::env::current_exe().unwrap());
    in_threads(INSTANCES).processes(this_program)
}

fn in_threads(instances: usize) -> IslandsOptions {
    let plan =
        Plan::new(&Topology::of_this_machine().unwrap(), Instances::Count(instances), Placement::System);
    IslandsOptions::new(plan).workers(2)
}

/// All that is there.
type All = (Vec<Account>, Vec<Entry>, Option<Total>);

struct Bank {
    db: IslandDatabase,
    accounts: IslandTable<Account>,
    entries: IslandTable<Entry>,
    total: IslandTable<Total>,
}

impl Bank {
    fn open(options: IslandsOptions) -> Self {
        let db = options.open_database().unwrap();
        let (accounts, entries) =
            (db.table(Partitioning::hash()).unwrap(), db.table(Partitioning::hash()).unwrap());
        let total = db.table(Partitioning::replicated()).unwrap();
        let bank = Bank { db, accounts, entries, total };
        let all: Vec<Account> = (0..ACCOUNTS).map(|id| Account { id, balance: BALANCE }).collect();
        bank.db
            .transact(|tx| match bank.accounts.get(tx, 0)? {
                Some(_) => Ok(()),
                None => {
                    bank.total.insert(tx, &Total { key: 0, transfers: 0 })?;
                    bank.accounts.insert_many(tx, &all)
                }
            })
            .unwrap();
        bank
    }

    fn transfer(&self, tx: &mut IslandTransaction<'_>, number: u64) -> Result<(), IslandError> {
        let (from, to) = ((number % u64::from(ACCOUNTS)) as u32, (number / 7 % u64::from(ACCOUNTS)) as u32);
        self.accounts.update(tx, from, |account| account.balance -= 1)?;
        self.accounts.update(tx, to, |account| account.balance += 1)?;
        self.entries.insert(tx, &Entry { number, from, to })?;
        // Now and then: it is in the way of every other one.
        if number.is_multiple_of(8) {
            self.total.update(tx, 0, |total| total.transfers += 1)?;
        }
        Ok(())
    }

    fn all(&self, tx: &mut impl IslandRead) -> Result<All, IslandError> {
        Ok((self.accounts.scan().collect(tx)?, self.entries.scan().collect(tx)?, self.total.get(tx, 0)?))
    }

    /// Checks what is there, and returns the numbers of the transfers that have happened.
    fn check(&self) -> BTreeSet<u64> {
        let at_a_point = self.db.read(|reader| self.all(reader)).unwrap();
        let begin = Instant::now();
        let (accounts, entries, total) = loop {
            match self.db.transact(|tx| self.all(tx)) {
                Ok(there) => break there,
                // One was killed a moment ago.
                Err(IslandError::Unknown(_)) => {}
                // What it has left is held until it has come back.
                Err(error) if error.is_retryable() && begin.elapsed() < Duration::from_secs(60) => {}
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!((at_a_point.0.len(), at_a_point.1.len()), (accounts.len(), entries.len()));
        assert_eq!(
            accounts.iter().map(|account| account.balance).sum::<i64>(),
            i64::from(ACCOUNTS) * BALANCE
        );
        for account in &accounts {
            let of =
                |id: fn(&Entry) -> u32| entries.iter().filter(|entry| id(entry) == account.id).count() as i64;
            assert_eq!(account.balance, BALANCE - of(|entry| entry.from) + of(|entry| entry.to));
        }
        let counted = entries.iter().filter(|entry| entry.number.is_multiple_of(8)).count() as u64;
        assert_eq!(total.unwrap().transfers, counted);
        entries.iter().map(|entry| entry.number).collect()
    }
}

fn statements_reach_processes(kind: ChannelKind) {
    let bank = Bank::open(options().channel(kind));
    for number in 0..20 {
        bank.db.transact(|tx| bank.transfer(tx, number)).unwrap();
    }
    let taken = bank.db.transact(|tx| bank.transfer(tx, 7));
    assert!(matches!(taken, Err(IslandError::DuplicateKey { .. })), "{kind}: {taken:?}");
    assert_eq!(bank.check(), (0..20).collect(), "{kind}");
}

/// A statement behind the death of its instance does not begin the transaction anew.
fn what_is_open_goes_with_its_instance(unit: CommitUnit) {
    let directory = tempfile::tempdir().unwrap();
    let bank = Bank::open(options().directory(directory.path()).commit_unit(unit));
    for victim in 0..INSTANCES as u16 {
        let mut tx = bank.db.begin();
        bank.accounts.scan().collect(&mut tx).unwrap();
        for id in 0..ACCOUNTS {
            bank.accounts.upsert(&mut tx, &Account { id, balance: 0 }).unwrap();
        }
        kill(&bank.db, victim);
        while bank.db.transact(|tx| bank.accounts.scan().collect(tx)).is_err() {}
        let error = tx.commit().unwrap_err();
        assert!(matches!(error, IslandError::Refused(_)) && error.is_retryable(), "{error:?}");
        assert!(bank.check().is_empty());
    }
}

fn kill(db: &IslandDatabase, instance: u16) {
    signal(db, instance, "-KILL");
}

fn signal(db: &IslandDatabase, instance: u16, signal: &str) {
    let process = db.islands().process_id(instance).unwrap();
    assert!(Command::new("kill").args([signal, &process.to_string()]).status().is_ok());
}

/// The files are copied while all processes are stopped in the midst of transfers, some of which are in doubt by then: as if all had been killed.
fn files_of_a_crash_are_redistributed(unit: CommitUnit) {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("instances");
    let bank = Bank::open(options().directory(&directory).commit_unit(unit));
    let (next, stops) = (AtomicU64::new(0), AtomicBool::new(false));
    let committed = Mutex::new(BTreeSet::new());
    let make_transfers = || {
        while !stops.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if bank.db.transact(|tx| bank.transfer(tx, number)).is_ok() {
                committed.lock().unwrap().insert(number);
            }
        }
    };
    let copy_files = |image: usize| {
        let (begin, before) = (Instant::now(), committed.lock().unwrap().len());
        while committed.lock().unwrap().len() < before + 10 && begin.elapsed() < Duration::from_secs(60) {
            thread::sleep(Duration::from_millis(1));
        }
        let (files, answered) =
            (place.path().join(format!("files-{image}")), committed.lock().unwrap().clone());
        (0..INSTANCES as u16).for_each(|instance| signal(&bank.db, instance, "-STOP"));
        let copied = Command::new("cp").arg("-r").args([&directory, &files]).status();
        (0..INSTANCES as u16).for_each(|instance| signal(&bank.db, instance, "-CONT"));
        copied.is_ok_and(|status| status.success()).then_some((files, answered))
    };
    let images: Vec<_> = thread::scope(|scope| {
        (0..4).for_each(|_| drop(scope.spawn(make_transfers)));
        let images = (0..5).map(copy_files).collect();
        stops.store(true, Ordering::Relaxed);
        images
    });
    for image in images {
        let (files, answered) = image.unwrap();
        assert!(answered.len() >= 10, "nothing is committed");
        let target = files.with_extension("redistributed");
        Redistribution::of(&files).instances(2).write_to(&target).unwrap();
        let there = Bank::open(in_threads(2).directory(&target).commit_unit(unit)).check();
        assert!(answered.is_subset(&there), "one that was answered is not there");
    }
}

fn what_was_answered_survives_killed_processes(unit: CommitUnit) {
    let directory = tempfile::tempdir().unwrap();
    let open = || Bank::open(options().directory(directory.path()).commit_unit(unit));
    let bank = open();
    let (next, stops) = (AtomicU64::new(0), AtomicBool::new(false));
    let (committed, aborted) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    // What follows from rows of different moments does not count, whoever dies when that is found out.
    let look = || {
        while !stops.load(Ordering::Relaxed) {
            let looked = bank.db.transact(|tx| {
                let ids: Vec<u32> = (0..ACCOUNTS).collect();
                let accounts = bank.accounts.get_many(tx, &ids)?;
                match accounts.iter().flatten().map(|account| account.balance).sum::<i64>() {
                    sum if sum == i64::from(ACCOUNTS) * BALANCE => Ok(()),
                    sum => Err(IslandError::rollback(format!("the sum is {sum}"))),
                }
            });
            assert!(!matches!(looked, Err(IslandError::User(_) | IslandError::Unknown(_))), "{looked:?}");
        }
    };
    let make_transfers = || {
        while !stops.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            match bank.db.transact(|tx| bank.transfer(tx, number)) {
                Ok(()) => committed.lock().unwrap().push(number),
                Err(IslandError::Unknown(_)) => {}
                Err(_) => aborted.lock().unwrap().push(number),
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(make_transfers)).collect();
        let readers: Vec<_> = (0..2).map(|_| scope.spawn(look)).collect();
        for number in 0..KILLS {
            let before = committed.lock().unwrap().len();
            let begin = Instant::now();
            // Something has been committed since the last one.
            while committed.lock().unwrap().len() < before + 10 {
                assert!(
                    begin.elapsed() < Duration::from_secs(60),
                    "nothing is committed after kill {number}"
                );
                thread::sleep(Duration::from_millis(5));
            }
            // One at a time, and two at once.
            for victim in [number % INSTANCES, (number + number % 2) % INSTANCES] {
                kill(&bank.db, victim as u16);
            }
        }
        stops.store(true, Ordering::Relaxed);
        workers.into_iter().chain(readers).for_each(|thread| thread.join().unwrap());
    });
    let (committed, aborted) = (committed.into_inner().unwrap(), aborted.into_inner().unwrap());
    let has_happened = |there: &BTreeSet<u64>| {
        assert!(committed.iter().all(|number| there.contains(number)), "one that was answered is not there");
        assert!(!aborted.iter().any(|number| there.contains(number)), "one that was aborted is there");
    };
    has_happened(&bank.check());
    drop(bank);
    // And after everything was closed.
    has_happened(&open().check());
    println!(
        "{unit:?}: {} were answered, {} aborted, of {}",
        committed.len(),
        aborted.len(),
        next.into_inner()
    );
}
