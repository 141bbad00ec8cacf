#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use ensilo_engine::{Engine, Read, Session, TableId, Tid, Write};
use ensilo_epoch::{Advance, Epoch, EpochOptions};

use crate::store::Store;
use crate::{AbortReason, EngineOptions, Silo};

/// Returns an engine with epochs that begin at `first` and are moved on by nobody.
fn engine(first: Epoch) -> (Arc<Silo>, Arc<Store>) {
    let epochs = EpochOptions {
        first_epoch: first,
        epochs_per_snapshot: 1,
        advance: Advance::Manual,
        ..EpochOptions::default()
    };
    let mut options = EngineOptions::default();
    options.epochs = epochs;
    let engine = Silo::start(options);
    let store = engine.new_store(TableId(1)).unwrap();
    (engine, store)
}

#[test]
fn a_worker_whose_tids_run_out_moves_the_epoch_on() {
    let (engine, store) = engine(Epoch::new(100));
    let mut worker = engine.session();
    let epoch = engine.epochs().global_epoch();
    let (_, state) = worker.parts();
    state.context.last_tid = Tid::from_raw(Tid::before(Epoch::new(epoch.get() + 1)).get() - 1);
    let mut tx = worker.begin();
    tx.insert(&store, b"key", &[1], 8).unwrap();
    let committed = tx.commit().unwrap();
    assert_eq!(committed.epoch, Epoch::new(epoch.get() + 1));
    assert_eq!(engine.epochs().global_epoch(), committed.epoch);
}

#[test]
fn nothing_commits_in_the_last_epoch_and_reads_go_on() {
    let (engine, store) = engine(Epoch::new(Epoch::LAST.get() - 1));
    let mut worker = engine.session();
    let mut tx = worker.begin();
    tx.insert(&store, b"before", &[1], 8).unwrap();
    assert_eq!(tx.commit().unwrap().epoch, Epoch::new(Epoch::LAST.get() - 1));
    for _ in 0..3 {
        engine.epochs().advance();
        assert_eq!(engine.epochs().global_epoch(), Epoch::LAST);
        let mut tx = worker.begin();
        tx.insert(&store, b"after", &[1], 8).unwrap();
        let abort = tx.commit().unwrap_err();
        assert!(abort.reason() == AbortReason::EpochsExhausted && !abort.is_retryable());
    }
    let mut tx = worker.begin();
    assert_eq!(tx.get(&store, b"before", |row| row.word(0)).unwrap(), Some(1));
    assert_eq!(tx.get(&store, b"after", |row| row.word(0)).unwrap(), None);
    tx.commit().unwrap();
}
