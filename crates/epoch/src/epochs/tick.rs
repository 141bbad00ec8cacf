//! One tick: the global epoch moves on, and what is over is derived from what participants have published.

use std::time::Instant;

use ensilo_sync::atomic::Ordering;
use ensilo_sync::barrier;

use super::{EpochNumbers, Epochs, NextHorizon, Oldest};
use crate::Epoch;

impl Epochs {
    /// Returns the complete frontier.
    pub(super) fn tick(&self, numbers: &mut EpochNumbers) -> Epoch {
        let next = self.next_epoch(numbers);
        self.tick_to(numbers, next)
    }

    /// Moves the global epoch on to this one. Returns the complete frontier.
    pub(super) fn tick_to(&self, numbers: &mut EpochNumbers, next: Epoch) -> Epoch {
        if next.get() > numbers.global && self.may_become_snapshot(numbers, next) {
            numbers.awaited.begin(next);
        }
        numbers.global = next.get();
        // Release: [epoch] a thread that reads this epoch sees what was visible at the barriers of earlier ticks.
        self.published.global.store(numbers.global, Ordering::Release);
        barrier::heavy();
        numbers.found.clear();
        let found = &mut numbers.found;
        let oldest = self.oldest_and_each_snapshot(|epoch| found.push(Epoch::new(epoch)));
        let memory_horizon = self.epoch_before(numbers, Epoch::new(numbers.global.min(oldest.pin)));
        let complete = numbers.complete(&oldest);
        let snapshot_before = numbers.snapshot;
        numbers.derive(memory_horizon, self.newest_snapshot(numbers, complete));
        self.renew_open_snapshots(numbers, snapshot_before);
        numbers.move_snapshot_horizon(&oldest);
        // Release: [horizon] and [snapshot], with the Acquire loads of the slots that led here.
        self.published.memory_horizon.store(numbers.memory_horizon, Ordering::Release);
        self.publish_open_snapshots(numbers);
        self.published.snapshot_horizon.store(numbers.snapshot_horizon, Ordering::Release);
        self.published.snapshot.store(numbers.snapshot, Ordering::Release);
        // Release: [snapshot-instant] the snapshot epoch above comes first.
        self.published.snapshot_instant.store(self.nanos(numbers.snapshot_instant), Ordering::Release);
        self.published.snapshots.store(numbers.snapshots, Ordering::Relaxed);
        // Release: [horizon] a thread that sees that the tick is done sees its horizons.
        self.published.derived_at.store(numbers.global, Ordering::Release);
        complete
    }

    /// Adds to what was found at which epochs other snapshots may be, which this tick does not see or which begin: at the snapshot epoch that
    /// there was before this tick, and at later ones. By the clock these are what it is now, what it comes to next, and what the global
    /// epoch has not come to.
    fn renew_open_snapshots(&self, numbers: &mut EpochNumbers, snapshot_before: u64) {
        let until = if self.snapshot_interval.is_some() {
            numbers.found.extend([snapshot_before, numbers.snapshot, numbers.due].map(Epoch::new));
            numbers.global + 1
        } else {
            snapshot_before
        };
        numbers.open.renew(&mut numbers.found, Epoch::new(until), Epoch::new(numbers.global));
    }

    /// Publishes what was found. Where a participant is about to copy the list of an earlier tick, which stays true, nobody waits for it.
    fn publish_open_snapshots(&self, numbers: &EpochNumbers) {
        let oldest = numbers.open.oldest();
        // Release: [oldest-snapshot] the epoch of the next tick comes behind it.
        self.published.oldest_snapshot.store(oldest.get(), Ordering::Release);
        if oldest.get() >= numbers.snapshot_before {
            self.published.overtaken_at.store(0, Ordering::Relaxed);
        } else if let Ok(mut open) = self.open.try_lock() {
            open.copy_from(&numbers.open);
            self.published.overtaken_at.store(numbers.global, Ordering::Relaxed);
        }
    }

    /// Returns the epoch that follows: the next number, or the next snapshot epoch if it is time for one. The last
    /// epoch follows itself.
    fn next_epoch(&self, numbers: &mut EpochNumbers) -> Epoch {
        let next = Epoch::new(numbers.global + 1).min(Epoch::LAST);
        let Some(snapshot_interval) = self.snapshot_interval else { return next };
        let next_start = self.interval.next_start(Epoch::new(numbers.global));
        if next_start > Epoch::LAST || numbers.due_since.elapsed() < snapshot_interval {
            return next;
        }
        numbers.due = next_start.get();
        numbers.due_since = Instant::now();
        next_start
    }

    /// Returns the newest epoch that snapshots may be read at, if every commit before `complete` is complete.
    fn newest_snapshot(&self, numbers: &EpochNumbers, complete: Epoch) -> u64 {
        match self.snapshot_interval {
            None => self.interval.start(complete).get(),
            Some(_) if complete.get() >= numbers.due => numbers.due,
            Some(_) => numbers.snapshot,
        }
    }

    /// Returns whether [`Epochs::newest_snapshot`] may return this one, when it has become the global epoch.
    fn may_become_snapshot(&self, numbers: &EpochNumbers, epoch: Epoch) -> bool {
        match self.snapshot_interval {
            None => self.interval.start(epoch) == epoch,
            Some(_) => epoch.get() == numbers.due,
        }
    }

    /// Returns when this was, in whole nanoseconds since the epochs were created.
    fn nanos(&self, instant: Instant) -> u64 {
        u64::try_from(instant.saturating_duration_since(self.created).as_nanos()).unwrap_or(u64::MAX)
    }

    /// Returns an epoch that is no later than the one that was there before `epoch`: the number before, unless epochs
    /// were left out to begin an interval.
    fn epoch_before(&self, numbers: &EpochNumbers, epoch: Epoch) -> Epoch {
        let may_be_after_a_gap = self.snapshot_interval.is_some() || numbers.taken.has_any();
        let is_after_a_gap = may_be_after_a_gap && self.interval.start(epoch) == epoch;
        Epoch::new(epoch.get() - if is_after_a_gap { self.interval.epochs() } else { 1 })
    }
}

impl EpochNumbers {
    /// Derives what is over at the global epoch from what participants published. Nothing falls (I3): a participant that read
    /// an epoch long ago and publishes it now is behind a number that needs no protection from it, see the crate's page.
    fn derive(&mut self, memory_horizon: Epoch, newest_snapshot: u64) {
        self.memory_horizon = self.memory_horizon.max(memory_horizon.get());
        if newest_snapshot > self.snapshot {
            // Those that are taken out of turn make no other one old, unless they leave no room for others.
            if !self.taken.reach() || self.regular_ticks >= self.ticks_per_snapshot {
                self.snapshots += 1;
                self.regular_ticks = 0;
            }
            self.snapshot_before = self.snapshot;
            self.snapshot = newest_snapshot;
            self.snapshot_instant = self.awaited.reach(newest_snapshot).unwrap_or(self.snapshot_instant);
        }
    }

    /// Moves the snapshot horizon to where it was to come, unless a commit is under way that may have begun before that was published.
    fn move_snapshot_horizon(&mut self, oldest: &Oldest) {
        let NextHorizon { epoch, published_at } = self.next_horizon;
        if oldest.commit > published_at {
            self.snapshot_horizon = epoch;
            self.next_horizon = NextHorizon { epoch: self.open.oldest().get(), published_at: self.global };
        }
    }

    /// Every commit with an earlier epoch is complete, if `oldest` was read behind a barrier that came after the global epoch was
    /// published.
    fn complete(&self, oldest: &Oldest) -> Epoch {
        Epoch::new(self.global.min(oldest.commit))
    }
}
