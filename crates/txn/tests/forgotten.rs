//! Transactions that were leaked, by `std::mem::forget`: the worker goes on, and nothing that they would have written becomes visible.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, clippy::mem_forget, reason = "tests of just that")]

mod common;

use common::*;
use ensilo_txn::{AbortReason, Engine, Session, Write};

#[test]
fn a_forgotten_transaction_is_not_committed_by_the_next() {
    let (engine, store) = engine_and_store();
    let (mut one, mut other) = (engine.session(), engine.session());
    commit(&mut one, |tx| assert!(insert(tx, &store, "a", &[1])));
    let mut tx = one.begin();
    put(&mut tx, &store, "a", &[2]);
    assert!(insert(&mut tx, &store, "b", &[3]));
    std::mem::forget(tx);
    one.begin().commit().unwrap();
    commit(&mut other, |tx| {
        assert_eq!(read(tx, &store, "a"), Some(vec![1]));
        assert!(insert(tx, &store, "b", &[4]));
    });
    assert_eq!(engine.statistics().transactions.aborts[AbortReason::User.index()], 1);
    assert_eq!(engine.statistics().epochs.oldest_pin, None, "its pin has ended with it");
}

/// What it has locked stays locked: there is no decision. Its worker does not take that for its own.
#[test]
fn a_forgotten_prepared_transaction_is_no_part_of_the_next() {
    let (engine, store) = engine_and_store();
    let (mut one, mut other) = (engine.session(), engine.session());
    commit(&mut one, |tx| ["a", "c"].iter().for_each(|key| assert!(insert(tx, &store, key, &[1]))));
    let mut tx = one.begin();
    put(&mut tx, &store, "a", &[2]);
    assert!(insert(&mut tx, &store, "b", &[3]));
    std::mem::forget(tx.prepare().unwrap());
    for key in ["a", "b"] {
        let refused = try_read(&mut one.begin(), &store, key).unwrap_err();
        assert_eq!(refused.reason(), AbortReason::PreparedLock);
    }
    commit(&mut one, |tx| put(tx, &store, "c", &[2]));
    commit(&mut other, |tx| assert_eq!(read(tx, &store, "c"), Some(vec![2])));
    assert_eq!(engine.statistics().epochs.oldest_pin, None);
}
