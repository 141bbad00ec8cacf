//! Anomaly scripts over ERMIA's engine: two to four transactions interleaved by hand, in one thread, each script at both levels.
//!
//! Each says who commits at which level. What has committed is checked: with the serial safety net it is serializable, without it of snapshot
//! isolation, and where the level admits the anomaly, not serializable.
#![allow(clippy::unwrap_used, reason = "tests")]

mod engine;

use std::ops::{Bound, ControlFlow};
use std::path::PathBuf;
use std::sync::Arc;

use engine::levels::{NoReadersOfCold, NoTakenBack, Recorded, RecordedSnapshots};
use engine::transaction_of;
use ensilo_check::{History, IsolationLevel, Options, TransactionId, check};
use ensilo_ermia::{Ermia, ErmiaSession, ErmiaStore, Isolation, Transaction};
use ensilo_test_disk::SimulatedDisk;
use ensilo_txn::{
    Abort, Advance, ColdPlace, Direction, Engine, EngineOptions, Read, Session, TableId, Write,
};

/// An engine with one store and four sessions, and a way to their history.
struct Stage<I: Isolation> {
    engine: Arc<Ermia<I>>,
    store: Arc<ErmiaStore>,
    sessions: [ErmiaSession<I>; 4],
}

impl<I: Isolation> Stage<I> {
    /// A store with these rows.
    fn with(rows: &[(&str, u64)]) -> Self {
        let mut options = EngineOptions::default();
        options.epochs.advance = Advance::Manual;
        options.cold_place = Some(ColdPlace::new(Arc::new(SimulatedDisk::new()), PathBuf::from("/cold")));
        let engine = Ermia::<I>::start(options).unwrap();
        let store = engine.new_store(TableId(1)).unwrap();
        let mut stage = Stage { sessions: [(); 4].map(|()| engine.session()), store, engine };
        let mut load = stage.sessions[0].begin();
        for (key, value) in rows {
            insert(&mut load, &stage.store, key, *value).unwrap();
        }
        load.commit().unwrap();
        stage
    }

    fn parts(&mut self) -> (&ErmiaStore, [&mut ErmiaSession<I>; 4]) {
        (&self.store, self.sessions.each_mut())
    }

    /// Lets deleted keys leave the index.
    fn age(&mut self) {
        for session in &mut self.sessions {
            (0..4).for_each(|_| self.engine.epochs().advance());
            session.collect();
        }
    }

    /// What was recorded has the level's isolation, and is serializable where nothing is said of an anomaly.
    fn finish(mut self, has_anomaly: bool) {
        let mut last = self.sessions[0].begin();
        keys(&mut last, &self.store, "~").unwrap();
        last.commit().unwrap();
        let mut history = History::default();
        for (worker, session) in (0..).zip(&mut self.sessions) {
            for (sequence, record) in (0..).zip(session.take_history()) {
                history.transactions.push(transaction_of(TransactionId { worker, sequence }, &record));
            }
        }
        let held_to = |isolation| check(&history, &Options { isolation, ..Options::default() });
        let verdict = held_to(IsolationLevel::SnapshotIsolation);
        assert!(verdict.is_snapshot_isolated(), "{verdict}");
        let verdict = held_to(IsolationLevel::Serializable);
        assert_eq!(verdict.is_serializable(), !has_anomaly, "{verdict}");
        assert!(!(has_anomaly && I::SERIALIZABLE));
    }
}

fn get(transaction: &mut impl Read<Store = ErmiaStore>, store: &ErmiaStore, key: &str) -> Option<u64> {
    transaction.get(store, key.as_bytes(), |row| row.word(0)).unwrap()
}

/// A transaction that fails here, or could not write, does not commit.
type Done = Result<(), Abort>;

fn set(transaction: &mut impl Write<Store = ErmiaStore>, store: &ErmiaStore, key: &str, value: u64) -> Done {
    let found = transaction.find(store, key.as_bytes())?.unwrap();
    transaction.put(found, &[value], 8)
}

fn insert(
    transaction: &mut impl Write<Store = ErmiaStore>,
    store: &ErmiaStore,
    key: &str,
    value: u64,
) -> Done {
    transaction.insert(store, key.as_bytes(), &[value], 8).map(|is_new| assert!(is_new, "{key} exists"))
}

fn delete(transaction: &mut impl Write<Store = ErmiaStore>, store: &ErmiaStore, key: &str) -> Done {
    let found = transaction.find(store, key.as_bytes())?.unwrap();
    transaction.delete(found)
}

/// The keys before `high`.
fn keys(
    transaction: &mut impl Read<Store = ErmiaStore>,
    store: &ErmiaStore,
    high: &str,
) -> Result<Vec<String>, Abort> {
    let mut keys = Vec::new();
    let bounds = (Bound::Unbounded, Bound::Excluded(high.as_bytes()));
    let each = |_, key| {
        keys.push(key);
        ControlFlow::Continue(())
    };
    let decode = |key: &[u8], _: ensilo_txn::RowRef<'_>| String::from_utf8(key.to_vec()).unwrap();
    transaction.scan(store, bounds, Direction::Forward, decode, each)?;
    Ok(keys)
}

/// Commits, if all went well before; returns whether it did.
fn ends(done: Done, transaction: impl Write) -> bool {
    done.and_then(|()| transaction.commit().map(drop)).is_ok()
}

/// Runs a script at both levels. It returns who has committed; under snapshot isolation all do, and that is an anomaly.
macro_rules! admitted_without_the_safety_net {
    ($test:ident, $script:ident, $committed:expr) => {
        #[test]
        fn $test() {
            let (stage, committed) = $script::<Recorded>();
            assert_eq!(committed, $committed);
            stage.finish(false);
            let (stage, committed) = $script::<RecordedSnapshots>();
            assert!(committed.iter().all(|is_committed| *is_committed), "{committed:?}");
            stage.finish(true);
        }
    };
}

/// Runs a script at both levels, neither of which admits the anomaly.
macro_rules! refused_at_both_levels {
    ($test:ident, $script:ident, $committed:expr) => {
        #[test]
        fn $test() {
            let (stage, committed) = $script::<Recorded>();
            assert_eq!(committed, $committed);
            stage.finish(false);
            let (stage, committed) = $script::<RecordedSnapshots>();
            assert_eq!(committed, $committed);
            stage.finish(false);
        }
    };
}

/// What is not committed, or given up, is never seen; what was seen goes on to be seen.
fn dirty_read<I: Isolation>() -> (Stage<I>, [bool; 4]) {
    let mut stage = Stage::<I>::with(&[("x", 1)]);
    let (store, [a, b, c, d]) = stage.parts();
    let (mut given_up, mut reader) = (a.begin(), b.begin());
    set(&mut given_up, store, "x", 2).unwrap();
    insert(&mut given_up, store, "y", 2).unwrap();
    assert_eq!(get(&mut reader, store, "x"), Some(1));
    drop(given_up);
    let mut writer = c.begin();
    let done = set(&mut writer, store, "x", 3);
    assert_eq!(get(&mut reader, store, "x"), Some(1));
    let wrote = ends(done, writer);
    assert_eq!(get(&mut reader, store, "x"), Some(1));
    let read = reader.commit().is_ok();
    let mut late = d.begin();
    assert_eq!((get(&mut late, store, "x"), get(&mut late, store, "y")), (Some(3), None));
    let committed = [false, wrote, read, late.commit().is_ok()];
    (stage, committed)
}

refused_at_both_levels!(a_dirty_read_is_refused, dirty_read, [false, true, true, true]);

/// Two read a row and then change it.
fn lost_update<I: Isolation>(first_commits_first: bool) -> (Stage<I>, [bool; 2]) {
    let mut stage = Stage::<I>::with(&[("x", 10)]);
    let (store, [a, b, ..]) = stage.parts();
    let (mut first, mut second) = (a.begin(), b.begin());
    let seen = [get(&mut first, store, "x").unwrap(), get(&mut second, store, "x").unwrap()];
    let one = set(&mut first, store, "x", seen[0] + 1);
    let committed = if first_commits_first {
        let one = ends(one, first);
        let other = set(&mut second, store, "x", seen[1] + 1);
        [one, ends(other, second)]
    } else {
        let other = set(&mut second, store, "x", seen[1] + 1);
        let other = ends(other, second);
        [ends(one, first), other]
    };
    (stage, committed)
}

fn lost_update_after<I: Isolation>() -> (Stage<I>, [bool; 2]) {
    lost_update(true)
}

fn lost_update_beside<I: Isolation>() -> (Stage<I>, [bool; 2]) {
    lost_update(false)
}

refused_at_both_levels!(an_update_after_a_later_commit_is_refused, lost_update_after, [true, false]);
refused_at_both_levels!(an_update_beside_another_is_refused, lost_update_beside, [true, false]);

/// Who has seen one of two rows before a commit sees the other one as it was then.
fn read_skew<I: Isolation>() -> (Stage<I>, [bool; 2]) {
    let mut stage = Stage::<I>::with(&[("x", 1), ("y", 1)]);
    let (store, [a, b, ..]) = stage.parts();
    let (mut reader, mut writer) = (a.begin(), b.begin());
    assert_eq!(get(&mut reader, store, "x"), Some(1));
    let done = set(&mut writer, store, "x", 2).and_then(|()| set(&mut writer, store, "y", 2));
    let wrote = ends(done, writer);
    assert_eq!(get(&mut reader, store, "y"), Some(1));
    let committed = [reader.commit().is_ok(), wrote];
    (stage, committed)
}

refused_at_both_levels!(read_skew_is_refused, read_skew, [true, true]);

/// Two that only read see two commits in the same order.
fn long_fork<I: Isolation>() -> (Stage<I>, [bool; 4]) {
    let mut stage = Stage::<I>::with(&[("x", 1), ("y", 1)]);
    let (store, [a, b, c, d]) = stage.parts();
    let (mut first, mut second) = (a.begin(), b.begin());
    let (one, other) = (set(&mut first, store, "x", 2), set(&mut second, store, "y", 2));
    let one = ends(one, first);
    let mut early = c.begin();
    let other = ends(other, second);
    let mut late = d.begin();
    let both = |transaction: &mut _| (get(transaction, store, "x"), get(transaction, store, "y"));
    assert_eq!(both(&mut early), (Some(2), Some(1)));
    assert_eq!(both(&mut late), (Some(2), Some(2)));
    let committed = [one, other, early.commit().is_ok(), late.commit().is_ok()];
    (stage, committed)
}

refused_at_both_levels!(a_long_fork_is_refused, long_fork, [true; 4]);

/// Each takes away one of the two as long as both are there.
fn write_skew<I: Isolation>() -> (Stage<I>, [bool; 2]) {
    let mut stage = Stage::<I>::with(&[("x", 1), ("y", 1)]);
    let (store, [a, b, ..]) = stage.parts();
    let (mut first, mut second) = (a.begin(), b.begin());
    for transaction in [&mut first, &mut second] {
        assert_eq!(get(transaction, store, "x").unwrap() + get(transaction, store, "y").unwrap(), 2);
    }
    let (one, other) = (set(&mut first, store, "x", 0), set(&mut second, store, "y", 0));
    let committed = [ends(one, first), ends(other, second)];
    (stage, committed)
}

admitted_without_the_safety_net!(write_skew_is_refused_by_the_safety_net, write_skew, [true, false]);

/// Three, each of which has not seen what the next one writes.
fn ring<I: Isolation>() -> (Stage<I>, [bool; 3]) {
    let mut stage = Stage::<I>::with(&[("x", 0), ("y", 0), ("z", 0)]);
    let (store, [a, b, c, _]) = stage.parts();
    let mut three = [(a.begin(), "x", "y"), (b.begin(), "y", "z"), (c.begin(), "z", "x")];
    let done = three.each_mut().map(|(transaction, read, written)| {
        assert_eq!(get(transaction, store, read), Some(0));
        set(transaction, store, written, 1)
    });
    let mut done = done.into_iter();
    let committed = three.map(|(transaction, ..)| ends(done.next().unwrap(), transaction));
    (stage, committed)
}

#[test]
fn a_ring_of_three_is_refused_by_the_safety_net() {
    let (stage, committed) = ring::<Recorded>();
    assert_eq!(committed.iter().filter(|is_committed| **is_committed).count(), 2);
    stage.finish(false);
    let (stage, committed) = ring::<RecordedSnapshots>();
    assert_eq!(committed, [true; 3]);
    stage.finish(true);
}

/// Fekete, O'Neil, O'Neil (2004): the account statement sees the deposit, but not the withdrawal that did not see it.
fn read_only_anomaly<I: Isolation>() -> (Stage<I>, [bool; 3]) {
    let mut stage = Stage::<I>::with(&[("checking", 0), ("savings", 0)]);
    let (store, [a, b, c, _]) = stage.parts();
    let (mut withdrawal, mut deposit) = (a.begin(), b.begin());
    assert_eq!(get(&mut withdrawal, store, "savings"), Some(0));
    let done = set(&mut deposit, store, "savings", 20);
    let deposited = ends(done, deposit);
    let mut statement = c.begin();
    assert_eq!(get(&mut statement, store, "checking"), Some(0));
    assert_eq!(get(&mut statement, store, "savings"), Some(20));
    let stated = statement.commit().is_ok();
    let done = set(&mut withdrawal, store, "checking", 11);
    let committed = [deposited, stated, ends(done, withdrawal)];
    (stage, committed)
}

admitted_without_the_safety_net!(
    the_read_only_anomaly_is_refused_by_the_safety_net,
    read_only_anomaly,
    [true, true, false]
);

/// The same with a statement by a snapshot, that nobody knows of.
fn anomaly_of_a_snapshot<I: Isolation>() -> (Stage<I>, [bool; 2]) {
    let mut stage = Stage::<I>::with(&[("checking", 0), ("savings", 0)]);
    let (store, [a, b, c, _]) = stage.parts();
    let (mut withdrawal, mut deposit) = (a.begin(), b.begin());
    assert_eq!(get(&mut withdrawal, store, "savings"), Some(0));
    let done = set(&mut deposit, store, "savings", 20);
    let deposited = ends(done, deposit);
    let mut statement = c.begin_snapshot();
    assert_eq!(get(&mut statement, store, "checking"), Some(0));
    assert_eq!(get(&mut statement, store, "savings"), Some(20));
    drop(statement);
    let done = set(&mut withdrawal, store, "checking", 11);
    let committed = [deposited, ends(done, withdrawal)];
    (stage, committed)
}

admitted_without_the_safety_net!(
    a_snapshot_between_two_that_changed_places_costs_the_second,
    anomaly_of_a_snapshot,
    [true, false]
);

/// Each counts the rows, and adds one that the other one does not see.
fn phantom_by_insert<I: Isolation>() -> (Stage<I>, [bool; 2]) {
    let mut stage = Stage::<I>::with(&[("a", 1), ("m", 1)]);
    let (store, [a, b, ..]) = stage.parts();
    let (mut first, mut second) = (a.begin(), b.begin());
    let counted = [&mut first, &mut second].map(|transaction| keys(transaction, store, "m").unwrap().len());
    assert_eq!(counted, [1, 1]);
    let (one, other) = (insert(&mut first, store, "b", 1), insert(&mut second, store, "c", 1));
    let committed = [ends(one, first), ends(other, second)];
    (stage, committed)
}

#[test]
fn phantoms_by_insert_are_refused_by_the_safety_net() {
    let (stage, committed) = phantom_by_insert::<Recorded>();
    assert_ne!(committed, [true, true]);
    stage.finish(false);
    let (stage, committed) = phantom_by_insert::<RecordedSnapshots>();
    assert_eq!(committed, [true, true]);
    stage.finish(true);
}

/// Who has counted the rows writes what follows from it, after one has gone.
fn phantom_by_delete<I: Isolation>() -> (Stage<I>, [bool; 3]) {
    let mut stage = Stage::<I>::with(&[("a", 1), ("b", 1), ("sum", 2)]);
    let (store, [a, b, c, _]) = stage.parts();
    let mut reader = a.begin();
    assert_eq!(keys(&mut reader, store, "m").unwrap().len(), 2);
    let mut writer = b.begin();
    let done = delete(&mut writer, store, "b");
    let deleted = ends(done, writer);
    // Sees that the row is gone, and the sum as it was.
    let mut witness = c.begin();
    assert_eq!(keys(&mut witness, store, "z").unwrap(), ["a", "sum"]);
    let witnessed = witness.commit().is_ok();
    let done = set(&mut reader, store, "sum", 3);
    let committed = [deleted, witnessed, ends(done, reader)];
    (stage, committed)
}

admitted_without_the_safety_net!(
    a_phantom_by_delete_is_refused_by_the_safety_net,
    phantom_by_delete,
    [true, true, false]
);

/// Each inserts a key after it has missed the other's.
fn phantom_by_missing_key<I: Isolation>() -> (Stage<I>, [bool; 2]) {
    let mut stage = Stage::<I>::with(&[("x", 0)]);
    let (store, [a, b, ..]) = stage.parts();
    let (mut first, mut second) = (a.begin(), b.begin());
    assert_eq!(get(&mut first, store, "left"), None);
    assert_eq!(get(&mut second, store, "right"), None);
    let (one, other) = (insert(&mut first, store, "right", 1), insert(&mut second, store, "left", 1));
    let committed = [ends(one, first), ends(other, second)];
    (stage, committed)
}

#[test]
fn phantoms_by_missing_keys_are_refused_by_the_safety_net() {
    let (stage, committed) = phantom_by_missing_key::<Recorded>();
    assert_ne!(committed, [true, true]);
    stage.finish(false);
    let (stage, committed) = phantom_by_missing_key::<RecordedSnapshots>();
    assert_eq!(committed, [true, true]);
    stage.finish(true);
}

/// A key that has left the index comes back: who has missed it in between may not come after that.
fn phantom_by_a_key_that_returns<I: Isolation>() -> (Stage<I>, [bool; 2]) {
    let mut stage = Stage::<I>::with(&[("gone", 1), ("x", 0)]);
    let (store, [a, ..]) = stage.parts();
    let mut remover = a.begin();
    delete(&mut remover, store, "gone").unwrap();
    remover.commit().unwrap();
    stage.age();
    let (store, [_, b, c, _]) = stage.parts();
    let (mut reader, mut writer) = (b.begin(), c.begin());
    assert_eq!(get(&mut reader, store, "gone"), None);
    assert_eq!(get(&mut writer, store, "x"), Some(0));
    let (one, other) = (set(&mut reader, store, "x", 1), insert(&mut writer, store, "gone", 2));
    let committed = [ends(one, reader), ends(other, writer)];
    (stage, committed)
}

#[test]
fn a_key_that_returns_is_a_phantom_too() {
    let (stage, committed) = phantom_by_a_key_that_returns::<Recorded>();
    assert_ne!(committed, [true, true]);
    stage.finish(false);
    let (stage, committed) = phantom_by_a_key_that_returns::<RecordedSnapshots>();
    assert_eq!(committed, [true, true]);
    stage.finish(true);
}

/// A transaction learns that a key is missing by inserting it, and takes the row back: whoever inserts it later comes later.
fn phantom_by_an_insert_that_is_taken_back<I: Isolation>() -> (Stage<I>, [bool; 2]) {
    let mut stage = Stage::<I>::with(&[("y", 1)]);
    let (store, [a, b, ..]) = stage.parts();
    let (mut first, mut second) = (a.begin(), b.begin());
    assert_eq!(get(&mut second, store, "y"), Some(1));
    let one = set(&mut first, store, "y", 2)
        .and_then(|()| insert(&mut first, store, "x", 1))
        .and_then(|()| delete(&mut first, store, "x"));
    let one = ends(one, first);
    let other = insert(&mut second, store, "x", 2);
    let committed = [one, ends(other, second)];
    (stage, committed)
}

admitted_without_the_safety_net!(
    an_insert_that_is_taken_back_has_missed_the_key,
    phantom_by_an_insert_that_is_taken_back,
    [true, false]
);

#[test]
fn an_insert_that_is_taken_back_and_leaves_no_stamp_is_found() {
    let (_, committed) = phantom_by_an_insert_that_is_taken_back::<NoTakenBack>();
    assert_eq!(committed, [true, true]);
}

/// A transaction learns that a key was deleted, and has left the index, by inserting it, and takes the row back: it comes after the deletion.
fn deletion_found_by_an_insert_that_is_taken_back<I: Isolation>() -> (Stage<I>, [bool; 4]) {
    let mut stage = Stage::<I>::with(&[("gone", 1), ("u", 1), ("v", 1)]);
    let Stage { engine, store, sessions: [a, b, c, _] } = &mut stage;
    let mut early = b.begin();
    assert_eq!(get(&mut early, store, "v"), Some(1));
    let mut writer = a.begin();
    let one = ends(set(&mut writer, store, "v", 2), writer);
    let mut remover = a.begin();
    assert_eq!(get(&mut remover, store, "v"), Some(2));
    let two = ends(delete(&mut remover, store, "gone"), remover);
    let mut last = c.begin();
    assert_eq!(get(&mut last, store, "u"), Some(1));
    let three = ends(set(&mut early, store, "u", 2), early);
    (0..4).for_each(|_| engine.epochs().advance());
    a.collect();
    let four = insert(&mut last, store, "gone", 3).and_then(|()| delete(&mut last, store, "gone"));
    let committed = [one, two, three, ends(four, last)];
    (stage, committed)
}

admitted_without_the_safety_net!(
    an_insert_that_is_taken_back_comes_after_the_deletion_before_it,
    deletion_found_by_an_insert_that_is_taken_back,
    [true, true, true, false]
);

/// A row leaves memory behind the commit of a transaction that has read it, and comes back for one that was under way by then and must come
/// before that.
fn skew_over_a_row_that_leaves_memory<I: Isolation>() -> (Stage<I>, [bool; 2]) {
    let mut stage = Stage::<I>::with(&[("x", 1), ("y", 1)]);
    let Stage { engine, store, sessions: [a, b, ..] } = &mut stage;
    engine.epochs().advance();
    let mut first = a.begin();
    assert_eq!(get(&mut first, store, "x"), Some(1));
    // Marks what nobody uses from here on.
    engine.collect_orphaned();
    (0..4).for_each(|_| engine.epochs().advance());
    let mut second = b.begin();
    assert_eq!(get(&mut second, store, "y"), Some(1));
    let one = ends(set(&mut first, store, "y", 2), first);
    engine.epochs().advance();
    engine.collect_orphaned();
    assert_eq!(engine.statistics().cold.rows, 1, "x has left memory");
    let other = set(&mut second, store, "x", 2);
    let committed = [one, ends(other, second)];
    assert_eq!(engine.statistics().cold.loaded, 1);
    (stage, committed)
}

admitted_without_the_safety_net!(
    a_row_that_leaves_memory_keeps_the_stamps_of_its_readers,
    skew_over_a_row_that_leaves_memory,
    [true, false]
);

#[test]
fn a_row_that_loses_the_stamps_of_its_readers_is_found() {
    let (_, committed) = skew_over_a_row_that_leaves_memory::<NoReadersOfCold>();
    assert_eq!(committed, [true, true]);
}

/// A transaction writes to "x" by `write` after it has seen a change of "y", gives up, and its caller is told what it has read; then deleted keys
/// leave the index, if `age`. Another one, which has not seen the change, writes to "x" as well. Returns whether the change and the last one commit.
fn write_behind_one_that_gives_up<I: Isolation>(
    mut stage: Stage<I>,
    write: impl Fn(&mut Transaction<'_, I>, &ErmiaStore, u64) -> Done,
    age: bool,
) -> [bool; 2] {
    let Stage { engine, store, sessions: [a, b, c, _] } = &mut stage;
    let mut last = c.begin();
    assert_eq!(get(&mut last, store, "y"), Some(1));
    let mut writer = a.begin();
    let one = ends(set(&mut writer, store, "y", 2), writer);
    let mut gives_up = b.begin();
    assert_eq!(get(&mut gives_up, store, "y"), Some(2));
    write(&mut gives_up, store, 2).unwrap();
    gives_up.check().unwrap();
    gives_up.abort();
    if age {
        (0..4).for_each(|_| engine.epochs().advance());
        b.collect();
    }
    let other = write(&mut last, store, 3);
    [one, ends(other, last)]
}

/// The transaction has missed "x" by inserting it.
fn insert_behind_one_that_gives_up<I: Isolation>() -> [bool; 2] {
    let insert_x = |tx: &mut Transaction<'_, I>, store: &_, value| insert(tx, store, "x", value);
    write_behind_one_that_gives_up(Stage::with(&[("y", 1)]), insert_x, false)
}

#[test]
fn an_insert_of_a_transaction_that_gives_up_has_missed_the_key() {
    assert_eq!(insert_behind_one_that_gives_up::<Recorded>(), [true, false]);
    assert_eq!(insert_behind_one_that_gives_up::<RecordedSnapshots>(), [true, true]);
}

/// The transaction has read the row that it overwrites.
fn update_behind_one_that_gives_up<I: Isolation>() -> [bool; 2] {
    let set_x = |tx: &mut Transaction<'_, I>, store: &_, value| set(tx, store, "x", value);
    write_behind_one_that_gives_up(Stage::with(&[("x", 1), ("y", 1)]), set_x, false)
}

#[test]
fn what_a_transaction_that_gives_up_has_overwritten_it_has_read() {
    assert_eq!(update_behind_one_that_gives_up::<Recorded>(), [true, false]);
    assert_eq!(update_behind_one_that_gives_up::<RecordedSnapshots>(), [true, true]);
}

/// The transaction has inserted over a deletion, which leaves the index later.
fn insert_behind_one_that_inserts_over_a_deletion<I: Isolation>() -> [bool; 2] {
    let mut stage = Stage::<I>::with(&[("x", 1), ("y", 1)]);
    let mut remover = stage.sessions[1].begin();
    delete(&mut remover, &stage.store, "x").unwrap();
    remover.commit().unwrap();
    let insert_x = |tx: &mut Transaction<'_, I>, store: &_, value| insert(tx, store, "x", value);
    write_behind_one_that_gives_up(stage, insert_x, true)
}

#[test]
fn a_deletion_that_was_inserted_over_takes_its_readers_out_of_the_index() {
    assert_eq!(insert_behind_one_that_inserts_over_a_deletion::<Recorded>(), [true, false]);
    assert_eq!(insert_behind_one_that_inserts_over_a_deletion::<RecordedSnapshots>(), [true, true]);
}

/// Returns the epoch of a deletion, and the last epochs that a snapshot and a transaction say they rely on, which have found the key missing
/// when it had left the index and was inserted again, or by inserting it.
fn epochs_behind_a_deletion<I: Isolation>() -> [u64; 3] {
    let mut stage = Stage::<I>::with(&[("gone", 1)]);
    let Stage { engine, store, sessions: [a, b, c, _] } = &mut stage;
    let mut remover = a.begin();
    delete(&mut remover, store, "gone").unwrap();
    let deleted = remover.commit().unwrap().epoch;
    let mut snapshot = b.begin_snapshot();
    (0..4).for_each(|_| engine.epochs().advance());
    a.collect();
    let mut inserter = c.begin();
    insert(&mut inserter, store, "gone", 2).unwrap();
    assert_eq!(get(&mut snapshot, store, "gone"), None);
    [deleted, snapshot.largest_epoch_seen(), inserter.check().unwrap()].map(|epoch| epoch.get())
}

#[test]
fn what_was_deleted_before_it_was_found_missing_has_to_be_durable_first() {
    for [deleted, of_snapshot, of_insert] in
        [epochs_behind_a_deletion::<Recorded>(), epochs_behind_a_deletion::<RecordedSnapshots>()]
    {
        assert!(of_snapshot >= deleted && of_insert >= deleted, "{deleted}, {of_snapshot}, {of_insert}");
    }
}
