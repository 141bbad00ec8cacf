//! A mutex that ThreadSanitizer sees, for runs under it.
//!
//! The standard library's mutex is not instrumented, and once contended it hands over through a futex that ThreadSanitizer
//! does not follow: everything it guards is then reported as a race. Under `--cfg tsan` this one takes its place.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LockResult, TryLockError, TryLockResult};

/// A mutex that spins.
#[derive(Debug, Default)]
pub struct Mutex<T> {
    is_locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through a guard, and `is_locked` allows one guard at a time.
unsafe impl<T: Send> Sync for Mutex<T> {}

/// The proof that a mutex is locked.
#[derive(Debug)]
pub struct MutexGuard<'a, T>(&'a Mutex<T>);

impl<T> Mutex<T> {
    /// An unlocked mutex.
    pub const fn new(value: T) -> Self {
        Mutex { is_locked: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits for the lock.
    ///
    /// # Errors
    /// Never: it knows no poison. The signature is the standard library's.
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        loop {
            if let Ok(guard) = self.try_lock() {
                return Ok(guard);
            }
            std::thread::yield_now();
        }
    }

    /// Takes the lock if it is free.
    ///
    /// # Errors
    /// [`TryLockError::WouldBlock`] when it is not.
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        // Acquire: [mutex] what the last holder did.
        if self.is_locked.swap(true, Ordering::Acquire) {
            return Err(TryLockError::WouldBlock);
        }
        Ok(MutexGuard(self))
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: there is one guard at a time, and this is it.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: there is one guard at a time, and this is it.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        // Release: [mutex].
        self.0.is_locked.store(false, Ordering::Release);
    }
}
