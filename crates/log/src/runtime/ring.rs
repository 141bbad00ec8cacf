//! The central log buffer of an engine whose commits are in one order: the number that says where a transaction
//! stands in that order says where its log record lies, so that one atomic add gives both.
//!
//! # Source
//! ERMIA (SIGMOD 2016) §3.3: transactions prepare their footprint privately, take a place in the log by a
//! fetch-and-add, and copy it there as one record. Where we deviate:
//! - A segment is the space of one epoch in memory, and not a file: a logger makes blocks of what it has drained
//!   and appends these to its own file, in the format of all logs. So places have holes wherever an epoch ends,
//!   and nothing on the disk knows of places.
//! - Segments need no end of their own that the next one is opened behind: the clock moves to the first place of
//!   an epoch before anybody takes a place there ([`take_place`]), so that nobody's place lies before its own
//!   epoch. Who finds its place behind that epoch is in the paper's dead zone, and fills the place with a skip
//!   record, in whatever segment that lies.
//! - A large footprint does not become a list of overflow blocks, nor are large values written aside: the
//!   transaction takes one unit, fills it with a skip record, and logs all of it through the private buffers of
//!   its [`LogWriter`](super::LogWriter), which the same round writes.
//! - Stragglers are known: a place is taken and filled within a commit that the epochs know of
//!   ([`ensilo_epoch::Participant::begin_commit`]), and a segment is drained when all of its epoch have ended.
//!
//! # Terms
//! - **unit**: what the clock counts: [`UNIT_BYTES`] bytes of log.
//! - **segment**: the units of one epoch. The first of these is never used: no TID has the sequence 0.
//! - **place**: consecutive units that one transaction has taken.
//! - **skip record**: fills a place, or a part of one, that no transaction is logged in.
//! - **dead zone**: places that lie in a later epoch than those who took them commit in.
//!
//! # Layout
//! ```text
//! epoch % SEGMENTS:      0           1           2          ...
//! table entry:        [ free ]   [ open, e ]  [ open, e+1 ]
//!                                     |
//! segment:            | unused | record . . | record | skip . | record . . | nothing of this epoch
//! record:             mark u64 | units u32 | payload bytes u32, 0 for a skip record | payload | unused
//! ```
//! The mark is the number of the record's first unit, among all units of all epochs, encrypted by a key that is
//! drawn when the log starts. Where a logger finds another number, or another key, the region of the epoch ends:
//! nothing that was there before can look like a mark, neither an older record nor the bytes of a row.
//!
//! # Invariants
//! - **I1** Places of an epoch follow each other without a gap, from its first used unit on: the clock counts
//!   them, and it comes into an epoch at that unit or, by a place that began before, with a skip record that
//!   reaches from there to the end of that place.
//! - **I2** Whoever has a place has published a commit epoch that is none after the place's, until it has filled
//!   the place. So once the complete frontier is behind an epoch, all places in it are filled.
//! - **I3** A segment is drained once all loggers have taken their records of it and written them, which they do
//!   with frontiers behind its epoch.
//! - **I4** A table entry is opened for epoch `e` when it is free and the complete frontier was behind
//!   `e - SEGMENTS`: then nobody has a place of an earlier epoch that falls to the entry, opened or not.
//!
//! # Why nobody waits for ever
//! Who has a place keeps it, and waits where its segment cannot be opened (I4). It has raised its commit epoch to
//! that of the segment before ([`ensilo_epoch::Participant::move_commit`]), so that it holds the frontier back
//! from nothing before that. So has everybody, before he takes a place, to the epoch that he reads for his commit: who
//! still holds the frontier back from an earlier one has a place, and a stamp, in that one at the latest. It waits for loggers to drain epoch `e - SEGMENTS`, who need nothing but those who
//! have published that epoch or earlier ones, and for these to end. These wait for their own segments, of earlier
//! epochs, or for commits with stamps before their own: by induction over the stamps all of them end. That the
//! global epoch is behind `e - SEGMENTS` needs no tick: a place lies at most one epoch behind the global one.
//! The loggers learn that somebody waits. If the log fails, or ends, waits end, and what was not copied is not
//! logged: nobody is told that it is stored.
//!
//! Where too much waits for the loggers, commits wait before they take a stamp ([`Ring::wait_for_room`]): so the
//! an epoch meets an earlier one at its entry only while a disk hangs. There are 96 entries: with epochs of 40 ms
//! others go on for almost four seconds, and the memory is bounded by the room, not by the table. Where epochs go on at
//! the next multiple of 128, for a snapshot, those behind and before fall to entries that are far apart.
//!
//! # Memory ordering
//!
//! | edge | from | to | what it carries |
//! |---|---|---|---|
//! | `[segment]` | opener stores the entry's state, Release | who fills a place, and a logger, Acquire | the segment |
//! | `[frontier]` | a commit ends, Release | a logger reads the frontier, Acquire | the records |
//! | `[drained]` | the last logger frees the entry, Release | the next opener, Acquire | the loggers' last reads |

mod clock;
mod entry;
#[cfg(all(loom, test))]
mod model;
mod place;
mod planted;
mod reader;
mod segment;
mod space;
#[cfg(all(not(loom), test))]
mod tests;

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};

use ensilo_epoch::Epoch;
use ensilo_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use ensilo_sync::{Backoff, CachePadded};

pub use clock::take_place;
use entry::{Entry, EntryState};
use place::SEGMENTS;
pub use place::{Place, RECORD_BYTES_MAX, UNIT_BYTES, UNITS_PER_EPOCH};
use planted::{Step, is_left_out};
pub(crate) use reader::RingReader;
use segment::Segment;
use space::Space;

use super::error::LogError;
use super::monitor::Monitor;
use super::pool::Pressure;

/// Free segments that are kept; each holds as much memory as was ever used of it.
const KEPT_SEGMENTS: usize = 4;

/// The central log buffer. See the module's documentation.
pub struct Ring {
    entries: Box<[CachePadded<Entry>]>,
    /// How many entries are not free.
    open: CachePadded<AtomicUsize>,
    /// Used last, given out first: its memory may still be in a cache.
    #[allow(
        clippy::vec_box,
        reason = "a segment is moved between here and its entry, which has its address"
    )]
    free: Monitor<Vec<Box<Segment>>>,
    space: Space,
    /// The latest complete frontier that is known.
    frontier: CachePadded<AtomicU64>,
    complete_frontier: Box<dyn Fn() -> Epoch + Send + Sync>,
    /// Notifies the loggers of a wait.
    wake: Box<dyn Fn() + Send + Sync>,
    loggers: usize,
    key: u64,
}

impl Ring {
    /// Returns a ring that so many loggers drain, and in which about `bytes` bytes may wait for them.
    pub(crate) fn new(
        loggers: usize,
        bytes: usize,
        complete_frontier: impl Fn() -> Epoch + Send + Sync + 'static,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Ring {
        Ring {
            entries: (0..SEGMENTS).map(|_| CachePadded::new(Entry::new())).collect(),
            open: CachePadded::new(AtomicUsize::new(0)),
            free: Monitor::new(Vec::new()),
            space: Space::new(bytes),
            frontier: CachePadded::new(AtomicU64::new(0)),
            complete_frontier: Box::new(complete_frontier),
            wake: Box::new(wake),
            loggers,
            key: if cfg!(all(loom, test)) { 0x5eed } else { RandomState::new().build_hasher().finish() },
        }
    }

    /// Returns whether there is room for one more transaction; if not, see [`Ring::wait_for_room`].
    #[must_use]
    #[inline]
    pub fn has_room(&self) -> bool {
        self.space.has_room()
    }

    /// Waits until there is room. To be called outside of a commit: the loggers that make room must not have to
    /// wait for the caller.
    ///
    /// # Errors
    /// Why the log has stopped.
    pub fn wait_for_room(&self) -> Result<(), LogError> {
        self.space.wait_for_room(&self.wake)
    }

    /// Fills a place with the log entry of the transaction that has taken it in its own epoch
    /// ([`Place::lies_in`]). `move_commit` raises the commit epoch of the caller.
    ///
    /// # Panics
    /// When the entry is empty, or larger than the place.
    #[inline]
    pub fn fill(&self, place: Place, payload: &[u8], move_commit: impl Fn(Epoch)) {
        assert!(!payload.is_empty(), "an empty log entry");
        let part = place.whole();
        if let Some(segment) = self.segment(part.epoch, &move_commit) {
            // SAFETY: the part is the caller's (I1), whose commit holds the frontier back (I2).
            unsafe { segment.write(part, self.key, payload.len(), payload) };
            self.space.note(part);
        }
    }

    /// Fills a place with skip records, in every segment that it lies in. `content` is copied there as far as
    /// there is room, and is nothing to anybody. `move_commit` is as for [`Ring::fill`].
    #[inline]
    pub fn skip(&self, place: Place, content: &[u8], move_commit: impl Fn(Epoch)) {
        for part in place.parts() {
            if let Some(segment) = self.segment(part.epoch, &move_commit) {
                let content = &content[..content.len().min(part.content_bytes())];
                // SAFETY: as in `fill`.
                unsafe { segment.write(part, self.key, 0, content) };
                self.space.note(part);
            }
        }
    }

    /// Returns the segment of an epoch, in which the caller has a place. `None` when the log is over.
    #[inline]
    fn segment(&self, epoch: Epoch, move_commit: &impl Fn(Epoch)) -> Option<&Segment> {
        let opened = self.entry(epoch).segment(epoch);
        if opened.is_some() { opened } else { self.open(epoch, move_commit) }
    }

    fn entry(&self, epoch: Epoch) -> &Entry {
        &self.entries[(epoch.get() % SEGMENTS) as usize]
    }

    /// Opens the segment of an epoch, or waits until somebody else has.
    #[cold]
    fn open(&self, epoch: Epoch, move_commit: &impl Fn(Epoch)) -> Option<&Segment> {
        let entry = self.entry(epoch);
        // Before any wait: nobody has to wait for this commit in an earlier epoch.
        if !is_left_out(Step::MoveCommit) {
            move_commit(epoch);
        }
        let mut backoff = Backoff::new();
        loop {
            if let Some(segment) = entry.segment(epoch) {
                return Some(segment);
            }
            if self.space.is_over() {
                return None;
            }
            match entry.state() {
                EntryState::Free if self.is_clear(epoch) => {
                    if entry.begin_to_open(epoch) {
                        self.open.fetch_add(1, Ordering::Relaxed);
                        entry.open(epoch, self.take_segment(), self.loggers);
                    }
                }
                EntryState::Free => backoff.wait(),
                EntryState::Taken(by) if by == epoch => backoff.wait(),
                EntryState::Taken(_) if is_left_out(Step::DrainedCheck) => entry.forget(),
                EntryState::Taken(by) => self.space.wait_while_taken(entry, by, &self.wake),
            }
        }
    }

    /// Returns whether nobody has a place of an earlier epoch that falls to the same entry (I4).
    fn is_clear(&self, epoch: Epoch) -> bool {
        let is_behind = |frontier: u64| frontier + SEGMENTS > epoch.get();
        if is_left_out(Step::ClearCheck) || is_behind(self.frontier.load(Ordering::Relaxed)) {
            return true;
        }
        let frontier = (self.complete_frontier)();
        self.note_frontier(frontier);
        is_behind(frontier.get())
    }

    fn note_frontier(&self, frontier: Epoch) {
        // Relaxed: it says which places there are no more, and carries nothing.
        self.frontier.fetch_max(frontier.get(), Ordering::Relaxed);
    }

    fn take_segment(&self) -> Box<Segment> {
        let kept = self.free.lock().pop();
        kept.unwrap_or_else(|| Box::new(Segment::new()))
    }

    /// A logger has written what it took of the segment of an epoch, which has records up to `end`. The last one
    /// frees the entry.
    fn finish(&self, epoch: Epoch, end: u64) {
        let Some(segment) = self.entry(epoch).finish() else { return };
        let mut free = self.free.lock();
        let surplus = if free.len() < KEPT_SEGMENTS {
            free.push(segment);
            None
        } else {
            Some(segment)
        };
        drop(free);
        drop(surplus);
        self.entry(epoch).set_free();
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.space.release(end);
    }

    /// Returns whether there are segments that were not drained.
    pub(crate) fn is_pending(&self) -> bool {
        // Relaxed: whoever relies on it has read a frontier, or looks again.
        self.open.load(Ordering::Relaxed) > 0
    }

    /// Returns whether somebody waits for a segment to be drained.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.space.is_waited_for()
    }

    /// Ends the waits for room, now and later: the log takes nothing new.
    pub(crate) fn fail(&self, error: &LogError) {
        self.space.fail(error);
    }

    /// Ends all waits, now and later: nothing is drained any more.
    pub(crate) fn end(&self, error: &LogError) {
        self.space.end(error);
    }

    pub(crate) fn pressure(&self) -> Pressure {
        self.space.pressure()
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring")
            .field("entries", &self.entries)
            .field("space", &self.space)
            .finish_non_exhaustive()
    }
}
