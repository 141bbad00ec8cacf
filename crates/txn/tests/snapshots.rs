//! Snapshot transactions: a consistent point in the recent past, kept only as long as it is needed.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::*;
use ensilo_txn::{
    AbortReason, Allocator, Direction, Engine, GlobalTid, Session, Simple, Standard, TableId, Variant, Write,
};

#[test]
fn a_snapshot_shows_the_past_while_writers_go_on() {
    let (engine, store) = engine_and_store();
    let (mut writer, mut reader) = (engine.session(), engine.session());
    commit(&mut writer, |tx| {
        insert(tx, &store, "updated", &[1]);
        insert(tx, &store, "grown", &[1]);
        insert(tx, &store, "deleted", &[1]);
        insert(tx, &store, "reborn", &[1]);
    });
    pass_snapshot(&engine);
    let mut snapshot = reader.begin_snapshot();
    for round in 2..20 {
        commit(&mut writer, |tx| {
            put(tx, &store, "updated", &[round]);
            put(tx, &store, "grown", &vec![round; round as usize * 3]);
            if round % 2 == 0 {
                delete(tx, &store, "reborn");
            } else {
                insert(tx, &store, "reborn", &[round]);
            }
        });
        if round == 2 {
            commit(&mut writer, |tx| delete(tx, &store, "deleted"));
        }
        commit(&mut writer, |tx| assert!(insert(tx, &store, &format!("new {round}"), &[round])));
        for _ in 0..2 {
            engine.epochs().advance();
        }
        let expected = ["deleted", "grown", "reborn", "updated"].map(|key| (key.to_owned(), 1));
        assert_eq!(scan_all(&mut snapshot, &store, Direction::Forward), expected);
        for (key, _) in &expected {
            assert_eq!(read(&mut snapshot, &store, key), Some(vec![1]), "{key} in round {round}");
        }
        assert_eq!(read(&mut snapshot, &store, "new 2"), None);
    }
    drop(snapshot);
    pass_snapshot(&engine);
    let mut snapshot = reader.begin_snapshot();
    assert_eq!(read(&mut snapshot, &store, "updated"), Some(vec![19]));
    assert_eq!(read(&mut snapshot, &store, "deleted"), None);
    assert_eq!(read(&mut snapshot, &store, "reborn"), Some(vec![19]));
}

#[test]
fn versions_go_when_no_snapshot_needs_them() {
    let (engine, store) = engine_and_store();
    let mut worker = engine.session();
    commit(&mut worker, |tx| {
        for i in 0..50_u64 {
            insert(tx, &store, &format!("{i:02}"), &[i]);
        }
    });
    let mut most = 0;
    for _ in 0..20 {
        pass_snapshot(&engine);
        for i in 0..50_u64 {
            commit(&mut worker, |tx| put(tx, &store, &format!("{i:02}"), &[i + 1]));
        }
        most = most.max(engine.statistics().transactions.versions);
    }
    assert!((50..=100).contains(&most), "{most} versions were kept");
    commit(&mut worker, |tx| (0..50).for_each(|i| delete(tx, &store, &format!("{i:02}"))));
    assert_eq!(engine.statistics().transactions.deleted_records, 50);
    for _ in 0..10 {
        pass_snapshot(&engine);
        worker.collect();
    }
    let left = engine.statistics();
    assert_eq!((left.transactions.versions, left.transactions.deleted_records), (0, 0));
    assert_eq!(left.transactions.version_bytes, 0);
}

#[test]
fn one_overwrite_an_interval_is_enough_to_keep_the_interval() {
    let (engine, store) = engine_and_store();
    let (mut writer, mut reader) = (engine.session(), engine.session());
    commit(&mut writer, |tx| assert!(insert(tx, &store, "a", &[0])));
    pass_snapshot(&engine);
    for value in 1..200 {
        // Every commit in an epoch of its own: at each moment the snapshot shows the last value of an earlier interval.
        commit(&mut writer, |tx| put(tx, &store, "a", &[value]));
        engine.epochs().advance();
        let mut snapshot = reader.begin_snapshot();
        let seen = read(&mut snapshot, &store, "a").unwrap()[0];
        assert!(seen <= value && seen + 2 * EPOCHS_PER_SNAPSHOT >= value, "{seen} is seen at {value}");
        let again = read(&mut snapshot, &store, "a").unwrap()[0];
        assert_eq!(seen, again);
    }
}

#[test]
fn a_snapshot_that_grows_too_old_is_told_so() {
    let (engine, store) = engine_and_store();
    let mut worker = engine.session();
    commit(&mut worker, |tx| assert!(insert(tx, &store, "a", &[0])));
    pass_snapshot(&engine);
    let mut snapshot = worker.begin_snapshot();
    assert_eq!(read(&mut snapshot, &store, "a"), Some(vec![0]));
    for _ in 0..80 * EPOCHS_PER_SNAPSHOT {
        engine.epochs().advance();
    }
    assert_eq!(try_read(&mut snapshot, &store, "a").unwrap_err().reason(), AbortReason::SnapshotTooOld);
}

/// A deletion keeps the row where it is, instead of a copy: snapshots find it there, whatever becomes of the key.
fn snapshots_show_the_rows_of_deleted_keys<V: Variant>() {
    let engine = manual_engine::<V>();
    let store = engine.new_store(TableId(1)).unwrap();
    let (mut writer, mut reader) = (engine.session(), engine.session());
    let keys = ["deleted", "reborn at once", "reborn later", "reborn larger", "reborn twice"];
    let row = |value: u64| vec![value; 5];
    for value in [1, 2] {
        pass_snapshot(&engine);
        let mut tx = writer.begin();
        for key in keys {
            if value == 1 {
                assert!(insert(&mut tx, &store, key, &row(1)));
            } else {
                put(&mut tx, &store, key, &row(2));
            }
        }
        tx.commit().unwrap();
    }
    pass_snapshot(&engine);
    let mut snapshot = reader.begin_snapshot();
    let mut change = |body: &dyn Fn(&mut ensilo_txn::Transaction<'_, V>)| {
        let mut tx = writer.begin();
        body(&mut tx);
        tx.commit().unwrap();
        for key in keys {
            assert_eq!(read(&mut snapshot, &store, key), Some(row(2)), "{key}");
        }
    };
    change(&|tx| keys.iter().for_each(|key| delete(tx, &store, key)));
    change(&|tx| assert!(insert(tx, &store, "reborn at once", &row(3))));
    change(&|tx| assert!(insert(tx, &store, "reborn twice", &row(3))));
    change(&|tx| delete(tx, &store, "reborn twice"));
    pass_snapshot(&engine);
    change(&|tx| assert!(insert(tx, &store, "reborn later", &row(3))));
    change(&|tx| assert!(insert(tx, &store, "reborn larger", &[3; 500])));
    change(&|tx| assert!(insert(tx, &store, "reborn twice", &row(4))));
    for _ in 0..5 {
        pass_snapshot(&engine);
        change(&|tx| put(tx, &store, "reborn at once", &row(5)));
    }
    drop(snapshot);
    for _ in 0..20 {
        pass_snapshot(&engine);
        writer.collect();
    }
    assert_eq!(engine.statistics().transactions.deleted_records, 0);
    assert!(engine.statistics().transactions.versions <= 5);
}

#[test]
fn a_deletion_takes_none_of_the_memory_that_the_limit_bounds() {
    let (engine, store) = engine_and_store();
    let mut worker = engine.session();
    commit(&mut worker, |tx| assert!(insert(tx, &store, "long", &[1; 100_000])));
    pass_snapshot(&engine);
    let taken = || (engine.epochs().pool().mapped_bytes(), engine.statistics().memory.mapped_bytes);
    let (bounded, all) = taken();
    commit(&mut worker, |tx| delete(tx, &store, "long"));
    assert_eq!(taken(), (bounded, all + 24), "the row was not copied");
}

#[test]
fn snapshots_show_the_rows_of_deleted_keys_in_every_variant_with_snapshots() {
    snapshots_show_the_rows_of_deleted_keys::<Standard>();
    snapshots_show_the_rows_of_deleted_keys::<Simple>();
    snapshots_show_the_rows_of_deleted_keys::<Allocator>();
    snapshots_show_the_rows_of_deleted_keys::<GlobalTid>();
}
