//! Wakes a worker that sleeps.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Wake {
    /// Whether something has come since the worker last looked.
    has_come: AtomicBool,
    worker: Mutex<Option<Thread>>,
}

impl Wake {
    /// Notes that something has come, and wakes the worker.
    pub(crate) fn wake(&self) {
        // Release: [wake] what has come.
        self.has_come.store(true, Ordering::Release);
        if let Some(worker) = &*self.worker.lock().unwrap_or_else(PoisonError::into_inner) {
            worker.unpark();
        }
    }

    /// Returns whether something has come since the last call.
    pub(crate) fn take(&self) -> bool {
        // Relaxed first: it is written only when something has come. Acquire: [wake].
        self.has_come.load(Ordering::Relaxed) && self.has_come.swap(false, Ordering::Acquire)
    }

    /// Has the calling thread sleep until something comes, or for so long.
    pub(crate) fn sleep(&self, most: Duration) {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(thread::current);
        // What has come before is found by this, what comes later unparks.
        if !self.take() {
            thread::park_timeout(most);
        }
    }
}

impl std::task::Wake for Wake {
    fn wake(self: std::sync::Arc<Self>) {
        Wake::wake(&self);
    }
}
