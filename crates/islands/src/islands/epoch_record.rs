//! Up to where each instance counts: the ends of the last epoch that all have stored.
//!
//! # Layout
//! One file for all instances, `epochs`, in their common directory: a page of 4,096 bytes with a header, and two slots of whole pages, which are
//! written in turn, so that one of them is whole whatever happens. All numbers are little-endian, and each of the three is followed by a CRC-32C of
//! its bytes.
//! ```text
//! header:  0  "ENSLEPOC"       8 bytes
//!          8  version          u32: 1
//!         12  instances        u32
//! slot:    0  number           u64: of the epoch, from 1; it is in slot number % 2
//!          8  ends             u64 for each instance: the last epoch of its own that counts
//! ```
//!
//! # Crash
//! The header is stored before there is an instance; a file without one is new. A slot is valid if and only if its checksum fits and it is not
//! empty; the valid slot with the higher number counts. If there is none, and at most the first one was ever written to, no epoch has ended:
//! nothing has happened that several instances have a part in.
//!
//! A slot that is damaged later looks like one that is torn. So an instance says in its own files what has counted, and where that is more than the
//! record knows it is not opened. The slot that counts is written once more by each opening: after a sync that has failed, a system may show bytes
//! that are not on the disk.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crc_fast::{CrcAlgorithm, checksum};

/// How long whoever has the file may have it still.
const LOCK_PATIENCE: Duration = Duration::from_millis(200);

const MAGIC: &[u8; 8] = b"ENSLEPOC";
const VERSION: u32 = 1;
const PAGE_BYTES: usize = 4096;
const HEADER_BYTES: usize = 16;

/// See the module's documentation. As long as it exists nobody else has the file open.
#[derive(Debug)]
pub(super) struct EpochRecord {
    file: File,
    instances: usize,
    last: Epoch,
    /// A write has failed: what the file holds is found out by opening it.
    has_failed: bool,
}

/// An epoch of all instances.
#[derive(Debug, Default, PartialEq)]
struct Epoch {
    /// 0 before the first one has ended.
    number: u64,
    ends: Vec<u64>,
}

impl EpochRecord {
    /// Returns whether instances in this directory commit by epochs.
    pub(super) fn exists(directory: &Path) -> bool {
        path_in(directory).exists()
    }

    /// Removes the record of copies that are of no use, if there is one.
    pub(super) fn remove(directory: &Path) {
        // If it cannot be removed it is in the way of the next copy, which says so.
        let _ = std::fs::remove_file(path_in(directory));
    }

    /// Opens the record of instances in this directory, or makes it, before there is any instance.
    ///
    /// # Errors
    /// It is open already, of another number of instances, or damaged.
    pub(super) fn open(directory: &Path, instances: usize) -> io::Result<Self> {
        std::fs::create_dir_all(directory)?;
        let path = path_in(directory);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        lock(&file, &path, "the instances are open already, in this process or another one")?;
        let mut record = EpochRecord { file, instances, last: Epoch::default(), has_failed: false };
        record.read_or_begin(&path)?;
        record.file.sync_all()?;
        File::open(directory)?.sync_all()?;
        Ok(record)
    }

    /// Returns up to which epoch of its own an instance counts; `None` before the first epoch has ended.
    pub(super) fn end_of(&self, instance: usize) -> Option<u64> {
        self.last.ends.get(instance).copied()
    }

    /// Returns whether a write has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Writes the ends of the next epoch, and returns when they are stored.
    ///
    /// # Errors
    /// Whether they are is found out by opening the record; nothing is written any more.
    pub(super) fn write(&mut self, ends: &[u64]) -> io::Result<()> {
        assert_eq!(ends.len(), self.instances, "each instance has an end");
        if self.has_failed {
            return Err(io::Error::other("an earlier write has failed"));
        }
        let epoch = Epoch { number: self.last.number + 1, ends: ends.to_vec() };
        let written = self.write_slot(&epoch);
        self.has_failed = written.is_err();
        written?;
        self.last = epoch;
        Ok(())
    }

    fn write_slot(&self, epoch: &Epoch) -> io::Result<()> {
        self.file.write_all_at(&epoch.encode(), self.place_of_slot(epoch.number % 2))?;
        self.file.sync_data()
    }

    fn read_or_begin(&mut self, path: &Path) -> io::Result<()> {
        let header = read_up_to(&self.file, HEADER_BYTES + size_of::<u32>(), 0)?;
        if header.iter().all(|byte| *byte == 0) {
            return self.begin();
        }
        let Some(header) = checked(&header).filter(|header| header.starts_with(MAGIC)) else {
            return Err(problem(path, "its header is damaged"));
        };
        let [version, instances] = [u32_at(header, 8), u32_at(header, 12)];
        if version != VERSION {
            return Err(problem(path, &format!("version {version} of it is not known here")));
        }
        if instances as usize != self.instances {
            let what = format!(
                "it is of {instances} instances: open as many; `ensilo islands redistribute` copies tables to another number of instances"
            );
            return Err(problem(path, &what));
        }
        self.read_slots(path)
    }

    fn begin(&self) -> io::Result<()> {
        let numbers = [VERSION, self.instances as u32];
        let header = MAGIC.iter().copied().chain(numbers.into_iter().flat_map(u32::to_le_bytes));
        self.file.write_all_at(&with_checksum(header.collect()), 0)
    }

    fn read_slots(&mut self, path: &Path) -> io::Result<()> {
        let [even, odd] =
            [0, 1].map(|slot| read_up_to(&self.file, self.slot_bytes(), self.place_of_slot(slot)));
        let [even, odd] = [even?, odd?];
        let valid = [&even, &odd].into_iter().filter_map(|slot| Epoch::decode(slot));
        match valid.max_by_key(|epoch| epoch.number) {
            Some(last) => {
                self.write_slot(&last)?;
                self.last = last;
            }
            // The first one goes to the odd slot.
            None if even.iter().all(|byte| *byte == 0) => {}
            None => return Err(problem(path, "up to where the instances count cannot be read")),
        }
        Ok(())
    }

    fn slot_bytes(&self) -> usize {
        size_of::<u64>() * (1 + self.instances) + size_of::<u32>()
    }

    fn place_of_slot(&self, slot: u64) -> u64 {
        PAGE_BYTES as u64 + slot * self.slot_bytes().next_multiple_of(PAGE_BYTES) as u64
    }
}

impl Epoch {
    fn encode(&self) -> Vec<u8> {
        let numbers = [self.number].into_iter().chain(self.ends.iter().copied());
        with_checksum(numbers.flat_map(u64::to_le_bytes).collect())
    }

    fn decode(slot: &[u8]) -> Option<Self> {
        let mut numbers = checked(slot)?.chunks_exact(size_of::<u64>()).map(|number| u64_at(number, 0));
        let number = numbers.next().filter(|number| *number > 0)?;
        Some(Epoch { number, ends: numbers.collect() })
    }
}

/// Locks a file, or says why not. A process that was just killed may have it for a moment, by a child that it was about to start.
pub(super) fn lock(file: &File, path: &Path, held: &str) -> io::Result<()> {
    let begin = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if begin.elapsed() < LOCK_PATIENCE => {
                thread::sleep(LOCK_PATIENCE / 20);
            }
            Err(TryLockError::WouldBlock) => {
                return Err(problem(path, held));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = crc_of(&bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

/// Returns the bytes before a checksum, if it fits.
fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let (bytes, checksum) = bytes.split_at_checked(bytes.len().checked_sub(size_of::<u32>())?)?;
    (crc_of(bytes) == u32_at(checksum, 0)).then_some(bytes)
}

fn crc_of(bytes: &[u8]) -> u32 {
    checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

/// Reads so many bytes, zeros where the file ends before.
fn read_up_to(file: &File, bytes: usize, at: u64) -> io::Result<Vec<u8>> {
    let (mut into, mut read) = (vec![0; bytes], 0);
    while read < bytes {
        match file.read_at(&mut into[read..], at + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(into)
}

fn path_in(directory: &Path) -> PathBuf {
    directory.join("epochs")
}

fn problem(path: &Path, what: &str) -> io::Error {
    io::Error::other(format!("{}: {what}", path.display()))
}

#[cfg(test)]
#[path = "epoch_record/tests.rs"]
mod tests;
