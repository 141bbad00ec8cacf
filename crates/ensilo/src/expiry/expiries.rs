//! What the programs of a database have said of rows that expire, as the thread that removes these is given it.

use std::any::Any;
use std::collections::BTreeMap;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use ensilo_engine::Engine;
use ensilo_log::{ForeignAfter, call_foreign};

use super::turn::Turn;
use super::{ExpiryCore, ExpiryStatistics, schedule};
use crate::closing::FirstPanic;
use crate::durable::{Event, report_event};
use crate::error::Name;
use crate::mutex::lock;
use crate::pool::message_of;
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
    /// By the names of tables.
    turns: BTreeMap<String, Arc<Turn>>,
    /// Those of them that the thread does not know yet.
    added: Vec<Arc<ExpiryCore>>,
    /// Whether some have ended that the thread knows.
    has_ended: bool,
    is_stopped: bool,
    /// Why the thread removes nothing any more, if it has panicked.
    panicked: Option<Error>,
}

impl<E: Engine> DatabaseShared<E> {
    /// Removes rows as `expiry` says from now on.
    ///
    /// # Errors
    /// [`Error::Closed`]; [`Error::InvalidOption`] when the system has no thread left; [`Error::ThreadPanicked`].
    pub(super) fn begin_expiry(self: &Arc<Self>, expiry: &Arc<ExpiryCore>) -> Result<()> {
        let mut state = lock(&self.expiries.state);
        if state.is_stopped {
            return Err(Error::Closed);
        }
        if let Some(error) = &state.panicked {
            return Err(error.clone());
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

    /// Notes why rows are not removed, and reports it if that is news.
    pub(super) fn note_expiry_failure(&self, expiry: &ExpiryCore, error: Error) {
        let event = Event::ExpiryFailed { table: expiry.table.clone(), error: error.to_string() };
        if self.expiries.note_failure(expiry, error) {
            report_event(self.options.on_event.as_ref(), &event);
        }
    }

    /// Notes of all that was said that the thread has panicked, which is a mistake in Ensilo: nothing is removed in the background any more.
    fn note_expiry_panic(&self, panic: &(dyn Any + Send)) {
        let error = Error::ThreadPanicked(Name::new(message_of(panic)));
        let mut state = lock(&self.expiries.state);
        state.panicked = Some(error.clone());
        let cores = state.cores.clone();
        drop(state);
        cores.iter().for_each(|core| self.note_expiry_failure(core, error.clone()));
        call_foreign(|| drop(cores));
    }
}

/// The thread keeps the database's shared part alive until it is stopped.
fn start_thread<E: Engine>(shared: Arc<DatabaseShared<E>>) -> Result<JoinHandle<()>> {
    let thread = thread::Builder::new().name("ensilo-expiry".into());
    let started = thread.spawn(move || {
        let _working = ForeignAfter::default();
        // It goes last: with it may go what belongs to the program.
        let shared = shared;
        let outcome = catch_unwind(AssertUnwindSafe(|| schedule::run(&shared)));
        outcome.unwrap_or_else(|panic| {
            shared.note_expiry_panic(&*panic);
            resume_unwind(panic)
        });
    });
    started.map_err(|error| Error::not_started("the thread that removes rows", &error))
}

impl Expiries {
    /// Returns what all that remove rows of this table take turns by.
    pub(super) fn turn_of(&self, table: &str) -> Arc<Turn> {
        let turns = &mut lock(&self.state).turns;
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(table.to_owned()).or_default())
    }

    /// Removes no more rows as `expiry` says. Does not wait for the transaction that is doing so.
    pub(super) fn end(&self, expiry: &Arc<ExpiryCore>) {
        expiry.end();
        let mut state = lock(&self.state);
        // The caller has it, so that no clock goes under the lock.
        state.cores.retain(|core| !Arc::ptr_eq(core, expiry));
        state.added.retain(|core| !Arc::ptr_eq(core, expiry));
        state.has_ended = true;
        drop(state);
        self.has_changed.notify_all();
    }

    /// Has the thread end; [`Expiries::join`] waits for that.
    pub(crate) fn stop(&self) {
        lock(&self.state).is_stopped = true;
        self.has_changed.notify_all();
    }

    /// Waits for the thread, which was stopped, and forgets all that was said: a clock of the program may have a handle to the database.
    pub(crate) fn join(&self, panics: &mut FirstPanic) {
        let thread = lock(&self.state).thread.take();
        thread.map_or(Ok(()), JoinHandle::join).unwrap_or_else(|panic| panics.note(panic));
        let mut state = lock(&self.state);
        let forgotten = (mem::take(&mut state.cores), mem::take(&mut state.added));
        drop(state);
        call_foreign(|| drop(forgotten));
    }

    /// Returns what was said since the last call, and `false` if it is the end. The thread drops what was said outside of the lock.
    pub(super) fn take_changes(&self) -> (Vec<Arc<ExpiryCore>>, bool) {
        let mut state = lock(&self.state);
        state.has_ended = false;
        (mem::take(&mut state.added), !state.is_stopped)
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
    fn note_failure(&self, expiry: &ExpiryCore, error: Error) -> bool {
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
