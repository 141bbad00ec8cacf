//! The two ends of a submitted job's result: the pool completes the promise, the caller waits on the handle.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use ensilo_epoch::Epoch;
use ensilo_log::{Log, Stored, call_foreign};

use super::Pool;
use super::queue::Queue;
use super::waits::WaitCycle;
use crate::durability::{Durability, answer};
use crate::error::Name;
use crate::mutex::lock;
use crate::outcome::{Outcome, epoch_of};
use crate::{Error, Result};

/// The result of a submitted job, to be waited for from plain or from async code.
///
/// It comes when the job's transaction has reached the level of
/// [`Options::durability`](crate::Options::durability), or that of [`JobHandle::durability`]. Dropping the
/// handle does not stop the job.
#[must_use = "dropping the handle loses the job's result"]
pub struct JobHandle<R> {
    shared: Arc<Completion<R>>,
    /// The queue that the job was put into.
    queue: Arc<Queue>,
    /// The log that stores the transaction; none if the database is in memory only.
    log: Option<Arc<Log>>,
    level: Durability,
    /// Once it is polled after the job has ended: the way to its being stored.
    stored: Option<Stored>,
}

/// The end that completes a handle. Dropped without a result it completes the handle with [`Error::Closed`].
pub(crate) struct Promise<R> {
    shared: Option<Arc<Completion<R>>>,
}

struct Completion<R> {
    progress: Mutex<Progress<R>>,
    completed: Condvar,
}

/// `Running` is left by the promise, once, to `Done`; `Done` by the handle, once, to `Taken`.
enum Progress<R> {
    Running(Option<Waker>),
    Done(Outcome<R>),
    Taken,
}

const USED_AGAIN: &str = "a job's handle was used after it gave its result";

thread_local! {
    /// Whether this thread is running a job, of whichever pool.
    static RUNS_JOB: Cell<bool> = const { Cell::new(false) };
}

impl Queue {
    /// Returns whether the calling thread runs a job of this queue. A waker's executor may poll on a thread of the pool
    /// between two jobs: nothing waits there.
    pub(super) fn is_in_job(&self) -> bool {
        self.is_own_thread() && RUNS_JOB.get()
    }
}

/// Makes the two ends of a job's result. The handle answers when `level` is reached.
pub(crate) fn promise<R>(
    pool: &Pool,
    log: Option<Arc<Log>>,
    level: Durability,
) -> (Promise<R>, JobHandle<R>) {
    let shared =
        Arc::new(Completion { progress: Mutex::new(Progress::Running(None)), completed: Condvar::new() });
    let queue = Arc::clone(&pool.queue);
    (Promise { shared: Some(Arc::clone(&shared)) }, JobHandle { shared, queue, log, level, stored: None })
}

impl<R> JobHandle<R> {
    /// Sets what the handle waits for: its answer comes when the transaction has reached `level`.
    ///
    /// ```
    /// # use ensilo::{Database, Durability};
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = Database::in_memory()?;
    /// let handle = db.submit(|_tx| Ok(6 * 7))?.durability(Durability::Visible)?;
    /// assert_eq!(handle.wait()?, 42); // or, in async code: handle.await?
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::NotDurable`] when it is to be stored and the database is in memory only; the job goes on.
    pub fn durability(mut self, level: Durability) -> Result<Self> {
        if level == Durability::Stored && self.log.is_none() {
            return Err(Error::NotDurable);
        }
        self.level = level;
        Ok(self)
    }

    /// Waits for the job and returns its result.
    ///
    /// # Errors
    /// What the job returned; [`Error::JobPanicked`] when it panicked; [`Error::Closed`] when the database
    /// was closed before the job began; [`Error::LogFailed`] when it should be stored and it is not known
    /// whether it is; [`Error::JobWaitsForJob`] when called by a job of the same database, or of one that
    /// this one's jobs wait for just now, directly or through others, unless the job that is waited for has
    /// ended.
    ///
    /// # Panics
    /// When the handle was polled to completion as a future before.
    pub fn wait(self) -> Result<R> {
        answer(self.wait_for_job()?, self.log_to_wait_for())
    }

    /// Returns whether the job has ended. What it did may not be stored yet.
    #[must_use]
    pub fn is_visible(&self) -> bool {
        !matches!(*lock(&self.shared.progress), Progress::Running(_))
    }

    fn wait_for_job(&self) -> Result<Outcome<R>> {
        let mut progress = lock(&self.shared.progress);
        loop {
            if let Some(outcome) = progress.take() {
                return Ok(outcome);
            }
            let _wait = self.queue.begin_wait().map_err(|WaitCycle| Error::JobWaitsForJob)?;
            progress = self.shared.completed.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns whether [`JobHandle::wait`] would return at once.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match &*lock(&self.shared.progress) {
            Progress::Running(_) => false,
            Progress::Done(outcome) => self.is_reached(epoch_of(outcome)),
            Progress::Taken => true,
        }
    }

    /// Returns the log, if it has to store the transaction first.
    fn log_to_wait_for(&self) -> Option<&Log> {
        self.log.as_deref().filter(|_| self.level == Durability::Stored)
    }

    /// Returns whether the handle waits for nothing more of the log.
    fn is_reached(&self, epoch: Epoch) -> bool {
        self.log_to_wait_for().is_none_or(|log| log.durable_epoch() >= epoch || log.failure().is_some())
    }
}

/// Becomes ready with the job's result. The last waker that the handle was polled with is kept until then, or
/// until the handle is dropped.
///
/// Polled by a job of the same database before its own job has ended, the handle is ready with
/// [`Error::JobWaitsForJob`]. Only [`JobHandle::wait`] finds that jobs of several databases wait for each
/// other in a circle: polling a future does not imply that its thread waits.
///
/// # Panics
/// When polled again after it was ready.
impl<R> Future for JobHandle<R> {
    type Output = Result<R>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(epoch) = self.poll_job(context.waker()) else {
            return if self.queue.is_in_job() {
                Poll::Ready(Err(Error::JobWaitsForJob))
            } else {
                Poll::Pending
            };
        };
        if !self.is_reached(epoch) && self.poll_stored(epoch, context).is_pending() {
            return Poll::Pending;
        }
        self.stored = None;
        let mut progress = lock(&self.shared.progress);
        Poll::Ready(self.finish(&mut progress))
    }
}

impl<R> JobHandle<R> {
    /// Returns the epoch of a job that has ended. `waker` is woken at the end of one that goes on.
    fn poll_job(&self, waker: &Waker) -> Option<Epoch> {
        // Wakers are foreign code: cloned and dropped without the lock.
        let mut waker = Some(waker.clone());
        let ended = match &mut *lock(&self.shared.progress) {
            Progress::Running(known) => {
                std::mem::swap(known, &mut waker);
                None
            }
            Progress::Done(outcome) => Some(epoch_of(outcome)),
            Progress::Taken => panic!("{USED_AGAIN}"),
        };
        drop(waker);
        ended
    }

    fn poll_stored(&mut self, epoch: Epoch, context: &mut Context<'_>) -> Poll<()> {
        let Some(log) = &self.log else { return Poll::Ready(()) };
        let stored = self.stored.get_or_insert_with(|| Stored::new(Arc::clone(log), epoch));
        // Why it is not, if so, the answer finds out again.
        Pin::new(stored).poll(context).map(|_| ())
    }
}

impl<R> Drop for JobHandle<R> {
    fn drop(&mut self) {
        let waker = match &mut *lock(&self.shared.progress) {
            Progress::Running(waker) => waker.take(),
            Progress::Done(_) | Progress::Taken => None,
        };
        drop(waker);
    }
}

impl<R> JobHandle<R> {
    /// Takes the result, which is there and waits for nothing.
    fn finish(&self, progress: &mut Progress<R>) -> Result<R> {
        let Some(outcome) = progress.take() else { unreachable!("the job has ended") };
        answer(outcome, self.log_to_wait_for())
    }
}

impl<R> fmt::Debug for JobHandle<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobHandle").field("is_done", &self.is_done()).finish()
    }
}

impl<R> Promise<R> {
    /// Completes the handle with what `job` returns, or with its panic.
    pub(crate) fn run(self, job: impl FnOnce() -> Outcome<R>) {
        // What a job shares with others is behind the database's own protection, and the job is gone
        // afterwards: nothing half-done can be seen.
        let before = RUNS_JOB.replace(true);
        let result = catch_unwind(AssertUnwindSafe(job));
        RUNS_JOB.set(before);
        let panicked = |message| Err(Error::JobPanicked(Name::new(message)).into());
        self.complete(result.unwrap_or_else(|panic| panicked(message_of(&*panic))));
    }

    /// Completes the handle.
    pub(crate) fn complete(mut self, outcome: Outcome<R>) {
        if let Some(shared) = self.shared.take() {
            shared.complete(outcome);
        }
    }
}

impl<R> Drop for Promise<R> {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            shared.complete(Err(Error::Closed.into()));
        }
    }
}

impl<R> Completion<R> {
    fn complete(&self, outcome: Outcome<R>) {
        let before = std::mem::replace(&mut *lock(&self.progress), Progress::Done(outcome));
        self.completed.notify_all();
        if let Progress::Running(Some(waker)) = before {
            call_foreign(|| waker.wake());
        }
    }
}

impl<R> Progress<R> {
    fn take(&mut self) -> Option<Outcome<R>> {
        match self {
            Progress::Running(_) => None,
            Progress::Done(_) => match std::mem::replace(self, Progress::Taken) {
                Progress::Done(outcome) => Some(outcome),
                _ => None,
            },
            Progress::Taken => panic!("{USED_AGAIN}"),
        }
    }
}

/// Returns the text of a panic, when it has one.
pub(crate) fn message_of(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        return (*text).to_owned();
    }
    panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "not a text".to_owned())
}
