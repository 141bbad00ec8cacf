//! The clock of the workers: one reading of the processor's time-stamp counter per transaction.
//!
//! The end of one transaction is the start of the next. A reading costs about 9 ns where the operating system's
//! clock costs 22, which a transaction of 700 ns would feel. The same reading gives the wall-clock time that rows carry.

use std::time::{SystemTime, UNIX_EPOCH};

/// A moment as the clock read it; means something only to its clock.
#[derive(Debug, Clone, Copy)]
pub struct Stamp(u64);

/// A clock calibrated against the system's; clones agree with each other.
#[derive(Debug, Clone)]
pub struct Clock {
    counter: quanta::Clock,
    origin: Stamp,
    origin_unix_us: i64,
}

impl Clock {
    /// Calibrates the counter; takes some milliseconds the first time in a process.
    pub fn new() -> Self {
        let counter = quanta::Clock::new();
        let origin = Stamp(counter.raw());
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { counter, origin, origin_unix_us: i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX) }
    }

    /// Now.
    #[inline]
    pub fn stamp(&self) -> Stamp {
        Stamp(self.counter.raw())
    }

    /// Nanoseconds from `start` to `end`, 0 if `end` was read before `start`.
    #[inline]
    pub fn nanoseconds(&self, start: Stamp, end: Stamp) -> u64 {
        self.counter.delta_as_nanos(start.0, end.0)
    }

    /// Microseconds since 1970-01-01 UTC at `stamp`.
    #[inline]
    pub fn unix_microseconds(&self, stamp: Stamp) -> i64 {
        self.origin_unix_us + (self.nanoseconds(self.origin, stamp) / 1_000) as i64
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_agrees_with_the_systems() {
        let clock = Clock::new();
        let started = std::time::Instant::now();
        let start = clock.stamp();
        while started.elapsed() < std::time::Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        let measured_us = clock.nanoseconds(start, clock.stamp()) / 1_000;
        let elapsed_us = started.elapsed().as_micros() as u64;
        assert!((19_000..=elapsed_us + 1_000).contains(&measured_us), "{measured_us} against {elapsed_us}");
    }

    #[test]
    fn unix_time_advances_from_the_systems() {
        let clock = Clock::new();
        let system = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as i64;
        let ours = clock.unix_microseconds(clock.stamp());
        assert!((ours - system).abs() < 2_000_000, "{ours} {system}");
    }
}
