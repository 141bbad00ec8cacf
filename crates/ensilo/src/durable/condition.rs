//! What is wrong with a database that goes on all the same, and the events that report it.
//!
//! An event is noted by the thread that finds it, and passed to the program's hook by the thread that makes
//! checkpoints, without any lock.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use ensilo_log::{Log, LogError, call_foreign};

use crate::Error;
use crate::loading::LoadState;
use crate::mutex::lock;
use crate::trace;

/// So many events wait for the hook at most, and as many of closures that have panicked; later ones are dropped while it takes its time.
const PENDING_MAX: usize = 64;

/// What a database reports to its program, see
/// [`Options::on_event`](crate::Options::on_event).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A checkpoint could not be made. Nothing is lost: the log goes further back. One that was due is tried again
    /// after a while.
    CheckpointFailed {
        /// The text of the error that [`Database::checkpoint`](crate::Database::checkpoint) would have
        /// returned.
        error: String,
    },
    /// A closure that was given to [`Database::on_change`](crate::Database::on_change) has panicked. It is called with the next change all the same, unless that call was its last.
    CallbackPanicked {
        /// The table whose changes it is called with.
        table: String,
        /// The panic's message.
        panic: String,
    },
    /// The disk has no room for the next log file. The log goes on as long as there is room in the present
    /// one; a checkpoint is made to free log.
    DiskFull {
        /// [`LogError::NoSpace`]: the file, and what the system said.
        error: LogError,
    },
    /// The process has as many files open as it may, so that the next log file cannot be made. It is tried again, and the log
    /// goes on in the present one as long as the disk has room.
    OutOfHandles {
        /// [`LogError::OutOfHandles`]: the file, and what the system said.
        error: LogError,
    },
    /// Rows should leave memory under [`Options::memory_limit_bytes`](crate::Options::memory_limit_bytes), and the disk takes none, or has no
    /// more free than the log and checkpoints need, which grow until memory is full. What needs memory may end with [`Error::OutOfMemory`], and so may reading a row
    /// that has left.
    EvictionFailed {
        /// The directory, and what the system said.
        error: String,
    },
    /// Rows that have expired are not removed, or not all: see [`Database::expire_rows`](crate::generic::Database::expire_rows). It is tried again.
    /// Another cause is reported again. That it is over is not reported: [`Expiry::failure`](crate::generic::Expiry::failure) says so.
    ExpiryFailed {
        /// The name of the table.
        table: String,
        /// The text of the error.
        error: String,
    },
    /// Rows of a table could not be loaded, see [`Error::LoadFailed`].
    LoadFailed {
        /// The text of that error.
        error: String,
    },
    /// The log has failed: nothing that writes commits any more, see [`Error::LogFailed`].
    LogFailed {
        /// Why.
        error: LogError,
    },
    /// All that was reported of the files is over: the next log file is there, a checkpoint was made, and the disk has room again for rows that leave
    /// memory.
    Recovered,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::CheckpointFailed { error } => f.write_str(error),
            Event::CallbackPanicked { table, panic } => {
                write!(f, "a callback of changes of table {table} has panicked: {panic}")
            }
            Event::DiskFull { error } => write!(f, "the disk is full: {error}"),
            Event::OutOfHandles { error } => write!(f, "log files have to wait: {error}"),
            Event::EvictionFailed { error } => write!(f, "rows cannot leave memory: {error}"),
            Event::ExpiryFailed { table, error } => {
                write!(f, "rows of table {table} that have expired are not removed: {error}")
            }
            Event::LoadFailed { error } => f.write_str(error),
            Event::LogFailed { error } => write!(f, "the log has failed: {error}"),
            Event::Recovered => f.write_str("what was wrong with the database's files is over"),
        }
    }
}

/// What a database lacks while it goes on; see
/// [`DurabilityStatistics::degraded`](crate::DurabilityStatistics::degraded).
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Degraded {
    /// What is wrong; the worst if there is more than one thing.
    pub reason: DegradedReason,
    /// The text of the error that was met last.
    pub error: String,
    /// Since when it has been so.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::serialized::seconds_since_1970"))]
    pub since: SystemTime,
}

/// What is wrong with a database that goes on all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum DegradedReason {
    /// Rows that should leave memory cannot: see [`Event::EvictionFailed`]. Room on the disk heals it, within
    /// seconds.
    EvictionFailed,
    /// The last checkpoint could not be made: the log grows, and with it the time that the next opening
    /// takes. The next checkpoint that is made heals it.
    CheckpointFailed,
    /// Too many files are open for the next log file: see [`Event::OutOfHandles`]. Closing files heals it.
    OutOfHandles,
    /// The disk has no room for the next log file. A checkpoint, or room on the disk, heals it.
    DiskFull,
    /// Rows of a table cannot be loaded: it cannot be written, and no checkpoint is made. Opening the database again, once
    /// its files are whole, heals it, or dropping the table.
    LoadFailed,
    /// The log has failed: what is stored can be read, and nothing can be written. Only opening the database
    /// again heals it.
    LogFailed,
}

/// What is called with events.
#[derive(Clone)]
pub(crate) struct EventHook(Arc<dyn Fn(&Event) + Send + Sync>);

impl EventHook {
    pub(crate) fn new(hook: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        EventHook(Arc::new(hook))
    }
}

impl fmt::Debug for EventHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventHook")
    }
}

/// Reports an event to the program: to its subscriber, and to its hook.
pub(crate) fn report_event(hook: Option<&EventHook>, event: &Event) {
    trace::event(event);
    if let Some(EventHook(hook)) = hook {
        call_foreign(|| hook(event));
    }
}

/// What is wrong now, and the events that the hook was not called with yet.
#[derive(Debug)]
pub(super) struct Condition {
    hook: Option<EventHook>,
    state: Mutex<ConditionState>,
}

#[derive(Debug, Default)]
struct ConditionState {
    /// At most one for each reason.
    wrong: Vec<Degraded>,
    pending: VecDeque<Event>,
}

impl Condition {
    pub(super) fn new(hook: Option<EventHook>) -> Self {
        Condition { hook, state: Mutex::default() }
    }

    /// Looks how the log is.
    pub(super) fn observe(&self, log: &Log) {
        let mut state = lock(&self.state);
        let failure = log.failure();
        state.follow_log(DegradedReason::LogFailed, failure.as_ref(), |error| Event::LogFailed { error });
        let shortage = log.shortage();
        let (full, out_of_handles) = match &shortage {
            Some(error @ LogError::OutOfHandles { .. }) => (None, Some(error)),
            shortage => (shortage.as_ref(), None),
        };
        state.follow_log(DegradedReason::DiskFull, full, |error| Event::DiskFull { error });
        state.follow_log(DegradedReason::OutOfHandles, out_of_handles, |error| Event::OutOfHandles { error });
    }

    /// Looks how the loading of the checkpoint is.
    pub(super) fn observe_load(&self, load: &LoadState) {
        let failure = load.failure().map(|error| error.to_string());
        lock(&self.state).follow(DegradedReason::LoadFailed, failure, |error| Event::LoadFailed { error });
    }

    /// Looks whether rows leave memory that should; `failure` is why not.
    pub(super) fn observe_eviction(&self, failure: Option<Arc<str>>) {
        let failure = failure.map(|error| error.to_string());
        lock(&self.state)
            .follow(DegradedReason::EvictionFailed, failure, |error| Event::EvictionFailed { error });
    }

    /// Notes what has become of a checkpoint. One that did not fail by itself says nothing.
    pub(super) fn note_checkpoint<T>(&self, outcome: &Result<T, Error>) {
        match outcome {
            Ok(_) => lock(&self.state).end(DegradedReason::CheckpointFailed),
            Err(Error::Closed | Error::LogFailed(_)) => {}
            Err(error) => lock(&self.state).note_failed_checkpoint(error.to_string()),
        }
    }

    /// Notes something that leaves nothing wrong.
    pub(super) fn note(&self, event: Event) {
        lock(&self.state).push(event);
    }

    /// Calls the hook with what has happened since the last call.
    pub(super) fn report(&self) {
        loop {
            // A statement of its own: the lock is not held while the hook runs.
            let event = lock(&self.state).pending.pop_front();
            let Some(event) = event else { return };
            report_event(self.hook.as_ref(), &event);
        }
    }

    /// Returns the worst of the present failures.
    pub(super) fn degraded(&self) -> Option<Degraded> {
        lock(&self.state).wrong.iter().max_by_key(|degraded| degraded.reason).cloned()
    }
}

impl ConditionState {
    /// Something of the log is wrong, or is not any more, of which only the beginning is news.
    fn follow_log(
        &mut self,
        reason: DegradedReason,
        failure: Option<&LogError>,
        event: impl FnOnce(LogError) -> Event,
    ) {
        self.follow(reason, failure.map(ToString::to_string), |_| match failure {
            Some(error) => event(error.clone()),
            None => unreachable!("what is not wrong is no news"),
        });
    }

    /// Something is wrong, or is not any more, of which only the beginning is news.
    fn follow(
        &mut self,
        reason: DegradedReason,
        failure: Option<String>,
        event: impl FnOnce(String) -> Event,
    ) {
        match failure {
            Some(error) if self.set(reason, error.clone()) => self.push(event(error)),
            Some(_) => {}
            None => self.end(reason),
        }
    }

    fn note_failed_checkpoint(&mut self, error: String) {
        self.set(DegradedReason::CheckpointFailed, error.clone());
        self.push(Event::CheckpointFailed { error });
    }

    /// Notes that something is wrong. Returns whether it is so only now.
    fn set(&mut self, reason: DegradedReason, error: String) -> bool {
        match self.wrong.iter_mut().find(|degraded| degraded.reason == reason) {
            Some(known) => {
                known.error = error;
                false
            }
            None => {
                self.wrong.push(Degraded { reason, error, since: SystemTime::now() });
                true
            }
        }
    }

    /// Something is right again, if it was not.
    fn end(&mut self, reason: DegradedReason) {
        let before = self.wrong.len();
        self.wrong.retain(|degraded| degraded.reason != reason);
        if self.wrong.is_empty() && before > 0 {
            self.push(Event::Recovered);
        }
    }

    fn push(&mut self, event: Event) {
        // A closure that panics at each call takes no room of the others, each of which comes once.
        let is_panic = |event: &Event| matches!(event, Event::CallbackPanicked { .. });
        let like_it = self.pending.iter().filter(|other| is_panic(other) == is_panic(&event));
        if like_it.count() < PENDING_MAX {
            self.pending.push_back(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_of_callbacks_take_no_room_of_other_events() {
        let mut state = ConditionState::default();
        for _ in 0..=PENDING_MAX {
            state.push(Event::CallbackPanicked { table: "account".into(), panic: "planted".into() });
        }
        assert_eq!(state.pending.len(), PENDING_MAX);
        state.follow(DegradedReason::LoadFailed, Some("planted".into()), |error| Event::LoadFailed { error });
        assert!(matches!(state.pending.back(), Some(Event::LoadFailed { .. })));
    }
}
