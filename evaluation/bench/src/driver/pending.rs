//! Committed transactions that are not stored yet: a worker goes on with the next one and looks now and then what has become of them.
//!
//! A look costs a load of the durable epoch, which moves about a thousand times a second. Epochs of a worker's transactions rise but for
//! those that only read, which have the epoch of what they saw: such a one stands behind the writer before it, and counts as stored a
//! little later than it is.

use std::collections::VecDeque;

use ensilo::generic::Database;
use ensilo::{Engine, Error};

use super::acknowledged::Acknowledged;
use super::clock::{Clock, Stamp};
use super::failure::Failure;
use super::measurements::Measurements;
use super::watch::LiveCounts;
use super::workload::Outcome;

/// A worker that is so many transactions ahead of the disk waits.
const LEN_MAX: usize = 1 << 20;
/// What is taken at first: some milliseconds of short transactions.
const LEN_TYPICAL: usize = 1 << 13;

/// Transactions of one worker in the order of their commits.
pub(super) struct Pending<'a, E: Engine> {
    queue: VecDeque<Entry>,
    database: Option<&'a Database<E>>,
    /// Up to here all is stored, as far as this worker has seen.
    durable_epoch: u64,
    acknowledged: Option<Acknowledged<'a>>,
    live: &'a LiveCounts,
}

struct Entry {
    started: Stamp,
    epoch: u64,
    transaction: u16,
    effects: u16,
    /// Whether its latency counts: it committed in the measured time.
    is_measured: bool,
}

impl<'a, E: Engine> Pending<'a, E> {
    pub(super) fn new(
        database: Option<&'a Database<E>>,
        acknowledged: Option<Acknowledged<'a>>,
        live: &'a LiveCounts,
    ) -> Self {
        // Nothing in memory is ever stored, so that there is nothing to wait for.
        let database = database.filter(|database| database.durable_epoch().is_some());
        let capacity = if database.is_some() { LEN_TYPICAL } else { 0 };
        Pending { queue: VecDeque::with_capacity(capacity), database, durable_epoch: 0, acknowledged, live }
    }

    /// Takes note of a transaction that began at `started`.
    #[inline]
    pub(super) fn push(&mut self, outcome: &Outcome, started: Stamp, is_measured: bool) {
        if self.database.is_none() || !outcome.committed {
            return;
        }
        if outcome.epoch <= self.durable_epoch {
            // It read what was stored before it.
            if let Some(acknowledged) = &mut self.acknowledged {
                acknowledged.count(outcome.transaction, outcome.effects);
            }
            return;
        }
        self.queue.push_back(Entry {
            started,
            epoch: outcome.epoch,
            transaction: outcome.transaction as u16,
            effects: outcome.effects,
            is_measured,
        });
    }

    /// Records the latency of those that are stored by `now`. Waits for some if there are too many.
    ///
    /// # Errors
    /// [`Error::LogFailed`], or what stands in the way of noting down what is acknowledged.
    #[inline]
    pub(super) fn settle(
        &mut self,
        clock: &Clock,
        now: Stamp,
        measurements: &mut Measurements,
    ) -> Result<(), Failure> {
        let Some(durable_epoch) = self.database.and_then(Database::durable_epoch) else { return Ok(()) };
        if durable_epoch != self.durable_epoch {
            self.durable_epoch = durable_epoch;
            self.take_stored(clock, now, measurements)?;
        }
        if self.queue.len() >= LEN_MAX { self.wait_for_first(clock, measurements) } else { Ok(()) }
    }

    /// Waits until all are stored.
    ///
    /// # Errors
    /// As [`Pending::settle`].
    pub(super) fn finish(&mut self, clock: &Clock, measurements: &mut Measurements) -> Result<(), Failure> {
        while !self.queue.is_empty() {
            self.wait_for_first(clock, measurements)?;
        }
        Ok(())
    }

    /// The epoch that has to be durable before all are stored that are here now.
    pub(super) fn last_epoch(&self) -> u64 {
        self.queue.iter().map(|entry| entry.epoch).max().unwrap_or(0)
    }

    /// Whether all of `epoch` was stored at the last look.
    #[inline]
    pub(super) fn has_stored(&self, epoch: u64) -> bool {
        self.durable_epoch >= epoch
    }

    #[cold]
    fn wait_for_first(&mut self, clock: &Clock, measurements: &mut Measurements) -> Result<(), Failure> {
        let (Some(database), Some(first)) = (self.database, self.queue.front()) else { return Ok(()) };
        database.ticket(first.epoch)?.wait()?;
        self.durable_epoch = database.durable_epoch().ok_or(Error::NotDurable)?;
        self.take_stored(clock, clock.stamp(), measurements)
    }

    #[inline(never)]
    fn take_stored(
        &mut self,
        clock: &Clock,
        now: Stamp,
        measurements: &mut Measurements,
    ) -> Result<(), Failure> {
        let is_stored = |entry: &&Entry| entry.epoch <= self.durable_epoch;
        if let Some(oldest) = self.queue.front().filter(is_stored)
            && oldest.is_measured
        {
            self.live.note_stored(clock.nanoseconds(oldest.started, now));
        }
        while let Some(entry) = self.queue.front()
            && entry.epoch <= self.durable_epoch
        {
            let transaction = usize::from(entry.transaction);
            if entry.is_measured {
                measurements.record_stored(transaction, clock.nanoseconds(entry.started, now));
            }
            if let Some(acknowledged) = &mut self.acknowledged {
                acknowledged.count(transaction, entry.effects);
            }
            self.queue.pop_front();
        }
        self.acknowledged.as_mut().map_or(Ok(()), Acknowledged::write)
    }
}
