//! The clock of the epochs.
//!
//! # Source
//! Silo (SOSP 2013) §4.1 moves the global epoch on every 40 ms. Here it is moved on by the leading logger
//! when everything before is stored, so that the time until a commit is stored follows the disk; and by this
//! clock at the latest after 40 ms, also while a disk hangs or nothing is logged. With a fixed interval the
//! clock alone moves it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ensilo_epoch::{Epoch, Epochs};
use ensilo_sync::atomic::{AtomicU64, Ordering};

use super::monitor::Monitor;
use super::options::EpochClock;

/// Moves the global epoch on.
#[derive(Debug)]
pub(crate) struct Clock {
    epochs: Arc<Epochs>,
    pub(crate) kind: EpochClock,
    started: Instant,
    /// When the epoch was moved on last, in nanoseconds since `started`.
    last_tick_nanos: AtomicU64,
    ticks: AtomicU64,
    is_ended: Monitor<bool>,
}

impl Clock {
    pub(crate) fn new(epochs: Arc<Epochs>, kind: EpochClock) -> Clock {
        Clock {
            epochs,
            kind,
            started: Instant::now(),
            last_tick_nanos: AtomicU64::new(0),
            ticks: AtomicU64::new(0),
            is_ended: Monitor::new(false),
        }
    }

    /// Moves the global epoch on. Returns the frontier behind it.
    pub(crate) fn tick(&self) -> Epoch {
        let frontier = self.epochs.advance_to_frontier();
        let nanos = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        // Relaxed, here and below: nothing but the time of the next tick depends on it.
        self.last_tick_nanos.store(nanos, Ordering::Relaxed);
        self.ticks.fetch_add(1, Ordering::Relaxed);
        frontier
    }

    /// Returns whether the loggers move the epoch on, too.
    pub(crate) fn is_by_loggers(&self) -> bool {
        matches!(self.kind, EpochClock::ByLoggers { .. })
    }

    pub(crate) fn ticks(&self) -> u64 {
        self.ticks.load(Ordering::Relaxed)
    }

    /// Moves the epoch on when it is time, until the end. Calls `after` behind each tick of its own.
    pub(crate) fn run(&self, after: impl Fn()) {
        let interval = self.kind.max();
        let mut deadline = self.started + interval;
        while self.sleeps_until(deadline) {
            let due = match self.kind {
                EpochClock::ByLoggers { .. } => self.last_tick() + interval,
                EpochClock::Fixed(_) => deadline,
            };
            if due > Instant::now() {
                deadline = due;
                continue;
            }
            self.tick();
            after();
            // A tick that came late does not make the next ones come early.
            deadline = (deadline + interval).max(Instant::now());
        }
    }

    /// Lets [`Clock::run`] return.
    pub(crate) fn end(&self) {
        *self.is_ended.lock() = true;
        self.is_ended.notify_all();
    }

    fn last_tick(&self) -> Instant {
        self.started + Duration::from_nanos(self.last_tick_nanos.load(Ordering::Relaxed))
    }

    /// `false` when the end came meanwhile.
    fn sleeps_until(&self, deadline: Instant) -> bool {
        let mut is_ended = self.is_ended.lock();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if *is_ended || left.is_zero() {
                return !*is_ended;
            }
            is_ended = self.is_ended.wait_for(is_ended, left);
        }
    }
}
