//! Waiting between two attempts of a request: random, and longer on average each time.
//!
//! Two requests that abort each other must not try again in step. The first waits are shorter than a
//! transaction, because the one that got in between has committed by then. The last ones are longer than most transactions: what stands in
//! the way of a request that has met so many conflicts lasts, such as an update of a whole table, and a thousand retries outlast 15 s of it.

use std::hint::spin_loop;
use std::thread;
use std::time::{Duration, Instant};

/// The mean of the first wait is half of this.
const FIRST_WAIT_NS_MAX: u64 = 1_000;
/// Waits double up to this.
const DOUBLED_NS_MAX: u64 = 1_000_000;
/// From then on they grow by that with each so many attempts: the wait is a small part of the time before it.
const ATTEMPTS_OF_STEP: u64 = 16;
/// Up to so many such steps, which is a sixteenth of a second.
const STEPS_MAX: u64 = 62;
/// Below this a wait keeps its core: giving it away and getting it back takes longer.
const SPIN_NS_MAX: u64 = 20_000;

/// A random number generator for waits, one per worker (splitmix64): quality does not matter, independence
/// does.
#[derive(Debug)]
pub(crate) struct Jitter(u64);

impl Jitter {
    pub(crate) const fn new(seed: u64) -> Self {
        Jitter(seed)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) % bound
    }
}

/// Waits before attempt number `attempt`, the first of which (the one after the first abort) is 1.
#[cold]
pub(crate) fn wait_before_attempt(attempt: u32, jitter: &mut Jitter) {
    let wait_ns = jitter.below(wait_ns_max(attempt));
    if wait_ns <= SPIN_NS_MAX {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_nanos(wait_ns) {
            spin_loop();
        }
        if attempt > 3 {
            // Perhaps the transaction in our way waits for this core.
            thread::yield_now();
        }
    } else {
        thread::sleep(Duration::from_nanos(wait_ns));
    }
}

fn wait_ns_max(attempt: u32) -> u64 {
    let doubled = (FIRST_WAIT_NS_MAX << attempt.saturating_sub(1).min(32)).min(DOUBLED_NS_MAX);
    doubled * (u64::from(attempt) / ATTEMPTS_OF_STEP).clamp(1, STEPS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_millisecond_and_grow_slowly_from_there() {
        assert_eq!(wait_ns_max(1), 1_000);
        assert_eq!(wait_ns_max(2), 2_000);
        assert_eq!(wait_ns_max(11), 1_000_000);
        assert_eq!(wait_ns_max(31), 1_000_000);
        assert_eq!(wait_ns_max(100), 6_000_000);
        assert_eq!(wait_ns_max(u32::MAX), 62_000_000);
    }

    #[test]
    fn a_thousand_retries_outlast_fifteen_seconds() {
        let mean_ns: u64 = (1..=1000).map(|attempt| wait_ns_max(attempt) / 2).sum();
        assert!(mean_ns > 15_000_000_000, "{mean_ns} ns");
        // Each is a small part of the time that has gone by until then.
        let mut waited_ns = 0;
        for attempt in 1..=1000 {
            assert!(attempt < 20 || wait_ns_max(attempt) < waited_ns / 4, "attempt {attempt}");
            waited_ns += wait_ns_max(attempt) / 2;
        }
    }

    #[test]
    fn two_workers_wait_differently() {
        let (mut one, mut two) = (Jitter::new(1), Jitter::new(2));
        let equal = (0..1000).filter(|_| one.below(1000) == two.below(1000)).count();
        assert!(equal < 20, "{equal} of 1000 waits were equal");
    }
}
