//! Anomaly scripts: two or three transactions interleaved by hand, in one thread, on the raw API.
//!
//! Each script says who has to commit and who has to abort, and why; the recorded history is checked as well. Epochs are
//! advanced by hand.
#![allow(clippy::unwrap_used, reason = "tests")]

mod engine;

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use engine::{Recording, transaction_of};
use ensilo_check::{History, Options, TransactionId, check};
use ensilo_txn::{
    Abort, AbortReason, Advance, Committed, Direction, Engine, EngineOptions, Read, Session, Silo, Store,
    TableId, Worker, Write,
};

const EPOCHS_PER_SNAPSHOT: u64 = 2;

/// An engine with one store and three workers, and a way to their history.
struct Stage {
    engine: Arc<Silo<Recording>>,
    store: Arc<Store>,
    workers: [Worker<Recording>; 3],
}

impl Stage {
    /// A store with these rows, committed in an epoch of their own.
    fn with(rows: &[(&str, u64)]) -> Stage {
        let mut options = EngineOptions::default();
        options.epochs.advance = Advance::Manual;
        options.epochs.epochs_per_snapshot = EPOCHS_PER_SNAPSHOT;
        let engine = Silo::start(options).unwrap();
        let store = engine.new_store(TableId(1)).unwrap();
        let mut stage =
            Stage { workers: [engine.session(), engine.session(), engine.session()], engine, store };
        let mut load = stage.workers[0].begin();
        for (key, value) in rows {
            insert(&mut load, &stage.store, key, *value);
        }
        load.commit().unwrap();
        stage.engine.epochs().advance();
        stage
    }

    fn parts(&mut self) -> (&Store, [&mut Worker<Recording>; 3]) {
        (&self.store, self.workers.each_mut())
    }

    fn advance(&self, epochs: u64) {
        for _ in 0..epochs {
            self.engine.epochs().advance();
        }
    }

    /// Advances the epochs until all that is committed now is in the newest snapshot, and collects what is garbage then.
    fn age(&mut self) {
        self.advance(4 * EPOCHS_PER_SNAPSHOT);
        for worker in &mut self.workers {
            worker.collect();
        }
    }

    /// The rows in the end, after the history was found serializable.
    fn finish(mut self) -> Vec<(String, u64)> {
        let mut last = self.workers[0].begin();
        let rows = scan(&mut last, &self.store, "", None);
        last.commit().unwrap();
        let mut history = History::default();
        for (number, worker) in (0..).zip(&mut self.workers) {
            for (sequence, record) in (0..).zip(worker.take_history()) {
                let id = TransactionId { worker: number, sequence };
                history.transactions.push(transaction_of(id, &record));
            }
        }
        let verdict = check(&history, &Options::default());
        assert!(verdict.is_serializable(), "{verdict}");
        rows
    }
}

fn get(transaction: &mut impl Read<Store = Store>, store: &Store, key: &str) -> Option<u64> {
    transaction.get(store, key.as_bytes(), |row| row.word(0)).unwrap()
}

fn set(transaction: &mut impl Write<Store = Store>, store: &Store, key: &str, value: u64) {
    let found = transaction.find(store, key.as_bytes()).unwrap().unwrap();
    transaction.patch(found, &[(0, value)]).unwrap();
}

fn insert(transaction: &mut impl Write<Store = Store>, store: &Store, key: &str, value: u64) {
    assert!(transaction.insert(store, key.as_bytes(), &[value], 8).unwrap(), "{key} exists");
}

fn delete(transaction: &mut impl Write<Store = Store>, store: &Store, key: &str) {
    let found = transaction.find(store, key.as_bytes()).unwrap().unwrap();
    transaction.delete(found).unwrap();
}

/// All rows from `low` to before `high`.
fn scan(
    transaction: &mut impl Read<Store = Store>,
    store: &Store,
    low: &str,
    high: Option<&str>,
) -> Vec<(String, u64)> {
    let mut rows = scan_in(transaction, store, low, high, Direction::Forward);
    let mut backward = scan_in(transaction, store, low, high, Direction::Reverse);
    backward.reverse();
    assert_eq!(rows, backward);
    rows.shrink_to_fit();
    rows
}

fn scan_in(
    transaction: &mut impl Read<Store = Store>,
    store: &Store,
    low: &str,
    high: Option<&str>,
    direction: Direction,
) -> Vec<(String, u64)> {
    let mut rows = Vec::new();
    let bounds = (
        Bound::Included(low.as_bytes()),
        high.map_or(Bound::Unbounded, |high| Bound::Excluded(high.as_bytes())),
    );
    let decode =
        |key: &[u8], row: ensilo_txn::RowRef<'_>| (String::from_utf8(key.to_vec()).unwrap(), row.word(0));
    let each = |_, row| {
        rows.push(row);
        ControlFlow::Continue(())
    };
    transaction.scan(store, bounds, direction, decode, each).unwrap();
    rows
}

fn pairs(rows: &[(&str, u64)]) -> Vec<(String, u64)> {
    rows.iter().map(|(key, value)| (key.to_string(), *value)).collect()
}

fn reason(outcome: Result<Committed, Abort>) -> AbortReason {
    outcome.expect_err("the transaction had to abort").reason()
}

#[test]
fn dirty_read() {
    let mut stage = Stage::with(&[("x", 1)]);
    let (store, [a, b, c]) = stage.parts();
    // What A wrote and gave up is never seen, nor what it inserted.
    let (mut writer, mut reader) = (a.begin(), b.begin());
    set(&mut writer, store, "x", 2);
    insert(&mut writer, store, "y", 2);
    assert_eq!(get(&mut reader, store, "x"), Some(1));
    assert_eq!(get(&mut reader, store, "y"), None);
    assert_eq!(scan(&mut reader, store, "", None), pairs(&[("x", 1)]));
    reader.commit().unwrap();
    drop(writer);
    // A reader that has seen the row before and after a commit does not commit itself.
    let (mut writer, mut reader, mut late) = (a.begin(), b.begin(), c.begin());
    set(&mut writer, store, "x", 3);
    assert_eq!(get(&mut reader, store, "x"), Some(1));
    writer.commit().unwrap();
    assert_eq!(get(&mut reader, store, "x"), Some(3));
    assert_eq!(get(&mut late, store, "x"), Some(3));
    assert_eq!(reason(reader.commit()), AbortReason::ReadValidation);
    late.commit().unwrap();
    assert_eq!(stage.finish(), pairs(&[("x", 3)]));
}

#[test]
fn lost_update() {
    let mut stage = Stage::with(&[("x", 10)]);
    let (store, [a, b, _]) = stage.parts();
    let (mut first, mut second) = (a.begin(), b.begin());
    let seen = [get(&mut first, store, "x").unwrap(), get(&mut second, store, "x").unwrap()];
    set(&mut first, store, "x", seen[0] + 1);
    set(&mut second, store, "x", seen[1] + 1);
    first.commit().unwrap();
    assert_eq!(reason(second.commit()), AbortReason::ReadValidation);
    let mut again = b.begin();
    let seen = get(&mut again, store, "x").unwrap();
    set(&mut again, store, "x", seen + 1);
    again.commit().unwrap();
    assert_eq!(stage.finish(), pairs(&[("x", 12)]));
}

#[test]
fn write_skew() {
    let mut stage = Stage::with(&[("x", 1), ("y", 1)]);
    let (store, [a, b, _]) = stage.parts();
    // Each takes away one of the two as long as both are there.
    let (mut first, mut second) = (a.begin(), b.begin());
    for transaction in [&mut first, &mut second] {
        assert_eq!(get(transaction, store, "x").unwrap() + get(transaction, store, "y").unwrap(), 2);
    }
    set(&mut first, store, "x", 0);
    set(&mut second, store, "y", 0);
    first.commit().unwrap();
    assert_eq!(reason(second.commit()), AbortReason::ReadValidation);
    assert_eq!(stage.finish(), pairs(&[("x", 0), ("y", 1)]));
}

/// Fekete, O'Neil, O'Neil (2004): the account statement sees the deposit, but not the withdrawal that did not see it.
#[test]
fn read_only_anomaly() {
    let mut stage = Stage::with(&[("checking", 0), ("savings", 0)]);
    let (store, [a, b, c]) = stage.parts();
    let (mut withdraw, mut deposit) = (a.begin(), b.begin());
    assert_eq!(get(&mut withdraw, store, "checking"), Some(0));
    assert_eq!(get(&mut withdraw, store, "savings"), Some(0));
    set(&mut deposit, store, "savings", 20);
    deposit.commit().unwrap();
    let mut statement = c.begin();
    assert_eq!(scan(&mut statement, store, "", None), pairs(&[("checking", 0), ("savings", 20)]));
    statement.commit().unwrap();
    set(&mut withdraw, store, "checking", 11);
    assert_eq!(reason(withdraw.commit()), AbortReason::ReadValidation);
    assert_eq!(stage.finish(), pairs(&[("checking", 0), ("savings", 20)]));
}

#[test]
fn phantom_by_insert() {
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut stage = Stage::with(&[("a", 1), ("c", 1), ("sum", 0)]);
        let (store, [a, b, _]) = stage.parts();
        let (mut reader, mut writer) = (a.begin(), b.begin());
        let rows = scan_in(&mut reader, store, "a", Some("m"), direction);
        insert(&mut writer, store, "b", 1);
        writer.commit().unwrap();
        set(&mut reader, store, "sum", rows.len() as u64);
        assert_eq!(reason(reader.commit()), AbortReason::NodeValidation);
        // Nor into an empty range, nor where the placeholder stood already when the range was read.
        let (mut reader, mut writer) = (a.begin(), b.begin());
        insert(&mut writer, store, "e", 1);
        assert_eq!(scan_in(&mut reader, store, "d", Some("f"), direction), []);
        writer.commit().unwrap();
        set(&mut reader, store, "sum", 0);
        assert_eq!(reason(reader.commit()), AbortReason::ReadValidation);
        // A range that was not read may change, as far as the nodes are others.
        let (mut reader, mut writer) = (a.begin(), b.begin());
        assert_eq!(scan_in(&mut reader, store, "a", Some("m"), direction).len(), 4);
        set(&mut writer, store, "sum", 7);
        writer.commit().unwrap();
        insert(&mut reader, store, "total", 4);
        reader.commit().unwrap();
        let end = pairs(&[("a", 1), ("b", 1), ("c", 1), ("e", 1), ("sum", 7), ("total", 4)]);
        assert_eq!(stage.finish(), end);
    }
}

/// The same where the range spans many border nodes and the key comes into the last of them.
#[test]
fn phantom_by_insert_far_from_the_first_node() {
    let names: Vec<String> = (0..100).map(|number| format!("key{number:03}")).collect();
    let rows: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    for direction in [Direction::Forward, Direction::Reverse] {
        for inserted in ["key", "key0505", "key0991"] {
            let mut stage = Stage::with(&rows);
            let (store, [a, b, _]) = stage.parts();
            let (mut reader, mut writer) = (a.begin(), b.begin());
            assert_eq!(scan_in(&mut reader, store, "", None, direction).len(), 100);
            insert(&mut writer, store, inserted, 1);
            writer.commit().unwrap();
            set(&mut reader, store, "key050", 100);
            assert_eq!(reason(reader.commit()), AbortReason::NodeValidation);
            assert_eq!(stage.finish().len(), 101);
        }
    }
}

#[test]
fn phantom_by_delete() {
    let mut stage = Stage::with(&[("a", 1), ("b", 1), ("sum", 2)]);
    let (store, [a, b, _]) = stage.parts();
    let (mut reader, mut writer) = (a.begin(), b.begin());
    let rows = scan(&mut reader, store, "a", Some("m"));
    assert_eq!(rows.len(), 2);
    delete(&mut writer, store, "b");
    writer.commit().unwrap();
    set(&mut reader, store, "sum", rows.len() as u64);
    assert_eq!(reason(reader.commit()), AbortReason::ReadValidation);
    // The absent record is seen as no row, and its unhooking changes nothing for those who began before.
    let mut reader = a.begin();
    assert_eq!(scan(&mut reader, store, "a", Some("m")), pairs(&[("a", 1)]));
    set(&mut reader, store, "sum", 1);
    reader.commit().unwrap();
    stage.age();
    let (store, [a, b, _]) = stage.parts();
    // Unhooked: the range is empty of it; who inserts it again is noticed.
    let (mut reader, mut writer) = (a.begin(), b.begin());
    assert_eq!(scan(&mut reader, store, "a", Some("m")), pairs(&[("a", 1)]));
    insert(&mut writer, store, "b", 3);
    writer.commit().unwrap();
    set(&mut reader, store, "sum", 1);
    assert_eq!(reason(reader.commit()), AbortReason::NodeValidation);
    assert_eq!(stage.finish(), pairs(&[("a", 1), ("b", 3), ("sum", 1)]));
}

#[test]
fn phantom_by_missing_key() {
    let mut stage = Stage::with(&[("x", 0)]);
    let (store, [a, b, _]) = stage.parts();
    // Each inserts a key after it has missed the other's.
    let (mut first, mut second) = (a.begin(), b.begin());
    assert_eq!(get(&mut first, store, "left"), None);
    assert_eq!(get(&mut second, store, "right"), None);
    insert(&mut first, store, "right", 1);
    // The insert changes the node that the second relies on, which it notices at its own insert already.
    let overtaken = second.insert(store, b"left", &[1], 8).unwrap_err();
    assert_eq!(overtaken.reason(), AbortReason::NodeValidation);
    assert_eq!(reason(second.commit()), AbortReason::NodeValidation);
    // The first may be a victim of the second's attempt, but never both commit.
    let _ = first.commit();
    // The only witness is the miss itself.
    let (mut reader, mut writer) = (a.begin(), b.begin());
    assert_eq!(get(&mut reader, store, "middle"), None);
    insert(&mut writer, store, "middle", 1);
    writer.commit().unwrap();
    set(&mut reader, store, "x", 1);
    assert_eq!(reason(reader.commit()), AbortReason::NodeValidation);
    stage.finish();
}

/// A second key with the same slice turns the slot of the first into a layer: the miss in that layer is protected.
#[test]
fn phantom_by_missing_key_in_a_new_layer() {
    let mut stage = Stage::with(&[("prefix00-first", 0)]);
    let (store, [a, b, _]) = stage.parts();
    let (mut reader, mut writer) = (a.begin(), b.begin());
    assert_eq!(get(&mut reader, store, "prefix00-second"), None);
    insert(&mut writer, store, "prefix00-second", 1);
    writer.commit().unwrap();
    set(&mut reader, store, "prefix00-first", 1);
    assert_eq!(reason(reader.commit()), AbortReason::NodeValidation);
    let (mut reader, mut writer) = (a.begin(), b.begin());
    assert_eq!(get(&mut reader, store, "prefix00-third"), None);
    insert(&mut writer, store, "prefix00-third", 1);
    writer.commit().unwrap();
    set(&mut reader, store, "prefix00-first", 1);
    assert_eq!(reason(reader.commit()), AbortReason::NodeValidation);
    assert_eq!(stage.finish().len(), 3);
}

/// A key that leaves what all keys behind a slot begin with puts a node in front of them: the miss is protected, and who reads behind it is
/// not disturbed. An own insert of that kind keeps what was scanned before.
#[test]
fn phantom_by_missing_key_that_leaves_a_path() {
    let along = |len: usize, end: &str| "prefix00".repeat(len) + end;
    let mut stage = Stage::with(&[(&along(9, "first"), 0), (&along(9, "second"), 0)]);
    let (store, [a, b, _]) = stage.parts();
    for (missing, other) in [(along(4, "x"), along(4, "x")), (along(2, "y"), along(2, "z"))] {
        let (mut reader, mut writer) = (a.begin(), b.begin());
        assert_eq!(get(&mut reader, store, &missing), None);
        insert(&mut writer, store, &other, 1);
        writer.commit().unwrap();
        set(&mut reader, store, &along(9, "first"), 1);
        assert_eq!(reason(reader.commit()), AbortReason::NodeValidation);
    }
    let (mut reader, mut writer) = (a.begin(), b.begin());
    assert_eq!(get(&mut reader, store, &along(9, "third")), None);
    insert(&mut writer, store, &along(7, ""), 1);
    writer.commit().unwrap();
    set(&mut reader, store, &along(9, "first"), 1);
    reader.commit().unwrap();
    let mut own = a.begin();
    assert_eq!(scan(&mut own, store, "", None).len(), 5);
    insert(&mut own, store, &along(8, "own"), 1);
    assert_eq!(scan(&mut own, store, "", None).len(), 6);
    own.commit().unwrap();
    assert_eq!(stage.finish().len(), 6);
}

#[test]
fn own_insert_over_a_split() {
    let names: Vec<String> = (0..60).map(|number| format!("key{:02}", number * 7 % 60)).collect();
    let mut stage = Stage::with(&[("key00a", 0), ("key30a", 0)]);
    let (store, [a, b, _]) = stage.parts();
    // Own inserts split the nodes that were scanned, over and over, and make layers: the scan stays valid.
    let mut own = a.begin();
    assert_eq!(scan(&mut own, store, "", None).len(), 2);
    assert_eq!(get(&mut own, store, "key59zzzzzzzz"), None);
    for name in &names {
        insert(&mut own, store, name, 1);
        insert(&mut own, store, &format!("key30a--{name}"), 1);
    }
    assert_eq!(scan(&mut own, store, "", None).len(), 122);
    own.commit().unwrap();
    // Somebody else's insert before, between or after the own ones makes it invalid.
    for turn in 0..3 {
        let (mut own, mut other) = (a.begin(), b.begin());
        let before = scan(&mut own, store, "", None).len();
        for step in 0..3 {
            if step == turn {
                insert(&mut other, store, &format!("key{turn}5-other"), 1);
            }
            let insert_own = |number| {
                let key = format!("key{:02}-{turn}-{step}-{number}", number % 10);
                own.insert(store, key.as_bytes(), &[before as u64], 8)
            };
            if (0..20).map(insert_own).any(|outcome| outcome.is_err()) {
                break;
            }
        }
        other.commit().unwrap();
        assert!(matches!(reason(own.commit()), AbortReason::NodeValidation | AbortReason::ReadValidation));
    }
    assert_eq!(stage.finish().len(), 125);
}

/// After an own insert has split a scanned node, or made a layer in it, a foreign insert is noticed in each part.
#[test]
fn a_foreign_insert_after_an_own_split() {
    let names: Vec<String> = (0..14).map(|number| format!("key{number:02}")).collect();
    let rows: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    let foreign = names.iter().map(|name| format!("{name}+")).chain(["key07-layer-second".to_string()]);
    for (foreign, own) in foreign.flat_map(|name| ["key00", "key07", "key13"].map(|own| (name.clone(), own)))
    {
        let mut stage = Stage::with(&rows);
        let (store, [a, b, _]) = stage.parts();
        let mut reader = a.begin();
        assert_eq!(scan(&mut reader, store, "", None).len(), 14);
        for number in 0..3 {
            insert(&mut reader, store, &format!("{own}-{number}"), 1);
        }
        insert(&mut reader, store, "key07-layer-first", 1);
        let mut writer = b.begin();
        insert(&mut writer, store, &foreign, 1);
        writer.commit().unwrap();
        assert_eq!(reason(reader.commit()), AbortReason::NodeValidation, "{foreign} after {own}");
        assert_eq!(stage.finish().len(), 15);
    }
}

#[test]
fn delete_and_reinsert() {
    let mut stage = Stage::with(&[("x", 1), ("y", 1)]);
    let (store, [a, b, _]) = stage.parts();
    // Within one transaction, with what it sees in between.
    let (mut own, mut other) = (a.begin(), b.begin());
    assert_eq!(get(&mut other, store, "x"), Some(1));
    delete(&mut own, store, "x");
    assert_eq!(get(&mut own, store, "x"), None);
    assert_eq!(scan(&mut own, store, "", None), pairs(&[("y", 1)]));
    insert(&mut own, store, "x", 2);
    assert_eq!(get(&mut own, store, "x"), Some(2));
    assert!(!own.insert(store, b"x", &[3], 8).unwrap());
    insert(&mut own, store, "z", 2);
    delete(&mut own, store, "z");
    assert_eq!(get(&mut own, store, "z"), None);
    assert_eq!(scan(&mut own, store, "", None), pairs(&[("x", 2), ("y", 1)]));
    own.commit().unwrap();
    // The key is there as before, but the row is another one.
    set(&mut other, store, "y", 9);
    assert_eq!(reason(other.commit()), AbortReason::ReadValidation);
    // Over an absent record, which its clean-up must then leave alone.
    let mut remover = a.begin();
    delete(&mut remover, store, "x");
    remover.commit().unwrap();
    let (mut first, mut second) = (a.begin(), b.begin());
    assert_eq!(get(&mut second, store, "x"), None);
    insert(&mut first, store, "x", 3);
    insert(&mut second, store, "x", 4);
    first.commit().unwrap();
    assert!(second.commit().is_err());
    stage.age();
    let (store, [a, b, _]) = stage.parts();
    let mut reader = a.begin();
    assert_eq!(scan(&mut reader, store, "", None), pairs(&[("x", 3), ("y", 1)]));
    reader.commit().unwrap();
    // Once more, this time after the record was unhooked.
    let mut remover = b.begin();
    delete(&mut remover, store, "x");
    remover.commit().unwrap();
    stage.age();
    let (store, [a, ..]) = stage.parts();
    let mut own = a.begin();
    insert(&mut own, store, "x", 5);
    own.commit().unwrap();
    assert_eq!(stage.finish(), pairs(&[("x", 5), ("y", 1)]));
}

/// Whoever commits into a placeholder takes it over from the transaction that made it, whatever becomes of it then.
#[test]
fn a_placeholder_that_others_took_over_is_left_alone() {
    for replaces in [false, true] {
        let mut stage = Stage::with(&[]);
        for _ in 0..3 {
            let (store, [a, b, c]) = stage.parts();
            let mut maker = a.begin();
            insert(&mut maker, store, "p", 1);
            let mut heir = b.begin();
            insert(&mut heir, store, "p", 2);
            heir.commit().unwrap();
            let mut last = c.begin();
            let found = last.find(store, b"p").unwrap().unwrap();
            if replaces {
                last.put(found, &[3; 40], 320).unwrap()
            } else {
                last.delete(found).unwrap()
            }
            last.commit().unwrap();
            drop(maker);
            stage.age();
            stage.age();
            // Memory that was freed twice would now belong to two rows at a time.
            let (store, [a, b, _]) = stage.parts();
            let rows: Vec<(String, u64)> =
                (100..160).map(|number| (format!("row{number}"), number)).collect();
            for (worker, half) in [a, b].into_iter().zip(rows.chunks(30)) {
                let mut writer = worker.begin();
                for (key, value) in half {
                    insert(&mut writer, store, key, *value);
                }
                writer.commit().unwrap();
            }
            let (store, [a, _, c]) = stage.parts();
            let mut cleaner = a.begin();
            assert_eq!(scan(&mut cleaner, store, "row", None), rows);
            for (key, _) in &rows {
                delete(&mut cleaner, store, key);
            }
            cleaner.commit().unwrap();
            if replaces {
                let mut cleaner = c.begin();
                delete(&mut cleaner, store, "p");
                cleaner.commit().unwrap();
            }
            stage.age();
        }
        assert_eq!(stage.finish(), []);
    }
}

#[test]
fn a_patch_of_a_row_that_was_shortened_since_aborts() {
    let mut stage = Stage::with(&[]);
    let (store, [a, b, _]) = stage.parts();
    let mut load = a.begin();
    assert!(load.insert(store, b"x", &[1, 2, 3, 4], 32).unwrap());
    load.commit().unwrap();
    let (mut patcher, mut shortener) = (a.begin(), b.begin());
    let found = patcher.find(store, b"x").unwrap().unwrap();
    assert_eq!(patcher.read(found, |row| row.word(3)).unwrap(), 4);
    let same = shortener.find(store, b"x").unwrap().unwrap();
    shortener.put(same, &[9], 8).unwrap();
    shortener.commit().unwrap();
    // Whether it shows at the patch or at the commit is the engine's choice.
    let patched = patcher.patch(found, &[(3, 5)]);
    assert_eq!(reason(patched.and_then(|()| patcher.commit())), AbortReason::ReadValidation);
    assert_eq!(stage.finish(), pairs(&[("x", 9)]));
}

#[test]
fn snapshot_sees_deletes_and_inserts_of_its_past_only() {
    let mut stage = Stage::with(&[("gone", 1), ("kept", 1)]);
    stage.age();
    let (store, [a, b, _]) = stage.parts();
    let mut early = b.begin_snapshot();
    let mut writer = a.begin();
    delete(&mut writer, store, "gone");
    insert(&mut writer, store, "new", 2);
    set(&mut writer, store, "kept", 2);
    writer.commit().unwrap();
    assert_eq!(scan(&mut early, store, "", None), pairs(&[("gone", 1), ("kept", 1)]));
    for _ in 0..4 * EPOCHS_PER_SNAPSHOT {
        early_advance(a);
        assert_eq!(scan(&mut early, store, "", None), pairs(&[("gone", 1), ("kept", 1)]));
        assert_eq!(get(&mut early, store, "gone"), Some(1));
        assert_eq!(get(&mut early, store, "new"), None);
    }
    drop(early);
    let mut late = b.begin_snapshot();
    assert_eq!(scan(&mut late, store, "", None), pairs(&[("kept", 2), ("new", 2)]));
    drop(late);
    assert_eq!(stage.finish(), pairs(&[("kept", 2), ("new", 2)]));
}

/// The next epoch, and what a worker cleans up in it.
fn early_advance(worker: &mut Worker<Recording>) {
    worker.engine().epochs().advance();
    worker.collect();
}

#[test]
fn snapshot_is_consistent_under_transfers() {
    let names: Vec<String> = (0..40).map(|number| format!("account{number:02}")).collect();
    let rows: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 100)).collect();
    let mut stage = Stage::with(&rows);
    stage.age();
    let (store, [a, b, c]) = stage.parts();
    let mut random = engine::random::Random::new(7);
    for _ in 0..30 {
        // Two snapshots of different ages read while transfers go on between their reads.
        let mut old = b.begin_snapshot();
        let mut sums = [0, 0];
        for name in &names[..20] {
            sums[0] += get(&mut old, store, name).unwrap();
            transfer(a, store, &names, &mut random);
        }
        let mut new = c.begin_snapshot();
        for (name, late) in names[20..].iter().zip(&names) {
            sums[0] += get(&mut old, store, name).unwrap();
            sums[1] += get(&mut new, store, late).unwrap();
            transfer(a, store, &names, &mut random);
            if random.one_in(3) {
                early_advance(a);
            }
        }
        let rest: u64 = scan(&mut new, store, &names[20], None).iter().map(|(_, balance)| balance).sum();
        assert_eq!([sums[0], sums[1] + rest], [4000, 4000]);
    }
    let total: u64 = stage.finish().iter().map(|(_, balance)| balance).sum();
    assert_eq!(total, 4000);
}

/// The rows behind the place at which a scan ended were not looked for: no record may say that they were missing.
#[test]
fn a_scan_of_a_store_that_is_dropped_meanwhile_is_not_recorded_as_complete() {
    let names: Vec<String> = (0..100).map(|number| format!("{number:03}")).collect();
    let rows: Vec<(&str, u64)> = names.iter().map(|name| (&**name, 1)).collect();
    let mut stage = Stage::with(&rows);
    stage.age();
    let engine = Arc::clone(&stage.engine);
    let (store, [_, reader, _]) = stage.parts();
    let mut snapshot = reader.begin_snapshot();
    let mut count = 0;
    let each = |_, ()| {
        count += 1;
        if count == 1 {
            assert!(engine.drop_store(store.id()));
        }
        ControlFlow::Continue(())
    };
    let bounds = (Bound::Unbounded, Bound::Unbounded);
    let ended = snapshot.scan(store, bounds, Direction::Forward, |_, _| (), each);
    assert_eq!(ended.unwrap_err().reason(), AbortReason::StoreDropped);
    drop(snapshot);
    assert!(count < names.len(), "the drop is noticed at the next node");
    let records = reader.take_history();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].reads.len(), count);
    assert!(records[0].ranges.is_empty(), "{:?}", records[0].ranges);
}

fn transfer(
    worker: &mut Worker<Recording>,
    store: &Store,
    names: &[String],
    random: &mut engine::random::Random,
) {
    let [from, to] = [random.within(0..names.len()), random.within(0..names.len())];
    let mut transaction = worker.begin();
    let balance = get(&mut transaction, store, &names[from]).unwrap();
    let amount = random.within(0..balance as usize + 1) as u64;
    set(&mut transaction, store, &names[from], balance - amount);
    let balance = get(&mut transaction, store, &names[to]).unwrap();
    set(&mut transaction, store, &names[to], balance + amount);
    transaction.commit().unwrap();
}
