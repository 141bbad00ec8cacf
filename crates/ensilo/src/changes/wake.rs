//! Wakes a consumer when more is durable.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::Waker;
use std::time::Instant;

use ensilo_epoch::Epoch;
use ensilo_log::{Log, LogError};

use crate::mutex::lock;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Wake {
    state: Mutex<WakeState>,
    called: Condvar,
}

#[derive(Debug, Default)]
struct WakeState {
    /// Whether the log has a call of this one, which it has not made yet.
    is_asked: bool,
    /// The number of the last call that the log was given and has not made at once.
    call: Option<u64>,
    waker: Option<Waker>,
    /// Why nothing becomes durable any more, as the log has said.
    end: Option<LogError>,
}

impl Wake {
    /// Asks the log for a call once more is durable than `seen`, or never will be; `waker` is woken then. The log has one
    /// call at most, which may be of an earlier question: whoever is woken looks again.
    pub(super) fn ask(self: &Arc<Self>, log: &Log, seen: Epoch, waker: Option<Waker>) {
        let mut state = lock(&self.state);
        let before = std::mem::replace(&mut state.waker, waker);
        let is_asked = std::mem::replace(&mut state.is_asked, true);
        drop(state);
        // Wakers are foreign code: dropped without the lock.
        drop(before);
        if !is_asked {
            let wake = Arc::clone(self);
            let call = log.on_next_durable(seen, Box::new(move |result| wake.call(result)));
            lock(&self.state).call = call;
        }
    }

    /// Has the log forget the call: nobody waits for it any more.
    pub(super) fn forget(&self, log: &Log) {
        let mut state = lock(&self.state);
        let (call, waker) = (state.call.take(), state.waker.take());
        drop(state);
        drop(waker);
        if let Some(call) = call {
            log.forget_next(call);
        }
    }

    /// Returns why nothing becomes durable any more, if the log has said so.
    pub(super) fn end(&self) -> Option<LogError> {
        lock(&self.state).end.clone()
    }

    fn call(&self, result: Result<(), LogError>) {
        let mut state = lock(&self.state);
        state.is_asked = false;
        state.end = state.end.take().or(result.err());
        let waker = state.waker.take();
        drop(state);
        self.called.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Waits until the log has called, or the time has come. Returns whether it has called.
    pub(super) fn wait(&self, deadline: Option<Instant>) -> bool {
        let mut state = lock(&self.state);
        while state.is_asked {
            state = match deadline {
                None => self.called.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return false;
                    }
                    self.called.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        true
    }
}
