//! What all threads of a log share.

use std::sync::Arc;

use ensilo_epoch::{Epoch, Epochs};

use super::clock::Clock;
use super::durable::Durable;
use super::error::LogError;
use super::files::Files;
use super::lane::Lane;
use super::monitor::Monitor;
use super::signs::Signs;
use super::statistics::{Counters, LogStatistics};

/// What all threads of a log share.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) epochs: Arc<Epochs>,
    pub(crate) signs: Arc<Signs>,
    /// By logger.
    pub(crate) lanes: Vec<Arc<Lane>>,
    /// By logger.
    pub(crate) counters: Vec<Counters>,
    pub(crate) durable: Durable,
    pub(crate) clock: Clock,
    pub(crate) files: Files,
    failure: Monitor<Option<LogError>>,
}

impl Core {
    pub(crate) fn new(
        epochs: Arc<Epochs>,
        lanes: Vec<Arc<Lane>>,
        durable: Durable,
        clock: Clock,
        files: Files,
    ) -> Core {
        let counters = lanes.iter().map(|_| Counters::default()).collect();
        let signs = Arc::new(Signs::new());
        Core { epochs, signs, lanes, counters, durable, clock, files, failure: Monitor::new(None) }
    }

    /// Ends the log for good: nothing is acknowledged any more, and whoever waits gets the error. The first failure counts. The clock goes
    /// on: readers need it.
    pub(crate) fn fail(&self, error: LogError) {
        self.signs.stop();
        let mut failure = self.failure.lock();
        if failure.is_some() {
            return;
        }
        *failure = Some(error.clone());
        drop(failure);
        self.end(&error);
        self.lanes.iter().for_each(|lane| lane.bell.ring(|calls| calls.end = true));
        self.files.end();
    }

    pub(crate) fn failure(&self) -> Option<LogError> {
        self.failure.lock().clone()
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure.lock().is_some()
    }

    /// Lets everybody go who waits.
    pub(crate) fn end(&self, error: &LogError) {
        self.durable.end(error);
        self.lanes.iter().for_each(|lane| lane.pool.fail(error));
    }

    /// There may be a reason for a round.
    pub(crate) fn wake_leader(&self) {
        self.lanes[0].bell.ring_softly(|calls| calls.look = true);
    }

    /// Whether something was logged that no round has stored that ended with `frontier`, or somebody waits for what another round
    /// can make durable.
    pub(crate) fn has_work(&self, frontier: Epoch) -> bool {
        self.has_entries_after(frontier) || self.durable.is_waited_for(self.epochs.global_epoch())
    }

    /// Whether something was logged that no round has stored that ended with `frontier`.
    pub(crate) fn has_entries_after(&self, frontier: Epoch) -> bool {
        self.lanes.iter().any(|lane| lane.largest_epoch() >= frontier || lane.is_pending())
    }

    pub(crate) fn statistics(&self) -> LogStatistics {
        let mut statistics = LogStatistics {
            durable_epoch: self.durable.epoch(),
            ticks: self.clock.ticks(),
            ..LogStatistics::default()
        };
        self.counters.iter().for_each(|counts| counts.add_to(&mut statistics));
        for lane in &self.lanes {
            let pressure = lane.pool.pressure();
            statistics.buffer_waits += pressure.waits;
            statistics.buffer_wait_time += pressure.waited;
        }
        statistics
    }
}
