//! Prepared transactions at the limits of epochs and of memory.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::Arc;

use common::*;
use ensilo_txn::{
    Abort, AbortReason, Advance, Direction, Engine, EngineOptions, Epoch, EpochOptions, Prepared, Session,
    Silo, Standard, Store, TableId, Write,
};

/// In the last epoch nothing commits any more.
#[test]
fn a_vote_in_the_last_epoch_is_to_abort() {
    let mut options = EngineOptions::default();
    options.epochs = EpochOptions {
        first_epoch: Epoch::new(Epoch::LAST.get() - 1),
        epochs_per_snapshot: 1,
        advance: Advance::Manual,
        ..EpochOptions::default()
    };
    let engine = Silo::<Standard>::start(options).unwrap();
    let store = engine.new_store(TableId(1)).unwrap();
    let (mut one, mut other) = (engine.session(), engine.session());
    commit(&mut one, |tx| assert!(insert(tx, &store, "a", &[1])));
    let mut early = one.begin();
    put(&mut early, &store, "a", &[2]);
    let early = early.prepare().unwrap();
    engine.epochs().advance();
    assert_eq!(early.commit().unwrap_err().reason(), AbortReason::EpochsExhausted);
    let mut late = one.begin();
    put(&mut late, &store, "a", &[2]);
    assert_eq!(late.prepare().unwrap_err().reason(), AbortReason::EpochsExhausted);
    // One that only reads needs no TID, and nothing is left locked.
    let mut reads = other.begin();
    assert_eq!(read(&mut reads, &store, "a"), Some(vec![1]));
    reads.prepare().unwrap().commit().unwrap();
}

/// An engine whose memory limit is reached by rows of one table. Returns how many there are.
fn full_engine() -> (Arc<Silo>, Arc<Store>, usize) {
    let mut options = EngineOptions::default();
    options.memory_limit_bytes = Some(8 << 20);
    let engine = manual_engine_of::<Standard>(options);
    let store = engine.new_store(TableId(1)).unwrap();
    let mut worker = engine.session();
    let rows = (0..).take_while(|&number| {
        let mut tx = worker.begin();
        let inserted = tx.insert(&store, name(number).as_bytes(), &[1; 100], 800);
        inserted.and_then(|_| tx.commit()).is_ok()
    });
    let rows = rows.count();
    (engine, store, rows)
}

fn name(number: usize) -> String {
    format!("{number:08}")
}

/// Within one snapshot interval no snapshot needs the versions that are overwritten or deleted.
#[test]
fn at_the_memory_limit_a_prepared_write_keeps_no_version_that_no_snapshot_needs() {
    let (engine, store, rows) = full_engine();
    let mut one = engine.session();
    for number in 0..rows {
        let mut tx = one.begin();
        put(&mut tx, &store, &name(number), &[2; 100]);
        tx.prepare().unwrap().commit().unwrap();
    }
    let mut tx = one.begin();
    delete(&mut tx, &store, &name(0));
    tx.prepare().unwrap().commit().unwrap();
    assert_eq!(engine.statistics().transactions.versions, 0);
    // Where a snapshot needs it, it is kept.
    pass_snapshot(&engine);
    let mut tx = one.begin();
    put(&mut tx, &store, &name(1), &[3; 100]);
    tx.prepare().unwrap().commit().unwrap();
    assert_eq!(engine.statistics().transactions.versions, 1);
}

/// Half of what it has read is registered when the memory is out.
#[test]
fn a_vote_for_whose_read_set_there_is_no_memory_is_to_abort_and_leaves_nothing() {
    const ROWS: usize = 20_000;
    let (engine, store) = engine_and_store();
    let (mut one, mut other) = (engine.session(), engine.session());
    commit(&mut one, |tx| (0..ROWS).for_each(|number| assert!(insert(tx, &store, &name(number), &[1]))));
    let pool = engine.epochs().pool();
    for is_refused in [true, false] {
        let before = pool.mapped_bytes();
        let mut tx = one.begin();
        assert_eq!(scan_all(&mut tx, &store, Direction::Forward).len(), ROWS);
        pool.fail_one_in(u64::from(is_refused), 0);
        let vote = tx.prepare();
        pool.fail_one_in(0, 0);
        assert_eq!(vote.as_ref().err().map(Abort::reason), is_refused.then_some(AbortReason::OutOfMemory));
        vote.map(|prepared| prepared.commit().unwrap()).ok();
        assert_eq!(pool.mapped_bytes(), before, "what the sets took is given back");
        commit(&mut other, |tx| (0..ROWS).for_each(|number| put(tx, &store, &name(number), &[2])));
        commit(&mut other, |tx| assert!(insert(tx, &store, &format!("after {is_refused}"), &[2])));
        commit(&mut other, |tx| delete(tx, &store, &format!("after {is_refused}")));
    }
}
