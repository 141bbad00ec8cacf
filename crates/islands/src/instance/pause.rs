//! How long a transaction waits before it is tried again: at random, and longer on average each time.

use std::time::Duration;

/// The mean of the first wait is half of this: one that got in between needs no longer in memory.
const FIRST_NANOS_MAX: u64 = 2_000;

/// Waits grow up to this: one that is stored in between needs some milliseconds.
const NANOS_MAX: u64 = 2_000_000;

/// Returns how long to wait before this attempt, the first of which (the one after the first abort) is 1.
pub(crate) fn pause_before_attempt(attempt: u32) -> Duration {
    let most = FIRST_NANOS_MAX << attempt.saturating_sub(1).min(32);
    Duration::from_nanos(fastrand::u64(..most.min(NANOS_MAX)))
}
