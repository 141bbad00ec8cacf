//! Waiting between two attempts of a request: random, and longer on average each time.
//!
//! Two requests that abort each other must not try again in step. The first waits are shorter than a
//! transaction, because the one that got in between has committed by then.

use std::hint::spin_loop;
use std::thread;
use std::time::{Duration, Instant};

/// The mean of the first wait is half of this.
const FIRST_WAIT_NS_MAX: u64 = 1_000;
/// Waits grow up to this.
const WAIT_NS_MAX: u64 = 1_000_000;
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
    (FIRST_WAIT_NS_MAX << attempt.saturating_sub(1).min(32)).min(WAIT_NS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_millisecond() {
        assert_eq!(wait_ns_max(1), 1_000);
        assert_eq!(wait_ns_max(2), 2_000);
        assert_eq!(wait_ns_max(11), 1_000_000);
        assert_eq!(wait_ns_max(u32::MAX), 1_000_000);
    }

    #[test]
    fn two_workers_wait_differently() {
        let (mut one, mut two) = (Jitter::new(1), Jitter::new(2));
        let equal = (0..1000).filter(|_| one.below(1000) == two.below(1000)).count();
        assert!(equal < 20, "{equal} of 1000 waits were equal");
    }
}
