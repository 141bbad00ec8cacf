//! A value behind a lock, and a place to wait until it changes.
//!
//! Model checkers have no clock: under them time stands still, and a thread waits until it is notified.

use std::sync::TryLockError;
use std::time::Duration;

use ensilo_sync::sync::{Condvar, Mutex, MutexGuard};

/// A value that several threads change and wait for.
#[derive(Debug)]
pub(crate) struct Monitor<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> Monitor<T> {
    pub(crate) fn new(value: T) -> Self {
        Monitor { value: Mutex::new(value), changed: Condvar::new() }
    }

    /// Takes the lock. What a panicking thread left is used as it is: every change of a monitor's value is a
    /// single step.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        match self.value.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// Takes the lock if it is free.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.value.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Gives the lock away until somebody notifies, or for no reason.
    pub(crate) fn wait<'a>(&'a self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        match self.changed.wait(guard) {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// As [`Monitor::wait`], for no longer than `timeout`.
    #[cfg(not(any(loom, shuttle)))]
    pub(crate) fn wait_for<'a>(&'a self, guard: MutexGuard<'a, T>, timeout: Duration) -> MutexGuard<'a, T> {
        match self.changed.wait_timeout(guard, timeout) {
            Ok((guard, _)) => guard,
            Err(poisoned) => poisoned.into_inner().0,
        }
    }

    /// The same, for model checkers.
    #[cfg(any(loom, shuttle))]
    pub(crate) fn wait_for<'a>(&'a self, guard: MutexGuard<'a, T>, _timeout: Duration) -> MutexGuard<'a, T> {
        self.wait(guard)
    }

    pub(crate) fn notify_one(&self) {
        self.changed.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.changed.notify_all();
    }
}
