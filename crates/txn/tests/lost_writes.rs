//! A transaction whose writes another one has overtaken: it is told so by the next statement that would show the other's row in their place.

mod common;

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use common::*;
use ensilo_txn::{
    Abort, AbortReason, Direction, Engine, Read, Session, Silo, Standard, Store, Transaction, Worker, Write,
};

type Tx<'w> = Transaction<'w, Standard>;

/// A row that does not fit where a row of one word lies, so that it gets a record of its own.
const LARGE: [u64; 64] = [7; 64];

type Statement = fn(&mut Tx<'_>, &Store) -> Result<(), Abort>;

/// The ways to come upon key "a".
const STATEMENTS: [Statement; 4] = [
    |tx, store| try_read(tx, store, "a").map(drop),
    |tx, store| tx.find(store, b"a").map(drop),
    |tx, store| tx.insert(store, b"a", &[5], 8).map(drop),
    |tx, store| {
        let all = (Bound::Unbounded, Bound::Unbounded);
        tx.scan(store, all, Direction::Forward, |_, _| (), |_, ()| ControlFlow::Continue(()))
    },
];

/// A store in which "a" and some other keys have rows of one word, and two workers.
fn with_rows() -> (Arc<Silo>, Arc<Store>, Worker, Worker) {
    let (engine, store) = engine_and_store();
    let (mut one, other) = (engine.session(), engine.session());
    commit(&mut one, |tx| {
        assert!(insert(tx, &store, "a", &[1]));
        (0..30).for_each(|number| assert!(insert(tx, &store, &format!("other{number}"), &[1])));
    });
    engine.epochs().advance();
    (engine, store, one, other)
}

/// Lets `write` change "a" and some other rows in a transaction, then `overtake` do its worst, and expects every statement to end the attempt.
fn assert_each_statement_aborts(
    write: impl Fn(&mut Tx<'_>, &Store),
    overtake: impl Fn(&Silo, &Store, &mut Worker),
) {
    for statement in STATEMENTS {
        for others in [0, 30] {
            let (engine, store, mut one, mut other) = with_rows();
            let mut tx = one.begin();
            write(&mut tx, &store);
            (0..others).for_each(|number| put(&mut tx, &store, &format!("other{number}"), &[2]));
            // Nothing has happened: what is written is seen.
            assert_eq!(read(&mut tx, &store, "other29"), Some(vec![1 + u64::from(others == 30)]));
            overtake(&engine, &store, &mut other);
            let outcome = statement(&mut tx, &store);
            assert_eq!(outcome.map_err(|abort| abort.reason()), Err(AbortReason::ReadValidation));
            assert!(tx.commit().is_err());
        }
    }
}

/// Takes what `worker` has deleted out of the tree.
fn collect(engine: &Silo, worker: &mut Worker) {
    for _ in 0..3 {
        pass_snapshot(engine);
        worker.collect();
    }
}

#[test]
fn a_row_that_another_has_moved() {
    assert_each_statement_aborts(
        |tx, store| put(tx, store, "a", &[2]),
        |_, store, other| commit(other, |tx| put(tx, store, "a", &LARGE)),
    );
}

#[test]
fn an_own_deletion_whose_row_another_has_moved() {
    assert_each_statement_aborts(
        |tx, store| delete(tx, store, "a"),
        |_, store, other| commit(other, |tx| put(tx, store, "a", &LARGE)),
    );
}

#[test]
fn a_row_that_another_has_deleted_and_that_has_left_the_tree() {
    assert_each_statement_aborts(
        |tx, store| put(tx, store, "a", &[2]),
        |engine, store, other| {
            commit(other, |tx| delete(tx, store, "a"));
            collect(engine, other);
        },
    );
}

#[test]
fn a_row_that_another_has_deleted_and_that_was_inserted_anew() {
    assert_each_statement_aborts(
        |tx, store| put(tx, store, "a", &[2]),
        |engine, store, other| {
            commit(other, |tx| delete(tx, store, "a"));
            collect(engine, other);
            commit(other, |tx| assert!(insert(tx, store, "a", &[3])));
        },
    );
}

#[test]
fn an_insert_over_a_deleted_row_that_has_left_the_tree() {
    for statement in STATEMENTS {
        let (engine, store, mut one, mut other) = with_rows();
        commit(&mut other, |tx| delete(tx, &store, "a"));
        // Ripe from the next collection on.
        pass_snapshot(&engine);
        pass_snapshot(&engine);
        let mut tx = one.begin();
        assert!(insert(&mut tx, &store, "a", &[2]));
        assert_eq!(read(&mut tx, &store, "a"), Some(vec![2]));
        other.collect();
        let outcome = statement(&mut tx, &store);
        assert_eq!(outcome.map_err(|abort| abort.reason()), Err(AbortReason::ReadValidation));
        assert!(tx.commit().is_err());
    }
}

#[test]
fn rows_that_others_have_changed_are_read_by_who_has_not_written_them() {
    let (_, store, mut one, mut other) = with_rows();
    let mut tx = one.begin();
    (0..20).for_each(|number| put(&mut tx, &store, &format!("other{number}"), &[2]));
    commit(&mut other, |tx| {
        put(tx, &store, "a", &LARGE);
        put(tx, &store, "other20", &LARGE);
    });
    assert_eq!(read(&mut tx, &store, "a").unwrap(), LARGE);
    assert_eq!(scan_all(&mut tx, &store, Direction::Forward).len(), 31);
    assert_eq!(read(&mut tx, &store, "other19"), Some(vec![2]));
    assert_eq!(read(&mut tx, &store, "missing"), None);
    tx.commit().unwrap();
}
