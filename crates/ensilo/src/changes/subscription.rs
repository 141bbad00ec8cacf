//! A callback of the program, and the handle that ends it.
//!
//! # Invariants
//! - U1: the callback lies in the state, or is being called or dropped by the thread that has taken it out, which is the `caller` until it is
//!   done; once `is_over`, it is taken out to be dropped alone.
//! - U2: it is called and dropped without any lock.

use std::cell::Cell;
use std::fmt;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, ThreadId};

use ensilo_epoch::Epoch;
use ensilo_log::survive;

use super::Change;
use super::news::News;
use crate::mutex::lock;
use crate::pool::message_of;
use crate::table::Bounds;
use crate::{Error, Result};

/// What is called with changes and errors. It sets a break, before it calls the program, where it can be called with nothing more.
pub(super) type Callback = Box<dyn FnMut(Result<&Change>, &mut ControlFlow<()>) + Send>;

thread_local! {
    /// Whether this thread calls callbacks, of whichever database.
    static IS_CALLING: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether the calling thread has come here from a callback, or drops one that it has called: whoever closes a database waits for
/// that thread.
pub(crate) fn is_in_callback() -> bool {
    IS_CALLING.get()
}

/// The calls of a closure that was given to [`Database::on_change`](crate::Database::on_change), which go on until this is dropped.
///
/// Once it was dropped no call begins any more. One that is under way then goes on, on its thread; [`Subscription::end`] waits for it. The
/// closure is dropped with the last of both.
#[must_use = "dropping it ends the calls"]
pub struct Subscription {
    subscriber: Arc<Subscriber>,
    news: Arc<News>,
}

impl Subscription {
    pub(super) fn new(subscriber: Arc<Subscriber>, news: Arc<News>) -> Self {
        Subscription { subscriber, news }
    }

    /// Ends the calls, and waits until none is under way, and the closure is dropped.
    ///
    /// It does not wait in the closure itself. It must not be called where the closure would wait for the caller, as one does that
    /// needs a lock which the caller has: dropping the subscription waits for nothing.
    pub fn end(self) {
        self.subscriber.end();
        self.subscriber.wait_until_idle();
    }

    /// Returns whether no call comes any more: an error has ended them, with which the closure was called, or the database is closed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        lock(&self.subscriber.state).is_over
    }

    /// Returns how many calls have panicked.
    #[must_use]
    pub fn panics(&self) -> u64 {
        lock(&self.subscriber.state).panics
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.subscriber.end();
        // The thread forgets it.
        self.news.note();
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("table", &self.subscriber.table).finish_non_exhaustive()
    }
}

/// A callback, and the changes that it is called with.
pub(super) struct Subscriber {
    pub(super) table: Arc<str>,
    /// Of the keys.
    pub(super) bounds: Bounds,
    /// It is called with changes of later epochs.
    pub(super) after: Epoch,
    state: Mutex<CallState>,
    call_has_ended: Condvar,
}

struct CallState {
    callback: Option<Callback>,
    is_over: bool,
    /// The thread that calls or drops it.
    caller: Option<ThreadId>,
    panics: u64,
}

impl CallState {
    /// Takes the callback for a call by this thread, or to drop it.
    fn take(&mut self) -> Option<Callback> {
        let callback = self.callback.take()?;
        self.caller = Some(thread::current().id());
        Some(callback)
    }
}

impl Subscriber {
    pub(super) fn new(table: Arc<str>, bounds: Bounds, after: Epoch, callback: Callback) -> Arc<Self> {
        let state = CallState { callback: Some(callback), is_over: false, caller: None, panics: 0 };
        let (state, call_has_ended) = (Mutex::new(state), Condvar::new());
        Arc::new(Subscriber { table, bounds, after, state, call_has_ended })
    }

    pub(super) fn is_over(&self) -> bool {
        lock(&self.state).is_over
    }

    /// Calls the callback, unless that is over, and returns the message of a panic.
    pub(super) fn call(&self, change: Result<&Change>) -> Option<String> {
        let mut callback = lock(&self.state).take()?;
        let mut flow = ControlFlow::Continue(());
        let outcome = catch_unwind(AssertUnwindSafe(|| callback(change, &mut flow)));
        let panic = outcome.err().map(|panic| {
            let message = message_of(&*panic);
            survive(|| drop(panic));
            message
        });
        self.give_back(callback, flow.is_continue(), panic.is_some());
        panic
    }

    /// Takes the callback back after a call, or drops it if it is over.
    fn give_back(&self, callback: Callback, goes_on: bool, has_panicked: bool) {
        let mut state = lock(&self.state);
        state.is_over |= !goes_on;
        state.panics += u64::from(has_panicked);
        if state.is_over {
            drop(state);
            return self.drop_taken(callback);
        }
        state.callback = Some(callback);
        state.caller = None;
        drop(state);
        self.call_has_ended.notify_all();
    }

    /// Drops the callback, whose `caller` is this thread.
    fn drop_taken(&self, callback: Callback) {
        survive(|| drop(callback));
        lock(&self.state).caller = None;
        self.call_has_ended.notify_all();
    }

    /// Lets no call begin any more.
    pub(super) fn end(&self) {
        let mut state = lock(&self.state);
        state.is_over = true;
        let callback = state.take();
        drop(state);
        if let Some(callback) = callback {
            self.drop_taken(callback);
        }
    }

    /// Calls the callback for the last time, with an error.
    pub(super) fn end_with(&self, error: Error) -> Option<String> {
        let panic = self.call(Err(error));
        self.end();
        panic
    }

    fn wait_until_idle(&self) {
        let own = Some(thread::current().id());
        let is_called = |state: &mut CallState| state.caller.is_some() && state.caller != own;
        let waited = self.call_has_ended.wait_while(lock(&self.state), is_called);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

/// Says that the calling thread calls callbacks, until it ends.
pub(super) fn begin_calling() {
    IS_CALLING.set(true);
}
