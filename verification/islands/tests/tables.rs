//! Histories of transactions on typed tables over several instances, checked for serializability over all of them.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use ensilo::Row;
use ensilo_check::{Epoch, History, Key, Options, TableId, Tid, Transaction, TransactionId, Verdict, check};
use ensilo_islands::{
    CommitUnit, Instances, IslandDatabase, IslandError, IslandTable, IslandTransaction, IslandsOptions,
    Partitioning, Placement, Plan, Topology,
};

/// Few enough that transactions meet.
const GROUPS: u16 = 4;
const ITEMS: u16 = 6;

/// Writers of one process.
const WORKERS: u64 = 4;

/// A row that knows who has written it last: a number larger than that of the version before, which no other version of the row has.
#[derive(Clone, Debug, Row)]
#[row(table = "version")]
struct Version {
    #[row(key)]
    group: u16,
    #[row(key)]
    item: u16,
    writer: u64,
}

/// The same, at every instance.
#[derive(Clone, Debug, Row)]
#[row(table = "shared")]
struct Shared {
    #[row(key)]
    item: u16,
    writer: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    /// What is written follows from what another transaction has read before.
    ReadsBefore,
}

struct Run {
    db: IslandDatabase,
    versions: IslandTable<Version>,
    shared: IslandTable<Shared>,
    mistake: Mistake,
}

/// What a transaction has read and written: rows with who has written them before.
#[derive(Default)]
struct Seen {
    reads: BTreeMap<Key, u64>,
    writes: Vec<Key>,
    number: u64,
}

fn key_of_version(version: &Version) -> Key {
    Key::new(TableId(1), &[version.group.to_be_bytes(), version.item.to_be_bytes()].concat())
}

fn key_of_shared(shared: &Shared) -> Key {
    Key::new(TableId(2), &shared.item.to_be_bytes())
}

impl Run {
    fn new(options: IslandsOptions, mistake: Mistake) -> Self {
        let db = options.open_database().unwrap();
        let versions = db.table(Partitioning::hash_of_first(1)).unwrap();
        let shared = db.table(Partitioning::replicated()).unwrap();
        let rows =
            (0..GROUPS).flat_map(|group| (0..ITEMS).map(move |item| Version { group, item, writer: 1 }));
        let rows: Vec<Version> = rows.collect();
        let shared_rows: Vec<Shared> = (0..ITEMS).map(|item| Shared { item, writer: 1 }).collect();
        db.transact(|tx| {
            versions.insert_many(tx, &rows)?;
            shared.insert_many(tx, &shared_rows)
        })
        .unwrap();
        Run { db, versions, shared, mistake }
    }

    /// Reads some rows at random.
    fn read(
        &self,
        tx: &mut IslandTransaction<'_>,
        random: &mut fastrand::Rng,
    ) -> Result<(Vec<Version>, Shared), IslandError> {
        let mut rows = Vec::new();
        for _ in 0..random.usize(1..4) {
            let row = self.versions.get(tx, (random.u16(..GROUPS), random.u16(..ITEMS)))?;
            rows.push(row.unwrap());
        }
        if random.u8(..4) == 0 {
            rows.extend(self.versions.prefix((random.u16(..GROUPS),)).collect(tx)?);
        }
        Ok((rows, self.shared.get(tx, random.u16(..ITEMS))?.unwrap()))
    }

    /// Reads some rows at random, and writes some of them.
    fn body(
        &self,
        tx: &mut IslandTransaction<'_>,
        random: &mut fastrand::Rng,
        last: u64,
    ) -> Result<Seen, IslandError> {
        let (rows, shared) = match self.mistake {
            Mistake::None => self.read(tx, random)?,
            Mistake::ReadsBefore => self.db.transact(|tx| self.read(tx, random))?,
        };
        let mut seen = Seen::default();
        seen.reads.extend(rows.iter().map(|row| (key_of_version(row), row.writer)));
        seen.reads.insert(key_of_shared(&shared), shared.writer);
        let written: BTreeMap<Key, &Version> =
            rows.iter().filter(|_| random.u8(..3) == 0).map(|row| (key_of_version(row), row)).collect();
        let writes_shared = random.u8(..20) == 0;
        // Above all that it has read. Numbers of a worker differ, and no two workers have the same.
        let before = seen.reads.values().copied().max().unwrap_or(0).max(last);
        seen.number = (before / WORKERS + 1) * WORKERS + last % WORKERS;
        for row in written.values() {
            self.versions.replace(tx, &Version { writer: seen.number, ..(*row).clone() })?;
        }
        seen.writes.extend(written.into_keys());
        if writes_shared {
            self.shared.replace(tx, &Shared { writer: seen.number, ..shared.clone() })?;
            seen.writes.push(key_of_shared(&shared));
        }
        Ok(seen)
    }

    /// Makes transactions until so many are enough.
    fn history(&self, is_enough: impl Fn(usize) -> bool + Sync, seed: u64) -> History {
        let transactions = Mutex::new(Vec::new());
        let work = |worker: u64| {
            let (mut random, mut last) =
                (fastrand::Rng::with_seed(seed * WORKERS + worker), WORKERS + worker);
            for sequence in 0.. {
                if is_enough(transactions.lock().unwrap().len()) {
                    break;
                }
                let seen = match self.db.transact(|tx| self.body(tx, &mut random, last)) {
                    Ok(seen) => seen,
                    Err(error) => panic!("seed {seed}: {error}"),
                };
                last = last.max(seen.number);
                let id = TransactionId { worker: worker as u32, sequence };
                let begun = Transaction::new(id, Epoch(1), Tid(seen.number));
                let read =
                    seen.reads.into_iter().fold(begun, |all, (key, writer)| all.reads(key, Tid(writer)));
                let transaction = seen.writes.into_iter().fold(read, Transaction::writes);
                transactions.lock().unwrap().push(transaction);
            }
        };
        thread::scope(|scope| (0..WORKERS).for_each(|worker| drop(scope.spawn(move || work(worker)))));
        let mut history = History::of(transactions.into_inner().unwrap());
        for group in 0..GROUPS {
            for item in 0..ITEMS {
                history = history.with_initial(key_of_version(&Version { group, item, writer: 0 }), Tid(1));
            }
        }
        (0..ITEMS)
            .fold(history, |all, item| all.with_initial(key_of_shared(&Shared { item, writer: 0 }), Tid(1)))
    }
}

fn options(instances: usize) -> IslandsOptions {
    let plan =
        Plan::new(&Topology::of_this_machine().unwrap(), Instances::Count(instances), Placement::System);
    IslandsOptions::new(plan).workers(2)
}

#[test]
fn transactions_on_tables_of_several_instances_are_serializable() {
    let [first, second] = [(), ()].map(|()| tempfile::tempdir().unwrap());
    let stored = options(2).directory(first.path());
    let stored_by_epochs = options(2).directory(second.path()).commit_unit(CommitUnit::Epoch);
    let all = [options(1), options(2), options(4), stored, stored_by_epochs];
    for (seed, options) in (0..).zip(all) {
        let run = Run::new(options, Mistake::None);
        let end = Instant::now() + Duration::from_millis(1500);
        let history = run.history(|transactions| transactions >= 100 && Instant::now() >= end, seed);
        match check(&history, &Options::default()) {
            Verdict::Serializable(_) => {}
            other => panic!("seed {seed}: {other}"),
        }
    }
}

#[test]
fn a_transaction_that_writes_what_another_one_has_read_is_found() {
    let run = Run::new(options(2), Mistake::ReadsBefore);
    let history = run.history(|transactions| transactions >= 2000, 0);
    let verdict = check(&history, &Options::default());
    assert!(matches!(verdict, Verdict::Violated(_)), "{verdict}");
}
