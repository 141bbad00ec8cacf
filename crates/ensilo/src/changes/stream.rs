//! The change feed as an asynchronous stream, whose files the database's pool reads.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use ensilo_engine::Engine;
use ensilo_epoch::Epoch;
use futures_core::Stream;

use super::{ChangeBatch, ChangePosition, Changes};
use crate::durability::Durability;
use crate::job_request::JobRequest;
use crate::outcome::{Outcome, Visible};
use crate::pool::JobFuture;
use crate::session::control::SessionControl;
use crate::{Result, Silo};

/// The changes of a database, for async code: a [`Stream`] of batches of [`Changes`]. [`Changes::into_stream`] makes one.
///
/// No thread of the executor reads files or waits: a thread of the database's pool reads the next batch when it is asked for and more is
/// stored than was read. So one batch is held at most, and a consumer that is slow makes nobody wait: what it has not taken is in the
/// log. A wait may be given up at any time, and nothing is lost.
///
/// It waits for changes for ever, until an error ends it, after which `None` follows: those of [`Changes`], [`Error::Closed`](crate::Error::Closed) as
/// the database is closed among them. It does not keep the database open. Polled by a job of the same database, it ends with
/// [`Error::JobWaitsForJob`](crate::Error::JobWaitsForJob). After an error another stream goes on behind its [`position`](Self::position);
/// after [`Error::ChangesMissed`](crate::Error::ChangesMissed) there is nothing to go on with: read the rows again, and begin at
/// [`Database::change_position`](crate::generic::Database::change_position).
///
/// ```
/// # use ensilo::{ChangePosition, Database};
/// async fn follow(db: &Database, stored: ChangePosition) -> ensilo::Result<()> {
///     let mut changes = db.changes().tables(["account"]).after(stored)?.into_stream();
///     while let Some(batch) = changes.next().await {
///         let batch = batch?;
///         println!("{} changes in epoch {}", batch.changes().len(), batch.epoch());
///     }
///     Ok(())
/// }
/// ```
#[must_use = "a stream does nothing unless it is asked for changes"]
pub struct ChangeStream<E: Engine = Silo> {
    state: State<E>,
    job: JobRequest<E>,
    position: ChangePosition,
}

enum State<E: Engine> {
    /// Asks for more than was read: all that was stored up to this epoch, if there is one. Left when that is stored.
    Waiting(Box<Changes<E>>, Option<Epoch>),
    /// Left with what the job has read.
    Reading(JobFuture<Read<E>>),
    Ended,
}

/// What was read of the changes up to an epoch.
struct Read<E: Engine> {
    changes: Box<Changes<E>>,
    stored_to: Epoch,
    batch: Result<Option<ChangeBatch>>,
}

impl<E: Engine> Changes<E> {
    /// Returns the changes from here on as a stream for async code, which has other threads read the files.
    pub fn into_stream(self) -> ChangeStream<E> {
        // What is given is stored in any case.
        let job = JobRequest::new(&self.shared).durability(Durability::Visible);
        let position = self.position();
        ChangeStream { state: State::Waiting(Box::new(self), None), job, position }
    }

    /// Reads what comes next as a job.
    fn read_next(mut self: Box<Self>, control: &Arc<SessionControl>) -> Outcome<Read<E>> {
        let _under_way = control.begin();
        control.check()?;
        let stored_to = super::Source::of(&self.shared)?.durable.log.durable_epoch();
        let batch = self.next_up_to(stored_to);
        Ok(Visible { value: Read { changes: self, stored_to, batch }, epoch: Epoch::new(0) })
    }
}

impl<E: Engine> ChangeStream<E> {
    /// Returns the position behind what was given. It also goes on where nothing of the tables has changed.
    #[must_use]
    pub fn position(&self) -> ChangePosition {
        self.position
    }

    /// Returns the next batch, or an error; `None` behind an error. What waits for it may be given up at any time: no change is lost.
    pub async fn next(&mut self) -> Option<Result<ChangeBatch>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Ends the state that the stream is in once that may be, or returns what it gives.
    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<ChangeBatch>>> {
        match &mut self.state {
            State::Waiting(changes, read_to) => ready!(changes.poll_stored(*read_to, Some(context.waker())))?,
            State::Reading(job) => {
                let Read { changes, stored_to, batch } = ready!(Pin::new(job).poll(context))?;
                self.position = changes.position();
                let batch = batch?;
                // Behind a batch there may be more of what was stored.
                let read_to = if batch.is_none() { Some(stored_to) } else { None };
                self.state = State::Waiting(changes, read_to);
                return Poll::Ready(Ok(batch));
            }
            State::Ended => {}
        }
        if let State::Waiting(changes, _) = std::mem::replace(&mut self.state, State::Ended) {
            let job = self.job.job_when_awaited(move |control| changes.read_next(control));
            self.state = State::Reading(job);
        }
        Poll::Ready(Ok(None))
    }
}

impl<E: Engine> Unpin for ChangeStream<E> {}

impl<E: Engine> Stream for ChangeStream<E> {
    type Item = Result<ChangeBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let stream = &mut *self;
        while !matches!(stream.state, State::Ended) {
            match ready!(stream.poll_step(context)) {
                Ok(Some(batch)) => return Poll::Ready(Some(Ok(batch))),
                Ok(None) => {}
                Err(error) => {
                    stream.state = State::Ended;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
        Poll::Ready(None)
    }
}

impl<E: Engine> fmt::Debug for ChangeStream<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeStream").field("position", &self.position).finish_non_exhaustive()
    }
}
