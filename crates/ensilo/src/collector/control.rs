//! The collector's thread as others see it: it is started and stopped, and asked to collect at once or to
//! close the database.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ensilo_engine::WorkerCounters;
use ensilo_epoch::Epoch;
use ensilo_log::ForeignAfter;

use crate::mutex::lock;
use crate::{Error, Result};

/// How long a request that finds no memory waits for the thread at most.
const COLLECT_NOW_MAX: Duration = Duration::from_secs(1);

/// The thread, while it runs.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    pub(super) control: Arc<CollectorControl>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What others want of the thread.
#[derive(Debug, Default)]
pub(super) struct CollectorControl {
    wanted: Mutex<CollectorRequests>,
    has_changed: Condvar,
}

#[derive(Debug, Default)]
struct CollectorRequests {
    /// The thread was started.
    has_thread: bool,
    is_running: bool,
    is_stopped: bool,
    /// The thread is to close the database.
    closes: bool,
    /// What has ended the thread's work before it was stopped.
    panic: Option<Box<dyn Any + Send>>,
    /// How often somebody has asked for a collection at once, and how many of these were answered.
    asked: u64,
    answered: u64,
    /// The tick of the epochs after which a collection that was asked for has visited all workers and left
    /// nothing.
    collected_at: Epoch,
    /// The requests that wait, by their workers' counters: such a worker is busy, and has collected its own
    /// garbage.
    waiting: Vec<Arc<WorkerCounters>>,
}

impl Collector {
    /// Starts the thread: it works by `work` until it is stopped, and then, if it is to, closes the database
    /// by `close`.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] when the system has no thread left.
    pub(super) fn start<D: Send + 'static>(
        &self,
        database: D,
        work: impl FnOnce(&D, &CollectorControl) + Send + 'static,
        close: impl FnOnce(&D) + Send + 'static,
    ) -> Result<()> {
        let control = Arc::clone(&self.control);
        // Before it runs: the thread itself notes when it works no more.
        lock(&control.wanted).is_running = true;
        let thread = thread::Builder::new().name("ensilo-collector".into());
        let thread = thread.spawn(move || {
            let _working = ForeignAfter::default();
            // It goes last: with it may go what belongs to the program.
            let database = database;
            let worked = catch_unwind(AssertUnwindSafe(|| work(&database, &control)));
            control.end_work(worked.err());
            if control.wait_for_end() {
                close(&database);
            }
        });
        let thread =
            thread.map_err(|error| Error::not_started("the thread that collects garbage", &error))?;
        *lock(&self.thread) = Some(thread);
        lock(&self.control.wanted).has_thread = true;
        Ok(())
    }

    /// Ends the thread, and waits until it has ended; called on the thread itself, it does not wait.
    ///
    /// # Panics
    /// When the thread's work has panicked.
    pub(crate) fn stop(&self) {
        lock(&self.control.wanted).is_stopped = true;
        self.control.has_changed.notify_all();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread
            && thread.thread().id() != thread::current().id()
        {
            // Panics of its work are caught, see below; one of closing is in the outcome of closing.
            let _ = thread.join();
        }
        let panic = lock(&self.control.wanted).panic.take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Lets the thread close the database, unless that is being closed, and does not wait for it; false where
    /// there is no thread.
    pub(crate) fn close_database(&self) -> bool {
        let mut wanted = lock(&self.control.wanted);
        wanted.closes = true;
        self.control.has_changed.notify_all();
        wanted.has_thread
    }
}

impl CollectorControl {
    pub(super) fn is_stopped(&self) -> bool {
        lock(&self.wanted).is_at_end()
    }

    /// Sleeps for so long, or until somebody asks or it is the end, which it returns.
    pub(super) fn sleep(&self, duration: Duration) -> bool {
        let wanted = lock(&self.wanted);
        let sleeps = |wanted: &mut CollectorRequests| !wanted.is_at_end() && wanted.asked == wanted.answered;
        let woken = self.has_changed.wait_timeout_while(wanted, duration, sleeps);
        woken.unwrap_or_else(PoisonError::into_inner).0.is_at_end()
    }

    /// Notes that the thread collects nothing any more, and wakes the threads that wait for it.
    fn end_work(&self, panic: Option<Box<dyn Any + Send>>) {
        let mut wanted = lock(&self.wanted);
        (wanted.is_running, wanted.panic) = (false, panic);
        drop(wanted);
        self.has_changed.notify_all();
    }

    /// Waits until the thread is to end, and returns whether it is to close the database before.
    fn wait_for_end(&self) -> bool {
        let waited = self.has_changed.wait_while(lock(&self.wanted), |wanted| !wanted.is_at_end());
        waited.unwrap_or_else(PoisonError::into_inner).closes
    }

    /// Returns the number of the last request for a collection at once, if it is not answered yet.
    pub(super) fn asked(&self) -> Option<u64> {
        let wanted = lock(&self.wanted);
        (wanted.asked > wanted.answered).then_some(wanted.asked)
    }

    /// Answers requests up to this one: a collection has left nothing, with any worker, that was ripe at that
    /// tick, if there is one.
    pub(super) fn answer(&self, asked: u64, collected_at: Option<Epoch>) {
        let mut wanted = lock(&self.wanted);
        wanted.answered = asked;
        wanted.collected_at = collected_at.unwrap_or(wanted.collected_at);
        drop(wanted);
        self.has_changed.notify_all();
    }

    /// Has the thread collect garbage at once, and waits until it has; false when nothing can have become
    /// free since the last time. `own` is of the worker that the calling thread is using.
    pub(super) fn collect_now(&self, tick: Epoch, own: Option<Arc<WorkerCounters>>) -> bool {
        let mut wanted = lock(&self.wanted);
        if wanted.collected_at >= tick || !wanted.is_running {
            return false;
        }
        wanted.asked += 1;
        let number = wanted.asked;
        wanted.waiting.extend(own.clone());
        self.has_changed.notify_all();
        let waits = |wanted: &mut CollectorRequests| {
            wanted.answered < number && wanted.is_running && !wanted.is_stopped
        };
        let waited = self.has_changed.wait_timeout_while(wanted, COLLECT_NOW_MAX, waits);
        let (mut wanted, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = own {
            wanted.waiting.retain(|waiting| !Arc::ptr_eq(waiting, &own));
        }
        true
    }

    /// Returns whether the worker's owner waits for a collection.
    pub(super) fn is_waited_for_by(&self, worker: &Arc<WorkerCounters>) -> bool {
        lock(&self.wanted).waiting.iter().any(|waiting| Arc::ptr_eq(waiting, worker))
    }
}

impl CollectorRequests {
    /// Returns whether the thread is to leave its work.
    fn is_at_end(&self) -> bool {
        self.is_stopped || self.closes
    }
}
