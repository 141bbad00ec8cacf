//! What all threads of a log share.

use std::sync::{Arc, OnceLock};

use ensilo_epoch::{Epoch, Epochs};

use super::clock::Clock;
use super::durable::Durable;
use super::error::LogError;
use super::files::Files;
use super::leadership::Led;
use super::notifier::{Notifier, Sleep};
use super::partition::LogPartition;
use super::ring::Ring;
use super::statistics::{Counters, LogStatistics};
use super::writer_state::WriterState;

/// What all threads of a log share.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) epochs: Arc<Epochs>,
    pub(crate) writer_state: Arc<WriterState>,
    /// By logger.
    pub(crate) partitions: Vec<Arc<LogPartition>>,
    pub(crate) ring: Arc<Ring>,
    /// By logger.
    pub(crate) counters: Vec<Counters>,
    pub(crate) durable: Durable,
    pub(crate) clock: Clock,
    pub(crate) files: Files,
    failure: OnceLock<LogError>,
}

impl Core {
    pub(crate) fn new(
        epochs: Arc<Epochs>,
        partitions: Vec<Arc<LogPartition>>,
        ring: Arc<Ring>,
        durable: Durable,
        clock: Clock,
        files: Files,
    ) -> Core {
        let counters = partitions.iter().map(|_| Counters::default()).collect();
        let writer_state = Arc::new(WriterState::new());
        Core {
            epochs,
            writer_state,
            partitions,
            ring,
            counters,
            durable,
            clock,
            files,
            failure: OnceLock::new(),
        }
    }

    /// Ends the log for good: nothing is acknowledged any more, and every wait ends with the error. The first
    /// failure counts. The clock goes on: readers need it.
    pub(crate) fn fail(&self, error: LogError) {
        if self.failure.set(error.clone()).is_err() {
            return;
        }
        // Only now: a writer that is refused finds the reason.
        self.writer_state.stop();
        self.end(&error);
        self.partitions
            .iter()
            .for_each(|partition| partition.notifier.notify(Sleep::Short, |signals| signals.end = true));
        self.files.end();
        self.files.notify_watcher();
    }

    pub(crate) fn failure(&self) -> Option<LogError> {
        self.failure.get().cloned()
    }

    /// Ends all waits.
    pub(crate) fn end(&self, error: &LogError) {
        self.durable.end(error);
        self.partitions.iter().for_each(|partition| partition.pool.fail(error));
        self.ring.end(error);
    }

    /// There may be a reason for a round, of which the leader knows if it is about to make one.
    pub(crate) fn wake_leader(&self) {
        self.partitions[0].notifier.notify(Sleep::Sound, |signals| signals.look = true);
    }

    /// Returns whether something was logged that no round has stored that ended with `frontier`, or somebody
    /// waits for what another round can make durable.
    pub(crate) fn has_work(&self, frontier: Epoch) -> bool {
        self.has_entries_after(frontier) || self.is_waited_for()
    }

    /// Returns whether something was logged that no round has stored that ended with `frontier`.
    pub(crate) fn has_entries_after(&self, frontier: Epoch) -> bool {
        let is_after = |partition: &Arc<LogPartition>| {
            partition.largest_epoch() >= frontier || partition.pending() != Some(0)
        };
        // The segments before the frontier were drained.
        self.ring.is_pending() || self.partitions.iter().any(is_after)
    }

    /// Returns whether somebody waits for what another round can make durable.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.ring.is_waited_for() || self.durable.is_waited_for(self.epochs.global_epoch())
    }

    pub(crate) fn statistics(&self) -> LogStatistics {
        let mut statistics = LogStatistics {
            durable_epoch: self.durable.epoch(),
            ticks: self.clock.ticks(),
            ..LogStatistics::default()
        };
        self.counters.iter().for_each(|counts| counts.add_to(&mut statistics));
        let pools = self.partitions.iter().map(|partition| partition.pool.pressure());
        for pressure in pools.chain([self.ring.pressure()]) {
            statistics.buffer_waits += pressure.waits;
            statistics.buffer_wait_time += pressure.waited;
        }
        statistics
    }
}

impl Led for Core {
    fn durable(&self) -> &Durable {
        &self.durable
    }

    fn notifier(&self) -> &Notifier {
        &self.partitions[0].notifier
    }

    fn has_failed(&self) -> bool {
        self.failure.get().is_some()
    }
}
