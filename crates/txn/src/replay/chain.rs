//! The patches of a live record that have come in the order of their TIDs, which most do.
//!
//! Such a patch becomes part of the base at once. What is left to remember is which words it has set, should an older write still come: an entry of
//! a chain. Nobody looks at it otherwise. The first write that is out of order makes a list of [pending words](super::pending) of the chain.
//! Entries fill segments in turn, and a worker has so many at most; a segment is used again when nothing can come that is older than any of its entries.
//!
//! # Layout
//! An entry, behind which the indexes of its words stand:
//! ```text
//! | previous entry or null (8) | TID of the patch before it, or of the base (8) | len (u32) | index (u32) .. |
//! ```
//!
//! # Invariants
//! - H1: the TID word of a record with a chain carries the TID of its first entry, and each entry says the TID of the one behind it. They fall.
//! - H2: an entry is overwritten only when its epoch is before the floors of all workers.
//! - H3: a worker's *floor* is an epoch before which all writes were applied, as [`fold`](ensilo_log::Replay::fold) has said. It follows a chain only to
//!   entries whose TIDs are not before its floor: what is before it is part of the base.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::VecDeque;
use std::mem::offset_of;
use std::ptr::NonNull;

use ensilo_engine::Tid;
use ensilo_epoch::Epoch;
use ensilo_sync::sync::Mutex;

use crate::registry::lock;

/// Which words one patch has set. Its TID stands where the link to it does (H1).
#[repr(C)]
pub(super) struct ChainEntry {
    previous: Option<NonNull<ChainEntry>>,
    previous_tid: Tid,
    len: u32,
    /// They go on behind it.
    indexes: [u32; 0],
}

impl ChainEntry {
    /// Returns the patch before this one, if that is not part of the base, and its TID or the base's.
    pub(super) fn previous(&self) -> (Option<NonNull<ChainEntry>>, Tid) {
        (self.previous, self.previous_tid)
    }
}

/// Returns the indexes of the words that a patch has set.
///
/// # Safety
/// The entry was [added](ChainMemory::add), and is not overwritten while the result is used (H2).
pub(super) unsafe fn indexes<'a>(entry: NonNull<ChainEntry>) -> &'a [u32] {
    // SAFETY: so many were written behind the entry before anybody was led to it, in the same piece of memory; the caller's promise.
    unsafe { std::slice::from_raw_parts(first_index(entry), entry.as_ref().len as usize) }
}

fn first_index(entry: NonNull<ChainEntry>) -> *mut u32 {
    entry.as_ptr().wrapping_byte_add(offset_of!(ChainEntry, indexes)).cast()
}

/// Returns how many bytes an entry of `len` words takes.
fn entry_bytes(len: usize) -> usize {
    let bytes = offset_of!(ChainEntry, indexes) + len * size_of::<u32>();
    bytes.next_multiple_of(align_of::<ChainEntry>()).max(size_of::<ChainEntry>())
}

const SEGMENT_BYTES: usize = 64 << 10;

/// A worker has so many: what is patched beyond that, while nothing can be forgotten, goes into lists, which grow with the words of rows and not
/// with patches.
const SEGMENTS_MAX: usize = 256;

/// Where a worker's entries come from.
#[derive(Default)]
pub(super) struct ChainMemory {
    /// In the order in which they were filled; the last one is being filled.
    segments: VecDeque<Segment>,
    /// What is before it may be overwritten (H2).
    least_floor: Epoch,
}

/// A place for an entry that nobody knows yet.
pub(super) struct Room {
    entry: NonNull<ChainEntry>,
    capacity: usize,
    len: usize,
}

impl Room {
    /// Adds the index of one of the entry's words.
    ///
    /// # Panics
    /// When it has room for no more.
    #[inline]
    pub(super) fn push(&mut self, index: u32) {
        assert!(self.len < self.capacity, "a word of the patch");
        // SAFETY: there is room for `capacity` indexes, which nobody else knows.
        unsafe { first_index(self.entry).add(self.len).write(index) }
        self.len += 1;
    }
}

impl ChainMemory {
    /// Sets the least floor of all workers: entries of earlier epochs may be overwritten.
    pub(super) fn set_least_floor(&mut self, least: Epoch) {
        self.least_floor = least;
    }

    /// Returns room for an entry of at most `capacity` words, if there is some. Until that is added it is the place of the next one, too.
    #[inline]
    pub(super) fn room(&mut self, capacity: usize) -> Option<Room> {
        let bytes = entry_bytes(capacity);
        let has_room = self.segments.back().is_some_and(|last| last.has_room(bytes));
        if !has_room {
            self.begin_segment(bytes)?;
        }
        let last = self.segments.back()?;
        Some(Room { entry: last.next(), capacity, len: 0 })
    }

    /// Makes the entry of a patch. `previous` is the first one of the record's chain, and `previous_tid` the TID of that, or of the base.
    #[inline]
    pub(super) fn add(
        &mut self,
        room: Room,
        previous: Option<NonNull<ChainEntry>>,
        previous_tid: Tid,
        tid: Tid,
    ) -> NonNull<ChainEntry> {
        let Room { entry, len, .. } = room;
        let head = entry.as_ptr();
        // SAFETY: there is room for an entry, which nobody else knows. Each field alone: the first index lies within what fills the type up.
        unsafe {
            (&raw mut (*head).previous).write(previous);
            (&raw mut (*head).previous_tid).write(previous_tid);
            (&raw mut (*head).len).write(len as u32);
        }
        let last = self.segments.back_mut().expect("where the room is");
        last.filled_bytes += entry_bytes(len);
        last.last_epoch = last.last_epoch.max(tid.epoch());
        entry
    }

    /// Begins a segment: the oldest one again, if nobody follows a chain to it any more. There is none for an entry that is longer.
    #[cold]
    fn begin_segment(&mut self, entry_bytes: usize) -> Option<()> {
        if entry_bytes > SEGMENT_BYTES {
            return None;
        }
        let is_free = |oldest: &mut Segment| oldest.last_epoch < self.least_floor;
        let memory = match self.segments.pop_front_if(is_free) {
            Some(oldest) => oldest.memory,
            None if self.segments.len() < SEGMENTS_MAX => SegmentMemory::new()?,
            None => return None,
        };
        self.segments.push_back(Segment { memory, filled_bytes: 0, last_epoch: Epoch::default() });
        Some(())
    }
}

/// A piece of memory that is filled with entries.
struct Segment {
    memory: SegmentMemory,
    filled_bytes: usize,
    /// The latest epoch of its entries.
    last_epoch: Epoch,
}

impl Segment {
    fn has_room(&self, bytes: usize) -> bool {
        SEGMENT_BYTES - self.filled_bytes >= bytes
    }

    /// Returns the place of the next entry.
    fn next(&self) -> NonNull<ChainEntry> {
        // SAFETY: not more is filled than there is.
        unsafe { self.memory.0.add(self.filled_bytes) }.cast()
    }
}

/// The memory of a segment, which goes when the replay is over.
struct SegmentMemory(NonNull<u8>);

// SAFETY: it owns the memory. What others read of it does not change while they do (H2, H3).
unsafe impl Send for SegmentMemory {}

impl SegmentMemory {
    const LAYOUT: Layout = match Layout::from_size_align(SEGMENT_BYTES, align_of::<ChainEntry>()) {
        Ok(layout) => layout,
        Err(_) => panic!("a size that is not too large"),
    };

    fn new() -> Option<SegmentMemory> {
        // SAFETY: it is not empty.
        NonNull::new(unsafe { alloc(Self::LAYOUT) }).map(SegmentMemory)
    }
}

impl Drop for SegmentMemory {
    fn drop(&mut self) {
        // SAFETY: `new` has it from there, with this layout.
        unsafe { dealloc(self.0.as_ptr(), Self::LAYOUT) }
    }
}

/// The floors of all workers (H3).
#[derive(Default)]
pub(super) struct Floors {
    floors: Mutex<AllFloors>,
}

#[derive(Default)]
struct AllFloors {
    by_worker: Vec<Epoch>,
    /// The least one when a worker was last given it.
    least: Epoch,
}

impl Floors {
    /// Adds a worker. Returns its number and its floor, before which others may have overwritten entries.
    pub(super) fn add(&self) -> (usize, Epoch) {
        let mut floors = lock(&self.floors);
        let floor = floors.least;
        floors.by_worker.push(floor);
        (floors.by_worker.len() - 1, floor)
    }

    /// Raises the floor of a worker, and returns the least one.
    pub(super) fn raise(&self, worker: usize, floor: Epoch) -> Epoch {
        let mut floors = lock(&self.floors);
        floors.by_worker[worker] = floor;
        floors.least = floors.by_worker.iter().copied().min().unwrap_or_default();
        floors.least
    }

    /// Takes note that a worker has ended: it follows no chain any more.
    pub(super) fn end(&self, worker: usize) {
        lock(&self.floors).by_worker[worker] = Epoch::MAX;
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn tid(epoch: u64) -> Tid {
        Tid::from_raw(epoch << 20)
    }

    /// Adds entries of an epoch until there is no room. Returns them.
    fn fill(chains: &mut ChainMemory, epoch: u64, words: u32) -> Vec<NonNull<ChainEntry>> {
        let mut entries = Vec::new();
        while let Some(mut room) = chains.room(words as usize) {
            (0..words).for_each(|index| room.push(index));
            entries.push(chains.add(room, None, tid(1), tid(epoch)));
        }
        entries
    }

    #[test]
    fn entries_are_overwritten_once_they_are_before_every_floor() {
        assert_eq!(tid(7).epoch(), Epoch::new(7));
        let (floors, mut chains) = (Floors::default(), ChainMemory::default());
        let ((one, _), (other, _)) = (floors.add(), floors.add());
        let first = fill(&mut chains, 7, 3);
        assert_eq!(first.len(), SEGMENTS_MAX * (SEGMENT_BYTES / 32));
        // SAFETY: nothing was overwritten.
        assert!(first.iter().all(|&entry| unsafe { indexes(entry) } == [0, 1, 2]));
        for (worker, floor, is_free) in [(one, 8, false), (other, 7, false), (other, 8, true)] {
            chains.set_least_floor(floors.raise(worker, Epoch::new(floor)));
            assert_eq!(chains.room(3).is_some(), is_free);
        }
        // A worker that is added now follows no chain to what may have been overwritten.
        assert_eq!(floors.add(), (2, Epoch::new(8)));
        let second = fill(&mut chains, 9, 3);
        assert_eq!(second, first);
    }

    #[test]
    fn there_is_no_room_for_more_words_than_a_segment_has() {
        let mut chains = ChainMemory::default();
        assert!(chains.room(SEGMENT_BYTES / 4).is_none());
        assert!(chains.segments.is_empty());
        assert!(chains.room(SEGMENT_BYTES / 4 - 5).is_some());
        assert!(chains.room(0).is_some());
    }
}
