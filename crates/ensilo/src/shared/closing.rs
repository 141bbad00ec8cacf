//! Which thread closes a database: one, and the others wait for it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::pool::Pool;

/// The state of closing.
#[derive(Debug, Default)]
pub(super) struct Closing {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nobody closes the database. Left by the first closer.
    #[default]
    Open,
    /// This thread closes it. Left by it when it is done.
    By(ThreadId),
    Closed,
}

/// The right to close the database; dropping it lets the others go on.
pub(super) struct Closer<'a>(&'a Closing);

impl Closing {
    /// Returns the right to close the database to the first caller. Another one returns with nothing when the database is closed; at once if
    /// it may not wait: as a job of `pool`, for whose end the first one waits, or of a pool that such a job waits for; or if it is called
    /// by the first one itself, in the waker of a job's handle. `pool` is the database's, and none is started after the call.
    pub(super) fn begin(&self, pool: Option<&Pool>) -> Option<Closer<'_>> {
        let mut state = self.lock();
        let own = State::By(thread::current().id());
        match *state {
            State::Open => {
                *state = own;
                Some(Closer(self))
            }
            other => {
                let wait = pool.map(Pool::begin_wait).transpose();
                if wait.is_ok() && other != own {
                    let is_under_way = |state: &mut State| *state != State::Closed;
                    drop(self.ended.wait_while(state, is_under_way));
                }
                None
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Closer<'_> {
    fn drop(&mut self) {
        *self.0.lock() = State::Closed;
        self.0.ended.notify_all();
    }
}
