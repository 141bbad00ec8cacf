//! Wakes a thread that waits for channels.
//!
//! # Memory ordering
//! `[wake]` Who is about to sleep says so, has a fence, and looks whether something has come. Who has something that has come says so, has a fence, and
//! looks whether the other one sleeps. If the first fence comes first, the sleeper is seen and woken; if the second one does, what has come is.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering, fence};

use rustix::event::{EventfdFlags, eventfd};

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Wake {
    /// Whether something has come since the thread last looked.
    has_come: AtomicBool,
    sleeps: AtomicBool,
    /// Becomes ready when a sleeper is woken.
    event: OwnedFd,
}

impl Wake {
    pub(crate) fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Wake { has_come: AtomicBool::new(false), sleeps: AtomicBool::new(false), event })
    }

    /// Notes that something has come, and wakes the thread.
    pub(crate) fn wake(&self) {
        // Release: what has come.
        self.has_come.store(true, Ordering::Release);
        // SeqCst fence: [wake].
        fence(Ordering::SeqCst);
        if self.sleeps.load(Ordering::Relaxed) {
            // It fails only where the thread was woken very often, and has not looked.
            let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        }
    }

    /// Returns whether something has come since the last call.
    pub(crate) fn take(&self) -> bool {
        // Relaxed first: it is written only when something has come. Acquire: what has come.
        self.has_come.load(Ordering::Relaxed) && self.has_come.swap(false, Ordering::Acquire)
    }

    /// Says that the thread is about to sleep until the file is ready. Returns the file, and whether something has come already.
    pub(crate) fn begin_sleep(&self) -> (BorrowedFd<'_>, bool) {
        self.sleeps.store(true, Ordering::Relaxed);
        // SeqCst fence: [wake].
        fence(Ordering::SeqCst);
        (self.event.as_fd(), self.has_come.load(Ordering::Relaxed))
    }

    /// Says that the thread is awake; `is_ready` says that the file was ready.
    pub(crate) fn end_sleep(&self, is_ready: bool) {
        self.sleeps.store(false, Ordering::Relaxed);
        if is_ready {
            // It does not wait: what it would wait for has been read.
            let _ = rustix::io::read(&self.event, &mut [0; 8]);
        }
    }
}

impl std::task::Wake for Wake {
    fn wake(self: std::sync::Arc<Self>) {
        Wake::wake(&self);
    }
}
