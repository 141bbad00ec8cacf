//! What the engines that are compared do beyond what every engine passes: dropped stores, garbage and the memory limit.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use ensilo_baselines::{KeyValue, PartitionedStore, Store};
use ensilo_engine::{AbortReason, Engine, EngineOptions, Read, Remains, Session, TableId, Write};
use ensilo_epoch::{Advance, EpochOptions};

/// An engine whose epochs advance by hand, with an empty store.
fn engine_and_store<E: Engine<Store = Store>>(memory_limit_bytes: Option<u64>) -> (Arc<E>, Arc<Store>) {
    let mut options = EngineOptions::default();
    options.memory_limit_bytes = memory_limit_bytes;
    options.epochs = EpochOptions { advance: Advance::Manual, ..options.epochs };
    let engine = E::start(options).unwrap();
    let store = engine.new_store(TableId(1)).unwrap();
    (engine, store)
}

fn insert(session: &mut impl Session<Store = Store>, store: &Store, key: &[u8]) {
    let mut tx = session.begin();
    assert!(tx.insert(store, key, &[7], 8).unwrap());
    tx.commit().unwrap();
}

/// A row that has outgrown its record is written in a store that was dropped meanwhile.
fn dropped_stores_are_still_written<E: Engine<Store = Store>>() {
    let (engine, store) = engine_and_store::<E>(None);
    let mut session = engine.session();
    insert(&mut session, &store, b"key");
    let mut tx = session.begin();
    let found = tx.find(&store, b"key").unwrap().unwrap();
    assert!(engine.drop_store(TableId(1)));
    assert_eq!(tx.find(&store, b"key").unwrap_err().reason(), AbortReason::StoreDropped);
    tx.put(found, &[8; 100], 800).unwrap();
    tx.commit().unwrap();
}

#[test]
fn a_record_of_a_dropped_store_is_still_written() {
    dropped_stores_are_still_written::<KeyValue>();
    dropped_stores_are_still_written::<PartitionedStore>();
}

fn ended_sessions_leave_nothing<E: Engine<Store = Store>>() {
    let (engine, store) = engine_and_store::<E>(None);
    let mut session = engine.session();
    (0..200_u8).for_each(|key| insert(&mut session, &store, &[key]));
    let mut tx = session.begin();
    for key in 0..200_u8 {
        let found = tx.find(&store, &[key]).unwrap().unwrap();
        tx.delete(found).unwrap();
    }
    tx.commit().unwrap();
    session.begin().abort();
    assert_eq!(session.remains(), Remains::Later, "nobody could reach it before an epoch has passed");
    (0..4).for_each(|_| engine.epochs().advance());
    assert_eq!((session.remains(), session.collect()), (Remains::Now, Remains::Now));
    let counted = engine.statistics().transactions;
    assert_eq!((counted.commits, counted.aborts_total()), (201, 1));
    let counters = session.counters();
    drop(session);
    assert_eq!(engine.statistics().transactions, counted);
    assert_eq!(Arc::strong_count(&counters), 1, "the engine has let go of it");
    let before = engine.statistics().memory.live_bytes;
    assert_eq!(engine.collect_orphaned(), Remains::Now);
    while engine.collect_orphaned() == Remains::Now {}
    assert_eq!(engine.collect_orphaned(), Remains::Nothing);
    assert!(engine.statistics().memory.live_bytes < before);
}

#[test]
fn what_ended_sessions_have_counted_stays_and_what_they_have_retired_is_freed() {
    ended_sessions_leave_nothing::<KeyValue>();
    ended_sessions_leave_nothing::<PartitionedStore>();
}

fn memory_has_a_limit<E: Engine<Store = Store>>() {
    let (engine, store) = engine_and_store::<E>(Some(4 << 20));
    let mut session = engine.session();
    let mut keys = 0_u32;
    let refused = loop {
        let mut tx = session.begin();
        match tx.insert(&store, &keys.to_be_bytes(), &[u64::from(keys); 100], 800) {
            Ok(is_new) => assert!(is_new),
            Err(abort) => break abort,
        }
        tx.commit().unwrap();
        keys += 1;
    };
    assert_eq!(refused.reason(), AbortReason::OutOfMemory);
    let mut tx = session.begin();
    let found = tx.find(&store, &0_u32.to_be_bytes()).unwrap().unwrap();
    let refused = tx.put(found, &[7; 3000], 24_000).unwrap_err();
    assert_eq!(refused.reason(), AbortReason::OutOfMemory);
    for key in 0..keys {
        let found = tx.find(&store, &key.to_be_bytes()).unwrap().unwrap();
        assert_eq!(tx.read(found, |row| (row.word(99), row.len_words())).unwrap(), (u64::from(key), 100));
        tx.patch(found, &[(0, 7)]).unwrap();
    }
    tx.commit().unwrap();
}

#[test]
fn a_transaction_that_finds_no_memory_has_changed_nothing() {
    memory_has_a_limit::<KeyValue>();
    memory_has_a_limit::<PartitionedStore>();
}
