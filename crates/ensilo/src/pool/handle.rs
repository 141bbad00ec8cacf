//! The two ends of a submitted job's result: the pool completes the promise, the caller waits on the handle.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::error::Name;
use crate::{Error, Result};

/// The result of a submitted job, to be waited for from plain or from async code.
///
/// Dropping the handle does not stop the job.
#[must_use = "dropping the handle loses the job's result"]
pub struct JobHandle<R> {
    shared: Arc<Shared<R>>,
}

/// The end that completes a handle. Dropped without a result it completes the handle with [`Error::Closed`].
pub(crate) struct Promise<R> {
    shared: Option<Arc<Shared<R>>>,
}

struct Shared<R> {
    progress: Mutex<Progress<R>>,
    completed: Condvar,
}

/// `Running` is left by the promise, once, to `Done`; `Done` by the handle, once, to `Taken`.
enum Progress<R> {
    Running(Option<Waker>),
    Done(Result<R>),
    Taken,
}

/// A connected pair.
pub(crate) fn promise<R>() -> (Promise<R>, JobHandle<R>) {
    let shared =
        Arc::new(Shared { progress: Mutex::new(Progress::Running(None)), completed: Condvar::new() });
    (Promise { shared: Some(Arc::clone(&shared)) }, JobHandle { shared })
}

impl<R> JobHandle<R> {
    /// Waits for the job and returns its result.
    ///
    /// # Errors
    /// What the job returned; [`Error::JobPanicked`] when it panicked; [`Error::Closed`] when the database was closed
    /// before the job began.
    ///
    /// # Panics
    /// When the handle was polled to completion as a future before.
    pub fn wait(self) -> Result<R> {
        let mut progress = self.shared.lock();
        loop {
            if let Some(result) = progress.take() {
                return result;
            }
            progress = self.shared.completed.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether the result is there, so that [`JobHandle::wait`] returns at once.
    #[must_use]
    pub fn is_done(&self) -> bool {
        !matches!(*self.shared.lock(), Progress::Running(_))
    }
}

/// # Panics
/// When polled again after it was ready.
impl<R> Future for JobHandle<R> {
    type Output = Result<R>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut progress = self.shared.lock();
        if let Some(result) = progress.take() {
            return Poll::Ready(result);
        }
        if let Progress::Running(waker) = &mut *progress {
            match waker {
                Some(known) => known.clone_from(context.waker()),
                None => *waker = Some(context.waker().clone()),
            }
        }
        Poll::Pending
    }
}

impl<R> fmt::Debug for JobHandle<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobHandle").field("is_done", &self.is_done()).finish()
    }
}

impl<R> Promise<R> {
    /// Completes the handle with what `job` returns, or with its panic.
    pub(crate) fn run(self, job: impl FnOnce() -> Result<R>) {
        // What a job shares with others is behind the database's own protection, and the job is gone afterwards: nothing
        // half-done can be seen.
        let result = catch_unwind(AssertUnwindSafe(job));
        self.complete(result.unwrap_or_else(|panic| Err(Error::JobPanicked(Name::new(message_of(&*panic))))));
    }

    /// Completes the handle.
    pub(crate) fn complete(mut self, result: Result<R>) {
        if let Some(shared) = self.shared.take() {
            shared.complete(result);
        }
    }
}

impl<R> Drop for Promise<R> {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            shared.complete(Err(Error::Closed));
        }
    }
}

impl<R> Shared<R> {
    fn complete(&self, result: Result<R>) {
        let before = std::mem::replace(&mut *self.lock(), Progress::Done(result));
        self.completed.notify_all();
        if let Progress::Running(Some(waker)) = before {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Progress<R>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R> Progress<R> {
    fn take(&mut self) -> Option<Result<R>> {
        match self {
            Progress::Running(_) => None,
            Progress::Done(_) => match std::mem::replace(self, Progress::Taken) {
                Progress::Done(result) => Some(result),
                _ => None,
            },
            Progress::Taken => panic!("a job's handle was used after it gave its result"),
        }
    }
}

/// The text of a panic, when it has one.
fn message_of(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        return (*text).to_owned();
    }
    panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "not a text".to_owned())
}
