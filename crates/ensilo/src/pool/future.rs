//! Jobs that are submitted when they are awaited, and given up when nobody awaits them any more.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::Pool;
use super::handle::JobHandle;
use super::queue::{Job, Priority, Pushed, Queue};
use super::room::RoomPlace;
use crate::own_error::SharedOwnError;
use crate::session::control::SessionControl;
use crate::{Error, Result};

/// The result of a job that runs once this is awaited: [`Database::transact_async`](crate::Database::transact_async) and
/// [`JobRequest`](crate::JobRequest) make one. `X` is the type of its errors.
///
/// No thread of the executor waits: neither for room in the pool's queue, nor for the job, nor for the disk. It needs no
/// runtime, and goes well in any.
///
/// Dropping it, by `select!` for example, gives the job up. One that has not begun never runs. The transaction of one that
/// has begun is undone as a whole at its next statement, in a scan after at most 256 rows, or when it comes to commit. A
/// commit that has begun already goes on: like a caller who is cut off from the answer, one who drops a future that has
/// not given its result does not know which it was.
///
/// Polled by a job of the same database it is ready with [`Error::JobWaitsForJob`], and gives the job up: with all threads of the
/// pool waiting so, none would run it.
///
/// # Panics
/// When polled again after it was ready.
#[must_use = "a future does nothing unless it is awaited"]
pub struct JobFuture<R, X = Error> {
    state: State<R>,
    priority: Priority,
    control: Option<Arc<SessionControl>>,
    own: SharedOwnError<X>,
}

enum State<R> {
    /// Not submitted yet. The promise of the handle is in the job.
    Waiting {
        job: Job,
        handle: JobHandle<R>,
        queue: Arc<Queue>,
        place: Option<RoomPlace>,
    },
    Submitted(JobHandle<R>),
    Refused(Error),
    Ended,
}

impl<R, X> JobFuture<R, X> {
    /// A job that is submitted when this is polled, and stopped by `control` when this is dropped.
    pub(crate) fn new(
        pool: &Pool,
        job: Job,
        handle: JobHandle<R>,
        priority: Priority,
        control: Arc<SessionControl>,
        own: SharedOwnError<X>,
    ) -> Self {
        if priority == Priority::High {
            pool.serve_high_priority();
        }
        let queue = Arc::clone(&pool.queue);
        let state = State::Waiting { job, handle, queue, place: None };
        JobFuture { state, priority, control: Some(control), own }
    }

    /// A job that cannot be submitted.
    pub(crate) fn refused(error: Error) -> Self {
        let own = SharedOwnError::new();
        JobFuture { state: State::Refused(error), priority: Priority::Normal, control: None, own }
    }

    /// Submits the job if there is room for it.
    fn submit(&mut self, context: &Context<'_>) {
        if !matches!(self.state, State::Waiting { .. }) {
            return;
        }
        // Wakers are foreign code: cloned before anything is taken apart.
        let waker = context.waker().clone();
        let before = std::mem::replace(&mut self.state, State::Ended);
        let State::Waiting { job, handle, queue, mut place } = before else { return };
        if queue.is_in_job() {
            if let Some(place) = place {
                queue.give_up_room(self.priority, place);
            }
            self.state = State::Refused(Error::JobWaitsForJob);
            return;
        }
        self.state = match queue.push_or_wait(job, self.priority, &mut place, waker) {
            Pushed::Submitted => State::Submitted(handle),
            Pushed::Full(job) => State::Waiting { job, handle, queue, place },
            Pushed::Closed => State::Refused(Error::Closed),
        };
    }

    /// Gives up a job that was submitted, and whose result nobody will see.
    fn cancel(&self) {
        if let Some(control) = &self.control {
            control.cancel_first();
        }
    }
}

impl<R, X: From<Error>> Future for JobFuture<R, X> {
    type Output = Result<R, X>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.submit(context);
        let polled = match &mut self.state {
            State::Waiting { .. } => Poll::Pending,
            State::Submitted(handle) => Pin::new(handle).poll(context),
            State::Refused(error) => Poll::Ready(Err(error.clone())),
            State::Ended => panic!("a future was polled after it gave its result"),
        };
        if let Poll::Ready(outcome) = &polled {
            if matches!(outcome, Err(Error::JobWaitsForJob)) {
                self.cancel();
            }
            self.state = State::Ended;
        }
        polled.map(|ended| self.own.end(ended))
    }
}

impl<R, X> Drop for JobFuture<R, X> {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Waiting { queue, place: Some(place), .. } => queue.give_up_room(self.priority, place),
            State::Submitted(_) => self.cancel(),
            State::Waiting { place: None, .. } | State::Refused(_) | State::Ended => {}
        }
    }
}

impl<R, X> fmt::Debug for JobFuture<R, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_submitted = matches!(self.state, State::Submitted(_));
        f.debug_struct("JobFuture").field("is_submitted", &is_submitted).finish_non_exhaustive()
    }
}
