//! What all threads of a log share.

use std::sync::Arc;

use ensilo_epoch::{Epoch, Epochs};

use super::bell::Sleep;
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
        let mut failure = self.failure.lock();
        if failure.is_some() {
            return;
        }
        *failure = Some(error.clone());
        drop(failure);
        // Only now: a writer that is refused finds the reason.
        self.signs.stop();
        self.end(&error);
        self.lanes.iter().for_each(|lane| lane.bell.ring(Sleep::Short, |calls| calls.end = true));
        self.files.end();
        self.files.notify_watcher();
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

    /// There may be a reason for a round, of which the leader knows if it is about to make one.
    pub(crate) fn wake_leader(&self) {
        self.lanes[0].bell.ring(Sleep::Sound, |calls| calls.look = true);
    }

    /// Somebody has begun to wait. If all do who have logged something, the leader had better not wait for more.
    pub(crate) fn hurry_leader(&self) {
        let depth = if self.does_everybody_wait() { Sleep::Long } else { Sleep::Sound };
        self.lanes[0].bell.ring(depth, |calls| calls.look = true);
    }

    /// Whether something was logged that no round has stored that ended with `frontier`, or somebody waits for what another round
    /// can make durable.
    pub(crate) fn has_work(&self, frontier: Epoch) -> bool {
        self.has_entries_after(frontier) || self.waiting() > 0
    }

    /// Whether something was logged that no round has stored that ended with `frontier`.
    pub(crate) fn has_entries_after(&self, frontier: Epoch) -> bool {
        let is_after = |lane: &Arc<Lane>| lane.largest_epoch() >= frontier || lane.pending() != Some(0);
        self.lanes.iter().any(is_after)
    }

    /// Whether as many wait as have logged something that was not written: then nothing more will come before the next round.
    pub(crate) fn does_everybody_wait(&self) -> bool {
        let waiting = self.waiting() as u64;
        let pending = || self.lanes.iter().map(|lane| lane.pending()).sum::<Option<u64>>();
        waiting > 0 && pending().is_some_and(|pending| pending <= waiting)
    }

    /// How many wait for what another round can make durable.
    fn waiting(&self) -> usize {
        self.durable.waiting(self.epochs.global_epoch())
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
