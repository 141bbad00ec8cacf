//! What checkpoints have come to, in numbers that anybody may read.
//!
//! # Memory ordering
//! All Relaxed: each number stands for itself, for statistics and for when to look again.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::checkpoint::Checkpoint;
use super::statistics::CheckpointStatistics;
use crate::Result;

#[derive(Debug, Default)]
pub(super) struct CheckpointCounters {
    made: AtomicU64,
    failed: AtomicU64,
    is_under_way: AtomicBool,
    bytes_written: AtomicU64,
    last_bytes: AtomicU64,
    last_milliseconds: AtomicU64,
}

impl CheckpointCounters {
    /// Notes that a checkpoint is under way until what comes back is dropped, by a panic, too.
    pub(super) fn begin(&self) -> UnderWay<'_> {
        self.is_under_way.store(true, Ordering::Relaxed);
        UnderWay(&self.is_under_way)
    }

    pub(super) fn note(&self, made: &Result<Checkpoint>) {
        let outcome = if made.is_ok() { &self.made } else { &self.failed };
        outcome.fetch_add(1, Ordering::Relaxed);
        if let Ok(made) = made {
            self.last_bytes.store(made.bytes, Ordering::Relaxed);
            self.last_milliseconds.store(made.duration.as_millis() as u64, Ordering::Relaxed);
        }
    }

    /// Notes so many bytes of all checkpoints together, unless more were noted.
    pub(super) fn note_bytes_written(&self, bytes: u64) {
        self.bytes_written.fetch_max(bytes, Ordering::Relaxed);
    }

    /// Returns how many were made.
    pub(super) fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.is_under_way.load(Ordering::Relaxed)
    }

    pub(super) fn bytes_written(&self) -> u64 {
        self.bytes_written.load(Ordering::Relaxed)
    }

    /// Returns how many bytes the last one has that this opening has made, or 0.
    pub(super) fn last_bytes(&self) -> u64 {
        self.last_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn statistics(&self) -> CheckpointStatistics {
        CheckpointStatistics {
            made: self.made(),
            failed: self.failed.load(Ordering::Relaxed),
            is_under_way: self.is_under_way(),
            bytes_written: self.bytes_written(),
            last_bytes: self.last_bytes(),
            last_duration: Duration::from_millis(self.last_milliseconds.load(Ordering::Relaxed)),
        }
    }
}

/// A checkpoint that is under way.
#[derive(Debug)]
pub(super) struct UnderWay<'c>(&'c AtomicBool);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_checkpoint_that_panics_is_not_under_way() {
        let counters = CheckpointCounters::default();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _under_way = counters.begin();
            assert!(counters.is_under_way());
            panic!("no thread");
        }));
        assert!(panicked.is_err() && !counters.is_under_way());
    }
}
