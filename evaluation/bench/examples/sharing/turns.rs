//! Threads that take turns.

use std::sync::{Condvar, Mutex, PoisonError};

/// Whose turn it is.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Turns that were taken.
    taken: Mutex<u64>,
    changed: Condvar,
}

impl Turns {
    /// Waits until so many turns were taken, and takes the next one for `body`. Every number is to be waited for once; a panic in `body`
    /// passes the turn on like its end.
    pub(crate) fn take<R>(&self, number: u64, body: impl FnOnce() -> R) -> R {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = self.changed.wait_while(taken, |taken| *taken != number);
        drop(turn.unwrap_or_else(PoisonError::into_inner));
        let _pass_on = PassOn(self);
        body()
    }
}

struct PassOn<'a>(&'a Turns);

impl Drop for PassOn<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.changed.notify_all();
    }
}
