//! What one transaction sees and leaves behind, and how two of them meet.

mod common;

use common::*;
use ensilo_txn::{AbortReason, Direction, Engine, Epoch, Read, Session, Write};

#[test]
fn a_committed_row_is_read_back_and_an_aborted_one_is_not() {
    let (engine, store) = engine_and_store();
    let mut worker = engine.session();
    commit(&mut worker, |tx| assert!(insert(tx, &store, "a", &[1, 2, 3])));
    let mut tx = worker.begin();
    assert!(insert(&mut tx, &store, "b", &[4]));
    put(&mut tx, &store, "a", &[9, 9, 9]);
    drop(tx);
    commit(&mut worker, |tx| {
        assert_eq!(read(tx, &store, "a"), Some(vec![1, 2, 3]));
        assert_eq!(read(tx, &store, "b"), None);
    });
    let statistics = engine.statistics().transactions;
    assert_eq!((statistics.commits, statistics.aborts[AbortReason::User.index()]), (2, 1));
}

#[test]
fn a_transaction_sees_its_own_writes_in_reads_and_scans() {
    let (engine, store) = engine_and_store();
    let mut worker = engine.session();
    commit(&mut worker, |tx| {
        for (key, value) in [("a", 1), ("c", 3), ("e", 5)] {
            insert(tx, &store, key, &[value, 0]);
        }
    });
    commit(&mut worker, |tx| {
        insert(tx, &store, "b", &[2, 0]);
        put(tx, &store, "c", &[33, 0, 0, 0, 0, 0, 0, 0, 0]);
        delete(tx, &store, "e");
        let found = tx.find(&store, b"a").unwrap().unwrap();
        tx.patch(found, &[(1, 7)]).unwrap();
        assert_eq!(read(tx, &store, "a"), Some(vec![1, 7]));
        tx.patch(found, &[(0, 11)]).unwrap();
        let expected = [("a", 11), ("b", 2), ("c", 33)].map(|(key, value)| (key.to_owned(), value));
        assert_eq!(scan_all(tx, &store, Direction::Forward), expected);
        let reversed: Vec<_> = expected.iter().rev().cloned().collect();
        assert_eq!(scan_all(tx, &store, Direction::Reverse), reversed);
        assert_eq!(read(tx, &store, "e"), None);
    });
    commit(&mut worker, |tx| {
        assert_eq!(read(tx, &store, "a"), Some(vec![11, 7]));
        assert_eq!(read(tx, &store, "c").unwrap().len(), 9);
        assert_eq!(read(tx, &store, "e"), None);
    });
}

#[test]
fn inserts_and_deletes_of_one_key_fold_within_a_transaction() {
    let (engine, store) = engine_and_store();
    let mut worker = engine.session();
    commit(&mut worker, |tx| {
        assert!(insert(tx, &store, "gone", &[1]));
        delete(tx, &store, "gone");
        assert_eq!(read(tx, &store, "gone"), None);
        assert!(insert(tx, &store, "kept", &[1]));
        delete(tx, &store, "kept");
        assert!(insert(tx, &store, "kept", &[2, 2]));
        assert!(!insert(tx, &store, "kept", &[3]));
    });
    commit(&mut worker, |tx| {
        assert_eq!(read(tx, &store, "gone"), None);
        assert_eq!(read(tx, &store, "kept"), Some(vec![2, 2]));
        delete(tx, &store, "kept");
        assert!(insert(tx, &store, "kept", &[4; 20]));
    });
    commit(&mut worker, |tx| {
        assert_eq!(read(tx, &store, "kept"), Some(vec![4; 20]));
        delete(tx, &store, "kept");
    });
    commit(&mut worker, |tx| {
        assert_eq!(read(tx, &store, "kept"), None);
        assert!(insert(tx, &store, "kept", &[5]));
    });
    commit(&mut worker, |tx| assert_eq!(read(tx, &store, "kept"), Some(vec![5])));
    pass_snapshot(&engine);
    for _ in 0..3 {
        worker.collect();
        engine.epochs().advance();
    }
    commit(&mut worker, |tx| assert_eq!(scan_all(tx, &store, Direction::Forward), [("kept".to_owned(), 5)]));
}

#[test]
fn a_row_that_outgrows_its_record_moves_and_readers_follow() {
    let (engine, store) = engine_and_store();
    let mut worker = engine.session();
    let mut reader = engine.session();
    commit(&mut worker, |tx| assert!(insert(tx, &store, "a", &[1])));
    let mut early = reader.begin();
    assert_eq!(read(&mut early, &store, "a"), Some(vec![1]));
    commit(&mut worker, |tx| put(tx, &store, "a", &[2; 100]));
    assert_eq!(early.commit().unwrap_err_reason(), None, "one look needs no validation");
    let mut late = reader.begin();
    assert_eq!(read(&mut late, &store, "a"), Some(vec![2; 100]));
    late.commit().unwrap();
}

trait ReasonOf {
    fn unwrap_err_reason(self) -> Option<AbortReason>;
}

impl<T> ReasonOf for Result<T, ensilo_txn::Abort> {
    fn unwrap_err_reason(self) -> Option<AbortReason> {
        self.err().map(|abort| abort.reason())
    }
}

#[test]
fn a_changed_read_aborts_a_writer_and_names_table_and_key() {
    let (engine, store) = engine_and_store();
    let (mut first, mut second) = (engine.session(), engine.session());
    commit(&mut first, |tx| {
        insert(tx, &store, "a", &[1]);
        insert(tx, &store, "b", &[1]);
    });
    let mut tx = first.begin();
    assert_eq!(read(&mut tx, &store, "a"), Some(vec![1]));
    put(&mut tx, &store, "b", &[2]);
    commit(&mut second, |tx| put(tx, &store, "a", &[3]));
    let abort = tx.commit().unwrap_err();
    assert_eq!(
        (abort.reason(), abort.table(), abort.key()),
        (AbortReason::ReadValidation, store.id(), &b"a"[..])
    );
    assert!(abort.is_retryable());
    commit(&mut first, |tx| assert_eq!(read(tx, &store, "b"), Some(vec![1])));
}

#[test]
fn of_two_inserts_of_one_key_one_wins() {
    let (engine, store) = engine_and_store();
    let (mut first, mut second) = (engine.session(), engine.session());
    let mut loser = first.begin();
    assert!(insert(&mut loser, &store, "a", &[1]));
    let mut winner = second.begin();
    assert!(insert(&mut winner, &store, "a", &[2]));
    winner.commit().unwrap();
    assert_eq!(loser.commit().unwrap_err().reason(), AbortReason::KeyExists);
    commit(&mut first, |tx| {
        assert_eq!(read(tx, &store, "a"), Some(vec![2]));
        assert!(!insert(tx, &store, "a", &[3]));
    });
}

#[test]
fn a_placeholder_taken_over_with_a_larger_row_survives_its_maker() {
    let (engine, store) = engine_and_store();
    let (mut first, mut second) = (engine.session(), engine.session());
    let mut maker = first.begin();
    assert!(insert(&mut maker, &store, "a", &[1]));
    commit(&mut second, |tx| assert!(insert(tx, &store, "a", &[2; 50])));
    drop(maker);
    pass_snapshot(&engine);
    first.collect();
    commit(&mut first, |tx| assert_eq!(read(tx, &store, "a"), Some(vec![2; 50])));
}

#[test]
fn a_missing_key_that_appears_aborts_who_relied_on_it() {
    let (engine, store) = engine_and_store();
    let (mut first, mut second) = (engine.session(), engine.session());
    commit(&mut first, |tx| assert!(insert(tx, &store, "x", &[1])));
    let mut tx = first.begin();
    assert_eq!(read(&mut tx, &store, "a"), None);
    put(&mut tx, &store, "x", &[2]);
    commit(&mut second, |tx| assert!(insert(tx, &store, "a", &[1])));
    assert_eq!(tx.commit().unwrap_err().reason(), AbortReason::NodeValidation);
}

#[test]
fn own_inserts_leave_own_scans_valid() {
    let (engine, store) = engine_and_store();
    let mut worker = engine.session();
    commit(&mut worker, |tx| {
        for round in 0..100_u64 {
            assert_eq!(scan_all(tx, &store, Direction::Forward).len() as u64, round);
            assert_eq!(read(tx, &store, "not there"), None);
            assert!(insert(tx, &store, &format!("a long key prefix {:03}", round * 37 % 100), &[round]));
        }
    });
    commit(&mut worker, |tx| assert_eq!(scan_all(tx, &store, Direction::Reverse).len(), 100));
}

#[test]
fn find_many_answers_in_order() {
    let (engine, store) = engine_and_store();
    let mut worker = engine.session();
    commit(&mut worker, |tx| {
        for i in (0..100_u64).step_by(2) {
            insert(tx, &store, &format!("{i:02}"), &[i]);
        }
    });
    commit(&mut worker, |tx| {
        let keys: Vec<String> = (0..100).map(|i| format!("{i:02}")).collect();
        let mut found = Vec::new();
        tx.find_many(&store, &keys, |at, handle| found.push((at, handle))).unwrap();
        for (expected, (at, handle)) in found.into_iter().enumerate() {
            assert_eq!(at, expected);
            let value = handle.map(|handle| tx.read(handle, |row| row.word(0)).unwrap());
            assert_eq!(value, (at % 2 == 0).then_some(at as u64));
        }
    });
}

#[test]
fn a_dropped_store_refuses_and_gives_its_memory_back() {
    let (engine, store) = engine_and_store();
    let mut worker = engine.session();
    commit(&mut worker, |tx| {
        for i in 0..1000_u64 {
            insert(tx, &store, &format!("{i:04}"), &[i; 16]);
        }
    });
    commit(&mut worker, |tx| (0..500).for_each(|i| delete(tx, &store, &format!("{i:04}"))));
    let live = || engine.statistics().memory.live_bytes;
    let full = live();
    assert!(engine.drop_store(store.id()));
    assert!(!engine.drop_store(store.id()));
    let mut tx = worker.begin();
    assert_eq!(try_read(&mut tx, &store, "0600").unwrap_err().reason(), AbortReason::StoreDropped);
    drop(tx);
    for _ in 0..100 {
        pass_snapshot(&engine);
        worker.collect();
        engine.collect_orphaned();
    }
    assert!(live() < full / 20, "{} of {full} bytes are left", live());
    assert!(engine.new_store(store.id()).is_err());
}

#[test]
fn a_worker_takes_over_where_another_left() {
    let (engine, store) = engine_and_store();
    let mut worker = engine.session();
    commit(&mut worker, |tx| assert!(insert(tx, &store, "a", &[1])));
    let mut tx = worker.begin();
    put(&mut tx, &store, "a", &[2]);
    let before = tx.commit().unwrap().tid;
    drop(worker);
    let mut worker = engine.session();
    let mut tx = worker.begin();
    assert!(insert(&mut tx, &store, "unrelated", &[1]));
    assert!(tx.commit().unwrap().tid > before);
}

#[test]
fn a_check_tells_a_conclusion_from_a_mistake() {
    let (engine, store) = engine_and_store();
    let (mut first, mut second) = (engine.session(), engine.session());
    let mut tx = first.begin();
    assert_eq!(read(&mut tx, &store, "a"), None);
    assert_eq!(tx.check().unwrap(), Epoch::new(0), "a key that was never there");
    let mut writer = second.begin();
    assert!(insert(&mut writer, &store, "a", &[1]));
    let written = writer.commit().unwrap();
    assert!(!insert(&mut tx, &store, "a", &[2]), "missing a moment ago");
    assert_eq!(tx.check().unwrap_err().reason(), AbortReason::NodeValidation);
    assert!(tx.commit().is_err());
    let mut tx = first.begin();
    assert!(!insert(&mut tx, &store, "a", &[2]));
    assert_eq!(tx.check().unwrap(), written.epoch);
}
