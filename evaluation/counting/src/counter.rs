//! A counter, and the threads that are attached to it as its workers.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use ensilo_sync::instrumented::{Access, set_observer};

use crate::cache::{Caches, WORKERS_MAX};
use crate::totals::SharingCounts;

/// Makes [`note`] what the program's atomics report to.
static OBSERVES: Once = Once::new();

/// Counts the accesses of the threads that are attached to it. Clones count together.
#[derive(Debug, Clone)]
pub struct LineCounter {
    caches: Arc<Mutex<Caches>>,
}

/// A thread that is attached to a counter as one of its workers; no longer when this is dropped.
#[derive(Debug)]
pub struct Attached {
    /// A thread is attached by itself.
    of_this_thread: PhantomData<*mut ()>,
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
    /// A counter of workers with caches of `cache_lines` lines each. It counts nothing before [`LineCounter::start`].
    ///
    /// # Panics
    /// When the program's atomics report to something else.
    #[must_use]
    pub fn new(cache_lines: u64) -> Self {
        OBSERVES.call_once(|| set_observer(note));
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
        Attached { of_this_thread: PhantomData }
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
fn note(address: usize, access: Access, file: &'static str) {
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
