//! What is concluded from keys that were deleted, and from layers that go while they are scanned.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::*;
use ensilo_txn::{Abort, AbortReason, Direction, Engine, Read, Session, Store, Worker, Write};

/// The keys that a scan shows. After the first of them `meanwhile` is called.
fn scan_while(
    tx: &mut impl Read<Store = Store>,
    store: &Store,
    direction: Direction,
    mut meanwhile: impl FnMut(),
) -> Result<Vec<String>, Abort> {
    let mut seen = Vec::new();
    tx.scan(
        store,
        (Bound::Unbounded, Bound::Unbounded),
        direction,
        |key, _| String::from_utf8_lossy(key).into_owned(),
        |_, key| {
            if seen.is_empty() {
                meanwhile();
            }
            seen.push(key);
            ControlFlow::Continue(())
        },
    )?;
    Ok(seen)
}

/// Deletes keys, and takes them out of the tree.
fn take_out(worker: &mut Worker, store: &Store, keys: &[impl AsRef<str>]) {
    commit(worker, |tx| keys.iter().for_each(|key| delete(tx, store, key.as_ref())));
    (0..keys.len()).for_each(|_| worker.begin().abort());
}

fn layer_goes_while_scanned(direction: Direction) {
    let (engine, store) = engine_and_store();
    let (mut writer, mut reader) = (engine.session(), engine.session());
    let keys = ["a", "bbbbbbbb1", "bbbbbbbb2", "c"];
    commit(&mut writer, |tx| keys.iter().for_each(|key| assert!(insert(tx, &store, key, &[1]))));
    pass_snapshot(&engine);
    let mut snapshot = reader.begin_snapshot();
    let take_layer_out = || take_out(&mut writer, &store, &keys[1..3]);
    let mut seen = scan_while(&mut snapshot, &store, direction, take_layer_out).unwrap();
    seen.sort();
    assert_eq!(seen, keys);
    assert_eq!(read(&mut snapshot, &store, "bbbbbbbb1"), Some(vec![1]));
}

#[test]
fn a_snapshot_scan_shows_the_keys_of_a_layer_that_goes_meanwhile() {
    layer_goes_while_scanned(Direction::Forward);
}

#[test]
fn a_reverse_snapshot_scan_shows_the_keys_of_a_layer_that_goes_meanwhile() {
    layer_goes_while_scanned(Direction::Reverse);
}

/// The layer has two border nodes: it goes when the scan is in the first.
#[test]
fn a_snapshot_scan_shows_the_rest_of_a_layer_that_goes_meanwhile() {
    let (engine, store) = engine_and_store();
    let (mut writer, mut reader) = (engine.session(), engine.session());
    let keys: Vec<String> = (0..40).map(|i| format!("bbbbbbbb{i:02}")).collect();
    commit(&mut writer, |tx| keys.iter().for_each(|key| assert!(insert(tx, &store, key, &[1]))));
    pass_snapshot(&engine);
    let mut snapshot = reader.begin_snapshot();
    let take_all_out = || take_out(&mut writer, &store, &keys);
    assert_eq!(scan_while(&mut snapshot, &store, Direction::Forward, take_all_out).unwrap(), keys);
}

#[test]
fn a_snapshot_that_misses_a_key_that_came_back_later_knows_of_its_deletion() {
    let (engine, store) = engine_and_store();
    let (mut writer, mut reader) = (engine.session(), engine.session());
    commit(&mut writer, |tx| assert!(insert(tx, &store, "a", &[1])));
    pass_snapshot(&engine);
    let mut tx = writer.begin();
    delete(&mut tx, &store, "a");
    let deleted = tx.commit().unwrap();
    for _ in 0..5 {
        pass_snapshot(&engine);
        writer.collect();
    }
    {
        let mut snapshot = reader.begin_snapshot();
        assert_eq!(read(&mut snapshot, &store, "a"), None);
        assert!(snapshot.largest_epoch_seen() >= deleted.epoch, "missing");
    }
    commit(&mut writer, |tx| assert!(insert(tx, &store, "a", &[2])));
    let mut snapshot = reader.begin_snapshot();
    assert_eq!(read(&mut snapshot, &store, "a"), None);
    assert!(snapshot.largest_epoch_seen() >= deleted.epoch, "came back: {:?}", snapshot.largest_epoch_seen());
}

#[test]
fn what_a_single_read_has_seen_is_not_seen_by_the_next_transaction() {
    let (engine, store) = engine_and_store();
    let (mut writer, mut reader) = (engine.session(), engine.session());
    commit(&mut writer, |tx| assert!(insert(tx, &store, "a", &[1]) && insert(tx, &store, "old", &[1])));
    pass_snapshot(&engine);
    commit(&mut writer, |tx| delete(tx, &store, "a"));
    let mut tx = writer.begin();
    assert!(insert(&mut tx, &store, "a", &[2]));
    let mut single = reader.begin();
    assert_eq!(read(&mut single, &store, "a"), None);
    let missed = single.commit().unwrap();
    let mut single = reader.begin();
    assert_eq!(read(&mut single, &store, "old"), Some(vec![1]));
    let old = single.commit().unwrap();
    assert!(old.tid < missed.tid, "{old:?} {missed:?}");
}

/// At every moment one of `x` and `y` is there, and with `x` its layer goes.
#[test]
fn a_range_that_is_never_empty_is_not_seen_empty() {
    let (engine, store) = engine_and_store();
    let [x, other, y] = ["bbbbbbbbx", "bbbbbbbbz", "bbbbbbbb"];
    let mut writer = engine.session();
    // The layer of `x` is made by the other key.
    commit(&mut writer, |tx| assert!(insert(tx, &store, x, &[1]) && insert(tx, &store, other, &[1])));
    commit(&mut writer, |tx| delete(tx, &store, other));
    let (is_over, until) = (AtomicBool::new(false), Instant::now() + Duration::from_secs(5));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut reader = engine.session();
                while !is_over.load(Ordering::Relaxed) {
                    let mut tx = reader.begin();
                    let rows = try_scan_all(&mut tx, &store, Direction::Forward);
                    if tx.commit().is_ok() && rows.is_ok_and(|rows| rows.is_empty()) {
                        is_over.store(true, Ordering::Relaxed);
                        panic!("a committed transaction saw neither key");
                    }
                }
            });
        }
        for round in 0.. {
            if is_over.load(Ordering::Relaxed) || Instant::now() > until {
                break;
            }
            commit(&mut writer, |tx| assert!(insert(tx, &store, y, &[1])));
            commit(&mut writer, |tx| delete(tx, &store, x));
            commit(&mut writer, |tx| {
                assert!(insert(tx, &store, x, &[1]) && insert(tx, &store, other, &[1]));
            });
            commit(&mut writer, |tx| delete(tx, &store, other));
            commit(&mut writer, |tx| delete(tx, &store, y));
            if round % 64 == 0 {
                engine.epochs().advance();
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn an_own_write_in_a_layer_that_goes_is_seen_or_the_attempt_ends() {
    let (engine, store) = engine_and_store();
    let (mut writer, mut reader) = (engine.session(), engine.session());
    let keys = ["a", "bbbbbbbb1", "bbbbbbbb2", "c"];
    commit(&mut writer, |tx| keys.iter().for_each(|key| assert!(insert(tx, &store, key, &[1]))));
    pass_snapshot(&engine);
    let mut tx = reader.begin();
    put(&mut tx, &store, "bbbbbbbb1", &[7]);
    let take_layer_out = || take_out(&mut writer, &store, &keys[1..3]);
    let outcome = scan_while(&mut tx, &store, Direction::Forward, take_layer_out);
    assert!(outcome.is_err() || outcome.is_ok_and(|seen| seen.contains(&"bbbbbbbb1".to_owned())));
}

#[test]
fn a_snapshot_that_scans_deleted_rows_notices_that_it_has_grown_too_old() {
    for is_deleted in [false, true] {
        let (engine, store) = engine_and_store();
        let (mut writer, mut reader) = (engine.session(), engine.session());
        let keys: Vec<_> = (0..2000).map(|number| format!("{number:06}")).collect();
        commit(&mut writer, |tx| keys.iter().for_each(|key| assert!(insert(tx, &store, key, &[1]))));
        pass_snapshot(&engine);
        let mut snapshot = reader.begin_snapshot();
        if is_deleted {
            take_out(&mut writer, &store, &keys);
        }
        let mut rows = 0;
        let outcome = snapshot.scan(
            &store,
            (Bound::Unbounded, Bound::Unbounded),
            Direction::Forward,
            |_, _| (),
            |_, ()| {
                rows += 1;
                engine.epochs().advance();
                ControlFlow::Continue(())
            },
        );
        assert_eq!(outcome.unwrap_err().reason(), AbortReason::SnapshotTooOld, "{is_deleted}");
        assert!(rows < keys.len());
    }
}
