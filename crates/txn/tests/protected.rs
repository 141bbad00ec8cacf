//! Protected transactions: what they have read stays as it is until they end, one at a time.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::*;
use ensilo_txn::{
    Abort, AbortReason, Direction, Engine, Prepared, Read, Session, Silo, Standard, Store, Transaction,
    Worker, Write,
};

type Tx<'w> = Transaction<'w, Standard>;

/// Ten rows, `k0` to `k9`, each with its number as the only word, and two workers.
fn loaded() -> (Arc<Silo>, Arc<Store>, Worker, Worker) {
    let (engine, store) = engine_and_store();
    let (mut one, other) = (engine.session(), engine.session());
    commit(&mut one, |tx| {
        for number in 0..10 {
            assert!(insert(tx, &store, &format!("k{number}"), &[number]));
        }
    });
    (engine, store, one, other)
}

fn attempt(worker: &mut Worker, body: impl FnOnce(&mut Tx<'_>) -> Result<(), Abort>) -> Result<(), Abort> {
    let mut tx = worker.begin();
    body(&mut tx)?;
    tx.commit().map(drop)
}

fn try_put(worker: &mut Worker, store: &Store, key: &str, row: &[u64]) -> Result<(), Abort> {
    attempt(worker, |tx| {
        let found = tx.find(store, key.as_bytes())?.unwrap();
        tx.put(found, row, row.len() * 8)
    })
}

fn try_delete(worker: &mut Worker, store: &Store, key: &str) -> Result<(), Abort> {
    attempt(worker, |tx| {
        let found = tx.find(store, key.as_bytes())?.unwrap();
        tx.delete(found)
    })
}

fn try_insert(worker: &mut Worker, store: &Store, key: &str) -> Result<(), Abort> {
    attempt(worker, |tx| tx.insert(store, key.as_bytes(), &[9], 8).map(drop))
}

fn is_refused(outcome: Result<(), Abort>) {
    let abort = outcome.unwrap_err();
    assert!(abort.reason() == AbortReason::PreparedRead && abort.is_retryable(), "{abort}");
}

#[test]
fn what_a_protected_transaction_has_read_stays_as_it_is_until_its_end() {
    let (_engine, store, mut one, mut other) = loaded();
    assert!(one.protect_next());
    let mut tx = one.begin();
    assert_eq!(read(&mut tx, &store, "k3"), Some(vec![3]));
    assert_eq!(read(&mut tx, &store, "missing"), None);
    is_refused(try_put(&mut other, &store, "k3", &[33]));
    is_refused(try_put(&mut other, &store, "k3", &[33; 40]));
    is_refused(try_delete(&mut other, &store, "k3"));
    is_refused(try_insert(&mut other, &store, "missing"));
    try_put(&mut other, &store, "k4", &[44]).unwrap();
    let found = tx.find(&store, b"k4").unwrap().unwrap();
    tx.put(found, &[3 + 44], 8).unwrap();
    tx.commit().unwrap();
    try_put(&mut other, &store, "k3", &[33]).unwrap();
    try_insert(&mut other, &store, "missing").unwrap();
    assert_eq!(commit(&mut other, |tx| read(tx, &store, "k4")), Some(vec![47]));
}

#[test]
fn a_protected_transaction_writes_what_it_has_read_and_splits_nodes_that_it_has_scanned() {
    let (_engine, store, mut one, mut other) = loaded();
    assert!(one.protect_next());
    let mut tx = one.begin();
    assert_eq!(scan_all(&mut tx, &store, Direction::Forward).len(), 10);
    for number in 0..200 {
        assert!(insert(&mut tx, &store, &format!("n{number}"), &[number]));
    }
    put(&mut tx, &store, "k1", &[100]);
    put(&mut tx, &store, "k2", &[7; 40]);
    delete(&mut tx, &store, "k5");
    is_refused(try_insert(&mut other, &store, "n1000"));
    tx.commit().unwrap();
    try_insert(&mut other, &store, "n1000").unwrap();
    assert_eq!(commit(&mut other, |tx| scan_all(tx, &store, Direction::Reverse)).len(), 10 + 200 - 1 + 1);
}

#[test]
fn nobody_commits_into_the_placeholder_of_a_protected_transaction() {
    let (engine, store, mut one, mut other) = loaded();
    assert!(one.protect_next());
    let mut tx = one.begin();
    assert!(insert(&mut tx, &store, "new", &[1]));
    is_refused(try_insert(&mut other, &store, "new"));
    tx.check().unwrap();
    tx.commit().unwrap();
    assert_eq!(commit(&mut other, |tx| read(tx, &store, "new")), Some(vec![1]));
    assert!(one.protect_next());
    let mut given_up = one.begin();
    assert!(insert(&mut given_up, &store, "newer", &[1]));
    is_refused(try_insert(&mut other, &store, "newer"));
    drop(given_up);
    assert!(!engine.has_prepared_begun_by(engine.epochs().global_epoch()));
    try_insert(&mut other, &store, "newer").unwrap();
}

/// The placeholder of another one that has given up while it was read.
#[test]
fn a_protected_transaction_inserts_where_it_has_found_a_placeholder() {
    let (engine, store, mut one, mut other) = loaded();
    for (number, row) in [vec![2], vec![2; 40]].iter().enumerate() {
        for is_committed in [false, true] {
            let key = format!("new {number}");
            let mut maker = other.begin();
            insert(&mut maker, &store, &key, &[1]);
            assert!(one.protect_next());
            let mut tx = one.begin();
            assert_eq!(read(&mut tx, &store, &key), None);
            drop(maker);
            assert!(insert(&mut tx, &store, &key, row));
            if is_committed {
                tx.commit().unwrap();
            } else {
                tx.prepare().unwrap();
            }
            let expected = is_committed.then(|| row.clone());
            assert_eq!(commit(&mut other, |tx| read(tx, &store, &key)), expected);
            pass_snapshot(&engine);
        }
    }
    assert!(!engine.has_prepared_begun_by(engine.epochs().global_epoch()));
}

#[test]
fn there_is_one_protected_transaction_at_a_time() {
    let (engine, store, mut one, mut other) = loaded();
    assert!(one.protect_next() && !other.protect_next() && !one.protect_next());
    let tx = one.begin();
    assert!(!other.protect_next());
    drop(tx);
    assert!(other.protect_next());
    drop(other);
    assert!(one.protect_next(), "a session that ends gives the turn back");
    commit(&mut one, |tx| _ = read(tx, &store, "k1"));
    let mut third = engine.session();
    assert!(third.protect_next(), "also one that has read a single record");
    let _leaked = std::mem::ManuallyDrop::new(third.begin());
    assert!(!one.protect_next());
    drop(third.begin());
    assert!(one.protect_next(), "one that was leaked ends when the next one begins");
}

#[test]
fn what_others_have_deferred_is_carried_out_at_the_end() {
    let (engine, store, mut one, mut other) = loaded();
    let mut live_bytes = Vec::new();
    for round in 0..300 {
        // A placeholder that the protected transaction finds, and whose maker gives up then.
        let mut maker = other.begin();
        insert(&mut maker, &store, &format!("new {round}"), &[1; 20]);
        assert!(one.protect_next());
        let mut tx = one.begin();
        assert_eq!(read(&mut tx, &store, &format!("new {round}")), None);
        drop(maker);
        tx.commit().unwrap();
        assert!(!engine.has_prepared_begun_by(engine.epochs().global_epoch()));
        pass_snapshot(&engine);
        live_bytes.push(engine.statistics().memory.live_bytes);
    }
    let most = live_bytes[..100].iter().max();
    assert!(live_bytes[200..].iter().max() <= most, "no placeholder has stayed: {live_bytes:?}");
}

#[test]
fn a_protected_transaction_may_be_prepared() {
    let (_engine, store, mut one, mut other) = loaded();
    assert!(one.protect_next());
    let mut tx = one.begin();
    read(&mut tx, &store, "k3");
    put(&mut tx, &store, "k1", &[11]);
    let prepared = tx.prepare().unwrap();
    is_refused(try_put(&mut other, &store, "k3", &[33]));
    assert!(!other.protect_next());
    prepared.commit().unwrap();
    try_put(&mut other, &store, "k3", &[33]).unwrap();
    assert!(other.protect_next());
}

#[test]
fn a_long_reader_beside_writers_commits_at_its_first_protected_attempt() {
    const ROWS: u64 = 20_000;
    let (engine, store) = engine_and_store();
    let mut reader = engine.session();
    let key = |number: u64| format!("{number:08}");
    commit(&mut reader, |tx| (0..ROWS).for_each(|number| assert!(insert(tx, &store, &key(number), &[0]))));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (store, engine, is_over) = (&store, &engine, &is_over);
            scope.spawn(move || {
                let mut worker = engine.session();
                for round in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    if round % 64 == 0 {
                        // On few cores the reader would wait for a time slice, while it holds the others up.
                        std::thread::yield_now();
                    }
                    let number = (round * 7919 + thread) % ROWS;
                    let _ = try_put(&mut worker, store, &key(number), &[round]);
                }
            });
        }
        let outcomes: Vec<_> = (0..10)
            .map(|_| {
                let mut tries = 0;
                loop {
                    tries += 1;
                    let is_protected = reader.protect_next();
                    let outcome = attempt(&mut reader, |tx| {
                        let mut rows = 0;
                        tx.scan(
                            &store,
                            (Bound::Unbounded, Bound::Unbounded),
                            Direction::Forward,
                            |_, _| (),
                            |_, ()| {
                                rows += 1;
                                ControlFlow::Continue(())
                            },
                        )?;
                        assert_eq!(rows, ROWS);
                        let found = tx.find(&store, key(0).as_bytes())?.unwrap();
                        tx.put(found, &[1], 8)
                    });
                    // A writer that has lost its core holds its lock for longer than anybody waits, but not for so many times.
                    let is_held = matches!(&outcome, Err(abort) if abort.reason() == AbortReason::LockHeld);
                    if !is_held || tries == 100 {
                        break (is_protected, outcome);
                    }
                }
            })
            .collect();
        is_over.store(true, Ordering::Relaxed);
        for (is_protected, outcome) in outcomes {
            assert!(is_protected);
            outcome.unwrap();
        }
    });
}
