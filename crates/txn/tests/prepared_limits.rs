//! Prepared transactions at the limits of epochs and of memory.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::*;
use ensilo_txn::{
    AbortReason, Advance, Engine, EngineOptions, Epoch, EpochOptions, Prepared, Silo, TableId, Write,
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
    let engine = Silo::<Standard>::new(options);
    let store = engine.new_store(TableId(1)).unwrap();
    let (mut one, mut other) = (engine.worker(), engine.worker());
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
