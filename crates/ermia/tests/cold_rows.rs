//! Rows that leave memory and come back.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::fs;
use std::ops::{Bound, ControlFlow};
use std::path::PathBuf;
use std::sync::Arc;

use ensilo_disk::{Disk, RealDisk};
use ensilo_engine::{
    AbortReason, ColdPlace, Direction, Engine, EngineOptions, KeyRange, Read, Session, TableId, Write,
};
use ensilo_epoch::{Advance, Epoch};
use ensilo_ermia::{Ermia, ErmiaSession, ErmiaStore, Isolation, Serializable, SnapshotIsolation};

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

fn options(disk: Arc<dyn Disk>, directory: &Directory) -> EngineOptions {
    let mut place = ColdPlace::new(disk, directory.0.join("cold"));
    place.file_bytes = FILE_BYTES;
    let mut options = EngineOptions::default();
    options.epochs.advance = Advance::Manual;
    options.memory_limit_bytes = Some(LIMIT_BYTES);
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
        Stage::on(Arc::new(RealDisk), name)
    }

    fn on(disk: Arc<dyn Disk>, name: &str) -> Self {
        let directory = Directory::new(name);
        let engine = Ermia::<I>::start(options(disk, &directory));
        let store = engine.new_store(TableId(1)).unwrap();
        let session = engine.session();
        Stage { engine, store, session, directory }
    }

    /// Lets epochs go by, and what has cooled leave.
    fn collect(&self) {
        for _ in 0..4 {
            self.engine.epochs().advance();
            for _ in 0..50 {
                self.engine.collect_orphaned();
            }
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
        let key = key.to_be_bytes();
        self.run(|tx, store| match (tx.find(store, &key)?, value) {
            (Some(found), Some(value)) => tx.put(found, &[value; ROW_WORDS], ROW_WORDS * 8),
            (None, Some(value)) => {
                tx.insert(store, &key, &[value; ROW_WORDS], ROW_WORDS * 8).map(|inserted| assert!(inserted))
            }
            (Some(found), None) => tx.delete(found),
            (None, None) => Ok(()),
        });
    }

    fn read(&mut self, key: u64) -> Option<u64> {
        self.run(|tx, store| tx.get(store, &key.to_be_bytes(), |row| row.word(ROW_WORDS - 1)))
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
                |_, value| {
                    found.push(value);
                    ControlFlow::Continue(())
                },
            )?;
            Ok(found)
        });
        assert!(found.into_iter().eq(start..start + 1000));
    }
}
