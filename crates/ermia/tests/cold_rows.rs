//! Rows that leave memory and come back.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::fs;
use std::ops::{Bound, ControlFlow};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use ensilo_disk::{Disk, RealDisk};
use ensilo_engine::{
    AbortReason, ColdPlace, Direction, Engine, EngineOptions, KeyRange, Read, Session, TableId, Write,
};
use ensilo_epoch::{Advance, Epoch};
use ensilo_ermia::{Ermia, ErmiaSession, ErmiaStore, Isolation, Serializable, SnapshotIsolation};
use ensilo_log::{Change, Replay as _, ReplayError, Write as LogWrite};

#[path = "cold_rows/files.rs"]
mod files;

const LIMIT_BYTES: u64 = 8 << 20;
const FILE_BYTES: u64 = 3 << 20;
const ROW_WORDS: usize = 40;

/// A directory that goes with the test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ensilo-cold-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn options(disk: Arc<dyn Disk>, directory: &Directory, limit_bytes: u64) -> EngineOptions {
    let mut place = ColdPlace::new(disk, directory.0.join("cold"));
    place.file_bytes = FILE_BYTES;
    let mut options = EngineOptions::default();
    options.epochs.advance = Advance::Manual;
    options.memory_limit_bytes = Some(limit_bytes);
    options.cold_place = Some(place);
    options
}

struct Stage<I: Isolation> {
    engine: Arc<Ermia<I>>,
    store: Arc<ErmiaStore>,
    session: ErmiaSession<I>,
    directory: Directory,
}

impl<I: Isolation> Stage<I> {
    fn new(name: &str) -> Self {
        Self::within(name, LIMIT_BYTES)
    }

    fn within(name: &str, limit_bytes: u64) -> Self {
        Self::with(Arc::new(RealDisk), name, limit_bytes)
    }

    fn on(disk: Arc<dyn Disk>, name: &str) -> Self {
        Self::with(disk, name, LIMIT_BYTES)
    }

    fn with(disk: Arc<dyn Disk>, name: &str, limit_bytes: u64) -> Self {
        let directory = Directory::new(name);
        let engine = Ermia::<I>::start(options(disk, &directory, limit_bytes)).unwrap();
        let store = engine.new_store(TableId(1)).unwrap();
        let session = engine.session();
        Stage { engine, store, session, directory }
    }

    /// Lets epochs go by, and what has cooled leave; in a shortage lends memory, as the collector does.
    fn collect(&mut self) {
        self.lend_in_a_shortage();
        for _ in 0..4 {
            self.engine.epochs().advance();
            for _ in 0..50 {
                self.engine.collect_orphaned();
            }
        }
    }

    fn lend_in_a_shortage(&mut self) {
        if self.engine.take_shortage() {
            self.engine.return_lent_memory();
            self.engine.trim_orphaned();
            self.session.trim(&|| false);
            self.engine.lend_orphaned();
            self.session.lend(&|| false);
        }
    }

    /// Runs a transaction until it finds memory.
    fn run<R>(
        &mut self,
        mut body: impl FnMut(
            &mut ensilo_engine::TransactionOf<'_, Ermia<I>>,
            &ErmiaStore,
        ) -> Result<R, ensilo_engine::Abort>,
    ) -> R {
        for _ in 0..100 {
            let mut tx = self.session.begin();
            let outcome = body(&mut tx, &self.store);
            match outcome.and_then(|value| tx.commit().map(|_| value)) {
                Ok(value) => return value,
                Err(abort) => assert_eq!(abort.reason(), AbortReason::OutOfMemory),
            }
            while self.session.collect() == ensilo_engine::Remains::Now {}
            self.collect();
        }
        let statistics = self.engine.statistics();
        panic!("no memory came back: {:?}, {:?}", statistics.memory, statistics.cold)
    }

    fn write(&mut self, key: u64, value: Option<u64>) {
        match value {
            Some(value) => self.put(key, &[value; ROW_WORDS]),
            None => self.run(|tx, store| match tx.find(store, &key.to_be_bytes())? {
                Some(found) => tx.delete(found),
                None => Ok(()),
            }),
        }
    }

    /// Inserts a row of these words, or overwrites the one that is there.
    fn put(&mut self, key: u64, words: &[u64]) {
        let key = key.to_be_bytes();
        self.run(|tx, store| match tx.find(store, &key)? {
            Some(found) => tx.put(found, words, words.len() * 8),
            None => tx.insert(store, &key, words, words.len() * 8).map(|inserted| assert!(inserted)),
        });
    }

    /// Returns the last word of a row.
    fn read(&mut self, key: u64) -> Option<u64> {
        self.run(|tx, store| tx.get(store, &key.to_be_bytes(), |row| row.word(row.len_words() - 1)))
    }

    /// Returns the epoch in which a row was committed.
    fn epoch(&mut self, key: u64) -> Epoch {
        self.run(|tx, store| Ok(tx.get(store, &key.to_be_bytes(), |row| row.epoch())?.unwrap()))
    }

    fn assert_within_limit(&self) {
        let statistics = self.engine.statistics();
        assert!(statistics.memory.mapped_bytes <= LIMIT_BYTES + LIMIT_BYTES / 8, "{:?}", statistics.memory);
    }

    fn cold(&self) -> ensilo_engine::ColdCounters {
        self.engine.statistics().cold
    }
}

fn next(random: &mut u64) -> u64 {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *random >> 33
}

fn rows_are_those_of_a_map<I: Isolation>(name: &str) {
    const KEYS: u64 = 60_000;
    let mut stage = Stage::<I>::new(name);
    let mut map = BTreeMap::new();
    for key in 0..KEYS {
        stage.write(key, Some(key));
        map.insert(key, key);
    }
    assert!(stage.cold().evicted > KEYS / 2, "{:?}", stage.cold());
    let mut random = 7;
    for step in 0..40_000 {
        let key = next(&mut random) % KEYS;
        match next(&mut random) % 10 {
            0..6 => assert_eq!(stage.read(key), map.get(&key).copied(), "step {step}, key {key}"),
            6..9 => {
                stage.write(key, Some(step));
                map.insert(key, step);
            }
            _ => {
                stage.write(key, None);
                map.remove(&key);
            }
        }
        if step % 64 == 0 {
            stage.collect();
        }
    }
    for key in 0..KEYS {
        assert_eq!(stage.read(key), map.get(&key).copied(), "key {key} at the end");
    }
    let cold = stage.cold();
    assert!(cold.loaded > 10_000, "{cold:?}");
    assert!(cold.file_bytes < 3 * cold.row_bytes + (80 << 20), "files are cleaned: {cold:?}");
    stage.assert_within_limit();

    assert!(cold.file_bytes < 2 * cold.row_bytes + 5 * FILE_BYTES, "files are cleaned: {cold:?}");
    assert!(stage.engine.statistics().memory.mapped_bytes <= LIMIT_BYTES + LIMIT_BYTES / 8);
}

#[test]
fn rows_are_those_of_a_map_beyond_the_memory_limit() {
    rows_are_those_of_a_map::<Serializable>("map-ssn");
    rows_are_those_of_a_map::<SnapshotIsolation>("map-si");
}

#[test]
fn a_walk_has_every_row_and_leaves_it_where_it_is() {
    const KEYS: u64 = 40_000;
    let mut stage = Stage::<Serializable>::new("walk");
    (0..KEYS).for_each(|key| stage.write(key, Some(key)));
    stage.collect();
    let before = stage.cold();
    assert!(before.rows > KEYS / 4, "{before:?}");
    let mut keys = Vec::new();
    let walked = stage.engine.walk(
        &stage.store,
        &KeyRange::ALL,
        Epoch::LAST,
        |row| {
            let key = u64::from_be_bytes(row.key.try_into().unwrap());
            assert!(row.words.iter().all(|&word| word == key) && row.len_bytes == ROW_WORDS * 8);
            keys.push(key);
            ControlFlow::Continue(())
        },
        || ControlFlow::Continue(()),
    );
    assert!(walked.is_continue() && keys.into_iter().eq(0..KEYS));
    assert_eq!(stage.cold().loaded, before.loaded, "nothing was read into memory");
}

#[test]
fn rows_leave_memory_beside_a_snapshot_and_it_shows_what_it_has_found() {
    const KEYS: u64 = 40_000;
    const UPDATED: u64 = 20;
    let mut stage = Stage::<Serializable>::new("snapshot");
    (0..KEYS).for_each(|key| stage.write(key, Some(key)));
    let mut session = stage.engine.session();
    let mut snapshot = session.begin_snapshot();
    let mut found = Vec::new();
    for key in (0..KEYS).step_by(100).chain(0..UPDATED) {
        found.push((key, snapshot.find(&stage.store, &key.to_be_bytes()).unwrap().unwrap()));
    }
    let before = stage.cold();
    // All of them come through memory, a part of it at a time, and some are updated far more often than there is memory for.
    (0..KEYS).for_each(|key| assert_eq!(stage.read(key), Some(key)));
    for round in 0..2000 {
        (0..UPDATED).for_each(|key| stage.write(key, Some(KEYS + round)));
        if round % 16 == 0 {
            stage.collect();
        }
    }
    let after = stage.cold();
    assert!(after.evicted - before.evicted > KEYS / 2, "{before:?}, {after:?}");
    stage.assert_within_limit();
    for (key, found) in found {
        assert_eq!(snapshot.read(found, |row| row.word(0)).unwrap(), key);
        assert_eq!(snapshot.get(&stage.store, &key.to_be_bytes(), |row| row.word(0)).unwrap(), Some(key));
    }
}

#[test]
fn rows_leave_memory_in_time_although_the_hand_has_a_long_way_over_cold_ones() {
    const KEYS: u64 = 150_000;
    let mut stage = Stage::<Serializable>::within("way", 3 * LIMIT_BYTES);
    let (first, second) = (Arc::clone(&stage.store), stage.engine.new_store(TableId(2)).unwrap());
    let mut ticks_max = 0;
    for key in 0..2 * KEYS {
        // The first half of one table is cold when both grow in turn: the hand comes to their ends by way of that.
        stage.store = Arc::clone(if key < KEYS || key % 2 == 0 { &first } else { &second });
        for ticks in 0.. {
            ticks_max = ticks.max(ticks_max);
            let mut tx = stage.session.begin();
            let inserted = tx.insert(&stage.store, &key.to_be_bytes(), &[key; ROW_WORDS], ROW_WORDS * 8);
            match inserted.and_then(|inserted| tx.commit().map(|_| inserted)) {
                Ok(inserted) => {
                    assert!(inserted);
                    break;
                }
                Err(abort) => assert_eq!(abort.reason(), AbortReason::OutOfMemory),
            }
            // As the collector does: while there is something to do, and once a tick.
            stage.lend_in_a_shortage();
            while stage.session.collect() == ensilo_engine::Remains::Now {}
            while stage.engine.collect_orphaned() == ensilo_engine::Remains::Now {}
            stage.engine.epochs().advance();
        }
    }
    assert!(ticks_max < 8, "{ticks_max} ticks");
}

#[test]
fn what_is_read_again_and_again_stays_in_memory() {
    const KEYS: u64 = 40_000;
    let mut stage = Stage::<Serializable>::new("hot");
    (0..KEYS).for_each(|key| stage.write(key, Some(key)));
    (0..100).for_each(|key| assert_eq!(stage.read(key), Some(key)));
    let before = stage.cold().loaded;
    for round in 0..200 {
        (0..100).for_each(|key| assert_eq!(stage.read(key), Some(key)));
        (0..50).for_each(|at| assert!(stage.read(1000 + round * 50 + at).is_some()));
        stage.collect();
    }
    let hot = stage.cold().loaded - before;
    assert!(hot < 200 * 50 + 1000, "{hot} loads for at most 10,000 cold reads and 20,000 hot ones");
}

#[test]
fn a_row_that_is_damaged_on_the_disk_is_an_error_and_never_served() {
    const KEYS: u64 = 40_000;
    let mut stage = Stage::<Serializable>::new("damage");
    (0..KEYS).for_each(|key| stage.write(key, Some(key)));
    stage.collect();
    for file in fs::read_dir(stage.directory.0.join("cold")).unwrap() {
        let path = file.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        bytes.iter_mut().skip(100).step_by(64).for_each(|byte| *byte ^= 1);
        fs::write(&path, bytes).unwrap();
    }
    let mut unreadable = 0;
    for key in 0..KEYS {
        let mut tx = stage.session.begin();
        match tx.get(&stage.store, &key.to_be_bytes(), |row| row.word(0)) {
            Ok(value) => assert_eq!(value, Some(key)),
            Err(abort) => {
                assert_eq!(abort.reason(), AbortReason::RowUnreadable);
                assert!(tx.commit().is_err());
                unreadable += 1;
            }
        }
    }
    assert!(unreadable > 1000);
    assert!(stage.engine.unreadable_rows().is_some_and(|reason| reason.contains("damaged")));
}

#[test]
fn dropped_stores_and_ended_engines_leave_no_files() {
    const KEYS: u64 = 40_000;
    let mut stage = Stage::<SnapshotIsolation>::new("drop");
    (0..KEYS).for_each(|key| stage.write(key, Some(key)));
    assert!(stage.cold().rows > 0);
    stage.engine.drop_store(TableId(1));
    for _ in 0..200 {
        stage.collect();
    }
    let cold = stage.cold();
    assert_eq!((cold.rows, cold.row_bytes), (0, 0), "{cold:?}");
    let place = stage.directory.0.join("cold");
    let Stage { engine, store, session, directory } = stage;
    drop((session, store));
    assert_eq!(Arc::strong_count(&engine), 1);
    drop(engine);
    assert!(!place.exists());
    drop(directory);
}

#[test]
fn scans_see_rows_in_memory_and_on_the_disk_in_order() {
    const KEYS: u64 = 40_000;
    let mut stage = Stage::<Serializable>::new("scan");
    (0..KEYS).for_each(|key| stage.write(key, Some(key)));
    stage.collect();
    for start in (0..KEYS).step_by(5000) {
        let (low, high) = (start.to_be_bytes(), (start + 1000).to_be_bytes());
        let bounds = (Bound::Included(&low[..]), Bound::Excluded(&high[..]));
        let found = stage.run(|tx, store| {
            let mut found = Vec::new();
            tx.scan_to_read(
                store,
                bounds,
                Direction::Forward,
                |_, row| row.word(3),
                |value| {
                    found.push(value);
                    ControlFlow::Continue(())
                },
            )?;
            Ok(found)
        });
        assert!(found.into_iter().eq(start..start + 1000));
    }
}

/// A row of 40 KiB, which fits into no class of blocks.
fn large(value: u64) -> Vec<u64> {
    vec![value; 5 << 10]
}

#[test]
fn rows_over_32_kib_come_and_go_where_small_ones_have_filled_memory() {
    const SMALL: u64 = 30_000;
    const LARGE: u64 = 300;
    let mut stage = Stage::<Serializable>::new("large");
    (0..SMALL).for_each(|key| stage.write(key, Some(key)));
    assert!(stage.cold().evicted > 0);
    (SMALL..SMALL + LARGE).for_each(|key| stage.put(key, &large(key)));
    let before = stage.cold().evicted;
    for round in 0..3 {
        for key in SMALL..SMALL + LARGE {
            assert_eq!(stage.read(key), Some(key), "round {round}");
        }
    }
    let evicted = stage.cold().evicted - before;
    assert!(
        evicted < 4 * LARGE + 2000,
        "{evicted} rows have left for large ones, which make room for each other"
    );
    (0..SMALL).step_by(100).for_each(|key| stage.put(key, &large(key)));
    (0..SMALL + LARGE).for_each(|key| assert_eq!(stage.read(key), Some(key)));
    stage.assert_within_limit();
}

#[test]
fn small_rows_find_memory_where_large_ones_have_filled_it() {
    const LARGE: u64 = 300;
    const SMALL: u64 = 60_000;
    let mut stage = Stage::<Serializable>::new("small-after-large");
    (0..LARGE).for_each(|key| stage.put(key, &large(key)));
    (LARGE..LARGE + SMALL).for_each(|key| stage.write(key, Some(key)));
    (0..LARGE + SMALL).for_each(|key| assert_eq!(stage.read(key), Some(key)));
    stage.assert_within_limit();
}

#[test]
fn indirection_arrays_grow_beyond_an_eighth_of_the_limit() {
    const KEYS: u64 = 180_000;
    let mut stage = Stage::<SnapshotIsolation>::new("arrays");
    (0..KEYS).for_each(|key| stage.write(key, Some(key)));
    (0..KEYS).step_by(100).for_each(|key| assert_eq!(stage.read(key), Some(key)));
    stage.assert_within_limit();
}

#[test]
fn rows_leave_memory_although_other_stores_hold_much_of_the_limit() {
    let mut stage = Stage::<Serializable>::new("stores");
    for id in 2..602 {
        let store = stage.engine.new_store(TableId(id)).unwrap();
        let mut tx = stage.session.begin();
        assert!(tx.insert(&store, &[1], &[1], 8).unwrap());
        tx.commit().unwrap();
    }
    (0..60_000).for_each(|key| stage.write(key, Some(key)));
    (0..60_000).step_by(100).for_each(|key| assert_eq!(stage.read(key), Some(key)));
    assert!(stage.cold().evicted > 20_000, "{:?}", stage.cold());
}

#[test]
fn rows_leave_memory_until_what_they_leave_is_large_enough() {
    const KEYS: u64 = 60_000;
    let mut stage = Stage::<Serializable>::new("holes");
    // The rows lie in memory in no order of their keys.
    let mut random = 3;
    (0..KEYS).for_each(|key| stage.put(key, &[key; 2]));
    (0..2 * KEYS).for_each(|_| {
        let key = next(&mut random) % KEYS;
        stage.put(key, &[key; 2]);
    });
    (KEYS..KEYS + 3000).for_each(|key| stage.put(key, &[key; 256]));
    let cold = stage.cold();
    assert!(cold.rows < KEYS + 2000, "a third of the long rows have room at least: {cold:?}");
    (0..KEYS + 3000).for_each(|key| assert_eq!(stage.read(key), Some(key)));
    stage.assert_within_limit();
}

/// Each tenth row is patched once more, and what has left memory says what it said there, read where it lies and brought back.
#[test]
fn rows_that_have_left_memory_say_their_epochs() {
    const KEYS: u64 = 60_000;
    let mut stage = Stage::<Serializable>::new("epochs");
    let mut committed = Vec::new();
    for key in 0..KEYS {
        if key % 1000 == 0 {
            stage.engine.epochs().advance();
        }
        stage.write(key, Some(key));
        committed.push(stage.epoch(key));
    }
    for key in (0..KEYS).step_by(10) {
        stage.engine.epochs().advance();
        stage.run(|tx, store| {
            let found = tx.find(store, &key.to_be_bytes())?.unwrap();
            assert_eq!(tx.read(found, |row| row.epoch())?, committed[key as usize]);
            tx.patch(found, &[(0, 1)])
        });
        let patched = stage.epoch(key);
        assert!(patched > committed[key as usize], "key {key}");
        committed[key as usize] = patched;
    }
    assert!(stage.cold().rows > KEYS / 3, "{:?}", stage.cold());
    let loaded = stage.cold().loaded;
    stage.engine.take_snapshot(Instant::now());
    let mut snapshot = stage.session.begin_snapshot();
    let mut shown = Vec::new();
    let note = |epoch| {
        shown.push(epoch);
        ControlFlow::Continue(())
    };
    let all = (Bound::Unbounded, Bound::Unbounded);
    snapshot.scan_to_read(&stage.store, all, Direction::Forward, |_, row| row.epoch(), note).unwrap();
    assert!(shown == committed, "a scan of a snapshot");
    for key in (0..KEYS).step_by(7) {
        let found = snapshot.find(&stage.store, &key.to_be_bytes()).unwrap().unwrap();
        assert_eq!(snapshot.read(found, |row| row.epoch()).unwrap(), committed[key as usize], "key {key}");
    }
    drop(snapshot);
    assert_eq!(stage.cold().loaded, loaded, "snapshots read rows where they lie");
    for key in 0..KEYS {
        assert_eq!(stage.epoch(key), committed[key as usize], "key {key}");
    }
    assert!(stage.cold().loaded > loaded + KEYS / 3, "{:?}", stage.cold());
}

#[test]
fn a_replay_ends_where_no_row_that_leaves_makes_room_for_a_larger_one() {
    // One chunk, and beside it a quarter of a megabyte.
    let stage = Stage::<Serializable>::within("replay", 2 << 20);
    let replayer = stage.engine.replayer();
    let mut worker = replayer.worker();
    let put = |worker: &mut _, key: u64, tid: u64, row: &[u8]| {
        let key = key.to_be_bytes();
        replayer.apply(worker, &[LogWrite { tid: tid << 3, table: 1, key: &key, change: Change::Put(row) }])
    };
    for key in 0..10_000 {
        put(&mut worker, key, 1 + key, &[7; 320]).unwrap();
    }
    assert!(stage.cold().rows > 5000, "{:?}", stage.cold());
    assert_eq!(put(&mut worker, 3, 20_000, &vec![7; 1 << 20]), Err(ReplayError::OutOfMemory));
    put(&mut worker, 3, 20_000, &vec![7; 40 << 10]).unwrap();
}

#[test]
fn a_row_of_16_mib_finds_room_and_is_updated_where_small_rows_have_filled_160_mib() {
    const WORDS: usize = 1 << 10;
    let mut stage = Stage::<SnapshotIsolation>::within("sixteen", 160 << 20);
    (0..24_000).for_each(|key| stage.put(key, &[key; WORDS]));
    for value in 1..4 {
        stage.put(u64::MAX, &vec![value; (16 << 20) / 8 + 100]);
        assert_eq!(stage.read(u64::MAX), Some(value));
    }
    assert_eq!(stage.read(7), Some(7));
}
