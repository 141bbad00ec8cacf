//! What the seam demands of every engine, where tests of tables do not see it.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ensilo_engine::{Committed, Engine, EngineOptions, Read, Session, TableId, Tid, Write};
use ensilo_epoch::Epoch;
use ensilo_map_engine::{MapEngine, MapSession, MapStore};

/// An engine with a row under each of the keys `a` and `b`, of one word, and how the last of the two has committed.
fn with_rows() -> (Arc<MapEngine>, Arc<MapStore>, MapSession, Committed) {
    let engine = MapEngine::start(EngineOptions::default());
    let store = engine.new_store(TableId(1)).unwrap();
    let mut session = engine.session();
    let mut insert = |key: &[u8]| {
        let mut tx = session.begin();
        assert!(tx.insert(&store, key, &[7], 8).unwrap());
        tx.commit().unwrap()
    };
    let (first, last) = (insert(b"a"), insert(b"b"));
    assert!(last.tid > first.tid);
    (engine, store, session, last)
}

#[test]
fn a_transaction_that_only_reads_commits_with_the_largest_tid_that_it_read() {
    let (_engine, store, mut session, last) = with_rows();
    let mut reading = |read: &dyn Fn(&mut ensilo_map_engine::MapTransaction<'_>)| {
        let mut tx = session.begin();
        read(&mut tx);
        tx.commit().unwrap()
    };
    let both = reading(&|tx| {
        for key in [b"b", b"a"] {
            assert_eq!(tx.get(&store, key, |row| row.word(0)).unwrap(), Some(7));
        }
    });
    assert_eq!(both, last);
    let scanned = reading(&|tx| {
        let bounds = (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
        let each = |_, ()| std::ops::ControlFlow::Continue(());
        tx.scan(&store, bounds, ensilo_engine::Direction::Forward, |_, _| (), each).unwrap();
    });
    assert_eq!(scanned, last);
    let nothing = reading(&|tx| assert!(tx.find(&store, b"c").unwrap().is_none()));
    assert_eq!(nothing, Committed { tid: Tid::ZERO, epoch: Epoch::default() });
}

#[test]
fn a_record_that_the_transaction_has_deleted_is_written_no_more() {
    let (_engine, store, mut session, _) = with_rows();
    for write in [
        |tx: &mut ensilo_map_engine::MapTransaction<'_>, found| tx.put(found, &[8], 8),
        |tx: &mut ensilo_map_engine::MapTransaction<'_>, found| tx.patch(found, &[(0, 8)]),
        |tx: &mut ensilo_map_engine::MapTransaction<'_>, found| tx.delete(found),
    ] {
        let mut tx = session.begin();
        let found = tx.find(&store, b"a").unwrap().unwrap();
        tx.delete(found).unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| write(&mut tx, found))).is_err());
        drop(tx);
    }
    let mut tx = session.begin();
    assert_eq!(tx.get(&store, b"a", |row| row.word(0)).unwrap(), Some(7));
    let found = tx.find(&store, b"a").unwrap().unwrap();
    tx.delete(found).unwrap();
    assert!(tx.insert(&store, b"a", &[9], 8).unwrap());
    let again = tx.find(&store, b"a").unwrap().unwrap();
    tx.put(again, &[10], 8).unwrap();
    tx.commit().unwrap();
}

#[test]
fn a_row_of_other_words_than_it_needs_is_refused() {
    let (_engine, store, mut session, _) = with_rows();
    let mut tx = session.begin();
    assert!(catch_unwind(AssertUnwindSafe(|| tx.insert(&store, b"c", &[1, 2], 8))).is_err());
}

#[test]
fn what_ended_sessions_have_counted_stays_and_they_go() {
    let (engine, store, mut session, _) = with_rows();
    for _ in 0..3 {
        let mut other = engine.session();
        let mut tx = other.begin();
        tx.find(&store, b"a").unwrap();
        tx.commit().unwrap();
        other.begin().abort();
    }
    let counted = engine.statistics().transactions;
    assert_eq!((counted.commits, counted.aborts_total()), (5, 3));
    let counters = session.counters();
    drop(session);
    assert_eq!(engine.statistics().transactions, counted);
    assert_eq!(Arc::strong_count(&counters), 1, "the engine has let go of it");
}
