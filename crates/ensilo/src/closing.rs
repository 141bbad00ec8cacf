//! Which thread closes a database: one, and the others wait for it. And how all parts of closing run, though
//! some of them panic.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::{self, ThreadId};

use crate::error::Name;
use crate::mutex::lock;
use crate::pool::{Pool, message_of};
use crate::{Error, Result};

/// The state of closing.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    state: Mutex<ClosingState>,
    ended: Condvar,
}

#[derive(Debug, Default)]
enum ClosingState {
    /// Nobody closes the database. Left by the first closer.
    #[default]
    Open,
    /// This thread closes it. Left by it when it is done.
    By(ThreadId),
    /// The outcome.
    Closed(Result<()>),
}

/// The right to close the database; dropping it lets the others go on.
pub(crate) struct Closer<'a> {
    closing: &'a Closing,
    outcome: Result<()>,
}

impl Closing {
    /// Returns the right to close the database to the first caller.
    pub(crate) fn begin(&self) -> Option<Closer<'_>> {
        let mut state = lock(&self.state);
        if !matches!(*state, ClosingState::Open) {
            return None;
        }
        *state = ClosingState::By(thread::current().id());
        Some(Closer { closing: self, outcome: Ok(()) })
    }

    /// Waits until the database is closed, and returns what has come of it. Returns with nothing where the
    /// caller may not wait: as a job of `pool`, because the closer waits for its end, or as a job of a pool
    /// that such a job waits for; or as the closer itself, in a destructor. `pool` is the database's, and
    /// none is started after the call.
    pub(crate) fn wait(&self, pool: Option<&Pool>) -> Option<Result<()>> {
        let state = lock(&self.state);
        let is_own = matches!(*state, ClosingState::By(closer) if closer == thread::current().id());
        let wait = pool.map(Pool::begin_wait).transpose();
        if is_own || wait.is_err() {
            return state.outcome();
        }
        let state = self.ended.wait_while(state, |state| !matches!(*state, ClosingState::Closed(_)));
        state.unwrap_or_else(PoisonError::into_inner).outcome()
    }

    /// Returns the outcome of closing, if that has ended.
    pub(crate) fn outcome(&self) -> Option<Result<()>> {
        lock(&self.state).outcome()
    }
}

impl ClosingState {
    fn outcome(&self) -> Option<Result<()>> {
        let ClosingState::Closed(outcome) = self else { return None };
        Some(outcome.clone())
    }
}

impl Closer<'_> {
    /// Lets the others know what has come of closing, and goes on with the first panic, if there was one.
    ///
    /// # Errors
    /// That of `outcome`; [`Error::ThreadPanicked`] where this thread is panicking already.
    pub(crate) fn end(mut self, outcome: Result<()>, panics: FirstPanic) -> Result<()> {
        let panicked = |panic: &Panic| Error::ThreadPanicked(Name::new(message_of(&**panic)));
        let outcome = panics.0.as_ref().map_or(outcome, |panic| Err(panicked(panic)));
        self.outcome = outcome.clone();
        drop(self);
        match panics.0 {
            Some(panic) if !thread::panicking() => resume_unwind(panic),
            _ => outcome,
        }
    }
}

impl Drop for Closer<'_> {
    fn drop(&mut self) {
        *lock(&self.closing.state) = ClosingState::Closed(std::mem::replace(&mut self.outcome, Ok(())));
        self.closing.ended.notify_all();
    }
}

type Panic = Box<dyn Any + Send>;

/// Runs parts of closing, all of them though one panics.
#[derive(Default)]
pub(crate) struct FirstPanic(Option<Panic>);

impl FirstPanic {
    /// Runs a part; nothing is returned if it panics.
    pub(crate) fn catch<R>(&mut self, part: impl FnOnce() -> R) -> Option<R> {
        // What it leaves half done is looked at by other parts of closing alone, each of which may fail in
        // turn.
        catch_unwind(AssertUnwindSafe(part)).map_err(|panic| self.note(panic)).ok()
    }

    /// Returns whether nothing has panicked.
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Notes a panic that was caught elsewhere.
    pub(crate) fn note(&mut self, panic: Panic) {
        self.0.get_or_insert(panic);
    }
}
