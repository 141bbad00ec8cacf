//! A request to end early, which the driver waits on and loaders look at.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

/// Says once and for all that the user wants to stop; shared by reference or in an `Arc`.
#[derive(Debug, Default)]
pub struct Interrupt {
    raised: AtomicBool,
    gate: Mutex<()>,
    changed: Condvar,
}

impl Interrupt {
    /// An interrupt that nobody has raised.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks everybody to stop. True if nobody had before.
    pub fn raise(&self) -> bool {
        // The gate orders this store against a waiter that has looked and not yet slept.
        let _gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        let first = !self.raised.swap(true, Relaxed);
        self.changed.notify_all();
        first
    }

    /// Whether somebody has asked to stop.
    pub fn is_raised(&self) -> bool {
        self.raised.load(Relaxed)
    }

    /// Sleeps until `deadline` or until somebody asks to stop; true in the second case.
    pub fn wait_until(&self, deadline: Instant) -> bool {
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.is_raised() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            gate = self.changed.wait_timeout(gate, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_raised_interrupt_ends_a_long_wait() {
        let interrupt = Interrupt::new();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| interrupt.wait_until(Instant::now() + Duration::from_secs(600)));
            assert!(interrupt.raise());
            assert!(!interrupt.raise());
            assert!(waiter.join().unwrap());
        });
    }

    #[test]
    fn a_wait_ends_at_its_deadline() {
        assert!(!Interrupt::new().wait_until(Instant::now() + Duration::from_millis(1)));
    }
}
