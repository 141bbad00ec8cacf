//! An entry of the table: for which epoch it is open, and the segment.
//!
//! # Layout
//! ```text
//! state:  0 free | epoch << 1 | 1 being opened | epoch << 1 open
//! ```
//! Who finds the entry free makes it *being opened*, alone; then it is open, until the last logger frees it.

use std::ptr;

use ensilo_epoch::Epoch;
use ensilo_sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use super::planted::{Step, ordering_of};
use super::segment::Segment;

const FREE: u64 = 0;
const IS_BEING_OPENED: u64 = 1;

/// An entry of the table.
#[derive(Debug)]
pub(super) struct Entry {
    state: AtomicU64,
    /// From a box; null unless the entry is open.
    segment: AtomicPtr<Segment>,
    /// How many loggers have not finished it.
    loggers_left: AtomicUsize,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryState {
    /// Nobody's.
    Free,
    /// Open for an epoch, or being opened.
    Taken(Epoch),
}

impl Entry {
    pub(super) fn new() -> Entry {
        Entry {
            state: AtomicU64::new(FREE),
            segment: AtomicPtr::new(ptr::null_mut()),
            loggers_left: AtomicUsize::new(0),
        }
    }

    pub(super) fn state(&self) -> EntryState {
        // Relaxed: whoever acts on it looks again.
        match self.state.load(Ordering::Relaxed) {
            FREE => EntryState::Free,
            state => EntryState::Taken(Epoch::new(state >> 1)),
        }
    }

    /// Returns the segment, if the entry is open for this epoch. The caller has a place there, or is a logger that
    /// has not finished it.
    #[inline]
    pub(super) fn segment(&self, epoch: Epoch) -> Option<&Segment> {
        // Acquire: [segment].
        if self.state.load(Ordering::Acquire) != epoch.get() << 1 {
            return None;
        }
        // Relaxed: stored before the state.
        let segment = self.segment.load(Ordering::Relaxed);
        assert!(!cfg!(all(loom, test)) || !segment.is_null(), "an open entry without a segment");
        // SAFETY: the pointer of an open entry is that of a box. The box is taken back by the last logger that
        // finishes the entry: not before the caller does, if it is a logger, and not before the caller's commit
        // has ended, if it has a place there (I2).
        Some(unsafe { &*segment })
    }

    /// Returns the epoch for which the entry is open.
    pub(super) fn open_epoch(&self) -> Option<Epoch> {
        // Relaxed: a logger looks behind the frontier, and by `segment` again.
        let state = self.state.load(Ordering::Relaxed);
        (state != FREE && state & IS_BEING_OPENED == 0).then(|| Epoch::new(state >> 1))
    }

    /// Makes a free entry one that the caller opens, by [`Entry::open`]. `false` if somebody else is faster.
    pub(super) fn begin_to_open(&self, epoch: Epoch) -> bool {
        let opening = epoch.get() << 1 | IS_BEING_OPENED;
        // Acquire: [drained].
        self.state.compare_exchange(FREE, opening, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Opens the entry for an epoch and so many loggers.
    pub(super) fn open(&self, epoch: Epoch, segment: Box<Segment>, loggers: usize) {
        self.loggers_left.store(loggers, Ordering::Relaxed);
        self.segment.store(Box::into_raw(segment), Ordering::Relaxed);
        // Release: [segment].
        self.state.store(epoch.get() << 1, ordering_of(Step::OrderOfSegment, Ordering::Release));
    }

    /// One of the loggers is done with the segment. The last one gets it, and calls [`Entry::set_free`].
    pub(super) fn finish(&self) -> Option<Box<Segment>> {
        // AcqRel: [drained] the last one passes on that the others have read.
        if self.loggers_left.fetch_sub(1, Ordering::AcqRel) > 1 {
            return None;
        }
        let segment = self.segment.load(Ordering::Relaxed);
        self.segment.store(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: the pointer is that of the box that `open` was given, which is taken back once: by the last
        // logger. All places of the epoch are filled, and the other loggers are done with it.
        Some(unsafe { Box::from_raw(segment) })
    }

    pub(super) fn set_free(&self) {
        // Release: [drained].
        self.state.store(FREE, Ordering::Release);
    }

    /// What the model plants: the entry is taken from an epoch that was not drained.
    pub(super) fn forget(&self) {
        self.state.store(FREE, Ordering::Release);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let segment = self.segment.load(Ordering::Relaxed);
        if !segment.is_null() {
            // SAFETY: as in `finish`; the entry is the caller's alone.
            drop(unsafe { Box::from_raw(segment) });
        }
    }
}
