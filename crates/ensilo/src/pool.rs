//! Threads that run submitted jobs, and the handles to wait for their results.
//!
//! The pool knows nothing of transactions: a job is a closure, and what it borrows of the database it brings
//! along. Bounded queues feed all threads, and that of jobs of high priority one more, which runs no others. A job that panics is
//! reported to its handle; the thread goes on.
//!
//! # Invariants
//! - P1: a job that was taken by [`Pool::submit`] is either run once or dropped, and either way its handle is
//!   completed.
//! - P2: a thread of a pool never waits for room in its own queue, so that jobs may submit jobs; nor for a
//!   job of its own pool to end: with all threads waiting so, nobody would run what they wait for. The same
//!   holds for a pool with threads that wait for this one's, in turn or through others ([`waits`]). Only
//!   closing waits for jobs of its own pool, which do not wait for it.

mod affinity;
mod future;
mod handle;
mod queue;
mod room;
mod waits;

use std::sync::{Arc, Mutex, Once};
use std::thread::{self, JoinHandle};

use ensilo_log::{ForeignAfter, call_foreign};

pub use future::JobFuture;
pub use handle::JobHandle;
pub(crate) use handle::{message_of, promise};
pub use queue::Priority;
pub(crate) use queue::{Job, WhenFull};
use queue::{Queue, Serves};
pub(crate) use waits::{Wait, WaitCycle};

use crate::mutex::lock;
use crate::{Error, Result};

/// How a pool is made.
#[derive(Clone, Debug)]
pub(crate) struct PoolOptions {
    pub(crate) threads: usize,
    pub(crate) queue_len_max: usize,
    pub(crate) pin_to_cores: bool,
}

/// The threads and their queue.
#[derive(Debug)]
pub(crate) struct Pool {
    queue: Arc<Queue>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    serves_high_priority: Once,
}

impl Pool {
    /// Starts the threads.
    pub(crate) fn start(options: &PoolOptions) -> Result<Self> {
        let queue = Arc::new(Queue::new(options.queue_len_max));
        let pool = Pool { queue, threads: Mutex::new(Vec::new()), serves_high_priority: Once::new() };
        for number in 0..options.threads {
            let thread = pool.start_thread(number, options.pin_to_cores)?;
            lock(&pool.threads).push(thread);
        }
        Ok(pool)
    }

    fn start_thread(&self, number: usize, pin: bool) -> Result<JoinHandle<()>> {
        let queue = Arc::clone(&self.queue);
        let body = move || {
            let _working = ForeignAfter::default();
            if pin {
                affinity::pin_to_core(number);
            }
            queue.work(Serves::All);
        };
        let started = thread::Builder::new().name(format!("ensilo-worker-{number}")).spawn(body);
        started.map_err(|error| {
            self.stop();
            Error::not_started(format_args!("pool thread {number}"), &error)
        })
    }

    /// Starts the thread for jobs of high priority, if there is none. Where the system gives none, the others run them.
    fn serve_high_priority(&self) {
        self.serves_high_priority.call_once(|| {
            let queue = Arc::clone(&self.queue);
            let body = move || {
                let _working = ForeignAfter::default();
                queue.work(Serves::HighPriority);
            };
            // Under the lock: whoever stops the pool has closed the queue before, or finds the thread.
            let mut threads = lock(&self.threads);
            if self.queue.is_open() {
                threads.extend(thread::Builder::new().name("ensilo-worker-high".into()).spawn(body));
            }
        });
    }

    /// Hands over a job.
    ///
    /// # Errors
    /// [`Error::Closed`] after [`Pool::stop`], [`Error::QueueFull`] when there is no room and `when_full`
    /// refuses.
    pub(crate) fn submit(&self, job: Job, priority: Priority, when_full: WhenFull) -> Result<()> {
        if priority == Priority::High {
            self.serve_high_priority();
        }
        self.queue.push(job, priority, when_full)
    }

    /// Returns whether the calling thread runs a job, of whichever pool.
    pub(crate) fn is_in_job() -> bool {
        Queue::of_thread().is_some()
    }

    /// Notes that the calling thread waits for the pool's jobs, until the note is dropped.
    ///
    /// # Errors
    /// [`WaitCycle`] where a job of the pool would wait for the calling thread, or is what calls.
    pub(crate) fn begin_wait(&self) -> Result<Wait, WaitCycle> {
        self.queue.begin_wait()
    }

    /// Drops the jobs that have not begun, waits for those that have, and ends the threads.
    ///
    /// Called on a thread of the pool it does not wait for that thread, which ends after the job it is
    /// running. Called by a job of another pool for which jobs of this one wait, it waits for none of them:
    /// each ends by itself.
    pub(crate) fn stop(&self) {
        let (waiting, wakers) = self.queue.close();
        wakers.into_iter().for_each(|waker| call_foreign(|| waker.wake()));
        // Outside of the queue's lock: dropping a job completes its handle, which may run a waker, and drops
        // what the job has borrowed.
        waiting.into_iter().for_each(|job| call_foreign(|| drop(job)));
        let threads = std::mem::take(&mut *lock(&self.threads));
        let wait = self.begin_wait();
        if wait.is_err() && !self.queue.is_own_thread() {
            return;
        }
        for thread in threads {
            if thread.thread().id() != thread::current().id() {
                // A job's panic is caught and reported to its handle: the thread itself cannot have panicked.
                let _ = thread.join();
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests;
