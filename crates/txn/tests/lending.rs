//! Memory that a busy worker has free serves others at the memory limit.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::*;
use ensilo_txn::{
    Abort, AbortReason, Engine, EngineOptions, Session, Standard, Store, TableId, Worker, Write,
};

/// Inserts a row of 1 KB.
fn try_insert(worker: &mut Worker, store: &Store, number: usize) -> Result<(), Abort> {
    let mut tx = worker.begin();
    let key = format!("{number:08}");
    assert!(tx.insert(store, key.as_bytes(), &[7; 120], 960)?);
    tx.commit().map(|_| ())
}

#[test]
fn a_busy_worker_lends_what_it_has_free_when_others_find_none() {
    let mut options = EngineOptions::default();
    options.memory_limit_bytes = Some(8 << 20);
    let engine = manual_engine_of::<Standard>(options);
    let store = engine.new_store(TableId(1)).unwrap();
    let (mut owner, mut other) = (engine.session(), engine.session());
    let rows = (0..).take_while(|&number| try_insert(&mut owner, &store, number).is_ok()).count();
    pass_snapshot(&engine);
    // Every second one: nothing is free as a whole.
    for number in (0..rows).step_by(2) {
        let mut tx = owner.begin();
        delete(&mut tx, &store, &format!("{number:08}"));
        tx.commit().unwrap();
    }
    while engine.statistics().transactions.deleted_records > 0 || engine.statistics().epochs.retired_bytes > 0
    {
        pass_snapshot(&engine);
        owner.begin().commit().unwrap();
    }
    let refused = try_insert(&mut other, &store, rows).unwrap_err();
    assert_eq!(refused.reason(), AbortReason::OutOfMemory);
    assert!(engine.take_shortage() && !engine.take_shortage());
    // The owner goes on with its work.
    engine.epochs().advance();
    owner.begin().commit().unwrap();
    for number in rows..rows + rows / 4 {
        try_insert(&mut other, &store, number).unwrap();
    }
}
