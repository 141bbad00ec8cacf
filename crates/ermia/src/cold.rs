//! Cold rows: rows that nobody has used lately leave memory for the disk, and come back when they are used.
//!
//! With a memory limit that is smaller than the data, a database in a directory goes on so: its indexes and indirection arrays stay in memory,
//! and the rows that are used. What lies here is a copy for this opening alone, as memory is: a crash is recovered from checkpoint and log,
//! which have every row, and the next opening removes what is left. Nothing grows here while the disk has no more free than
//! [others need](ColdPlace::check_room).
//!
//! # Source
//! ERMIA (SIGMOD 2016) §3.2 and §3.7: a slot of an indirection array leads to memory or to stable storage. DeBrabant and others,
//! "Anti-caching" (VLDB 2013), for what leaves; where we deviate: a transaction waits for a row that it needs, instead of being restarted.
//! Leis and others, "LeanStore" (ICDE 2018), for how what is not used is found: rows are marked in passing, and who uses one takes the mark away.
//!
//! # Terms
//! - **cold**: a record whose only version lies on the disk.
//! - **cooling**: a record that becomes cold if nobody uses it for a while.
//! - **large**: a version in a block beside the chunks of memory (`ensilo_slab::Heap::is_large`). Small ones in chunks cannot make room for it, nor
//!   it for them, as long as chunks have all that they may: so rows of both sizes leave memory each for their own.
//! - **segment**: one of the files, filled from front to end.
//!
//! # Layout
//! ```text
//! slot:    address          | a version in memory, the newest
//!          address | COOLING| the same, about to leave
//!          COLD | words | place   | its length with the head, and where it lies, both in words of 8 bytes
//! record:  CRC-32C u32 | row length u32 | slot u64 | table u64 | stamp u64 | predecessor stamp u64 | row, in whole words | zeros
//! ```
//! The checksum is that of the place, as a number of words, and of all that follows it. The length of a record is
//! [rounded up](ensilo_engine::RoundedWords) where it is large, which is what the zeros are for.
//!
//! # Invariants
//! C1. What is cold has one version, which every transaction sees, and no deletion.
//! C2. A version leaves memory only when nobody is left who looks at it: it was marked, the [horizon of looks](crate::horizon) has passed since,
//!     and the mark is still there. So no read-write transaction under way has read it, and what the serial safety net keeps of it, its readers' largest stamp, is
//!     final: it goes along.
//! C3. A record is not marked again before what became of the last mark is known. Otherwise a mark could be taken for an earlier one.
//! C4. The place of a record is used again only once nobody is left who may have found it in a slot.
//!
//! # Memory ordering
//! | edge | from | to | what it carries |
//! |---|---|---|---|
//! | `[cold]` | a slot becomes cold, AcqRel | it is found, Acquire | the write of the record, and the last use of the version in memory |
//! | `[warm]` | a version is read back, Release | `[head]` | its header and row |
//!
//! # Models
//! `models/cold.rs` runs a row that leaves memory beside one that uses it under loom, with mistakes that it finds; stress runs whose histories are
//! checked let every row leave that nobody uses (`Isolation::IS_HASTY`).

mod at_rest;
mod clean;
mod evict;
mod excess;
mod load;
mod open_files;
mod record;
mod segments;
mod word;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use ensilo_engine::{AbortReason, ColdCounters, ColdPlace};
use ensilo_epoch::Epoch;
use ensilo_slab::Pool;
use ensilo_sync::atomic::{AtomicU64, Ordering};
use ensilo_sync::unchecked;

pub(crate) use self::evict::Evictor;
use self::excess::Excess;
pub(crate) use self::excess::Leavers;
pub(crate) use self::load::{NOT_PLAIN, Newest, end_cooling};
pub(crate) use self::record::{ColdRecord, Leaving};
use self::segments::{Segment, Segments, Writer};
pub(crate) use self::word::{COLD, COOLING, ColdWord};

/// How long after the disk has refused rows it is asked again whether it takes any.
const ASK_INTERVAL: Duration = Duration::from_secs(1);

/// The rows of one database that are on the disk instead of in memory.
#[derive(Debug)]
pub(crate) struct ColdRows {
    /// The most bytes of memory when the database is in use.
    limit_bytes: Option<u64>,
    segments: Segments,
    writer: Mutex<Writer>,
    counts: Counts,
    failure: Mutex<Option<WriteFailure>>,
    /// Why a row could not be read back, once one could not.
    unreadable: OnceLock<Arc<str>>,
}

/// Why the disk has taken no rows, if it was so the last time.
#[derive(Debug)]
struct WriteFailure {
    reason: Arc<str>,
    /// What it should have taken.
    words: u64,
    /// When it was asked last.
    asked: Instant,
}

impl WriteFailure {
    /// Returns what the disk is to be asked for, if it is time.
    fn take_turn(&mut self) -> Option<u64> {
        let is_time = self.asked.elapsed() >= ASK_INTERVAL;
        is_time.then(|| {
            self.asked = Instant::now();
            self.words
        })
    }
}

// Relaxed, all of them: numbers that stand for themselves.
#[derive(Debug, Default)]
struct Counts {
    rows: unchecked::AtomicU64,
    evicted: unchecked::AtomicU64,
    loaded: unchecked::AtomicU64,
    left_out: unchecked::AtomicU64,
}

/// Why a row cannot be read back.
#[derive(Debug)]
pub(crate) enum Unreadable {
    /// The system has no memory for it.
    OutOfMemory,
    /// It is damaged, or its file cannot be read.
    Damaged,
}

impl From<Unreadable> for AbortReason {
    fn from(unreadable: Unreadable) -> Self {
        match unreadable {
            Unreadable::OutOfMemory => AbortReason::OutOfMemory,
            Unreadable::Damaged => AbortReason::RowUnreadable,
        }
    }
}

impl ColdRows {
    /// Returns an empty collection in this place.
    pub(crate) fn new(place: ColdPlace, limit_bytes: Option<u64>) -> Self {
        ColdRows {
            limit_bytes,
            segments: Segments::new(place),
            writer: Mutex::new(Writer::default()),
            counts: Counts::default(),
            failure: Mutex::default(),
            unreadable: OnceLock::new(),
        }
    }

    /// Writes rows that leave memory, as [`ColdRows::append`] does, and notes whether the disk takes any.
    pub(crate) fn write(&self, rows: &[Leaving<'_>]) -> io::Result<Vec<ColdWord>> {
        if rows.is_empty() {
            // The disk was not asked.
            return Ok(Vec::new());
        }
        let appended = self.append(rows);
        // That a database was closed is no failure of its disk.
        if !self.lock_writer().is_closed() {
            let words = rows.iter().map(|row| row.len_words().get() as u64).sum();
            self.note_outcome(appended.as_ref().err(), words);
        }
        appended
    }

    fn lock_writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes rows, and returns where each lies. They count as cold from now on: whoever does not make use of one
    /// [forgets](ColdRows::forget) it.
    fn append(&self, rows: &[Leaving<'_>]) -> io::Result<Vec<ColdWord>> {
        let mut writer = self.lock_writer();
        if writer.is_closed() {
            return Err(io::Error::other("the database is closed"));
        }
        let places = writer.append(&self.segments, rows)?;
        self.counts.rows.fetch_add(places.len() as u64, Ordering::Relaxed);
        Ok(places)
    }

    /// Reads the row back that lies in this place, which was found in this slot. `None` if the slot holds something else by now.
    ///
    /// # Errors
    /// [`Unreadable`]: if the row is damaged, [`ColdRows::unreadable`] says why from now on.
    pub(crate) fn read(&self, place: ColdWord, slot: &AtomicU64) -> Result<Option<ColdRecord>, Unreadable> {
        let segment = self.segments.get(place);
        let address = std::ptr::from_ref(slot).addr();
        let parse = |bytes| ColdRecord::parse(bytes, place, address);
        let read = segment.as_ref().map(|segment| self.segments.read(segment, place).and_then(parse));
        match (segment, read) {
            (_, Some(Ok(record))) => Ok(Some(record)),
            // Acquire: [cold] for the next look. The file may have gone, or been filled anew.
            _ if slot.load(Ordering::Acquire) != place.to_slot() => Ok(None),
            (Some(segment), Some(Err(error))) => Err(self.note_unreadable(&segment, &error)),
            _ => unreachable!("a file goes when no slot leads to it"),
        }
    }

    /// The same for a slot whose record the caller has locked during a replay: nobody else changes it.
    ///
    /// # Errors
    /// As [`ColdRows::read`].
    pub(crate) fn read_locked(&self, place: ColdWord, slot: &AtomicU64) -> Result<ColdRecord, Unreadable> {
        let Some(segment) = self.segments.get(place) else { unreachable!("a slot leads there") };
        let address = std::ptr::from_ref(slot).addr();
        let read =
            self.segments.read(&segment, place).and_then(|bytes| ColdRecord::parse(bytes, place, address));
        read.map_err(|error| self.note_unreadable(&segment, &error))
    }

    /// Notes what has become of a write of so many words.
    fn note_outcome(&self, error: Option<&io::Error>, words: u64) {
        let failure = error.map(|error| WriteFailure {
            reason: format!("{}: {error}", self.segments.directory().display()).into(),
            words,
            asked: Instant::now(),
        });
        *self.lock_failure() = failure;
    }

    /// Asks the disk, if it has refused rows and none was written for a while, whether it would take as many now. No row may have to leave
    /// meanwhile, or all of them be in use: then no write tells.
    pub(crate) fn ask_again(&self) {
        let Some(words) = self.lock_failure().as_mut().and_then(WriteFailure::take_turn) else { return };
        let writer = self.lock_writer();
        if !writer.is_closed() && self.segments.try_reserve(words).is_ok() {
            *self.lock_failure() = None;
        }
    }

    fn lock_failure(&self) -> MutexGuard<'_, Option<WriteFailure>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A walk has left a row out because there was no memory for it: whoever relies on the walk learns it from [`ColdRows::left_out`].
    pub(crate) fn note_left_out(&self) {
        self.counts.left_out.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many rows walks have left out for want of memory.
    pub(crate) fn left_out(&self) -> u64 {
        self.counts.left_out.load(Ordering::Relaxed)
    }

    fn note_unreadable(&self, segment: &Segment, error: &io::Error) -> Unreadable {
        if error.kind() == io::ErrorKind::OutOfMemory {
            return Unreadable::OutOfMemory;
        }
        self.unreadable.get_or_init(|| format!("{}: {error}", segment.path().display()).into());
        Unreadable::Damaged
    }

    /// A row is cold no more, or not in this place.
    pub(crate) fn forget(&self, place: ColdWord) {
        if let Some(segment) = self.segments.get(place) {
            segment.forget(place);
        }
        self.counts.rows.fetch_sub(1, Ordering::Relaxed);
    }

    /// The same for one that was read back to stay.
    pub(crate) fn note_loaded(&self, place: ColdWord) {
        self.counts.loaded.fetch_add(1, Ordering::Relaxed);
        self.forget(place);
    }

    pub(crate) fn note_evicted(&self) {
        self.counts.evicted.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives back the files in which there is nothing left. `horizon` is that of memory, and `now` the epoch to retire in.
    pub(crate) fn remove_empty(&self, horizon: Epoch, now: impl FnOnce() -> Epoch) {
        let mut writer = self.lock_writer();
        writer.remove_empty(&self.segments, horizon, now);
    }

    /// Removes the files. Rows that are cold can be read for as long as their files are open.
    pub(crate) fn remove_files(&self) {
        self.lock_writer().close(&self.segments);
    }

    /// Returns whether the disk takes rows, as far as is known.
    pub(crate) fn takes_rows(&self) -> bool {
        self.failure().is_none()
    }

    /// Returns why the disk takes no rows, if it has taken none the last time.
    pub(crate) fn failure(&self) -> Option<Arc<str>> {
        self.lock_failure().as_ref().map(|failure| Arc::clone(&failure.reason))
    }

    /// Returns why walks leave rows out, if they do from now on.
    pub(crate) fn unreadable(&self) -> Option<Arc<str>> {
        self.unreadable.get().cloned()
    }

    /// Returns which rows should leave memory so that there is room when the database is in use, if any should.
    pub(crate) fn excess_at_rest(&self, pool: &Pool) -> Option<Leavers> {
        let excess = Excess::of(&pool.fill(self.limit_bytes?)?);
        let is_in_excess = |leavers: &Leavers| excess[*leavers as usize].leaving_bytes > 0;
        [Leavers::All, Leavers::Large].into_iter().find(is_in_excess)
    }

    pub(crate) fn counters(&self) -> ColdCounters {
        let of = |count: &unchecked::AtomicU64| count.load(Ordering::Relaxed);
        let (row_bytes, file_bytes) = self.segments.bytes();
        ColdCounters {
            rows: of(&self.counts.rows),
            row_bytes,
            file_bytes,
            evicted: of(&self.counts.evicted),
            loaded: of(&self.counts.loaded),
        }
    }
}

impl Drop for ColdRows {
    fn drop(&mut self) {
        self.remove_files();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::path::{Path, PathBuf};

    use ensilo_disk::Disk;
    use ensilo_engine::{RawRow, TableId};
    use ensilo_test_disk::{Faults, SimulatedDisk};

    use super::*;
    use crate::stamp::Stamp;

    fn write_one(cold: &ColdRows) -> io::Result<Vec<ColdWord>> {
        let words = [AtomicU64::new(7)];
        let (stamp, predecessor) = (Stamp::new(12), Stamp::new(9));
        let row = RawRow::new(&words, 8);
        cold.write(&[Leaving { slot: 0x5000, table: TableId(3), stamp, predecessor, row }])
    }

    #[test]
    fn a_disk_that_has_refused_rows_is_asked_again_and_keeps_nothing_of_it() {
        let full = Faults { no_space_after_bytes: Some(20), ..Faults::default() };
        let nameless = Faults { name_error_at: Some(1), goes_on_failing: true, ..Faults::default() };
        for faults in [full, nameless] {
            let disk = Arc::new(SimulatedDisk::new());
            let place = ColdPlace::new(Arc::clone(&disk) as Arc<dyn Disk>, PathBuf::from("/db/cold"));
            disk.create_dir_all(Path::new("/db")).unwrap();
            let cold = ColdRows::new(place, None);
            disk.set_faults(faults);
            write_one(&cold).unwrap_err();
            let refused = Instant::now();
            while refused.elapsed() < 2 * ASK_INTERVAL {
                cold.ask_again();
                assert!(!cold.takes_rows());
            }
            disk.set_faults(Faults::default());
            while !cold.takes_rows() {
                cold.ask_again();
                assert!(refused.elapsed() < 60 * ASK_INTERVAL);
            }
            assert_eq!(disk.files(), []);
            write_one(&cold).unwrap();
        }
    }
}
