//! What the smallest engine does beyond what every engine passes.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use ensilo_engine::{Committed, Engine, EngineOptions, Read, Session, TableId, Tid, Write};
use ensilo_epoch::Epoch;
use ensilo_map_engine::MapEngine;

#[test]
fn tids_rise_and_a_transaction_that_only_reads_has_the_epoch_of_what_it_read() {
    let engine = MapEngine::start(EngineOptions::default()).unwrap();
    let store = engine.new_store(TableId(1)).unwrap();
    let mut session = engine.session();
    let mut insert = |key: &[u8]| {
        let mut tx = session.begin();
        assert!(tx.insert(&store, key, &[7], 8).unwrap());
        tx.commit().unwrap()
    };
    let (first, last) = (insert(b"a"), insert(b"b"));
    assert!(last.tid > first.tid);
    let mut reading = |key: &[u8]| {
        let mut tx = session.begin();
        _ = tx.get(&store, key, |row| row.word(0)).unwrap();
        tx.commit().unwrap()
    };
    assert_eq!([reading(b"a"), reading(b"b")], [first, last]);
    assert_eq!(reading(b"c"), Committed { tid: Tid::ZERO, epoch: Epoch::default() });
}

#[test]
fn the_counters_of_sessions_that_have_ended_go() {
    let engine = MapEngine::start(EngineOptions::default()).unwrap();
    let mut session = engine.session();
    session.begin().commit().unwrap();
    let counters = session.counters();
    drop(session);
    assert_eq!(engine.statistics().transactions.commits, 1);
    assert_eq!(Arc::strong_count(&counters), 1, "the engine has let go of it");
}
