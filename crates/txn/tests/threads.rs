//! Threads at work on one store: nothing is lost, nothing is torn, and everything that was kept is freed again.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::*;
use ensilo_txn::{
    Direction, Engine, EngineOptions, EpochOptions, Read, Session, Silo, Store, TableId, Transaction, Worker,
    Write,
};

const ACCOUNTS: u64 = 16;
const DEPOSIT: u64 = 1000;

fn threaded_engine() -> (Arc<Silo>, Arc<Store>) {
    let mut options = EngineOptions::default();
    options.epochs = EpochOptions {
        epoch_interval: Duration::from_millis(1),
        epochs_per_snapshot: 4,
        ..EpochOptions::default()
    };
    // However long a busy machine keeps a thread from its core.
    options.snapshot_age_max = u64::MAX;
    let engine = <Silo>::start(options).unwrap();
    let store = engine.new_store(TableId(1)).unwrap();
    (engine, store)
}

fn retry<R>(
    worker: &mut Worker,
    mut body: impl FnMut(&mut Transaction<'_, ensilo_txn::Standard>) -> Result<R, ensilo_txn::Abort>,
) -> R {
    loop {
        let mut tx = worker.begin();
        if let Ok(result) = body(&mut tx)
            && tx.commit().is_ok()
        {
            return result;
        }
        std::thread::yield_now();
    }
}

/// A small generator: the same numbers in every run.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn key(account: u64) -> String {
    format!("account {account:04}")
}

/// Moves money between accounts: rows grow and shrink, so that some move to other records; accounts are closed and opened.
fn transfer(worker: &mut Worker, store: &Store, state: &mut u64) {
    let (from, to) = (next(state) % ACCOUNTS, next(state) % ACCOUNTS);
    let len = 1 + (next(state) % 40) as usize;
    retry(worker, |tx| {
        if from == to {
            return Ok(());
        }
        let balance = try_read(tx, store, &key(from))?.map_or(0, |row| row[0]);
        let amount = balance.min(10);
        if balance == amount {
            if let Some(found) = tx.find(store, key(from).as_bytes())? {
                tx.delete(found)?;
            }
        } else if let Some(found) = tx.find(store, key(from).as_bytes())? {
            tx.patch(found, &[(0, balance - amount)])?;
        }
        match tx.find(store, key(to).as_bytes())? {
            Some(found) => {
                let there = tx.read(found, |row| row.word(0))?;
                tx.put(found, &vec![there + amount; len], len * 8)
            }
            None => {
                let row = vec![amount; len];
                // It was not there: if it is now, the commit will fail.
                tx.insert(store, key(to).as_bytes(), &row, len * 8).map(|_| ())
            }
        }
    });
}

fn sum(entries: &[(String, u64)]) -> u64 {
    entries.iter().map(|(_, balance)| balance).sum()
}

#[test]
fn transfers_keep_the_sum_for_transactions_and_snapshots() {
    let (engine, store) = threaded_engine();
    let mut worker = engine.session();
    commit(&mut worker, |tx| (0..ACCOUNTS).for_each(|at| assert!(insert(tx, &store, &key(at), &[DEPOSIT]))));
    let loaded = engine.epochs().global_epoch();
    while engine.epochs().snapshot_epoch() <= loaded {
        std::thread::yield_now();
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 1..=3_u64 {
            let (engine, store, is_over) = (&engine, &store, &is_over);
            scope.spawn(move || {
                let mut state = thread * 0x9e37_79b9;
                for _ in 0..4000 {
                    // Workers come and go.
                    let mut worker = engine.session();
                    for _ in 0..10 {
                        transfer(&mut worker, store, &mut state);
                    }
                }
                is_over.store(true, Ordering::Relaxed);
            });
        }
        let (engine, store, is_over) = (&engine, &store, &is_over);
        scope.spawn(move || {
            let mut worker = engine.session();
            while !is_over.load(Ordering::Relaxed) {
                let mut snapshot = worker.begin_snapshot();
                assert_eq!(sum(&scan_all(&mut snapshot, store, Direction::Forward)), ACCOUNTS * DEPOSIT);
                assert_eq!(sum(&scan_all(&mut snapshot, store, Direction::Reverse)), ACCOUNTS * DEPOSIT);
            }
        });
    });
    retry(&mut worker, |tx| {
        assert_eq!(sum(&scan_all(tx, &store, Direction::Forward)), ACCOUNTS * DEPOSIT);
        Ok(())
    });
    let (mut looks, mut last) = (0, None);
    loop {
        // Looks in the same epoch count once, and epochs without a look not at all, however long this thread waits for a core.
        let epoch = engine.epochs().global_epoch();
        looks += u32::from(last.replace(epoch) != Some(epoch));
        worker.collect();
        engine.collect_orphaned();
        let left = engine.statistics().transactions;
        if (left.versions, left.deleted_records, left.version_bytes) == (0, 0, 0) {
            break;
        }
        assert!(looks < 1000, "{left:?}");
        std::thread::yield_now();
    }
}

#[test]
fn a_sleeper_inside_a_transaction_stops_neither_epochs_nor_commits() {
    let (engine, store) = threaded_engine();
    let (mut sleeper, mut worker) = (engine.session(), engine.session());
    commit(&mut worker, |tx| assert!(insert(tx, &store, "a", &[0])));
    let mut asleep = sleeper.begin();
    assert_eq!(read(&mut asleep, &store, "a"), Some(vec![0]));
    let (epoch, snapshot) = (engine.epochs().global_epoch(), engine.epochs().snapshot_epoch());
    let mut commits = 0;
    while commits == 0 || engine.epochs().global_epoch().get() < epoch.get() + 20 {
        commits += 1;
        commit(&mut worker, |tx| put(tx, &store, "a", &[commits]));
    }
    // Snapshots go on too. A commit that has lost its core may have held them up until now.
    while engine.epochs().snapshot_epoch() <= snapshot {
        std::thread::yield_now();
    }
    assert_eq!(read(&mut asleep, &store, "a"), Some(vec![commits]));
    assert!(asleep.commit().is_err(), "what the sleeper saw first is gone");
}

#[test]
fn placeholders_that_others_commit_into_change_their_owner_once() {
    let (engine, store) = threaded_engine();
    std::thread::scope(|scope| {
        for thread in 1..=4_u64 {
            let (engine, store) = (&engine, &store);
            scope.spawn(move || {
                let mut worker = engine.session();
                let mut state = thread * 0x9e37_79b9;
                for _ in 0..60_000 {
                    let key = key(next(&mut state) % 3);
                    let len = 1 + (next(&mut state) % 400) as usize;
                    let mut tx = worker.begin();
                    // Insert, or delete what is there; half of the inserts meet another one, some are given up.
                    let outcome =
                        tx.insert(store, key.as_bytes(), &vec![thread; len], len * 8).and_then(|is_new| {
                            match tx.find(store, key.as_bytes())? {
                                Some(found) if !is_new => tx.delete(found),
                                _ => Ok(()),
                            }
                        });
                    if outcome.is_ok() && !next(&mut state).is_multiple_of(4) {
                        let _ = tx.commit();
                    }
                }
            });
        }
    });
    let mut worker = engine.session();
    let left = retry(&mut worker, |tx| Ok(scan_all(tx, &store, Direction::Forward)));
    assert!(left.len() <= 3 && left.iter().all(|(_, row)| (1..=4).contains(row)), "{left:?}");
}
