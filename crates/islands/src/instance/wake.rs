//! Wakes a thread that waits for channels.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

use crate::signal::Signal;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Wake {
    signal: Signal,
    /// Becomes ready when a sleeper is woken.
    event: OwnedFd,
}

impl Wake {
    pub(crate) fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Wake { signal: Signal::new(), event })
    }

    /// Notes that something has come, and wakes the thread.
    pub(crate) fn wake(&self) {
        if self.signal.note() {
            // It fails only where the thread was woken very often, and has not looked.
            let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        }
    }

    /// Returns whether something has come since the last call.
    pub(crate) fn take(&self) -> bool {
        self.signal.take()
    }

    /// Says that the thread is about to sleep until the file is ready. Returns the file, and whether something has come already.
    pub(crate) fn begin_sleep(&self) -> (BorrowedFd<'_>, bool) {
        (self.event.as_fd(), self.signal.begin_sleep())
    }

    /// Says that the thread is awake; `is_ready` says that the file was ready.
    pub(crate) fn end_sleep(&self, is_ready: bool) {
        self.signal.end_sleep();
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
