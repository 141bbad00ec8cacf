//! Additions to numbers that the transaction has not read.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::Arc;

use common::*;
use ensilo_txn::{
    Abort, AbortReason, Addition, Direction, Engine, Epoch, Prepared, Read, Session, Silo, Standard, Store,
    Transaction, Worker, Write,
};

type Tx<'w> = Transaction<'w, Standard>;

/// Of any epoch.
const ANY: Epoch = Epoch::new(0);

/// A store with "a", "b" and "c", whose rows are two words of 100, and two workers.
fn with_rows() -> (Arc<Silo>, Arc<Store>, Worker, Worker) {
    let (engine, store) = engine_and_store();
    let (mut one, other) = (engine.session(), engine.session());
    commit(&mut one, |tx| {
        ["a", "b", "c"].iter().for_each(|key| assert!(insert(tx, &store, key, &[100, 100])))
    });
    pass_snapshot(&engine);
    (engine, store, one, other)
}

fn to_word(word: u32, amount: i64) -> Addition {
    let (is_subtraction, amount) = (amount < 0, amount.unsigned_abs());
    Addition { word, shift: 0, bits: 64, is_signed: false, is_subtraction, amount }
}

fn add(tx: &mut Tx<'_>, store: &Store, key: &str, amount: i64) -> bool {
    tx.add(store, key.as_bytes(), ANY, &[to_word(0, amount)]).unwrap()
}

fn first_words(worker: &mut Worker, store: &Store) -> Vec<(String, u64)> {
    commit(worker, |tx| scan_all(tx, store, Direction::Forward))
}

fn reason<R: std::fmt::Debug>(outcome: Result<R, Abort>) -> AbortReason {
    outcome.unwrap_err().reason()
}

#[test]
fn transactions_that_add_to_one_row_all_commit() {
    let (_engine, store, mut one, mut other) = with_rows();
    let (mut first, mut second) = (one.begin(), other.begin());
    assert!(
        add(&mut first, &store, "a", 5)
            && add(&mut second, &store, "a", 7)
            && add(&mut first, &store, "b", -1)
    );
    let first_tid = first.commit().unwrap().tid;
    let second_tid = second.commit().unwrap().tid;
    assert!(second_tid > first_tid, "TIDs of one key rise");
    let rows = first_words(&mut one, &store);
    assert_eq!(rows, [("a".to_owned(), 112), ("b".to_owned(), 99), ("c".to_owned(), 100)]);
}

#[test]
fn several_additions_to_one_row_are_all_made() {
    let (_engine, store, mut one, mut other) = with_rows();
    let mut tx = one.begin();
    // Two numbers in one word, both twice, and one in another.
    let low = Addition { bits: 8, ..to_word(0, 1) };
    let high = Addition { shift: 56, bits: 8, is_signed: true, is_subtraction: true, ..to_word(0, 1) };
    assert!(tx.add(&store, b"a", ANY, &[low, high, to_word(1, 10)]).unwrap());
    commit(&mut other, |tx| assert!(add(tx, &store, "a", 1000)));
    assert!(tx.add(&store, b"a", ANY, &[high, low]).unwrap());
    tx.commit().unwrap();
    commit(&mut one, |tx| assert_eq!(read(tx, &store, "a"), Some(vec![1102 | 0xfe << 56, 110])));
}

#[test]
fn what_reads_the_row_afterwards_sees_the_sum_and_relies_on_it() {
    type Look = fn(&mut Tx<'_>, &Store) -> u64;
    let looks: [Look; 3] = [
        |tx, store| read(tx, store, "a").unwrap()[0],
        |tx, store| scan_all(tx, store, Direction::Reverse).last().unwrap().1,
        |tx, store| {
            let found = tx.find(store, b"a").unwrap().unwrap();
            tx.read(found, |row| row.word(0)).unwrap()
        },
    ];
    for look in looks {
        let (_engine, store, mut one, mut other) = with_rows();
        for is_changed in [false, true] {
            let before = first_words(&mut one, &store)[0].1;
            let mut tx = one.begin();
            assert!(add(&mut tx, &store, "a", 5));
            commit(&mut other, |tx| assert!(add(tx, &store, "a", 7)));
            assert_eq!(look(&mut tx, &store), before + 12);
            assert!(!add(&mut tx, &store, "a", 1), "it is read now");
            assert_eq!(look(&mut tx, &store), before + 12);
            if is_changed {
                commit(&mut other, |tx| assert!(add(tx, &store, "a", 7)));
                assert_eq!(reason(tx.commit()), AbortReason::ReadValidation);
            } else {
                tx.commit().unwrap();
                assert_eq!(first_words(&mut one, &store)[0].1, before + 12);
            }
        }
    }
}

#[test]
fn other_writes_to_the_row_come_after_the_sum() {
    let (_engine, store, mut one, mut other) = with_rows();
    let mut tx = one.begin();
    ["a", "b", "c"].iter().for_each(|key| assert!(add(&mut tx, &store, key, 5)));
    assert!(!insert(&mut tx, &store, "a", &[1]), "the key exists");
    let found = tx.find(&store, b"a").unwrap().unwrap();
    tx.patch(found, &[(1, 8)]).unwrap();
    delete(&mut tx, &store, "b");
    assert!(!add(&mut tx, &store, "b", 1), "it is deleted");
    put(&mut tx, &store, "c", &[1, 2, 3]);
    assert!(!add(&mut tx, &store, "c", 1), "it is written otherwise");
    tx.commit().unwrap();
    let rows = commit(&mut other, |tx| ["a", "b", "c"].map(|key| read(tx, &store, key)));
    assert_eq!(rows, [Some(vec![105, 8]), None, Some(vec![1, 2, 3])]);
}

#[test]
fn a_handle_from_before_is_good_afterwards() {
    let (_engine, store, mut one, mut other) = with_rows();
    let mut tx = one.begin();
    let found = tx.find(&store, b"a").unwrap().unwrap();
    assert!(add(&mut tx, &store, "a", 5));
    assert_eq!(tx.read(found, |row| row.word(0)).unwrap(), 105);
    tx.patch(found, &[(1, 1)]).unwrap();
    tx.commit().unwrap();
    commit(&mut other, |tx| assert_eq!(read(tx, &store, "a"), Some(vec![105, 1])));
    let mut tx = one.begin();
    let found = tx.find(&store, b"a").unwrap().unwrap();
    assert!(add(&mut tx, &store, "a", 5));
    tx.delete(found).unwrap();
    tx.commit().unwrap();
    assert_eq!(first_words(&mut other, &store).len(), 2);
}

#[test]
fn a_row_that_is_read_before_is_relied_on() {
    let (_engine, store, mut one, mut other) = with_rows();
    let mut tx = one.begin();
    assert_eq!(read(&mut tx, &store, "a"), Some(vec![100, 100]));
    assert!(add(&mut tx, &store, "a", 5));
    commit(&mut other, |tx| assert!(add(tx, &store, "a", 7)));
    assert_eq!(reason(tx.commit()), AbortReason::ReadValidation);
}

#[test]
fn what_is_not_there_or_of_an_earlier_epoch_is_read() {
    let (engine, store, mut one, mut other) = with_rows();
    let mut tx = one.begin();
    assert!(!add(&mut tx, &store, "d", 1));
    // Nothing was concluded from that.
    commit(&mut other, |tx| assert!(insert(tx, &store, "d", &[1, 1])));
    let now = engine.epochs().global_epoch();
    assert!(!tx.add(&store, b"a", now, &[to_word(0, 1)]).unwrap(), "it is of an earlier epoch");
    assert!(tx.add(&store, b"d", now, &[to_word(0, 1)]).unwrap());
    tx.commit().unwrap();
    commit(&mut other, |tx| delete(tx, &store, "a"));
    commit(&mut one, |tx| assert!(!add(tx, &store, "a", 1), "it was deleted"));
}

#[test]
fn a_row_that_goes_or_moves_before_the_commit_ends_the_attempt() {
    type Change = fn(&mut Tx<'_>, &Store);
    let changes: [Change; 2] =
        [|tx, store| delete(tx, store, "a"), |tx, store| put(tx, store, "a", &[7; 64])];
    for change in changes {
        let (_engine, store, mut one, mut other) = with_rows();
        let mut tx = one.begin();
        assert!(add(&mut tx, &store, "b", 1) && add(&mut tx, &store, "a", 1));
        assert!(tx.check().is_ok());
        commit(&mut other, |tx| change(tx, &store));
        assert_eq!(tx.check().map_err(|abort| abort.reason()), Err(AbortReason::ReadValidation));
        assert_eq!(reason(tx.commit()), AbortReason::ReadValidation);
        let mut tx = one.begin();
        assert!(add(&mut tx, &store, "b", 1));
        tx.commit().unwrap();
        assert_eq!(commit(&mut other, |tx| read(tx, &store, "b").unwrap()[0]), 101, "b is not locked");
    }
}

#[test]
fn a_number_without_room_for_the_sum_ends_the_attempt_and_changes_nothing() {
    let (_engine, store, mut one, mut other) = with_rows();
    let take = |tx: &mut Tx<'_>| {
        assert!(add(tx, &store, "b", 1) && add(tx, &store, "a", -60) && add(tx, &store, "c", 1));
    };
    let (mut first, mut second) = (one.begin(), other.begin());
    take(&mut first);
    take(&mut second);
    first.commit().unwrap();
    let abort = second.commit().unwrap_err();
    assert_eq!((abort.reason(), abort.key()), (AbortReason::SumOutOfRange, &b"a"[..]));
    let mut read_first = other.begin();
    take(&mut read_first);
    assert_eq!(reason(try_read(&mut read_first, &store, "a")), AbortReason::SumOutOfRange);
    assert_eq!(reason(read_first.commit()), AbortReason::SumOutOfRange);
    let rows = first_words(&mut other, &store);
    assert_eq!(rows.iter().map(|row| row.1).collect::<Vec<_>>(), [40, 101, 101]);
    commit(&mut one, |tx| put(tx, &store, "c", &[1, 1]));
}

#[test]
fn a_prepared_addition_keeps_others_away_until_its_decision() {
    for is_committed in [false, true] {
        let (_engine, store, mut one, mut other) = with_rows();
        let mut tx = one.begin();
        assert!(add(&mut tx, &store, "a", 5));
        commit(&mut other, |tx| assert!(add(tx, &store, "a", 1)));
        let prepared = tx.prepare().unwrap();
        let mut refused = other.begin();
        let outcome =
            refused.add(&store, b"a", ANY, &[to_word(0, 1)]).map(drop).and_then(|()| refused.commit());
        assert_eq!(reason(outcome), AbortReason::PreparedLock);
        if is_committed {
            assert!(prepared.commit().is_ok())
        } else {
            prepared.abort()
        }
        commit(&mut other, |tx| assert!(add(tx, &store, "a", 1)));
        assert_eq!(first_words(&mut other, &store)[0].1, if is_committed { 107 } else { 102 });
    }
}

#[test]
fn a_row_that_a_prepared_transaction_has_read_is_not_added_to() {
    let (_engine, store, mut one, mut other) = with_rows();
    let mut tx = one.begin();
    assert_eq!(read(&mut tx, &store, "a"), Some(vec![100, 100]));
    assert!(add(&mut tx, &store, "b", 1));
    let prepared = tx.prepare().unwrap();
    let mut adding = other.begin();
    assert!(add(&mut adding, &store, "a", 1));
    assert_eq!(reason(adding.commit()), AbortReason::PreparedRead);
    prepared.commit().unwrap();
    commit(&mut other, |tx| assert!(add(tx, &store, "a", 1)));
}

#[test]
fn a_protected_transaction_reads_what_it_adds_to() {
    let (_engine, store, mut one, _other) = with_rows();
    assert!(one.protect_next());
    commit(&mut one, |tx| assert!(!add(tx, &store, "a", 1)));
    commit(&mut one, |tx| assert!(add(tx, &store, "a", 1)));
}

#[test]
fn a_snapshot_sees_the_number_as_it_was() {
    let (engine, store, mut one, mut other) = with_rows();
    let mut snapshot = other.begin_snapshot();
    commit(&mut one, |tx| assert!(add(tx, &store, "a", 5)));
    assert_eq!(read(&mut snapshot, &store, "a"), Some(vec![100, 100]));
    drop(snapshot);
    pass_snapshot(&engine);
    assert_eq!(read(&mut other.begin_snapshot(), &store, "a"), Some(vec![105, 100]));
}

#[test]
fn any_number_of_additions_to_one_row_takes_little_memory() {
    let (_engine, store, mut one, mut other) = with_rows();
    let mut tx = one.begin();
    for _ in 0..100_000 {
        assert!(add(&mut tx, &store, "a", 3));
    }
    // From some turns on the row is read.
    let noted =
        (0..100).take_while(|turn| add(&mut tx, &store, "b", if turn % 2 == 0 { 5 } else { -5 })).count();
    assert!(noted > 2 && noted < 100, "{noted}");
    commit(&mut other, |tx| assert!(add(tx, &store, "a", 1)));
    tx.commit().unwrap();
    let rows = first_words(&mut other, &store);
    assert_eq!((rows[0].1, rows[1].1), (300_101, if noted % 2 == 0 { 100 } else { 105 }));
}

#[test]
fn sums_in_between_have_room_as_well() {
    let (_engine, store, mut one, _other) = with_rows();
    for amounts in [&[-60, -50, 20][..], &[-60, -60], &[-101, 101]] {
        let mut tx = one.begin();
        amounts.iter().for_each(|amount| assert!(add(&mut tx, &store, "a", *amount)));
        assert_eq!(reason(tx.commit()), AbortReason::SumOutOfRange, "{amounts:?}");
    }
    commit(&mut one, |tx| [-60, 20, -60].iter().for_each(|amount| assert!(add(tx, &store, "a", *amount))));
    assert_eq!(first_words(&mut one, &store)[0].1, 0);
}

#[test]
fn who_concludes_something_reads_what_was_added_to() {
    let (_engine, store, mut one, mut other) = with_rows();
    let mut tx = one.begin();
    assert!(add(&mut tx, &store, "a", -101));
    assert!(tx.check_so_far().is_ok(), "it goes on");
    assert_eq!(reason(tx.check()), AbortReason::SumOutOfRange);
    drop(tx);
    let changed = {
        let mut tx = other.begin();
        assert!(add(&mut tx, &store, "a", 1));
        tx.commit().unwrap().epoch
    };
    let mut tx = one.begin();
    assert!(add(&mut tx, &store, "a", 1));
    assert_eq!(tx.check().unwrap(), changed, "it relies on what was committed last");
}

#[test]
fn a_range_without_the_row_does_not_rely_on_it() {
    let (engine, store, mut one, mut other) = with_rows();
    let jobs = engine.new_store(ensilo_txn::TableId(2)).unwrap();
    commit(&mut one, |tx| ["x", "y"].iter().for_each(|key| assert!(insert(tx, &jobs, key, &[1]))));
    let mut tx = one.begin();
    commit(&mut other, |tx| delete(tx, &jobs, "x"));
    for _ in 0..3 {
        pass_snapshot(&engine);
        other.collect();
    }
    assert!(add(&mut tx, &store, "a", 1));
    commit(&mut other, |tx| assert!(add(tx, &store, "a", 1)));
    assert_eq!(scan_all(&mut tx, &jobs, Direction::Forward).len(), 1);
    tx.commit().unwrap();
    assert_eq!(first_words(&mut one, &store)[0].1, 102);
}

#[test]
fn a_handle_of_an_earlier_version_does_not_write_over_a_sum() {
    let (_engine, store, mut one, mut other) = with_rows();
    let mut tx = one.begin();
    let found = tx.find(&store, b"a").unwrap().unwrap();
    commit(&mut other, |tx| put(tx, &store, "a", &[7]));
    assert!(add(&mut tx, &store, "a", 1));
    assert_eq!(reason(tx.patch(found, &[(1, 8)])), AbortReason::ReadValidation);
}

#[test]
fn many_additions_in_one_transaction_are_all_made() {
    let (_engine, store, mut one, mut other) = with_rows();
    let keys: Vec<String> = (0..500).map(|number| format!("key{number}")).collect();
    commit(&mut one, |tx| keys.iter().for_each(|key| assert!(insert(tx, &store, key, &[0, 0]))));
    for _ in 0..2 {
        commit(&mut one, |tx| {
            for round in 0..3 {
                keys.iter().for_each(|key| assert!(add(tx, &store, key, round)));
            }
        });
    }
    let rows = first_words(&mut other, &store);
    assert!(rows[3..].iter().all(|row| row.1 == 6), "{rows:?}");
}

#[test]
fn a_dropped_store_is_not_added_to() {
    let (engine, store, mut one, _other) = with_rows();
    let mut tx = one.begin();
    assert!(add(&mut tx, &store, "a", 1));
    assert!(engine.drop_store(store.id()));
    assert_eq!(reason(tx.commit()), AbortReason::StoreDropped);
    let mut tx = one.begin();
    let refused = tx.add(&store, b"a", ANY, &[to_word(0, 1)]);
    assert_eq!(reason(refused), AbortReason::StoreDropped);
}
