//! What the programs of a database have said of rows that expire, as the thread that removes these is given it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use ensilo_engine::Engine;
use ensilo_log::ForeignAfter;

use super::{ExpiryCore, ExpiryStatistics, schedule};
use crate::closing::FirstPanic;
use crate::error::Name;
use crate::mutex::lock;
use crate::shared::DatabaseShared;
use crate::{Error, Result};

/// All that was said, and the thread, once anything was.
#[derive(Debug, Default)]
pub(crate) struct Expiries {
    state: Mutex<ExpiriesState>,
    has_changed: Condvar,
    removed: AtomicU64,
    failures: AtomicU64,
}

#[derive(Debug, Default)]
struct ExpiriesState {
    thread: Option<JoinHandle<()>>,
    cores: Vec<Arc<ExpiryCore>>,
    /// Those of them that the thread does not know yet.
    added: Vec<Arc<ExpiryCore>>,
    /// Whether some have ended that the thread knows.
    has_ended: bool,
    is_stopped: bool,
}

impl<E: Engine> DatabaseShared<E> {
    /// Removes rows as `expiry` says from now on.
    ///
    /// # Errors
    /// [`Error::Closed`]; [`Error::InvalidOption`] when the system has no thread left.
    pub(super) fn begin_expiry(self: &Arc<Self>, expiry: &Arc<ExpiryCore>) -> Result<()> {
        let mut state = lock(&self.expiries.state);
        if state.is_stopped {
            return Err(Error::Closed);
        }
        if state.thread.is_none() {
            state.thread = Some(start_thread(Arc::clone(self))?);
        }
        state.cores.push(Arc::clone(expiry));
        state.added.push(Arc::clone(expiry));
        drop(state);
        self.expiries.has_changed.notify_all();
        Ok(())
    }
}

/// The thread keeps the database's shared part alive until it is stopped.
fn start_thread<E: Engine>(shared: Arc<DatabaseShared<E>>) -> Result<JoinHandle<()>> {
    let thread = thread::Builder::new().name("ensilo-expiry".into());
    let started = thread.spawn(move || {
        let _working = ForeignAfter::default();
        // It goes last: with it may go what belongs to the program.
        let shared = shared;
        schedule::run(&shared);
    });
    started.map_err(|error| {
        Error::InvalidOption(Name::new(format!("the thread that removes rows does not start: {error}")))
    })
}

impl Expiries {
    /// Removes no more rows as `expiry` says. Does not wait for the transaction that is doing so.
    pub(super) fn end(&self, expiry: &Arc<ExpiryCore>) {
        expiry.end();
        let mut state = lock(&self.state);
        state.cores.retain(|core| !Arc::ptr_eq(core, expiry));
        state.has_ended = true;
        drop(state);
        self.has_changed.notify_all();
    }

    /// Has the thread end; [`Expiries::join`] waits for that.
    pub(crate) fn stop(&self) {
        lock(&self.state).is_stopped = true;
        self.has_changed.notify_all();
    }

    /// Waits for the thread, which was stopped.
    pub(crate) fn join(&self, panics: &mut FirstPanic) {
        let thread = lock(&self.state).thread.take();
        thread.map_or(Ok(()), JoinHandle::join).unwrap_or_else(|panic| panics.note(panic));
    }

    /// Returns what was said since the last call; `None` if it is the end.
    pub(super) fn take_changes(&self) -> Option<Vec<Arc<ExpiryCore>>> {
        let mut state = lock(&self.state);
        state.has_ended = false;
        let added = std::mem::take(&mut state.added);
        (!state.is_stopped).then_some(added)
    }

    /// Sleeps until `due`, or until something has changed.
    pub(super) fn await_change(&self, due: Option<Instant>) {
        let state = lock(&self.state);
        let sleeps =
            |state: &mut ExpiriesState| !state.is_stopped && !state.has_ended && state.added.is_empty();
        match due {
            None => drop(self.has_changed.wait_while(state, sleeps).unwrap_or_else(PoisonError::into_inner)),
            Some(due) => {
                let left = due.saturating_duration_since(Instant::now());
                let waited = self.has_changed.wait_timeout_while(state, left, sleeps);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    // Relaxed, in these: the counters say nothing of anything else.

    pub(super) fn note_removed(&self, expiry: &ExpiryCore, rows: u64) {
        self.removed.fetch_add(rows, Ordering::Relaxed);
        expiry.note_removed(rows);
    }

    /// Notes why rows are not removed, and returns whether that is news.
    pub(super) fn note_failure(&self, expiry: &ExpiryCore, error: Error) -> bool {
        self.failures.fetch_add(1, Ordering::Relaxed);
        expiry.note_failure(error)
    }

    /// Returns how many rows were removed since the database was opened.
    pub(crate) fn removed(&self) -> u64 {
        self.removed.load(Ordering::Relaxed)
    }

    /// Returns how often rows could not be removed.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    pub(crate) fn statistics(&self) -> Vec<ExpiryStatistics> {
        lock(&self.state).cores.iter().map(|core| core.statistics()).collect()
    }
}
