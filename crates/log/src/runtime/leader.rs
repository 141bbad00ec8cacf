//! The leader: when there is a round, and up to which epoch.
//!
//! The first logger of a log leads the others. When there is something to store, and the last round is over,
//! the leader moves the global epoch on, reads the frontier, and requests a round of all loggers. With one
//! logger no other thread is involved.
//!
//! # Group commit
//! While somebody waits, there is always a round: it takes what has committed until it begins, and who commits
//! meanwhile is in the next one. So rounds grow with the load by themselves, and no timer is involved. While
//! nobody waits, rounds are [unhurried](super::options::EpochClock::unhurried): each that nobody has waited for doubles the time to the next one,
//! because a round costs as much whatever it stores.
//!
//! # Who leads
//! One of several threads: see [`Leadership`](super::leadership::Leadership).

use std::time::{Duration, Instant};

use ensilo_epoch::Epoch;

use super::core::Core;
use super::durable::ReadyCalls;
use super::error::LogError;
use super::leadership::{Lead, Led};
use super::logger::Logger;
use super::notifier::{RoundRequest, Signals, Sleep};

/// How long a log that is closed waits for commits that are under way.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// How long to wait for a commit that is under way, at first. Twice as long each time.
const STALL_MIN: Duration = Duration::from_micros(50);

/// The first logger and what it leads by.
#[derive(Debug)]
pub(crate) struct Leader {
    logger: Logger,
    /// The round that was requested last, and whether all loggers have made it.
    requested: RoundRequest,
    is_complete: bool,
    /// Not before then comes the next round,
    not_before: Instant,
    /// and while nobody waits for it, not before then.
    unhurried: Instant,
    /// How many rounds in a row nobody has waited for.
    unwaited: u32,
    /// How many rounds in a row brought nothing, because a commit took long.
    stalled: u32,
    /// Set once the log is to be closed.
    end: Option<End>,
}

/// The end of a log that is closed.
#[derive(Debug, Clone, Copy)]
struct End {
    /// When it has to be reached.
    by: Instant,
    /// No commit of a later epoch logs anything: a worker that begins one finds that the log was stopped.
    last_epoch: Epoch,
}

impl Lead for Leader {
    fn look(&mut self, signals: Signals) -> Result<ReadyCalls, LogError> {
        self.receive(signals)?;
        if self.is_complete && !self.is_over() {
            if let Some(frontier) = self.last_frontier()? {
                return self.request_round(frontier, true);
            }
            if self.is_due() {
                return self.make_round(self.is_urgent());
            }
        }
        Ok(ReadyCalls::default())
    }

    fn make_caller_round(&mut self) -> Result<ReadyCalls, LogError> {
        let before = self.requested.number;
        let made = self.make_round(true);
        self.core().counters[0].caller_rounds.add(self.requested.number - before);
        made
    }

    fn may_lead_for(&self, epoch: Epoch) -> bool {
        let core = self.core();
        self.is_complete
            && core.durable.stored_epoch() < epoch
            && !core.has_failed()
            && !self.is_ending()
            && core.clock.is_by_loggers()
            && epoch <= core.epochs.global_epoch()
            && Instant::now() >= self.not_before
    }

    fn is_over(&self) -> bool {
        self.is_complete && self.requested.is_last
    }

    fn is_urgent(&self) -> bool {
        self.is_ending() || self.core().is_waited_for()
    }

    fn next_look(&self) -> Option<(Instant, Sleep)> {
        if !self.is_complete || !(self.is_ending() || self.is_worthwhile()) {
            return None;
        }
        Some(match self.is_urgent() {
            true => (self.not_before, Sleep::Short),
            false => (self.unhurried, Sleep::Long),
        })
    }
}

impl Leader {
    pub(crate) fn new(logger: Logger, first_epoch: Epoch) -> Leader {
        let requested = RoundRequest { number: 0, frontier: first_epoch, is_last: false };
        let now = Instant::now();
        Leader {
            logger,
            requested,
            is_complete: true,
            not_before: now,
            unhurried: now,
            unwaited: 0,
            stalled: 0,
            end: None,
        }
    }

    fn core(&self) -> &Core {
        &self.logger.core
    }

    fn receive(&mut self, signals: Signals) -> Result<(), LogError> {
        if signals.end && self.end.is_none() {
            let last_epoch = self.core().epochs.global_epoch();
            self.end = Some(End { by: Instant::now() + END_PATIENCE, last_epoch });
            self.core().clock.tick();
        }
        if !self.is_complete && self.core().durable.have_all_made(self.requested.number) {
            self.is_complete = true;
            self.restart_patience();
        }
        if signals.write { self.logger.write_sealed() } else { Ok(()) }
    }

    /// Returns whether a round is to be made now.
    fn is_due(&self) -> bool {
        let begins = if self.is_urgent() { self.not_before } else { self.unhurried };
        Instant::now() >= begins && self.is_worthwhile()
    }

    fn is_ending(&self) -> bool {
        self.end.is_some()
    }

    /// Returns whether a round would bring something.
    fn is_worthwhile(&self) -> bool {
        let core = self.core();
        let may_bring = self.may_tick() || !self.is_all_durable();
        // At the end a commit that is under way is a reason, too: perhaps it logs something yet.
        may_bring && (self.is_ending() || core.has_work(self.requested.frontier))
    }

    /// Returns whether everything before the global epoch is stored.
    fn is_all_durable(&self) -> bool {
        self.core().durable.stored_epoch().get() + 1 >= self.core().epochs.global_epoch().get()
    }

    /// Returns whether the epoch may be moved on by others than the clock. At the end there is no clock.
    fn may_tick(&self) -> bool {
        self.core().clock.is_by_loggers() || self.is_ending()
    }

    /// Returns the frontier of the last round, if the log is to be closed and everything is stored: all
    /// commits that were not refused have ended.
    fn last_frontier(&self) -> Result<Option<Epoch>, LogError> {
        let Some(end) = self.end else { return Ok(None) };
        // The frontier first: who has ended a commit has published what it logged.
        let frontier = self.core().epochs.complete_frontier();
        if frontier > end.last_epoch && !self.core().has_entries_after(self.requested.frontier) {
            return Ok(Some(frontier));
        }
        if Instant::now() < end.by { Ok(None) } else { Err(LogError::Unfinished) }
    }

    fn make_round(&mut self, is_waited_for: bool) -> Result<ReadyCalls, LogError> {
        let began = Instant::now();
        let frontier = self.move_on();
        let clock = self.core().clock.kind;
        if frontier <= self.requested.frontier {
            // A commit is under way. Mostly this thread has taken the core from it, and sleeping a little
            // lets it end.
            self.not_before = began + (STALL_MIN * (1 << self.stalled.min(20))).min(clock.max());
            self.unhurried = self.not_before;
            self.stalled += 1;
            return Ok(ReadyCalls::default());
        }
        self.stalled = 0;
        self.not_before = began;
        self.unwaited = if is_waited_for { 0 } else { self.unwaited.saturating_add(1) };
        self.unhurried = began + clock.unhurried(self.unwaited);
        self.request_round(frontier, false)
    }

    /// Moves the epoch on, so that all that has committed can be stored, and returns the frontier. A commit
    /// that takes long would hold back the epochs after its own, too: they are not moved on again for it.
    fn move_on(&self) -> Epoch {
        let core = self.core();
        if self.may_tick() && self.stalled == 0 { core.clock.tick() } else { core.epochs.complete_frontier() }
    }

    fn request_round(&mut self, frontier: Epoch, is_last: bool) -> Result<ReadyCalls, LogError> {
        self.requested = RoundRequest { number: self.requested.number + 1, frontier, is_last };
        let request = self.requested;
        for partition in &self.core().partitions[1..] {
            partition.notifier.notify(Sleep::Short, |signals| signals.round = Some(request));
        }
        let made = self.logger.round(request)?;
        self.is_complete = made.is_complete;
        self.restart_patience();
        Ok(made.calls)
    }

    /// At the end, only time without a round counts, in which a commit holds it up: the disk is waited for as long as it takes.
    fn restart_patience(&mut self) {
        if let Some(end) = &mut self.end {
            end.by = Instant::now() + END_PATIENCE;
        }
    }
}
