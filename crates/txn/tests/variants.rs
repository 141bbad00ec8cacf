//! What the configurations that Silo is compared with do differently, and what they do alike.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeSet;

use common::{insert, manual_engine, pass_snapshot, put, read};
use ensilo_txn::{
    AccountId, Allocator, Engine, GlobalTid, NoGc, NoSnapshots, Read, Session, Silo, Simple, Standard, Store,
    TableId, Tid, Variant, Worker, Write,
};

const KEYS: u64 = 200;

fn name(key: u64) -> String {
    format!("{key:04}")
}

/// Runs `body` as one transaction that nobody is in the way of.
fn commit<V: Variant>(worker: &mut Worker<V>, body: impl FnOnce(&mut ensilo_txn::Transaction<'_, V>)) -> Tid {
    let mut tx = worker.begin();
    body(&mut tx);
    tx.commit().unwrap().tid
}

/// Patches the first word of every record, each in a transaction of its own.
fn patch_all<V: Variant>(worker: &mut Worker<V>, store: &Store, value: u64) {
    for key in 0..KEYS {
        commit(worker, |tx| {
            let found = tx.find(store, name(key).as_bytes()).unwrap().unwrap();
            tx.patch(found, &[(0, value)]).unwrap();
        });
    }
}

/// The bytes of the store's records and nodes, when so much time has gone by that all garbage has been collected.
fn bytes_kept<V: Variant>(engine: &Silo<V>, worker: &mut Worker<V>) -> u64 {
    for _ in 0..40 {
        engine.epochs().advance();
        worker.collect();
    }
    engine.statistics().memory.of(AccountId(1))
}

/// Inserts, changes and deletes records; returns the bytes that are kept after each.
fn bytes_of_a_life<V: Variant>() -> [u64; 3] {
    let engine = manual_engine::<V>();
    let store = engine.new_store(TableId(1)).unwrap();
    let mut worker = engine.session();
    commit(&mut worker, |tx| {
        assert!((0..KEYS).all(|key| insert(tx, &store, &name(key), &[key; 13])));
    });
    let inserted = bytes_kept(&engine, &mut worker);
    for value in 0..5 {
        patch_all(&mut worker, &store, value);
        engine.epochs().advance();
    }
    commit(&mut worker, |tx| {
        for key in 0..KEYS {
            let row = read(tx, &store, &name(key)).unwrap();
            assert_eq!((row[0], &row[1..]), (4, &[key; 12][..]), "a patch leaves the other words");
        }
    });
    let patched = bytes_kept(&engine, &mut worker);
    commit(&mut worker, |tx| {
        for key in 0..KEYS {
            let found = tx.find(&store, name(key).as_bytes()).unwrap().unwrap();
            tx.delete(found).unwrap();
        }
    });
    [inserted, patched, bytes_kept(&engine, &mut worker)]
}

#[test]
fn records_come_and_go_alike_wherever_they_lie() {
    for [inserted, patched, deleted] in [
        bytes_of_a_life::<Standard>(),
        bytes_of_a_life::<GlobalTid>(),
        bytes_of_a_life::<NoSnapshots>(),
        bytes_of_a_life::<Allocator>(),
        bytes_of_a_life::<Simple>(),
    ] {
        assert_eq!(inserted, patched, "what was replaced is free again");
        assert!(deleted < inserted / 4, "{deleted} of {inserted} bytes are left");
    }
}

#[test]
fn without_a_collector_nothing_is_freed() {
    let [inserted, patched, deleted] = bytes_of_a_life::<NoGc>();
    assert_eq!((patched, deleted), (inserted, inserted));
}

/// Whether patches leave the records of a store where they are: no memory is taken.
fn patches_in_place<V: Variant>() -> bool {
    let engine = manual_engine::<V>();
    let store = engine.new_store(TableId(1)).unwrap();
    let mut worker = engine.session();
    commit(&mut worker, |tx| {
        assert!((0..KEYS).all(|key| insert(tx, &store, &name(key), &[key; 13])));
    });
    let bytes = || engine.statistics().memory.of(AccountId(1));
    let before = bytes();
    patch_all(&mut worker, &store, 7);
    let grown = bytes() - before;
    assert!(grown == 0 || grown >= KEYS * 128, "all or none: {grown} bytes");
    grown == 0
}

#[test]
fn a_new_record_for_each_write_is_one() {
    assert!(patches_in_place::<Standard>() && patches_in_place::<NoSnapshots>());
    assert!(!patches_in_place::<Allocator>() && !patches_in_place::<Simple>());
}

/// A snapshot keeps seeing what it saw while all records are written and deleted over several intervals.
fn snapshots_hold<V: Variant>() {
    let engine = manual_engine::<V>();
    let store = engine.new_store(TableId(1)).unwrap();
    let (mut writer, mut reader) = (engine.session(), engine.session());
    commit(&mut writer, |tx| {
        insert(tx, &store, "kept", &[1, 10]);
        insert(tx, &store, "deleted", &[1, 20]);
    });
    pass_snapshot(&engine);
    let mut snapshot = reader.begin_snapshot();
    for round in 2..30 {
        commit(&mut writer, |tx| {
            let found = tx.find(&store, b"kept").unwrap().unwrap();
            tx.patch(found, &[(0, round)]).unwrap();
        });
        commit(&mut writer, |tx| put(tx, &store, "kept", &vec![round; 2 + round as usize % 7]));
        if round == 3 {
            commit(&mut writer, |tx| {
                let found = tx.find(&store, b"deleted").unwrap().unwrap();
                tx.delete(found).unwrap();
            });
        }
        engine.epochs().advance();
        writer.collect();
        assert_eq!(read(&mut snapshot, &store, "kept"), Some(vec![1, 10]), "round {round}");
        assert_eq!(read(&mut snapshot, &store, "deleted"), Some(vec![1, 20]), "round {round}");
    }
    drop(snapshot);
    pass_snapshot(&engine);
    let mut snapshot = reader.begin_snapshot();
    assert_eq!(read(&mut snapshot, &store, "kept").map(|row| row[0]), Some(29));
    assert_eq!(read(&mut snapshot, &store, "deleted"), None);
}

#[test]
fn snapshots_see_the_past_also_when_records_are_replaced() {
    snapshots_hold::<Standard>();
    snapshots_hold::<Allocator>();
    snapshots_hold::<Simple>();
}

#[test]
#[should_panic(expected = "no versions for snapshots")]
fn without_snapshots_there_are_none() {
    let engine = manual_engine::<NoSnapshots>();
    drop(engine.session().begin_snapshot());
}

/// The TIDs of two workers' transactions in turn, which have nothing in common.
fn tids_of_two_workers<V: Variant>() -> Vec<Tid> {
    let engine = manual_engine::<V>();
    let stores = [1, 3].map(|id| engine.new_store(TableId(id)).unwrap());
    let mut workers = [(); 2].map(|()| engine.session());
    let mut tids = Vec::new();
    for key in 0..KEYS {
        for (worker, store) in workers.iter_mut().zip(&stores) {
            tids.push(commit(worker, |tx| assert!(insert(tx, store, &name(key), &[key]))));
        }
        if key % 10 == 0 {
            engine.epochs().advance();
        }
    }
    tids
}

#[test]
fn one_counter_gives_every_transaction_a_tid_of_its_own() {
    let tids = tids_of_two_workers::<GlobalTid>();
    assert!(tids.is_sorted_by(|one, other| one < other));
    // Otherwise this would show nothing: workers of the product count by themselves.
    let tids = tids_of_two_workers::<Standard>();
    assert_eq!(tids.iter().collect::<BTreeSet<_>>().len(), tids.len() / 2);
}
