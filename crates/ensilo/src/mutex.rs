//! Locks of mutexes that hold nothing a panic could leave half done.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the mutex, also after a panic of a thread that held it.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
