//! How far a replay is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How far a replay is. It may be read from another thread.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    /// When the replay began, and how long it took if it is over.
    time: Mutex<(Option<Instant>, Option<Duration>)>,
}

/// How far a replay was at some moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProgressReport {
    /// Bytes of the files that were replayed.
    pub bytes_done: u64,
    /// Bytes of the files in total. 0 before it is known.
    pub bytes_total: u64,
    /// Seconds since the replay began.
    pub seconds: f64,
    /// Seconds that are left, if it goes on as it did so far.
    pub seconds_left: Option<f64>,
}

impl Progress {
    /// No replay has begun.
    #[must_use]
    pub fn new() -> Progress {
        Progress::default()
    }

    /// Returns how far it is now.
    #[must_use]
    pub fn report(&self) -> ProgressReport {
        let (begin, took) = *self.time.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = took.or(begin.map(|begin| begin.elapsed())).unwrap_or_default();
        let (bytes_done, bytes_total) =
            (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed));
        let seconds = elapsed.as_secs_f64();
        let left = bytes_total.saturating_sub(bytes_done) as f64;
        let seconds_left = (bytes_done > 0).then(|| seconds * left / bytes_done as f64);
        ProgressReport { bytes_done, bytes_total, seconds, seconds_left }
    }

    pub(super) fn begin(&self, total: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
        *self.time.lock().unwrap_or_else(PoisonError::into_inner) = (Some(Instant::now()), None);
    }

    pub(super) fn advance(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.done.store(self.total.load(Ordering::Relaxed), Ordering::Relaxed);
        let mut time = self.time.lock().unwrap_or_else(PoisonError::into_inner);
        time.1 = time.0.map(|begin| begin.elapsed());
    }
}
