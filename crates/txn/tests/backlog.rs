//! A worker that has left much garbage is rid of it within a bounded number of transactions, each of which frees a bounded amount.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::*;
use ensilo_txn::{AccountId, Engine, Read, Session, Silo, Standard, TableId, Variant, Worker, Write};

const ROWS: usize = 30_000;

/// The most objects that one transaction frees, of each of two kinds: deleted rows that leave the tree, and memory.
const FREED_MAX: u64 = 512;

fn key(number: usize) -> String {
    format!("{number:08}")
}

/// Runs a transaction that does nothing, and returns how many deleted rows it has taken out.
fn taken_out<V: Variant>(engine: &Silo<V>, worker: &mut Worker<V>) -> u64 {
    let waiting = || engine.statistics().transactions.deleted_records;
    let before = waiting();
    worker.begin().commit().unwrap();
    before - waiting()
}

#[test]
fn a_busy_worker_is_rid_of_what_a_large_transaction_deleted_within_a_bounded_number_of_small_ones() {
    let (engine, store) = engine_and_store();
    let mut worker = engine.session();
    let mut tx = worker.begin();
    (0..ROWS).for_each(|number| assert!(insert(&mut tx, &store, &key(number), &[1, 2, 3])));
    tx.commit().unwrap();
    pass_snapshot(&engine);
    let full = engine.statistics().memory.of(AccountId(1));
    let mut tx = worker.begin();
    (0..ROWS).for_each(|number| delete(&mut tx, &store, &key(number)));
    tx.commit().unwrap();
    let mut transactions = 0;
    while engine.statistics().transactions.deleted_records > 0 {
        // Little is freed as soon as it can be, and more once it has waited for a snapshot interval.
        pass_snapshot(&engine);
        for _ in 0..20 {
            assert!(taken_out(&engine, &mut worker) <= FREED_MAX);
            transactions += 1;
        }
    }
    // 64 at a time would take more than 468.
    assert!(transactions <= 240, "{transactions} transactions");
    for _ in 0..20 {
        pass_snapshot(&engine);
        (0..20).for_each(|_| assert_eq!(taken_out(&engine, &mut worker), 0));
    }
    assert!(engine.statistics().memory.of(AccountId(1)) < full / 100, "the memory of the rows comes back");
}

#[test]
fn a_worker_that_keeps_up_frees_little_at_a_time() {
    let (engine, store) = engine_and_store();
    let mut worker = engine.session();
    for round in 0..50 {
        let mut tx = worker.begin();
        let keys = (0..60).map(|number| key(round * 60 + number));
        keys.clone().for_each(|key| assert!(insert(&mut tx, &store, &key, &[1])));
        tx.commit().unwrap();
        let mut tx = worker.begin();
        keys.for_each(|key| delete(&mut tx, &store, &key));
        tx.commit().unwrap();
        pass_snapshot(&engine);
        assert!(taken_out(&engine, &mut worker) <= 64, "round {round}");
    }
}

/// As above, for a worker of which another thread frees the garbage: one call is a short step there too.
#[test]
fn a_step_of_the_collection_is_short() {
    let (engine, store) = engine_and_store();
    let mut worker: Worker = engine.session();
    let mut tx = worker.begin();
    (0..ROWS).for_each(|number| assert!(insert(&mut tx, &store, &key(number), &[1])));
    tx.commit().unwrap();
    let mut tx = worker.begin();
    (0..ROWS).for_each(|number| delete(&mut tx, &store, &key(number)));
    tx.commit().unwrap();
    pass_snapshot(&engine);
    pass_snapshot(&engine);
    let mut before = ROWS as u64;
    while before > 0 {
        worker.collect();
        let now = engine.statistics().transactions.deleted_records;
        assert!(now < before && before - now <= FREED_MAX, "{before} {now}");
        before = now;
    }
}

/// Lets a row shrink, and returns how much memory it leaves.
fn left_by_a_row_that_shrinks<V: Variant>(bytes: usize) -> u64 {
    let engine = manual_engine::<V>();
    let store = engine.new_store(TableId(1)).unwrap();
    let mut worker = engine.session();
    for row in [vec![7; bytes / 8], vec![7; 3]] {
        let mut tx = worker.begin();
        match tx.find(&store, b"key").unwrap() {
            Some(found) => tx.put(found, &row, row.len() * 8).unwrap(),
            None => assert!(insert(&mut tx, &store, "key", &row)),
        }
        tx.commit().unwrap();
        pass_snapshot(&engine);
    }
    for _ in 0..20 {
        pass_snapshot(&engine);
        taken_out(&engine, &mut worker);
    }
    assert_eq!(read(&mut worker.begin(), &store, "key"), Some(vec![7; 3]));
    engine.statistics().memory.of(AccountId(1))
}

#[test]
fn a_large_row_that_shrinks_gives_its_memory_back() {
    assert!(left_by_a_row_that_shrinks::<Standard>(4 << 20) < 1 << 20);
    assert!(left_by_a_row_that_shrinks::<ensilo_txn::Simple>(4 << 20) < 1 << 20);
}
