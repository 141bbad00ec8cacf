//! Which thread leads a log, and how the next one comes to it.
//!
//! # Who leads
//! The leader's state stands behind a lock. Whoever holds it makes rounds: the thread of the first logger, or
//! a thread of the program that would wait for a round and finds that nobody is making one. The second saves
//! two changes of threads, which cost about as much as a fast disk's sync; with a single client it is always
//! so. Who cannot lead, or is not served by the round that it made, leaves its wait with the log and notifies
//! the logger's thread after that: so every wait is seen by a thread that goes on making rounds.
//!
//! A thread of the program reports a failed round to the logger's thread, which ends the log, and leaves to it
//! the callbacks and wakers that the round has made ready: these are the program's code, and might need a
//! lock that the thread holds.
//!
//! # Invariants
//! - **I1** One thread at a time leads.
//! - **I2** A wait that no round has ended is known to the log's thread, or to a thread that leads and lets it know at its
//!   end: nobody waits for ever.

use std::time::Instant;

use ensilo_epoch::Epoch;
use ensilo_sync::atomic::{AtomicBool, Ordering};
use ensilo_sync::sync::MutexGuard;

use super::durable::{Durable, ReadyCalls};
use super::error::LogError;
use super::monitor::Monitor;
use super::notifier::{Notifier, Signals, Sleep};

/// What makes rounds, for the thread that leads.
pub(crate) trait Lead {
    /// Looks at what there is to do, and does it.
    fn look(&mut self, signals: Signals) -> Result<ReadyCalls, LogError>;

    /// Makes a round on a thread of the program.
    fn make_caller_round(&mut self) -> Result<ReadyCalls, LogError>;

    /// Returns whether a thread that waits for `epoch` may make a round now.
    fn may_lead_for(&self, epoch: Epoch) -> bool;

    /// Returns whether the last round was made.
    fn is_over(&self) -> bool;

    /// Returns whether somebody waits for what another round brings.
    fn is_urgent(&self) -> bool;

    /// Returns when to look without a notification.
    fn next_look(&self) -> Option<(Instant, Sleep)>;
}

/// What those that lead and those that wait share.
pub(crate) trait Led {
    fn durable(&self) -> &Durable;

    /// Where the log's thread sleeps.
    fn notifier(&self) -> &Notifier;

    fn has_failed(&self) -> bool;

    /// There is something for the log's thread to do at once.
    fn call_leader(&self) {
        self.notifier().notify(Sleep::Short, |signals| signals.look = true);
    }

    /// Notes that a wait has begun: the log's thread makes a round as soon as it can.
    fn hurry_leader(&self) {
        self.notifier().notify(Sleep::Long, |signals| signals.look = true);
    }
}

/// Where the threads find the leader that may lead: none has it for longer than a step.
#[derive(Debug)]
pub(crate) struct Leadership<L> {
    leader: Monitor<Option<Leading<L>>>,
    /// The log's thread waits for the leader: callers leave it alone, who would take it again and again before
    /// that thread wakes.
    is_wanted: AtomicBool,
}

/// The leader, and whether it goes on.
#[derive(Debug)]
struct Leading<L> {
    leader: L,
    /// Why there are no more rounds. In the midst of a step it says that the step panicked: the lock is taken
    /// again behind a panic.
    failure: Option<LogError>,
}

impl<L: Lead> Leadership<L> {
    /// Returns the leadership of `leader`; a log that takes nothing has none.
    pub(crate) fn new(leader: Option<L>) -> Leadership<L> {
        let leading = leader.map(|leader| Leading { leader, failure: None });
        Leadership { leader: Monitor::new(leading), is_wanted: AtomicBool::new(false) }
    }

    /// Leads until the log is closed, or fails: what the log's thread does.
    pub(crate) fn lead(&self, log: &impl Led) -> Result<(), LogError> {
        let _retirement = Retirement { leadership: self, log };
        let mut signals = Signals::default();
        loop {
            let mut leading = self.take_over(log);
            let Some(found) = leading.as_mut() else { return Ok(()) };
            let calls = found.take_step(|leader| leader.look(signals))?;
            let (is_over, next_look) = (found.leader.is_over(), found.leader.next_look());
            drop(leading);
            calls.call();
            if is_over {
                return Ok(());
            }
            signals = log.notifier().wait(next_look);
            if log.has_failed() {
                return Ok(());
            }
        }
    }

    /// Waits until `epoch` is durable. If no round is being made, the calling thread makes it.
    pub(crate) fn wait_durable(&self, log: &impl Led, epoch: Epoch) -> Result<(), LogError> {
        if log.durable().epoch() >= epoch || self.lead_for(log, epoch) {
            return Ok(());
        }
        log.durable().wait(epoch, || log.hurry_leader())
    }

    /// Waits for the leader. Calls that callers leave meanwhile are made before the next round.
    fn take_over(&self, log: &impl Led) -> MutexGuard<'_, Option<Leading<L>>> {
        // Relaxed, here and below: it decides who leads next, and nothing else.
        self.is_wanted.store(true, Ordering::Relaxed);
        loop {
            log.durable().call_left();
            let leading = self.leader.lock();
            if !log.durable().has_left_calls() {
                self.is_wanted.store(false, Ordering::Relaxed);
                return leading;
            }
        }
    }

    /// Makes a round on the calling thread, which would wait for `epoch`, if nobody else is making one. Returns
    /// whether `epoch` is durable.
    pub(crate) fn lead_for(&self, log: &impl Led, epoch: Epoch) -> bool {
        if self.is_wanted.load(Ordering::Relaxed) {
            return false;
        }
        // Dropped behind the lock.
        let mut report = Report { log, is_due: false };
        let Some(mut leading) = self.leader.try_lock() else { return false };
        let may_lead = |found: &&mut Leading<L>| found.failure.is_none() && found.leader.may_lead_for(epoch);
        let Some(found) = leading.as_mut().filter(may_lead) else { return false };
        report.is_due = true;
        let made = found.take_step(L::make_caller_round);
        // The leader's state says why a round has failed.
        report.is_due = made.as_ref().map_or(true, |calls| found.leader.is_urgent() || !calls.is_empty());
        log.durable().leave_calls(made.unwrap_or_default());
        log.durable().epoch() >= epoch
    }
}

impl<L: Lead> Leading<L> {
    /// Takes a step, unless one has failed or panicked.
    fn take_step(
        &mut self,
        step: impl FnOnce(&mut L) -> Result<ReadyCalls, LogError>,
    ) -> Result<ReadyCalls, LogError> {
        if let Some(error) = &self.failure {
            return Err(error.clone());
        }
        self.failure = Some(LogError::Panicked);
        let taken = step(&mut self.leader);
        self.failure = taken.as_ref().err().cloned();
        taken
    }
}

/// Calls the log's thread when a caller's step is over, or has panicked, if there is something for it to do.
struct Report<'a, D: Led> {
    log: &'a D,
    is_due: bool,
}

impl<D: Led> Drop for Report<'_, D> {
    fn drop(&mut self) {
        if self.is_due && !is_model_over() {
            self.log.call_leader();
        }
    }
}

/// The end of the leader: nobody leads any more, and what callers have left is called.
struct Retirement<'a, L, D: Led> {
    leadership: &'a Leadership<L>,
    log: &'a D,
}

impl<L, D: Led> Drop for Retirement<'_, L, D> {
    fn drop(&mut self) {
        if !is_model_over() {
            *self.leadership.leader.lock() = None;
            self.log.durable().call_left();
        }
    }
}

/// Returns whether a model checker has found something: it takes no further steps then.
fn is_model_over() -> bool {
    cfg!(any(loom, shuttle)) && std::thread::panicking()
}
