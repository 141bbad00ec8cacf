//! Which cache lines workers share, counted access by access, in programs that are built with `--cfg ensilo_count`.
//!
//! In such a build the types of [`crate::atomic`] and [`crate::unchecked`] note each access before they make it, if the
//! thread is [attached](LineCounter::attach) to a [`LineCounter`]. In every other build neither this module nor any trace of it exists.
//!
//! # What is counted
//! - Accesses by worker, line and kind: loads, stores, read-modify-writes. A line that at least two workers used, one of
//!   them by writing, is *shared*.
//! - *Fetches*: each worker has a cache of its own, kept coherent as hardware does it (a line is either in one cache that may have
//!   changed it, or unchanged in several). A line that another worker changed last and still has in its cache, or that has to be taken out
//!   of other caches to be written, is fetched from another core. What is in nobody's cache comes from memory.
//!
//! A label says in which source file a line was written last, or first read: so that counts can be told apart by what the line
//! holds without a word about it where it is used.
//!
//! # What is not seen
//! Accesses that do not go through this crate's atomics: the standard library's `Arc`, `Mutex` and channels, the general-purpose
//! allocator, memory that is private until it is published, the kernel.
//!
//! # Terms
//! A line is an address divided by 64, not a value: memory that was freed and serves something else is still the same line, as it is for
//! the hardware, which has to move it just the same if another core uses it now.

mod atomics;
mod cache;
mod totals;

pub use atomics::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};
pub use totals::{HotLine, LabelCounts, SharingCounts};

use std::cell::RefCell;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cache::Caches;

/// Workers that can be told apart.
pub const WORKERS_MAX: usize = 64;

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Load,
    Store,
    ReadModifyWrite,
}

/// Counts the accesses of the threads that are attached to it. Clones count together.
#[derive(Debug, Clone)]
pub struct LineCounter {
    caches: Arc<Mutex<Caches>>,
}

/// A thread that is attached to a counter as one of its workers; no longer when this is dropped.
#[derive(Debug)]
pub struct Attached {
    /// A thread is attached by itself.
    of_this_thread: std::marker::PhantomData<*mut ()>,
}

#[derive(Debug)]
struct Attachment {
    caches: Arc<Mutex<Caches>>,
    worker: usize,
}

thread_local! {
    static ATTACHMENT: RefCell<Option<Attachment>> = const { RefCell::new(None) };
}

impl LineCounter {
    /// A counter whose workers have caches of `cache_lines` lines each. It counts nothing before [`LineCounter::start`].
    #[must_use]
    pub fn new(cache_lines: u64) -> Self {
        LineCounter { caches: Arc::new(Mutex::new(Caches::new(cache_lines))) }
    }

    /// Attaches the calling thread as `worker` until what is returned is dropped.
    ///
    /// # Panics
    /// If `worker` is not below [`WORKERS_MAX`], or the thread is attached already.
    #[must_use]
    pub fn attach(&self, worker: usize) -> Attached {
        assert!(worker < WORKERS_MAX, "worker {worker} of at most {WORKERS_MAX}");
        let attachment = Attachment { caches: Arc::clone(&self.caches), worker };
        let before = ATTACHMENT.with_borrow_mut(|place| place.replace(attachment));
        assert!(before.is_none(), "a thread counts for one worker at a time");
        Attached { of_this_thread: std::marker::PhantomData }
    }

    /// Forgets what was counted and counts from here on; what lies in which cache stays.
    pub fn start(&self) {
        lock(&self.caches).start();
    }

    /// What was counted since the start.
    #[must_use]
    pub fn totals(&self) -> SharingCounts {
        lock(&self.caches).totals()
    }
}

impl Attached {
    /// Ends a transaction of the worker: lines that it writes from now on are written by the next one.
    pub fn end_transaction(&self) {
        ATTACHMENT.with_borrow(|place| {
            if let Some(attachment) = place {
                lock(&attachment.caches).end_transaction(attachment.worker);
            }
        });
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        ATTACHMENT.with_borrow_mut(|place| *place = None);
    }
}

/// Notes an access of the calling thread, if it is attached. Threads that end are not any more.
#[inline]
#[track_caller]
pub(crate) fn note(address: usize, access: Access) {
    let file = Location::caller().file();
    let _ = ATTACHMENT.try_with(|place| {
        if let Some(attachment) = place.borrow().as_ref() {
            lock(&attachment.caches).access(attachment.worker, address, access, file);
        }
    });
}

fn lock(caches: &Mutex<Caches>) -> MutexGuard<'_, Caches> {
    caches.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
