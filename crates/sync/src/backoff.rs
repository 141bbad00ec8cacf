//! Waiting for another thread without taking its core.

use crate::thread;

/// Spins this often before the first yield: a writer holds a latch for some tens of nanoseconds.
const SPINS_BEFORE_YIELD: u32 = 64;

/// Waits a little longer each time: first on the core, then by giving the core away.
///
/// Under a model checker every wait is a yield, which is what tells the checker that this thread cannot go on alone.
#[derive(Debug, Default)]
pub struct Backoff {
    waits: u32,
}

impl Backoff {
    /// Returns a wait that has not begun.
    #[must_use]
    pub const fn new() -> Self {
        Backoff { waits: 0 }
    }

    /// Waits once.
    pub fn wait(&mut self) {
        self.waits = self.waits.saturating_add(1);
        if cfg!(any(loom, shuttle)) || self.waits > SPINS_BEFORE_YIELD {
            thread::yield_now();
        } else {
            cpu_relax();
        }
    }

    /// Returns how often [`Backoff::wait`] was called.
    #[must_use]
    pub const fn waits(&self) -> u32 {
        self.waits
    }
}

/// Tells the processor that this is a spin loop.
#[inline]
pub fn cpu_relax() {
    #[cfg(not(any(loom, shuttle)))]
    std::hint::spin_loop();
    #[cfg(any(loom, shuttle))]
    thread::yield_now();
}
