//! The files of rows that have left memory: how many are open, what is read of them, and when they go.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use ensilo_disk::File;
use ensilo_engine::{Replayer, StoredRow};
use ensilo_ermia::SnapshotIsolation;
use ensilo_log::{Change, Replay, Write as LogWrite};
use ensilo_test_disk::{forward_disk, forward_file};

use super::*;

/// So many descriptors at most, whatever the data's size.
const OPEN_MAX: usize = 70;

const EMFILE: i32 = 24;

const LONG_WORDS: usize = 1 << 10;

/// A disk that counts what is open and read, and opens no more than so many files.
#[derive(Debug)]
struct Watched(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    open: AtomicUsize,
    open_max: AtomicUsize,
    read_bytes: AtomicU64,
    /// What the disk says that is free.
    free_bytes: AtomicU64,
    /// The system has no memory for what is read.
    is_out_of_memory: AtomicBool,
}

#[derive(Debug)]
struct WatchedFile {
    file: Box<dyn File>,
    counts: Arc<Counts>,
}

fn watched_disk() -> (Arc<dyn Disk>, Arc<Counts>) {
    let counts = Arc::new(Counts {
        open: AtomicUsize::new(0),
        open_max: AtomicUsize::new(usize::MAX),
        read_bytes: AtomicU64::new(0),
        free_bytes: AtomicU64::new(u64::MAX),
        is_out_of_memory: AtomicBool::new(false),
    });
    (Arc::new(Watched(Arc::clone(&counts))), counts)
}

impl Watched {
    fn open_one(&self, open: impl FnOnce() -> io::Result<Box<dyn File>>) -> io::Result<Box<dyn File>> {
        let counts = Arc::clone(&self.0);
        if counts.open.load(Ordering::Relaxed) >= counts.open_max.load(Ordering::Relaxed) {
            return Err(io::Error::from_raw_os_error(EMFILE));
        }
        let file = open()?;
        counts.open.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(WatchedFile { file, counts }))
    }
}

impl Disk for Watched {
    forward_disk!(|self, path| RealDisk; rename, remove, remove_dir, list, create_dir_all, sync_dir);
    forward_disk!(|self, path| RealDisk; exists, place, lock, lock_shared);

    fn create(&self, path: &Path, preallocate_bytes: u64) -> io::Result<Box<dyn File>> {
        self.open_one(|| RealDisk.create(path, preallocate_bytes))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.open_one(|| RealDisk.open(path))
    }

    fn free_bytes(&self, _: &Path) -> io::Result<Option<u64>> {
        Ok(Some(self.0.free_bytes.load(Ordering::Relaxed)))
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.open_one(|| RealDisk.open_read(path))
    }
}

impl File for WatchedFile {
    forward_file!(|self| self.file; len_bytes, write_at, sync_data, sync_all, set_len);

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        if self.counts.is_out_of_memory.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.counts.read_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.file.read_at(offset, bytes)
    }
}

impl Drop for WatchedFile {
    fn drop(&mut self) {
        self.counts.open.fetch_sub(1, Ordering::Relaxed);
    }
}

fn insert_long<I: Isolation>(stage: &mut Stage<I>, key: u64) {
    stage.run(|tx, store| {
        tx.insert(store, &key.to_be_bytes(), &[key; LONG_WORDS], LONG_WORDS * 8)
            .map(|inserted| assert!(inserted))
    });
}

#[test]
fn the_files_that_are_open_are_so_many_at_most_however_much_has_left_memory() {
    const KEYS: u64 = 30_000;
    let (disk, counts) = watched_disk();
    let mut stage = Stage::<SnapshotIsolation>::on(disk, "handles");
    (0..KEYS).for_each(|key| insert_long(&mut stage, key));
    let cold = stage.cold();
    assert!(cold.file_bytes > OPEN_MAX as u64 * FILE_BYTES, "{cold:?}");
    assert!(counts.open.load(Ordering::Relaxed) <= OPEN_MAX, "{counts:?}");
    assert_eq!(stage.engine.eviction_failure(), None);
    // The rest of the program takes all others: for each file that is opened here another one has to be closed.
    counts.open_max.store(counts.open.load(Ordering::Relaxed), Ordering::Relaxed);
    let mut random = 7;
    for _ in 0..KEYS {
        let key = next(&mut random) % KEYS;
        let read = stage.run(|tx, store| tx.get(store, &key.to_be_bytes(), |row| row.word(LONG_WORDS - 1)));
        assert_eq!(read, Some(key));
    }
    assert_eq!((stage.engine.unreadable_rows(), stage.engine.eviction_failure()), (None, None));
}

/// Fills two stores, and deletes most rows of the first one: they are waste, which is too much once the second store is dropped.
fn with_waste(disk: Arc<dyn Disk>, name: &str) -> (Stage<SnapshotIsolation>, Arc<ErmiaStore>) {
    const KEYS: u64 = 4000;
    let mut stage = Stage::<SnapshotIsolation>::on(disk, name);
    (0..KEYS).for_each(|key| insert_long(&mut stage, key));
    let second = stage.engine.new_store(TableId(2)).unwrap();
    let first = std::mem::replace(&mut stage.store, second);
    (0..KEYS).for_each(|key| insert_long(&mut stage, key));
    for key in (0..KEYS).filter(|key| key % 4 > 0) {
        let key = key.to_be_bytes();
        stage.run(|tx, _| tx.find(&first, &key)?.map_or(Ok(()), |found| tx.delete(found)));
    }
    (stage, first)
}

#[test]
fn a_file_of_which_nothing_can_be_moved_is_read_once() {
    let (disk, counts) = watched_disk();
    let (mut stage, first) = with_waste(disk, "stuck");
    // The second one goes; the first one, which is dropped too, stays for a transaction.
    stage.engine.drop_store(TableId(2));
    (0..4).for_each(|_| stage.engine.epochs().advance());
    let mut session = stage.engine.session();
    let mut tx = session.begin();
    assert!(tx.get(&first, &1u64.to_be_bytes(), |row| row.word(0)).unwrap().is_none());
    stage.engine.drop_store(TableId(1));
    let (before, file_bytes) = (counts.read_bytes.load(Ordering::Relaxed), stage.cold().file_bytes);
    (0..20).for_each(|_| stage.collect());
    let cold = stage.cold();
    assert!(cold.file_bytes > 2 * cold.row_bytes + 4 * FILE_BYTES, "{cold:?}");
    let read_bytes = counts.read_bytes.load(Ordering::Relaxed) - before;
    assert!((FILE_BYTES..2 * file_bytes).contains(&read_bytes), "{read_bytes} bytes of {file_bytes}");
    drop(tx);
    (0..100).for_each(|_| stage.collect());
    assert_eq!(stage.cold().rows, 0);
}

#[test]
fn files_are_not_cleaned_while_the_disk_is_full() {
    let (disk, counts) = watched_disk();
    let (mut stage, first) = with_waste(disk, "full");
    stage.engine.drop_store(TableId(2));
    let read_bytes = || counts.read_bytes.load(Ordering::Relaxed);
    let before = read_bytes();
    counts.free_bytes.store(0, Ordering::Relaxed);
    (0..20).for_each(|_| stage.collect());
    let full = stage.cold();
    assert!(full.file_bytes > 2 * full.row_bytes + 4 * FILE_BYTES, "{full:?}");
    assert_eq!(stage.engine.eviction_failure(), None, "no row had to leave");
    assert!(read_bytes() - before < 2 * FILE_BYTES, "{} bytes", read_bytes() - before);
    counts.free_bytes.store(u64::MAX, Ordering::Relaxed);
    stage.store = first;
    (10_000..12_000).for_each(|key| insert_long(&mut stage, key));
    (0..20).for_each(|_| stage.collect());
    let cold = stage.cold();
    assert!(cold.file_bytes < 2 * cold.row_bytes + 4 * FILE_BYTES, "{cold:?}");
}

/// Returns how many rows a walk finds.
fn walked(stage: &Stage<SnapshotIsolation>) -> u64 {
    let mut rows = 0;
    let count = |_: StoredRow<'_>| {
        rows += 1;
        ControlFlow::Continue(())
    };
    let _ = stage.engine.walk(&stage.store, &KeyRange::ALL, Epoch::LAST, count, || ControlFlow::Continue(()));
    rows
}

#[test]
fn what_a_walk_leaves_out_for_want_of_memory_the_next_one_finds() {
    const KEYS: u64 = 4000;
    let (disk, counts) = watched_disk();
    let mut stage = Stage::<SnapshotIsolation>::on(disk, "left-out");
    (0..KEYS).for_each(|key| insert_long(&mut stage, key));
    assert_eq!((walked(&stage), stage.engine.rows_left_out()), (KEYS, 0));
    counts.is_out_of_memory.store(true, Ordering::Relaxed);
    let found = walked(&stage);
    let left_out = stage.engine.rows_left_out();
    assert!(left_out > KEYS / 2 && found + left_out == KEYS, "{found} were found, {left_out} left out");
    counts.is_out_of_memory.store(false, Ordering::Relaxed);
    assert_eq!((walked(&stage), stage.engine.rows_left_out()), (KEYS, left_out));
    assert_eq!(stage.engine.unreadable_rows(), None);
}

#[test]
fn files_are_emptied_once_there_is_memory_to_read_them() {
    let (disk, counts) = watched_disk();
    let (mut stage, first) = with_waste(disk, "no-memory");
    stage.store = first;
    counts.is_out_of_memory.store(true, Ordering::Relaxed);
    assert!(stage.engine.drop_store(TableId(2)));
    (0..20).for_each(|_| stage.collect());
    let before = stage.cold();
    assert!(before.file_bytes > 2 * before.row_bytes + 4 * FILE_BYTES, "{before:?}");
    counts.is_out_of_memory.store(false, Ordering::Relaxed);
    (0..20).for_each(|_| stage.collect());
    let cold = stage.cold();
    assert!(cold.file_bytes < 2 * cold.row_bytes + 4 * FILE_BYTES, "{cold:?}");
}

#[test]
fn a_file_that_is_empty_goes_during_a_replay() {
    const KEYS: u64 = 4800;
    let directory = Directory::new("replay");
    let engine =
        Ermia::<SnapshotIsolation>::start(options(Arc::new(RealDisk), &directory, LIMIT_BYTES)).unwrap();
    let replayer = engine.replayer();
    let mut worker = replayer.worker();
    for round in 1..5 {
        for key in 0..KEYS {
            let row = [round as u8; LONG_WORDS * 8];
            let write =
                LogWrite { tid: round << 20, table: 1, key: &key.to_be_bytes(), change: Change::Put(&row) };
            replayer.apply(&mut worker, &[write]).unwrap();
        }
    }
    let files = fs::read_dir(directory.0.join("cold")).unwrap();
    let on_disk: u64 = files.map(|file| file.unwrap().metadata().unwrap().len()).sum();
    let cold = engine.statistics().cold;
    assert!(on_disk < cold.row_bytes + LIMIT_BYTES + 3 * FILE_BYTES, "{on_disk} bytes in files: {cold:?}");
    drop(worker);
    replayer.finish().unwrap();
}

#[test]
fn a_replay_says_why_rows_cannot_leave_memory() {
    let (disk, counts) = watched_disk();
    let stage = Stage::<Serializable>::on(disk, "replay-handles");
    counts.open_max.store(0, Ordering::Relaxed);
    let replayer = stage.engine.replayer();
    let mut worker = replayer.worker();
    let failed = (0..1_000_000_u64).find_map(|key| {
        let key_bytes = key.to_be_bytes();
        let change = Change::Put(&[7; 320]);
        replayer
            .apply(&mut worker, &[LogWrite { tid: (1 + key) << 3, table: 1, key: &key_bytes, change }])
            .err()
    });
    let Some(ReplayError::RowsCannotLeave(why)) = failed else { panic!("{failed:?}") };
    assert!(why.contains("os error 24"), "{why}");
}

#[test]
fn rows_that_are_longer_than_a_file_have_one_of_their_own() {
    const KEYS: u64 = 12;
    let mut stage = Stage::<SnapshotIsolation>::within("longer", 32 << 20);
    for key in 0..KEYS {
        stage.put(key, &vec![key; (4 << 20) / 8 + key as usize]);
        stage.put(100 + key, &[key; LONG_WORDS]);
    }
    let cold = stage.cold();
    assert!(cold.evicted >= 3 && cold.row_bytes > 2 * FILE_BYTES, "{cold:?}");
    for key in (0..KEYS).rev() {
        assert_eq!((stage.read(key), stage.read(100 + key)), (Some(key), Some(key)));
    }
    (0..KEYS).for_each(|key| stage.write(key, None));
    (0..20).for_each(|_| stage.collect());
    let cold = stage.cold();
    assert!(cold.file_bytes < 4 * FILE_BYTES, "files go with their rows: {cold:?}");
    assert!((0..KEYS).all(|key| stage.read(100 + key) == Some(key)));
}
