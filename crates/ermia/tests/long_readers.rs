//! A transaction that lasts long keeps the versions that it sees, and no others.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use ensilo_engine::{Direction, Engine, EngineOptions, Read, Session, TableId, Write};
use ensilo_epoch::Advance;
use ensilo_ermia::{Ermia, ErmiaSession, ErmiaStore, Isolation, Serializable, SnapshotIsolation};

const KEYS: u64 = 10;

/// So many updates of each row: far more than there are versions that may wait for one to see that they are in the way.
const ROUNDS: u64 = 3000;

/// Versions that wait until somebody looks for those in the way, or until nobody walks over them.
const WAITING_MAX: u64 = 8000;

struct Stage<I: Isolation> {
    engine: Arc<Ermia<I>>,
    store: Arc<ErmiaStore>,
    writers: [ErmiaSession<I>; 2],
    /// What every row holds.
    value: u64,
}

impl<I: Isolation> Stage<I> {
    fn new() -> Self {
        let mut options = EngineOptions::default();
        options.epochs.advance = Advance::Manual;
        options.snapshot_age_max = u64::MAX;
        let engine = Ermia::<I>::start(options).unwrap();
        let store = engine.new_store(TableId(1)).unwrap();
        let writers = [engine.session(), engine.session()];
        let mut stage = Stage { engine, store, writers, value: 0 };
        let mut tx = stage.writers[0].begin();
        for key in 0..KEYS {
            assert!(tx.insert(&stage.store, &key.to_be_bytes(), &[0], 8).unwrap());
        }
        tx.commit().unwrap();
        stage
    }

    /// Updates every row so many times, by two sessions in turn. Now and then an epoch goes by.
    fn update(&mut self, rounds: u64) {
        for _ in 0..rounds {
            self.value += 1;
            let mut tx = self.writers[self.value as usize % 2].begin();
            for key in 0..KEYS {
                let found = tx.find(&self.store, &key.to_be_bytes()).unwrap().unwrap();
                tx.put(found, &[self.value], 8).unwrap();
            }
            tx.commit().unwrap();
            if self.value.is_multiple_of(32) {
                self.engine.epochs().advance();
            }
        }
    }

    /// Lets everything go that may.
    fn settle(&mut self) {
        for _ in 0..ROUNDS {
            self.engine.epochs().advance();
            self.writers.iter_mut().for_each(|writer| _ = writer.collect());
        }
    }

    fn kept(&self) -> u64 {
        self.engine.statistics().transactions.versions
    }
}

/// Returns the one value that all rows have, each found by its key and all by a scan.
fn value_of(tx: &mut impl Read<Store = ErmiaStore>, store: &ErmiaStore) -> u64 {
    let mut values: Vec<u64> =
        (0..KEYS).map(|key| tx.get(store, &key.to_be_bytes(), |row| row.word(0)).unwrap().unwrap()).collect();
    let all = (Bound::Unbounded, Bound::Unbounded);
    tx.scan(
        store,
        all,
        Direction::Reverse,
        |_, row| row.word(0),
        |_, value| {
            values.push(value);
            ControlFlow::Continue(())
        },
    )
    .unwrap();
    assert_eq!(values.len() as u64, 2 * KEYS);
    values.dedup();
    assert_eq!(values.len(), 1, "{values:?}");
    values[0]
}

fn a_snapshot_keeps_what_it_sees<I: Isolation>() {
    let mut stage = Stage::<I>::new();
    stage.update(10);
    let (mut one, mut other) = (stage.engine.session(), stage.engine.session());
    let mut early = one.begin_snapshot();
    let handle = early.find(&stage.store, &0u64.to_be_bytes()).unwrap().unwrap();
    assert_eq!(value_of(&mut early, &stage.store), 10);
    stage.update(ROUNDS);
    let mut late = other.begin_snapshot();
    stage.update(ROUNDS);
    assert!(stage.kept() < WAITING_MAX, "{} versions are kept", stage.kept());
    stage.settle();
    assert_eq!(stage.kept(), 2 * KEYS, "what the two see");
    assert_eq!(value_of(&mut early, &stage.store), 10);
    assert_eq!(early.read(handle, |row| row.word(0)).unwrap(), 10);
    assert_eq!(value_of(&mut late, &stage.store), ROUNDS + 10);
    drop(early);
    stage.settle();
    assert_eq!(stage.kept(), KEYS, "what the later one sees");
    assert_eq!(value_of(&mut late, &stage.store), ROUNDS + 10);
    drop(late);
    stage.settle();
    assert_eq!(stage.kept(), 0);
    assert_eq!(value_of(&mut other.begin_snapshot(), &stage.store), 2 * ROUNDS + 10);
}

#[test]
fn a_snapshot_keeps_what_it_sees_and_no_more() {
    a_snapshot_keeps_what_it_sees::<Serializable>();
    a_snapshot_keeps_what_it_sees::<SnapshotIsolation>();
}

#[test]
fn the_later_of_two_snapshots_may_end_first() {
    let mut stage = Stage::<Serializable>::new();
    let (mut one, mut other) = (stage.engine.session(), stage.engine.session());
    let mut early = one.begin_snapshot();
    stage.update(ROUNDS);
    let mut late = other.begin_snapshot();
    stage.update(ROUNDS);
    assert_eq!(value_of(&mut late, &stage.store), ROUNDS);
    drop(late);
    stage.update(ROUNDS);
    stage.settle();
    assert_eq!(stage.kept(), KEYS);
    assert_eq!(value_of(&mut early, &stage.store), 0);
}

#[test]
fn rows_that_come_and_go_beside_a_snapshot_leave_nothing() {
    let mut stage = Stage::<Serializable>::new();
    let mut session = stage.engine.session();
    let mut snapshot = session.begin_snapshot();
    let Stage { engine, store, writers: [writer, _], .. } = &mut stage;
    let key = 0u64.to_be_bytes();
    for round in 1..=ROUNDS {
        let mut tx = writer.begin();
        let found = tx.find(store, &key).unwrap().unwrap();
        tx.delete(found).unwrap();
        tx.commit().unwrap();
        let mut tx = writer.begin();
        assert!(tx.insert(store, &key, &[round], 8).unwrap());
        tx.commit().unwrap();
        let mut tx = writer.begin();
        let found = tx.find(store, &key).unwrap().unwrap();
        // Two versions of its own, the second of which is larger, and one that is taken back.
        tx.put(found, &[round, 0], 16).unwrap();
        tx.put(found, &[round; 40], 320).unwrap();
        if round.is_multiple_of(2) {
            drop(tx)
        } else {
            _ = tx.commit().unwrap()
        };
        engine.epochs().advance();
    }
    stage.settle();
    assert_eq!(stage.kept(), 1, "the row that the snapshot sees");
    assert_eq!(value_of(&mut snapshot, &stage.store), 0);
    drop(snapshot);
    stage.settle();
    assert_eq!(stage.kept(), 0);
}

#[test]
fn a_transaction_that_reads_for_long_keeps_what_it_sees_and_no_more() {
    let mut stage = Stage::<SnapshotIsolation>::new();
    let mut session = stage.engine.session();
    let mut reader = session.begin();
    assert_eq!(value_of(&mut reader, &stage.store), 0);
    for _ in 0..2 {
        stage.update(ROUNDS);
        // It has not looked since, and may be on its way over what is taken out.
        stage.settle();
        assert_eq!(value_of(&mut reader, &stage.store), 0);
        stage.settle();
        assert_eq!(stage.kept(), KEYS);
    }
    reader.commit().unwrap();
}

/// Scans every row in the middle of whose way the rows are updated and the table is dropped, while others use what memory that leaves.
fn scan_beside_a_drop(reader: &mut impl Read<Store = ErmiaStore>, mut stage: Stage<SnapshotIsolation>) {
    let store = Arc::clone(&stage.store);
    let other = stage.engine.new_store(TableId(2)).unwrap();
    let (mut seen, mut is_dropped) = (Vec::new(), false);
    let all = (Bound::Unbounded, Bound::Unbounded);
    let decode = |_: &[u8], row: ensilo_engine::RowRef<'_>| row.word(0);
    let ended = reader.scan(&store, all, Direction::Forward, decode, |_, value| {
        seen.push(value);
        if !std::mem::replace(&mut is_dropped, true) {
            stage.update(2 * ROUNDS);
            assert!(stage.engine.drop_store(TableId(1)));
        }
        stage.settle();
        for key in 0..1000 {
            let key = (seen.len() as u64 * 1000 + key).to_be_bytes();
            let mut tx = stage.writers[0].begin();
            assert!(tx.insert(&other, &key, &[u64::MAX], 8).unwrap());
            tx.commit().unwrap();
        }
        ControlFlow::Continue(())
    });
    assert!(seen.iter().all(|value| *value == 0), "{seen:?}");
    assert!(ended.is_err() || seen.len() as u64 == KEYS);
}

#[test]
fn a_scan_of_a_table_that_is_dropped_sees_what_it_saw_before() {
    let stage = Stage::<SnapshotIsolation>::new();
    let mut session = stage.engine.session();
    scan_beside_a_drop(&mut session.begin_snapshot(), stage);
    let stage = Stage::<SnapshotIsolation>::new();
    let mut session = stage.engine.session();
    scan_beside_a_drop(&mut session.begin(), stage);
}
