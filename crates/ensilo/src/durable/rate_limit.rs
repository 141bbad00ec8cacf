//! Keeping a checkpoint from taking more of the disk and the processors than it should.
//!
//! Its rate follows from its size and the time to the next one, not from the disk's bandwidth that the log
//! leaves: that is the lowest steady rate that keeps up, and what transactions feel of a checkpoint is mostly
//! the processors' time, not the disk's. For a disk that can do little beside the log there is
//! [`Options::checkpoint_bytes_per_second`](crate::Options::checkpoint_bytes_per_second).

use std::thread;
use std::time::{Duration, Instant};

/// Sleeps shorter than this are put off: a thread that wakes often costs more than it gives.
const SLEEP_MIN: Duration = Duration::from_millis(5);

/// So long at once: closing waits until a sleep is over.
const SLEEP_MAX: Duration = Duration::from_millis(50);

/// Limits a writer to so many bytes a second.
pub(super) struct RateLimit {
    start: Instant,
    bytes_per_second: u64,
}

impl RateLimit {
    pub(super) fn new(bytes_per_second: u64) -> Self {
        RateLimit { start: Instant::now(), bytes_per_second: bytes_per_second.max(1) }
    }

    /// Waits until it is time to have written `bytes` in all, or `is_over`.
    pub(super) fn wait(&self, bytes: u64, is_over: impl Fn() -> bool) {
        let due = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
        loop {
            let ahead = due.saturating_sub(self.start.elapsed());
            if ahead < SLEEP_MIN || is_over() {
                return;
            }
            thread::sleep(ahead.min(SLEEP_MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_writer_far_ahead_stops_waiting_when_it_is_over() {
        let rate_limit = RateLimit::new(1);
        let looks = Cell::new(0);
        let third_look = || {
            looks.set(looks.get() + 1);
            looks.get() == 3
        };
        // A thousand years ahead.
        rate_limit.wait(1000 * 365 * 24 * 3600, third_look);
        assert_eq!(looks.get(), 3);
        rate_limit.wait(0, || unreachable!("it is in time"));
    }
}
