//! What the thread that calls subscribers waits for: more is stored, subscribers come or go, or it is the end.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::Wake;

use crate::mutex::lock;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct News {
    state: Mutex<NewsState>,
    has_come: Condvar,
}

#[derive(Debug, Default)]
struct NewsState {
    is_there: bool,
    is_stopped: bool,
}

impl News {
    pub(super) fn note(&self) {
        lock(&self.state).is_there = true;
        self.has_come.notify_all();
    }

    pub(super) fn stop(&self) {
        lock(&self.state).is_stopped = true;
        self.has_come.notify_all();
    }

    /// Begins to look at what was news so far. Returns whether the thread is to end.
    pub(super) fn begin_look(&self) -> bool {
        let mut state = lock(&self.state);
        state.is_there = false;
        state.is_stopped
    }

    pub(super) fn wait(&self) {
        let is_over = |state: &mut NewsState| !state.is_there && !state.is_stopped;
        let waited = self.has_come.wait_while(lock(&self.state), is_over);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Wake for News {
    fn wake(self: Arc<Self>) {
        self.note();
    }
}
