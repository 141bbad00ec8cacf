//! The words of a log that every commit reads.

use ensilo_epoch::Epoch;
use ensilo_sync::CachePadded;
use ensilo_sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The words that every commit reads and that hardly ever change.
#[derive(Debug)]
pub(crate) struct WriterState {
    words: CachePadded<Words>,
}

#[derive(Debug)]
struct Words {
    is_stopped: AtomicBool,
    full_rows_before: AtomicU64,
}

impl WriterState {
    pub(crate) fn new() -> WriterState {
        let words = Words { is_stopped: AtomicBool::new(false), full_rows_before: AtomicU64::new(0) };
        WriterState { words: CachePadded::new(words) }
    }

    /// Returns whether the log takes nothing any more.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        // Relaxed: what is logged in spite of it is not acknowledged as stored.
        self.words.is_stopped.load(Ordering::Relaxed)
    }

    pub(crate) fn stop(&self) {
        self.words.is_stopped.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn full_rows_before(&self) -> Epoch {
        // Acquire: [rows] as in `set_full_rows_before`.
        Epoch::new(self.words.full_rows_before.load(Ordering::Acquire))
    }

    pub(crate) fn set_full_rows_before(&self, epoch: Epoch) {
        // Release: [rows] what the caller did before, as starting a checkpoint.
        self.words.full_rows_before.store(epoch.get(), Ordering::Release);
    }
}
