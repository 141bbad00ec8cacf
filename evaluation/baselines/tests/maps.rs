//! The engines that are compared do what they promise: alone they are maps, and each keeps what it says under threads.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, Mutex};

use ensilo_baselines::{KeyValue, PartitionedStore};
use ensilo_engine::{Direction, Engine, EngineOptions, Read, RowRef, Session, TableId, Write};
use ensilo_epoch::{Advance, EpochOptions};
use ensilo_slab::AccountId;
use ensilo_txn::{Allocator, NoGc, Silo, Simple};

const KEYS: u64 = 40;
const ROW_WORDS_MAX: u64 = 40;
/// What a few nodes take.
const NODES_BYTES: u64 = 2_000;

type Model = BTreeMap<String, Vec<u64>>;

/// A generator of its own, so that a seed brings back what was done.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % bound
    }

    fn key(&mut self) -> String {
        // Some fit a slice of the index, some do not.
        let key = self.below(KEYS);
        if key.is_multiple_of(3) {
            format!("a long key that has a layer {key:02}")
        } else {
            format!("{key:02}")
        }
    }

    fn row(&mut self) -> Vec<u64> {
        let words = 1 + self.below(ROW_WORDS_MAX);
        (0..words).map(|_| self.below(1 << 40)).collect()
    }
}

/// An engine whose epochs advance by hand.
fn manual_engine<E: Engine>() -> Arc<E> {
    let mut options = EngineOptions::default();
    options.epochs = EpochOptions { epochs_per_snapshot: 5, advance: Advance::Manual, ..options.epochs };
    E::start(options).unwrap()
}

fn insert<T: Write>(tx: &mut T, store: &T::Store, key: &str, row: &[u64]) -> bool {
    tx.insert(store, key.as_bytes(), row, row.len() * 8).unwrap()
}

fn read<T: Read>(tx: &mut T, store: &T::Store, key: &str) -> Option<Vec<u64>> {
    tx.get(store, key.as_bytes(), |row| row.all_words().collect()).unwrap()
}

/// One statement on the store and on the model, with the same answer.
fn step<T: Write>(tx: &mut T, store: &T::Store, model: &mut Model, random: &mut Random) {
    let key = random.key();
    match random.below(7) {
        0 => assert_eq!(read(tx, store, &key), model.get(&key).cloned()),
        1 => {
            let row = random.row();
            let is_new = insert(tx, store, &key, &row);
            assert_eq!(is_new, !model.contains_key(&key), "{key}");
            model.entry(key).or_insert(row);
        }
        2 => scan(tx, store, model, random),
        _ => {
            let found = tx.find(store, key.as_bytes()).unwrap();
            assert_eq!(found.is_some(), model.contains_key(&key));
            let Some(found) = found else { return };
            // Handles stay good while their row moves.
            let again = tx.find(store, key.as_bytes()).unwrap().unwrap();
            match random.below(4) {
                0 => {
                    let index = random.below(model[&key].len() as u64) as usize;
                    tx.patch(found, &[(index as u32, 7)]).unwrap();
                    model.get_mut(&key).unwrap()[index] = 7;
                }
                1 => {
                    tx.delete(found).unwrap();
                    model.remove(&key);
                    return;
                }
                _ => {
                    let row = random.row();
                    tx.put(found, &row, row.len() * 8).unwrap();
                    model.insert(key.clone(), row);
                }
            }
            assert_eq!(tx.read(again, |row| row.word(0)).unwrap(), model[&key][0]);
        }
    }
}

fn scan<T: Read>(tx: &mut T, store: &T::Store, model: &Model, random: &mut Random) {
    let (low, direction) = (random.key(), [Direction::Forward, Direction::Reverse][random.below(2) as usize]);
    let mut seen = Vec::new();
    let bounds = (Bound::Excluded(low.as_bytes()), Bound::Unbounded);
    let decode = |key: &[u8], row: RowRef<'_>| (String::from_utf8(key.to_vec()).unwrap(), row.word(0));
    tx.scan(store, bounds, direction, decode, |_, entry| {
        seen.push(entry);
        ControlFlow::Continue(())
    })
    .unwrap();
    let range = model.range((Bound::Excluded(low), Bound::Unbounded));
    let mut expected: Vec<_> = range.map(|(key, row)| (key.clone(), row[0])).collect();
    if direction == Direction::Reverse {
        expected.reverse();
    }
    assert_eq!(seen, expected);
}

/// Runs random transactions by one session, beside a map. A third of them is rolled back where that is possible.
fn is_a_map<E: Engine>(bytes_left_max: u64) {
    for seed in 1..60 {
        let engine = manual_engine::<E>();
        let store = engine.new_store(TableId(1)).unwrap();
        let mut session = engine.session();
        let (mut model, mut random) = (Model::new(), Random(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15)));
        for _ in 0..200 {
            let mut changed = model.clone();
            let mut tx = session.begin();
            for _ in 0..random.below(12) {
                step(&mut tx, &store, &mut changed, &mut random);
            }
            match random.below(6) {
                0 if E::IS_TRANSACTIONAL => drop(tx),
                1 if E::IS_TRANSACTIONAL => tx.abort(),
                _ => {
                    tx.check().unwrap();
                    tx.commit().unwrap();
                    model = changed;
                }
            }
            engine.epochs().advance();
        }
        let mut tx = session.begin();
        for key in model.keys() {
            assert_eq!(read(&mut tx, &store, key).as_ref(), model.get(key), "seed {seed}");
        }
        tx.commit().unwrap();
        let left = bytes_left::<E>(&engine, &store, &mut session);
        assert!(left <= bytes_left_max, "{left} bytes are left");
    }
}

/// The memory that is left when everything is deleted and all garbage is collected: that of some nodes.
fn bytes_left<E: Engine>(engine: &E, store: &E::Store, session: &mut E::Session) -> u64 {
    let mut tx = session.begin();
    let mut all = Vec::new();
    let bounds = (Bound::Unbounded, Bound::Unbounded);
    tx.scan(
        store,
        bounds,
        Direction::Forward,
        |_, _| (),
        |found, ()| {
            all.push(found);
            ControlFlow::Continue(())
        },
    )
    .unwrap();
    all.into_iter().for_each(|found| tx.delete(found).unwrap());
    tx.commit().unwrap();
    for _ in 0..100 {
        engine.epochs().advance();
        session.collect();
    }
    engine.statistics().memory.of(AccountId(1))
}

#[test]
fn single_keys_are_a_map() {
    is_a_map::<KeyValue>(NODES_BYTES);
}

#[test]
fn a_partition_is_a_map_with_transactions() {
    is_a_map::<PartitionedStore>(NODES_BYTES);
}

#[test]
fn so_are_the_variants_of_silo() {
    is_a_map::<Silo>(NODES_BYTES);
    is_a_map::<Silo<Simple>>(NODES_BYTES);
    is_a_map::<Silo<Allocator>>(NODES_BYTES);
    is_a_map::<Silo<NoGc>>(u64::MAX);
}

/// A row whose words say which writer it is of: torn ones do not.
fn row_of(writer: u64, words: u64) -> Vec<u64> {
    (0..words).map(|at| writer * 1000 + at).collect()
}

#[test]
fn single_keys_are_read_and_written_whole_by_many_threads() {
    let engine = KeyValue::start(EngineOptions::default()).unwrap();
    let store = engine.new_store(TableId(1)).unwrap();
    let keys = ["one", "two", "three"];
    std::thread::scope(|scope| {
        for thread in 1..5 {
            let (engine, store) = (&engine, &store);
            scope.spawn(move || {
                let mut session = engine.session();
                let mut random = Random(thread);
                for turn in 0..20_000 {
                    let key = keys[random.below(3) as usize];
                    let mut tx = session.begin();
                    let row = row_of(thread, 2 + random.below(if turn % 16 == 0 { 60 } else { 4 }));
                    match (random.below(8), tx.find(store, key.as_bytes()).unwrap()) {
                        (0, Some(found)) => tx.delete(found).unwrap(),
                        (1..4, Some(found)) => tx.put(found, &row, row.len() * 8).unwrap(),
                        (4, None) => _ = insert(&mut tx, store, key, &row),
                        _ => {
                            if let Some(row) = read(&mut tx, store, key) {
                                assert_eq!(row, row_of(row[0] / 1000, row.len() as u64), "a torn row");
                            }
                        }
                    }
                    tx.commit().unwrap();
                }
            });
        }
    });
}

#[test]
fn transactions_of_a_partition_under_its_lock_lose_nothing() {
    let engine = PartitionedStore::start(EngineOptions::default()).unwrap();
    let store = engine.new_store(TableId(1)).unwrap();
    let mut session = engine.session();
    let mut tx = session.begin();
    assert!(insert(&mut tx, &store, "from", &[40_000]) && insert(&mut tx, &store, "to", &[0]));
    tx.commit().unwrap();
    let partition = Mutex::new(());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut session = engine.session();
                for turn in 0..10_000 {
                    let _locked = partition.lock().unwrap();
                    let mut tx = session.begin();
                    for (key, difference) in [("from", -1), ("to", 1)] {
                        let found = tx.find(&store, key.as_bytes()).unwrap().unwrap();
                        let balance = tx.read(found, |row| row.word(0)).unwrap();
                        tx.patch(found, &[(0, balance.wrapping_add_signed(difference))]).unwrap();
                    }
                    if turn % 10 == 0 { tx.abort() } else { _ = tx.commit().unwrap() }
                }
            });
        }
    });
    let mut tx = session.begin();
    assert_eq!(read(&mut tx, &store, "from"), Some(vec![4_000]));
    assert_eq!(read(&mut tx, &store, "to"), Some(vec![36_000]));
    tx.commit().unwrap();
}

#[test]
#[should_panic(expected = "no snapshots")]
fn there_are_no_snapshots() {
    drop(manual_engine::<PartitionedStore>().session().begin_snapshot());
}
