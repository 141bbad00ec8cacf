//! Prepared transactions: what stays as it is until their decision, and what goes on beside them.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::ops::{Bound, ControlFlow};
use std::path::Path;
use std::sync::Arc;

use common::*;
use ensilo_disk::Disk;
use ensilo_log::{DatabaseId, Log, LogOptions, NewGeneration, OpeningId};
use ensilo_test_disk::SimulatedDisk;
use ensilo_txn::{
    Abort, AbortReason, Direction, Engine, KeyRange, Prepared, Read, Session, Silo, Standard, Store, TableId,
    Transaction, Worker, Write,
};

type Tx<'w> = Transaction<'w, Standard>;

/// Rows, each with its number as the only word.
fn loaded(rows: &[&str]) -> (Arc<Silo>, Arc<Store>, Worker, Worker) {
    let (engine, store) = engine_and_store();
    let (mut one, other) = (engine.session(), engine.session());
    commit(&mut one, |tx| {
        for (number, key) in (1..).zip(rows) {
            assert!(insert(tx, &store, key, &[number]));
        }
    });
    pass_snapshot(&engine);
    (engine, store, one, other)
}

/// What becomes of a transaction that does this.
fn attempt(worker: &mut Worker, body: impl FnOnce(&mut Tx<'_>) -> Result<(), Abort>) -> Result<(), Abort> {
    let mut tx = worker.begin();
    body(&mut tx)?;
    tx.commit().map(drop)
}

fn try_put(tx: &mut Tx<'_>, store: &Store, key: &str, row: &[u64]) -> Result<(), Abort> {
    let found = tx.find(store, key.as_bytes())?.unwrap();
    tx.put(found, row, row.len() * 8)
}

fn try_insert(tx: &mut Tx<'_>, store: &Store, key: &str) -> Result<(), Abort> {
    assert!(tx.insert(store, key.as_bytes(), &[9], 8)?);
    Ok(())
}

fn try_delete(tx: &mut Tx<'_>, store: &Store, key: &str) -> Result<(), Abort> {
    let found = tx.find(store, key.as_bytes())?.unwrap();
    tx.delete(found)
}

fn is_refused(outcome: Result<(), Abort>, reason: AbortReason, key: &str) {
    let abort = outcome.unwrap_err();
    assert_eq!((abort.reason(), abort.table(), abort.key()), (reason, TableId(1), key.as_bytes()));
    assert!(abort.is_retryable());
}

fn rows(worker: &mut Worker, store: &Store) -> Vec<(String, u64)> {
    commit(worker, |tx| scan_all(tx, store, Direction::Forward))
}

#[test]
fn the_decision_to_commit_makes_the_writes_visible_at_once() {
    let (_engine, store, mut one, mut other) = loaded(&["a", "b", "c"]);
    let mut tx = one.begin();
    put(&mut tx, &store, "a", &[10]);
    put(&mut tx, &store, "b", &[20, 21, 22, 23, 24, 25, 26, 27, 28, 29]);
    delete(&mut tx, &store, "c");
    insert(&mut tx, &store, "d", &[40]);
    insert(&mut tx, &store, "gone", &[50]);
    delete(&mut tx, &store, "gone");
    assert_eq!(read(&mut tx, &store, "d"), Some(vec![40]), "its own insert");
    let prepared = tx.prepare().unwrap();
    let committed = prepared.commit().unwrap();
    let of = |key: &str, word| (key.to_string(), word);
    assert_eq!(rows(&mut other, &store), [of("a", 10), of("b", 20), of("d", 40)]);
    assert_eq!(committed.tid.epoch(), committed.epoch);
    assert_eq!(rows(&mut one, &store).len(), 3, "the worker goes on");
}

#[test]
fn the_decision_to_abort_leaves_nothing() {
    for is_dropped in [false, true] {
        let (engine, store, mut one, mut other) = loaded(&["a", "b"]);
        let before = rows(&mut other, &store);
        let mut tx = one.begin();
        put(&mut tx, &store, "a", &[10]);
        delete(&mut tx, &store, "b");
        insert(&mut tx, &store, "c", &[40]);
        let prepared = tx.prepare().unwrap();
        if is_dropped {
            drop(prepared)
        } else {
            prepared.abort()
        }
        assert_eq!(rows(&mut other, &store), before);
        commit(&mut other, |tx| {
            put(tx, &store, "a", &[11]);
            put(tx, &store, "b", &[12]);
            assert!(insert(tx, &store, "c", &[13]));
        });
        assert_eq!(engine.statistics().transactions.aborts[AbortReason::User.index()], 1);
    }
}

#[test]
fn a_vote_to_abort_leaves_nothing() {
    let (_engine, store, mut one, mut other) = loaded(&["a", "b"]);
    let mut tx = one.begin();
    assert_eq!(read(&mut tx, &store, "a"), Some(vec![1]));
    put(&mut tx, &store, "b", &[20]);
    insert(&mut tx, &store, "c", &[30]);
    commit(&mut other, |tx| put(tx, &store, "a", &[11]));
    assert_eq!(tx.prepare().unwrap_err().reason(), AbortReason::ReadValidation);
    commit(&mut other, |tx| {
        put(tx, &store, "a", &[12]);
        put(tx, &store, "b", &[21]);
        assert!(insert(tx, &store, "c", &[31]));
    });
}

#[test]
fn who_meets_its_lock_is_told_at_once_and_where() {
    let (engine, store, mut one, mut other) = loaded(&["a", "b"]);
    let mut late = engine.session();
    let mut reader = late.begin();
    assert_eq!(read(&mut reader, &store, "a"), Some(vec![1]));
    assert_eq!(read(&mut reader, &store, "b"), Some(vec![2]));
    let mut tx = one.begin();
    put(&mut tx, &store, "a", &[10]);
    insert(&mut tx, &store, "c", &[30]);
    let prepared = tx.prepare().unwrap();
    let reads = |tx: &mut Tx<'_>, key: &str| try_read(tx, &store, key).map(drop);
    is_refused(attempt(&mut other, |tx| reads(tx, "a")), AbortReason::PreparedLock, "a");
    is_refused(attempt(&mut other, |tx| reads(tx, "c")), AbortReason::PreparedLock, "c");
    is_refused(attempt(&mut other, |tx| try_insert(tx, &store, "c")), AbortReason::PreparedLock, "c");
    let scans = |tx: &mut Tx<'_>| {
        let all = (Bound::Unbounded, Bound::Unbounded);
        tx.scan(&store, all, Direction::Forward, |_, _| (), |_, ()| ControlFlow::Continue(()))
    };
    is_refused(attempt(&mut other, scans), AbortReason::PreparedLock, "a");
    is_refused(reader.commit().map(drop), AbortReason::PreparedLock, "a");
    attempt(&mut other, |tx| reads(tx, "b")).unwrap();
    prepared.commit().unwrap();
    attempt(&mut other, |tx| reads(tx, "a")).unwrap();
    assert_eq!(engine.statistics().transactions.aborts[AbortReason::PreparedLock.index()], 5);
}

#[test]
fn what_it_has_read_is_not_overwritten_before_the_decision() {
    let (engine, store, mut one, mut other) = loaded(&["a", "b", "c"]);
    let mut tx = one.begin();
    assert_eq!(read(&mut tx, &store, "a"), Some(vec![1]));
    put(&mut tx, &store, "b", &[20]);
    let prepared = tx.prepare().unwrap();
    for _ in 0..2 {
        let puts = |tx: &mut Tx<'_>| try_put(tx, &store, "a", &[10]);
        is_refused(attempt(&mut other, puts), AbortReason::PreparedRead, "a");
        let grows = |tx: &mut Tx<'_>| try_put(tx, &store, "a", &[10; 50]);
        is_refused(attempt(&mut other, grows), AbortReason::PreparedRead, "a");
        let deletes = |tx: &mut Tx<'_>| try_delete(tx, &store, "a");
        is_refused(attempt(&mut other, deletes), AbortReason::PreparedRead, "a");
        pass_snapshot(&engine);
    }
    commit(&mut other, |tx| put(tx, &store, "c", &[30]));
    commit(&mut other, |tx| assert_eq!(read(tx, &store, "a"), Some(vec![1])));
    prepared.commit().unwrap();
    commit(&mut other, |tx| put(tx, &store, "a", &[10]));
    assert_eq!(engine.statistics().transactions.aborts[AbortReason::PreparedRead.index()], 6);
}

#[test]
fn a_range_that_it_has_read_gets_no_keys_before_the_decision() {
    let (_engine, store, mut one, mut other) = loaded(&["b", "d"]);
    let mut tx = one.begin();
    assert_eq!(scan_all(&mut tx, &store, Direction::Forward).len(), 2);
    let prepared = tx.prepare().unwrap();
    for key in ["a", "c", "e", "d-and-longer-than-a-slice"] {
        is_refused(attempt(&mut other, |tx| try_insert(tx, &store, key)), AbortReason::PreparedRead, key);
    }
    prepared.commit().unwrap();
    for key in ["a", "c", "e", "d-and-longer-than-a-slice"] {
        attempt(&mut other, |tx| try_insert(tx, &store, key)).unwrap();
    }
}

#[test]
fn a_key_that_it_has_missed_does_not_come_before_the_decision() {
    let long = ["prefix-1 in one slice", "prefix-1 in one slice, too"];
    for (key, rows) in [("c", &["b", "d"][..]), (long[1], &long[..1]), (long[0], &["b"][..])] {
        let (_engine, store, mut one, mut other) = loaded(rows);
        let mut tx = one.begin();
        assert_eq!(read(&mut tx, &store, key), None);
        let prepared = tx.prepare().unwrap();
        let inserts = |tx: &mut Tx<'_>| try_insert(tx, &store, key);
        is_refused(attempt(&mut other, inserts), AbortReason::PreparedRead, key);
        prepared.abort();
        attempt(&mut other, inserts).unwrap();
    }
}

/// A deleted record that was read is not unhooked: an insert of its key would make another record.
#[test]
fn a_deleted_record_that_it_has_read_stays_in_the_tree() {
    let (engine, store, mut one, mut other) = loaded(&["a", "b"]);
    commit(&mut other, |tx| delete(tx, &store, "a"));
    let mut tx = one.begin();
    assert_eq!(read(&mut tx, &store, "a"), None);
    let prepared = tx.prepare().unwrap();
    for _ in 0..3 {
        pass_snapshot(&engine);
        other.collect();
        let inserts = |tx: &mut Tx<'_>| try_insert(tx, &store, "a");
        is_refused(attempt(&mut other, inserts), AbortReason::PreparedRead, "a");
        assert_eq!(engine.statistics().transactions.deleted_records, 1);
    }
    prepared.commit().unwrap();
    pass_snapshot(&engine);
    other.collect();
    assert_eq!(engine.statistics().transactions.deleted_records, 0);
    commit(&mut other, |tx| assert!(insert(tx, &store, "a", &[7])));
}

/// A node that was read does not become empty and leave: its range would go to another one.
#[test]
fn a_node_that_it_has_read_does_not_leave_the_tree() {
    let names: Vec<String> = (0..60).map(|number| format!("key{number:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (engine, store, mut one, mut other) = loaded(&names);
    commit(&mut other, |tx| (15..60).for_each(|number| delete(tx, &store, names[number])));
    let mut tx = one.begin();
    let range = (Bound::Included(&b"key020x"[..]), Bound::Excluded(&b"key021"[..]));
    tx.scan(&store, range, Direction::Forward, |_, _| (), |_, ()| ControlFlow::Continue(())).unwrap();
    let prepared = tx.prepare().unwrap();
    for _ in 0..3 {
        pass_snapshot(&engine);
        other.collect();
    }
    let waiting = engine.statistics().transactions.deleted_records;
    assert!((1..45).contains(&waiting), "those of other nodes go: {waiting} wait");
    let inserts = |tx: &mut Tx<'_>| try_insert(tx, &store, "key020y");
    is_refused(attempt(&mut other, inserts), AbortReason::PreparedRead, "key020y");
    prepared.commit().unwrap();
    pass_snapshot(&engine);
    other.collect();
    assert_eq!(engine.statistics().transactions.deleted_records, 0);
    attempt(&mut other, inserts).unwrap();
}

/// The maker of a placeholder does not wait for the decision of who has read it, locked it, or read its node; and it goes in the end.
#[test]
fn a_placeholder_that_stands_in_its_way_is_withdrawn_by_who_ends() {
    for is_committed in [false, true] {
        for way in ["read", "missed beside", "inserted over", "replaced"] {
            let (_engine, store, mut one, mut other) = loaded(&["a"]);
            let mut maker = other.begin();
            assert!(insert(&mut maker, &store, "k", &[9]));
            let mut tx = one.begin();
            match way {
                "read" => assert_eq!(read(&mut tx, &store, "k"), None),
                "missed beside" => assert_eq!(read(&mut tx, &store, "kk"), None),
                "inserted over" => assert!(insert(&mut tx, &store, "k", &[8])),
                _ => assert!(insert(&mut tx, &store, "k", &[8; 100])),
            }
            let prepared = tx.prepare().unwrap();
            maker.abort();
            let again = attempt(&mut other, |tx| try_insert(tx, &store, "k")).unwrap_err().reason();
            assert!(
                [AbortReason::PreparedRead, AbortReason::PreparedLock].contains(&again),
                "{way}: {again}"
            );
            if is_committed {
                _ = prepared.commit().unwrap()
            } else {
                prepared.abort()
            }
            let is_there = is_committed && ["inserted over", "replaced"].contains(&way);
            assert_eq!(rows(&mut other, &store).len(), 1 + usize::from(is_there), "{way}");
            if !is_there {
                attempt(&mut other, |tx| try_insert(tx, &store, "k")).unwrap();
            }
        }
    }
}

#[test]
fn snapshots_read_the_old_version_and_become_newer_beside_it() {
    let (engine, store, mut one, mut other) = loaded(&["a", "b", "c"]);
    let before = rows(&mut other, &store);
    let mut tx = one.begin();
    put(&mut tx, &store, "a", &[10]);
    delete(&mut tx, &store, "b");
    insert(&mut tx, &store, "d", &[40]);
    let prepared = tx.prepare().unwrap();
    let old = engine.epochs().snapshot_epoch();
    pass_snapshot(&engine);
    assert!(engine.epochs().snapshot_epoch() > old);
    let mut snapshot = other.begin_snapshot();
    assert_eq!(scan_all(&mut snapshot, &store, Direction::Forward), before);
    prepared.commit().unwrap();
    assert_eq!(scan_all(&mut snapshot, &store, Direction::Forward), before, "it stays what it is");
    drop(snapshot);
    pass_snapshot(&engine);
    let mut snapshot = other.begin_snapshot();
    let of = |key: &str, word| (key.to_string(), word);
    assert_eq!(scan_all(&mut snapshot, &store, Direction::Forward), [of("a", 10), of("c", 3), of("d", 40)]);
}

#[test]
fn the_walk_of_a_checkpoint_goes_on_beside_it() {
    let (engine, store, mut one, _other) = loaded(&["a", "b", "c"]);
    let mut tx = one.begin();
    put(&mut tx, &store, "a", &[10]);
    delete(&mut tx, &store, "b");
    insert(&mut tx, &store, "d", &[40]);
    let prepared = tx.prepare().unwrap();
    let mut walked = Vec::new();
    let before = engine.epochs().complete_frontier();
    let each = |row: ensilo_txn::StoredRow<'_>| {
        walked.push((String::from_utf8(row.key.to_vec()).unwrap(), row.words[0]));
        ControlFlow::Continue(())
    };
    let walk = engine.walk(&store, &KeyRange::ALL, before, each, || ControlFlow::Continue(()));
    assert!(walk.is_continue());
    assert_eq!(walked, [("a".into(), 1), ("b".into(), 2), ("c".into(), 3)]);
    assert!(prepared.commit().unwrap().epoch >= before, "the log has what the walk has not");
}

#[test]
fn reclamation_goes_on_beside_it() {
    let (engine, store, mut one, mut other) = loaded(&["a", "b"]);
    let mut tx = one.begin();
    assert_eq!(read(&mut tx, &store, "a"), Some(vec![1]));
    put(&mut tx, &store, "a", &[10]);
    let prepared = tx.prepare().unwrap();
    for round in 0..5 {
        commit(&mut other, |tx| put(tx, &store, "b", &vec![round; 1 + 20 * round as usize]));
        pass_snapshot(&engine);
    }
    for _ in 0..3 {
        pass_snapshot(&engine);
        other.collect();
    }
    let statistics = engine.statistics();
    assert_eq!((statistics.transactions.versions, statistics.epochs.retired_objects), (0, 0));
    assert_eq!((statistics.epochs.oldest_pin, statistics.epochs.oldest_commit), (None, None));
    prepared.commit().unwrap();
}

#[test]
fn a_dropped_store_stays_until_the_decision() {
    for is_committed in [false, true] {
        let (engine, store, mut one, mut other) = loaded(&["a", "b"]);
        let mut tx = one.begin();
        assert_eq!(read(&mut tx, &store, "a"), Some(vec![1]));
        put(&mut tx, &store, "b", &[20; 100]);
        insert(&mut tx, &store, "c", &[30]);
        let prepared = tx.prepare().unwrap();
        assert!(engine.drop_store(TableId(1)));
        for _ in 0..3 {
            pass_snapshot(&engine);
            engine.collect_orphaned();
        }
        if is_committed {
            _ = prepared.commit().unwrap()
        } else {
            prepared.abort()
        }
        drop(store);
        for _ in 0..6 {
            pass_snapshot(&engine);
            one.collect();
            other.collect();
            engine.collect_orphaned();
        }
        let memory = engine.statistics().memory;
        assert_eq!(memory.of(ensilo_txn::AccountId(1)), 0, "{memory:?}");
    }
}

#[test]
fn two_that_read_what_the_other_writes_are_not_both_prepared() {
    let (_engine, store, mut one, mut other) = loaded(&["a", "b"]);
    let (mut first, mut second) = (one.begin(), other.begin());
    for tx in [&mut first, &mut second] {
        assert_eq!(read(tx, &store, "a"), Some(vec![1]));
        assert_eq!(read(tx, &store, "b"), Some(vec![2]));
    }
    put(&mut first, &store, "a", &[10]);
    put(&mut second, &store, "b", &[20]);
    let prepared = first.prepare().unwrap();
    is_refused(second.prepare().map(drop), AbortReason::PreparedRead, "b");
    prepared.commit().unwrap();
}

#[test]
fn two_that_read_the_same_are_prepared_side_by_side() {
    let (engine, store, mut one, mut other) = loaded(&["a"]);
    let mut third = engine.session();
    let prepared = [&mut one, &mut other].map(|worker| {
        let mut tx = worker.begin();
        assert_eq!(scan_all(&mut tx, &store, Direction::Forward).len(), 1);
        tx.prepare().unwrap()
    });
    for prepared in prepared {
        let puts = |tx: &mut Tx<'_>| try_put(tx, &store, "a", &[10]);
        is_refused(attempt(&mut third, puts), AbortReason::PreparedRead, "a");
        prepared.commit().unwrap();
    }
    attempt(&mut third, |tx| try_put(tx, &store, "a", &[10])).unwrap();
}

/// The decision may come on another thread.
#[test]
fn it_waits_on_any_thread() {
    let (_engine, store, mut one, mut other) = loaded(&["a"]);
    let mut tx = one.begin();
    put(&mut tx, &store, "a", &[10]);
    let prepared = tx.prepare().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || prepared.commit().unwrap());
    });
    commit(&mut other, |tx| assert_eq!(read(tx, &store, "a"), Some(vec![10])));
}

/// A log on a simulated disk, which moves the epochs on.
fn start_log(engine: &Silo, disk: &Arc<SimulatedDisk>) -> Arc<Log> {
    let disk = Arc::clone(disk) as Arc<dyn Disk>;
    let options = LogOptions { file_bytes: 1 << 20, ..LogOptions::default() };
    let first = engine.epochs().global_epoch();
    let directories = [Path::new("/log").to_path_buf()];
    let (database, opening) = (DatabaseId(7), OpeningId(8));
    let files =
        NewGeneration::create(&*disk, database, opening, 1, first, &directories, options.first_file_bytes());
    let log = Log::start(disk, files.unwrap(), Arc::clone(engine.epochs()), &options).unwrap();
    engine.start_log(Arc::clone(&log));
    log
}

#[test]
fn the_durable_epoch_goes_on_beside_it_and_then_covers_it() {
    let (engine, store) = engine_and_store();
    let log = start_log(&engine, &Arc::new(SimulatedDisk::new()));
    let (mut one, mut other) = (engine.session(), engine.session());
    commit(&mut one, |tx| ["a", "b"].map(|key| insert(tx, &store, key, &[1; 20])));
    let mut tx = one.begin();
    let found = tx.find(&store, b"a").unwrap().unwrap();
    tx.patch(found, &[(0, 10)]).unwrap();
    let prepared = tx.prepare().unwrap();
    for round in 0..5 {
        let mut tx = other.begin();
        put(&mut tx, &store, "b", &[round; 20]);
        log.wait_durable(tx.commit().unwrap().epoch).unwrap();
    }
    // A checkpoint that begins meanwhile asks for whole rows.
    log.set_full_rows_before(engine.epochs().global_epoch());
    log.wait_durable(prepared.commit().unwrap().epoch).unwrap();
    log.close().unwrap();
}

#[test]
fn a_transaction_that_only_reads_votes_without_a_log() {
    let (engine, store) = engine_and_store();
    let log = start_log(&engine, &Arc::new(SimulatedDisk::new()));
    let mut one = engine.session();
    commit(&mut one, |tx| assert!(insert(tx, &store, "a", &[1])));
    log.close().unwrap();
    let mut tx = one.begin();
    assert_eq!(read(&mut tx, &store, "a"), Some(vec![1]));
    assert_eq!(read(&mut tx, &store, "b"), None);
    tx.prepare().unwrap().commit().unwrap();
    let mut tx = one.begin();
    put(&mut tx, &store, "a", &[2]);
    assert_eq!(tx.prepare().unwrap_err().reason(), AbortReason::LogFailed);
}

#[test]
fn a_log_that_is_closed_before_the_decision_makes_it_an_abort() {
    let (engine, store) = engine_and_store();
    let log = start_log(&engine, &Arc::new(SimulatedDisk::new()));
    let (mut one, mut other) = (engine.session(), engine.session());
    commit(&mut one, |tx| assert!(insert(tx, &store, "a", &[1])));
    let mut tx = one.begin();
    put(&mut tx, &store, "a", &[10]);
    let prepared = tx.prepare().unwrap();
    log.close().unwrap();
    assert_eq!(prepared.commit().unwrap_err().reason(), AbortReason::LogFailed);
    let mut tx = other.begin();
    assert_eq!(read(&mut tx, &store, "a"), Some(vec![1]));
    tx.commit().unwrap();
}
