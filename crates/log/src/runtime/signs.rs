//! The few words of the log that every transaction reads.

use ensilo_epoch::Epoch;
use ensilo_sync::CachePadded;
use ensilo_sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The words that every transaction reads and that hardly ever change.
#[derive(Debug)]
pub(crate) struct Signs {
    words: CachePadded<Words>,
}

#[derive(Debug)]
struct Words {
    is_stopped: AtomicBool,
    full_rows_before: AtomicU64,
}

impl Signs {
    pub(crate) fn new() -> Signs {
        let words = Words { is_stopped: AtomicBool::new(false), full_rows_before: AtomicU64::new(0) };
        Signs { words: CachePadded::new(words) }
    }

    /// Whether the log takes nothing any more.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        // Relaxed: who logs in spite of it is told later that it was not stored.
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
