//! Reading beside a writer that goes on between any two things that the reader does.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use ensilo_disk::{Disk, File, Listed, Place};
use ensilo_epoch::Epoch;
use ensilo_test_disk::{SimulatedDisk, forward_disk};

use super::history::{Random, Run};
use super::model::AnyOrder;
use super::writer::{DIR, rows_up_to};
use crate::format::LogFileName;
use crate::recovery::beside::{Cutting, look_once};
use crate::recovery::{OpenError, Progress, ReadOnlyFiles, inspect_beside, inspect_read_only};

/// The process that has the database open.
struct Writer(Mutex<WriterState>);

struct WriterState {
    run: Run,
    random: Random,
    /// It does something before every so many things that the reader does, about.
    every: u64,
    /// So many things at most.
    left: u64,
    /// It neither seals files nor makes checkpoints.
    only_appends: bool,
}

impl Writer {
    fn lock(&self) -> std::sync::MutexGuard<'_, WriterState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn go_on(&self) {
        let mut state = self.lock();
        while state.is_next() {
            state.step();
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Writer")
    }
}

impl WriterState {
    /// Returns up to where all is stored, and how much there is left to do.
    fn before(&self) -> (Epoch, u64) {
        (self.run.log.durable_epoch, self.left)
    }

    fn is_next(&mut self) -> bool {
        let is_next = self.left > 0 && self.random.below(self.every) == 0;
        self.left -= u64::from(is_next);
        is_next
    }

    fn step(&mut self) {
        match self.random.below(10) {
            _ if self.only_appends => self.run.round(),
            0 => self.run.checkpoint(2),
            1 | 2 => {
                let logger = self.random.below(self.run.log.loggers.len() as u64);
                self.run.rotate(logger as usize);
            }
            3 => self.run.unsynced_round(),
            _ => self.run.round(),
        }
    }
}

/// The disk that both use, as the reader has it.
#[derive(Debug)]
struct BusyDisk {
    disk: Arc<SimulatedDisk>,
    writer: Arc<Writer>,
}

impl Disk for BusyDisk {
    forward_disk!(|self, path| self.disk; create, open, rename, remove, remove_dir, create_dir_all, sync_dir);
    forward_disk!(|self, path| self.disk; free_bytes, lock, lock_shared);

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.writer.go_on();
        let file = self.disk.open_read(path)?;
        Ok(Box::new(BusyFile { file, writer: Arc::clone(&self.writer) }))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Listed>> {
        self.writer.go_on();
        self.disk.list(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.writer.go_on();
        self.disk.exists(path)
    }

    fn place(&self, path: &Path) -> io::Result<Place> {
        self.writer.go_on();
        self.disk.place(path)
    }
}

#[derive(Debug)]
struct BusyFile {
    file: Box<dyn File>,
    writer: Arc<Writer>,
}

impl File for BusyFile {
    fn len_bytes(&self) -> io::Result<u64> {
        self.writer.go_on();
        self.file.len_bytes()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.writer.go_on();
        self.file.read_at(offset, bytes)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(offset, bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        self.file.set_len(len_bytes)
    }
}

/// A database with some history, and a writer that goes on with it.
fn busy(seed: u64, left: u64) -> BusyDisk {
    let disk = Arc::new(SimulatedDisk::new());
    let mut random = Random::new(seed);
    let run = Run::new(&disk, 1 + random.below(3) as usize, seed);
    let every = 1 << random.below(5);
    let mut state = WriterState { run, random, every: every + 1, left, only_appends: false };
    (0..seed % 8).for_each(|_| state.step());
    BusyDisk { disk, writer: Arc::new(Writer(Mutex::new(state))) }
}

fn open_beside(disk: BusyDisk) -> Result<ReadOnlyFiles, OpenError> {
    inspect_beside(&(Arc::new(disk) as Arc<dyn Disk>), Path::new(DIR))
}

#[test]
fn whatever_the_writer_does_meanwhile_what_is_found_is_one_point_with_all_that_was_stored() {
    let mut moved_on = 0;
    for seed in 0..400 {
        let disk = busy(seed, 1 + seed % 30);
        let writer = Arc::clone(&disk.writer);
        let (stored, left) = writer.lock().before();
        let files = open_beside(disk).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let (found, target) = (files.found(), AnyOrder::default());
        found.replay(&target, 2, &Progress::new()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let durable_epoch = found.durable_epoch().unwrap();
        assert!(durable_epoch >= stored, "seed {seed}: {durable_epoch} of {stored}");
        let state = writer.lock();
        moved_on += u64::from(state.left < left);
        assert_eq!(target.rows(), rows_up_to(&state.run.history, durable_epoch), "seed {seed}");
    }
    assert!(moved_on > 300, "the writer seldom did anything meanwhile: {moved_on}");
}

/// Returns how many of so many looks fail beside a writer that appends to its logs all the time, and does nothing else.
fn failed_looks(cutting: Cutting) -> usize {
    let fails = |&seed: &u64| {
        let disk = busy(seed, u64::MAX);
        disk.writer.lock().only_appends = true;
        let manifest = disk.writer.lock().run.log.files.manifest().clone();
        look_once(&(Arc::new(disk) as Arc<dyn Disk>), Path::new(DIR), &manifest, cutting).is_err()
    };
    (0..100).filter(fails).count()
}

#[test]
fn a_log_that_grows_while_it_is_read_is_never_taken_for_a_damaged_one() {
    assert_eq!(failed_looks(Cutting::AtDurableEpoch), 0);
    assert!(failed_looks(Cutting::Nowhere) > 10, "it would be, if it were not cut");
}

#[test]
fn damage_is_the_same_error_as_where_nobody_writes() {
    let disk = Arc::new(SimulatedDisk::new());
    let mut run = Run::new(&disk, 2, 5);
    run.round();
    run.checkpoint(2);
    for _ in 0..3 {
        run.round();
        run.round();
        run.rotate(0);
    }
    run.round();
    run.log.make_ahead(1);
    drop(run);
    let (mut looks, mut errors) = (0, 0);
    for (path, len_bytes) in disk.files().into_iter().filter(|&(_, len_bytes)| len_bytes > 0) {
        let harms: [&dyn Fn(&SimulatedDisk); 6] = [
            &|_| {},
            &|disk| disk.delete(&path).unwrap(),
            &|disk| disk.truncate(&path, 0).unwrap(),
            &|disk| disk.truncate(&path, len_bytes.min(100)).unwrap(),
            &|disk| disk.truncate(&path, len_bytes.min(4196)).unwrap(),
            &|disk| disk.flip(&path, 8 * (len_bytes / 2).min(4196)).unwrap(),
        ];
        for harm in harms {
            let harmed = Arc::new(disk.fork());
            harm(&harmed);
            let harmed = harmed as Arc<dyn Disk>;
            let texts = [inspect_read_only, inspect_beside].map(|look| {
                let found = look(&harmed, Path::new(DIR));
                let replayed = found.and_then(|files| {
                    files
                        .found()
                        .replay(&AnyOrder::default(), 2, &Progress::new())
                        .map(|replayed| (files.found().durable_epoch(), replayed.writes, replayed.records))
                });
                replayed.map_err(|error| error.to_string())
            });
            assert_eq!(texts[0], texts[1], "{}", path.display());
            looks += 1;
            errors += u64::from(texts[0].is_err());
        }
    }
    assert!(looks > 30 && errors > 15 && errors < looks, "{errors} of {looks}");
}

#[test]
fn what_was_found_is_replaced_by_another_manifest_alone() {
    let disk = Arc::new(SimulatedDisk::new());
    let mut run = Run::new(&disk, 1, 5);
    run.round();
    let disk = disk as Arc<dyn Disk>;
    let files = inspect_beside(&disk, Path::new(DIR)).unwrap();
    run.round();
    assert!(!files.were_replaced(&*disk));
    run.checkpoint(2);
    assert!(files.were_replaced(&*disk));
}

#[test]
fn damage_that_others_write_behind_is_an_error_that_names_it() {
    for seed in 0..20 {
        let disk = busy(seed, u64::MAX);
        let mut state = disk.writer.lock();
        state.only_appends = true;
        state.run.log.file_bytes = 1 << 20;
        state.run.rotate(0);
        state.run.round();
        // What was made ahead of its end is gone from a file, and its writer goes on: up to which epoch it can be read changes all the time.
        let is_written =
            |path: &Path| LogFileName::of(path).is_some_and(|name| !name.is_sealed() && name.logger == 0);
        let (cut, _) = disk.disk.files().into_iter().find(|(path, _)| is_written(path)).unwrap();
        disk.disk.truncate(&cut, state.run.log.loggers[0].offset).unwrap();
        drop(state);
        let error = open_beside(disk).unwrap_err();
        assert_eq!(error.corruption().map(|corruption| &corruption.file), Some(&cut), "seed {seed}: {error}");
    }
}

#[test]
fn what_has_the_name_of_a_log_file_and_is_none_keeps_nobody_from_reading() {
    let disk = busy(1, 0);
    let manifest = disk.writer.lock().run.log.files.manifest().clone();
    let name = LogFileName::open(manifest.generation, 0, 1000).to_string();
    disk.disk.create_dir_all(&Path::new(DIR).join("log").join(name)).unwrap();
    open_beside(disk).unwrap();
}

#[test]
fn an_opening_beside_a_writer_that_never_rests_ends_with_an_error_that_says_so() {
    let disk: Arc<dyn Disk> = Arc::new(Endless(busy(3, 0)));
    let found = inspect_beside(&disk, Path::new(DIR));
    assert!(matches!(found, Err(OpenError::Changing { .. })), "{found:?}");
}

/// The same disk, on which a checkpoint is made before each file is opened, so that it is gone.
#[derive(Debug)]
struct Endless(BusyDisk);

impl Disk for Endless {
    forward_disk!(|self, path| self.0.disk; create, open, rename, remove, remove_dir, create_dir_all, sync_dir);
    forward_disk!(|self, path| self.0.disk; open_read, list, exists, place, free_bytes, lock, lock_shared);

    fn open_kept(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let mut state = self.0.writer.lock();
        for _ in 0..2 {
            (0..state.run.log.loggers.len()).for_each(|logger| state.run.rotate(logger));
            state.run.round();
        }
        state.run.checkpoint(1);
        self.0.disk.open_kept(path)
    }
}
