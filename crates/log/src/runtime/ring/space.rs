//! How much waits for the loggers, and those who wait until it is less.
//!
//! What was filled is counted by chunks: who fills the last unit of one adds it to a count that all share, so that
//! only one commit in some hundred does.

use std::time::Instant;

use ensilo_epoch::Epoch;
use ensilo_sync::CachePadded;
use ensilo_sync::atomic::{AtomicU64, Ordering};

use super::entry::{Entry, EntryState};
use super::place::{Part, UNIT_BYTES};
use crate::runtime::error::LogError;
use crate::runtime::monitor::Monitor;
use crate::runtime::pool::Pressure;

/// Units of a chunk. The loggers share the records of a segment by chunks.
pub(super) const CHUNK_UNITS: u64 = 1 << 10;

/// The room of a ring.
#[derive(Debug)]
pub(super) struct Space {
    /// Chunks that were filled and not drained.
    chunks: CachePadded<AtomicU64>,
    chunks_max: u64,
    waits: Monitor<Waits>,
}

#[derive(Debug, Default)]
struct Waits {
    /// Threads that wait.
    waiting: usize,
    /// Why there will be no room any more.
    failure: Option<LogError>,
    /// Nothing is drained any more.
    is_over: bool,
    pressure: Pressure,
}

impl Space {
    pub(super) fn new(bytes: usize) -> Space {
        let chunks_max = (bytes / (CHUNK_UNITS as usize * UNIT_BYTES)).max(1) as u64;
        Space {
            chunks: CachePadded::new(AtomicU64::new(0)),
            chunks_max,
            waits: Monitor::new(Waits::default()),
        }
    }

    /// A part was filled.
    #[inline]
    pub(super) fn note(&self, part: Part) {
        let filled = (part.unit + part.units) / CHUNK_UNITS - part.unit / CHUNK_UNITS;
        if filled > 0 {
            // Relaxed, as all accesses: it is an estimate.
            self.chunks.fetch_add(filled, Ordering::Relaxed);
        }
    }

    /// A segment with records up to `end` was drained.
    pub(super) fn release(&self, end: u64) {
        self.chunks.fetch_sub(end / CHUNK_UNITS, Ordering::Relaxed);
        // Under the lock: who looked before this and waits has let go of it.
        let is_waited_for = self.waits.lock().waiting > 0;
        if is_waited_for {
            self.waits.notify_all();
        }
    }

    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.chunks.load(Ordering::Relaxed) < self.chunks_max
    }

    pub(super) fn wait_for_room(&self, wake: impl Fn()) -> Result<(), LogError> {
        self.wait(wake, |waits| match &waits.failure {
            Some(failure) => Some(Err(failure.clone())),
            None => self.has_room().then_some(Ok(())),
        })
    }

    /// Waits until the entry is no longer taken by this epoch, to which it never comes back, or nothing is drained any
    /// more. Not until it is free: somebody else may have taken it by the time that this thread looks.
    pub(super) fn wait_while_taken(&self, entry: &Entry, by: Epoch, wake: impl Fn()) {
        let is_taken = || entry.state() == EntryState::Taken(by);
        self.wait(wake, |waits| (waits.is_over || !is_taken()).then_some(()));
    }

    /// Waits for what `known` returns. Calls `wake` if it is not known yet.
    fn wait<R>(&self, wake: impl Fn(), known: impl Fn(&Waits) -> Option<R>) -> R {
        let mut waits = self.waits.lock();
        if let Some(known) = known(&waits) {
            return known;
        }
        let began = Instant::now();
        waits.waiting += 1;
        waits.pressure.waits += 1;
        drop(waits);
        wake();
        let mut waits = self.waits.lock();
        let result = loop {
            if let Some(known) = known(&waits) {
                break known;
            }
            waits = self.waits.wait(waits);
        };
        waits.waiting -= 1;
        waits.pressure.waited += began.elapsed();
        result
    }

    pub(super) fn is_waited_for(&self) -> bool {
        self.waits.lock().waiting > 0
    }

    pub(super) fn is_over(&self) -> bool {
        self.waits.lock().is_over
    }

    pub(super) fn fail(&self, error: &LogError) {
        self.waits.lock().failure.get_or_insert_with(|| error.clone());
        self.waits.notify_all();
    }

    pub(super) fn end(&self, error: &LogError) {
        self.waits.lock().is_over = true;
        self.fail(error);
    }

    pub(super) fn pressure(&self) -> Pressure {
        self.waits.lock().pressure
    }
}
