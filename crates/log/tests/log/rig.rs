//! A log with workers that commit made-up transactions.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ensilo_disk::Disk;
use ensilo_epoch::{Advance, Epoch, EpochOptions, Epochs, Participant};
use ensilo_log::{
    DatabaseId, EpochClock, Log, LogError, LogOptions, LogWriter, NewGeneration, OpeningId, ReserveError,
    put_bytes, transaction_bytes,
};
use ensilo_slab::Pool;
use ensilo_test_disk::SimulatedDisk;

use crate::scan::{Scan, scan};

pub(crate) const DATABASE: DatabaseId = DatabaseId(77);
pub(crate) const OPENING: OpeningId = OpeningId(78);

/// Epochs that last as long as in a database that is in no hurry.
pub(crate) fn options() -> LogOptions {
    let clock = EpochClock::ByLoggers { max: Duration::from_millis(10) };
    LogOptions { clock, file_bytes: 1 << 20, ..LogOptions::default() }
}

/// An open log.
pub(crate) struct Rig {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) log: Arc<Log>,
    pub(crate) epochs: Arc<Epochs>,
    directories: Vec<PathBuf>,
}

impl Rig {
    /// A log on a simulated disk of its own.
    pub(crate) fn somewhere(directories: &[&str], options: &LogOptions) -> Rig {
        Rig::new(Arc::new(SimulatedDisk::new()), directories, options)
    }

    /// A log with as many loggers as directories, which are made. Those that are not absolute lie on a
    /// simulated disk.
    pub(crate) fn new(disk: Arc<dyn Disk>, directories: &[&str], options: &LogOptions) -> Rig {
        let directories: Vec<_> =
            directories.iter().map(|name| Path::new("/ensilo-test").join(name)).collect();
        let epoch_options = EpochOptions { advance: Advance::Manual, ..EpochOptions::default() };
        let epochs = Epochs::new(epoch_options, Pool::new(None));
        let first = epochs.global_epoch();
        let file_bytes = options.first_file_bytes();
        let files =
            NewGeneration::create(&*disk, DATABASE, OPENING, 1, first, &directories, file_bytes).unwrap();
        let log = Log::start(Arc::clone(&disk), files, Arc::clone(&epochs), options).unwrap();
        Rig { disk, log, epochs, directories }
    }

    pub(crate) fn worker(&self, number: u64) -> Worker {
        Worker {
            participant: self.epochs.participant(),
            writer: self.log.writer(),
            number,
            sequence: 0,
            committed: Vec::new(),
        }
    }

    /// What is in the files.
    pub(crate) fn scan(&self) -> Scan {
        self.scan_on(&*self.disk)
    }

    pub(crate) fn scan_on(&self, disk: &dyn Disk) -> Scan {
        scan(disk, &self.directories.iter().map(PathBuf::as_path).collect::<Vec<&Path>>())
    }
}

/// Somebody who commits.
pub(crate) struct Worker {
    pub(crate) participant: Participant,
    pub(crate) writer: LogWriter,
    pub(crate) number: u64,
    pub(crate) sequence: u64,
    /// Keys with their epochs.
    pub(crate) committed: Vec<(u64, Epoch)>,
}

impl Worker {
    /// Commits a transaction that writes one row of `row_bytes` bytes, and returns its epoch.
    pub(crate) fn commit(&mut self, row_bytes: usize) -> Result<Epoch, LogError> {
        self.sequence += 1;
        let key = self.number << 32 | self.sequence;
        loop {
            self.participant.begin_commit();
            let epoch = self.participant.global_epoch();
            let reserved = self.writer.reserve(transaction_bytes(1) + put_bytes(1, 8, row_bytes));
            if reserved.is_ok() {
                self.writer.begin(epoch.get() << 20 | self.sequence << 3, 1);
                let words = std::iter::repeat_n(key, row_bytes.div_ceil(8));
                self.writer.put(1, &key.to_be_bytes(), row_bytes, words);
                self.writer.publish();
            }
            self.participant.end_commit();
            match reserved {
                Ok(()) => {
                    self.committed.push((key, epoch));
                    return Ok(epoch);
                }
                Err(error @ (ReserveError::TooLarge | ReserveError::OutOfMemory)) => panic!("{error}"),
                Err(ReserveError::Full | ReserveError::Failed) => self.writer.wait_for_buffer()?,
            }
        }
    }
}

/// An epoch that only rises.
#[derive(Default)]
pub(crate) struct Watermark(AtomicU64);

impl Watermark {
    pub(crate) fn raise(&self, epoch: Epoch) {
        self.0.fetch_max(epoch.get(), Ordering::SeqCst);
    }

    pub(crate) fn get(&self) -> Epoch {
        Epoch::new(self.0.load(Ordering::SeqCst))
    }
}

/// A directory that goes with the value.
pub(crate) struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    pub(crate) fn new(name: &str) -> TemporaryDirectory {
        let path = std::env::temp_dir().join(format!("ensilo-log-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        TemporaryDirectory(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
