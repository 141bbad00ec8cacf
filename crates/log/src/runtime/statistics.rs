//! What the log has done so far.

use std::time::Duration;

use ensilo_epoch::Epoch;
use ensilo_sync::CachePadded;

/// What the log has done since it was started, and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogStatistics {
    /// All transactions of epochs up to this one are stored.
    pub durable_epoch: Epoch,
    /// Transactions that were written.
    pub transactions: u64,
    /// Bytes of their entries.
    pub entry_bytes: u64,
    /// Bytes that log files became longer by, with the headers of blocks.
    pub written_bytes: u64,
    /// Blocks that were written.
    pub blocks: u64,
    /// Rounds, and writes between rounds.
    pub writes: u64,
    /// Time that they took to write, together.
    pub write_time: Duration,
    /// Syncs of log files.
    pub syncs: u64,
    /// Time that these took together.
    pub sync_time: Duration,
    /// The longest of them.
    pub sync_time_max: Duration,
    /// How often workers waited for a buffer.
    pub buffer_waits: u64,
    /// How long they waited, together.
    pub buffer_wait_time: Duration,
    /// Files that were finished.
    pub rotations: u64,
    /// Rounds that were made by threads that waited for them.
    pub caller_rounds: u64,
    /// How often the global epoch was moved on.
    pub ticks: u64,
}

/// The counts of one logger. One thread at a time writes them: the one that has the logger.
///
/// The standard library's atomics also under a model checker: counts are part of no protocol.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    counts: CachePadded<Counts>,
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) transactions: Count,
    pub(crate) entry_bytes: Count,
    pub(crate) written_bytes: Count,
    pub(crate) blocks: Count,
    pub(crate) writes: Count,
    pub(crate) write_nanos: Count,
    pub(crate) syncs: Count,
    pub(crate) sync_nanos: Count,
    pub(crate) sync_nanos_max: Count,
    pub(crate) rotations: Count,
    pub(crate) caller_rounds: Count,
}

impl std::ops::Deref for Counters {
    type Target = Counts;

    fn deref(&self) -> &Counts {
        &self.counts
    }
}

impl Counts {
    pub(crate) fn add_write(&self, took: Duration) {
        self.writes.add(1);
        self.write_nanos.add(nanos(took));
    }

    pub(crate) fn add_sync(&self, took: Duration) {
        self.syncs.add(1);
        self.sync_nanos.add(nanos(took));
        self.sync_nanos_max.raise(nanos(took));
    }

    /// Adds these counts to `statistics`.
    pub(crate) fn add_to(&self, statistics: &mut LogStatistics) {
        statistics.transactions += self.transactions.get();
        statistics.entry_bytes += self.entry_bytes.get();
        statistics.written_bytes += self.written_bytes.get();
        statistics.blocks += self.blocks.get();
        statistics.writes += self.writes.get();
        statistics.write_time += Duration::from_nanos(self.write_nanos.get());
        statistics.syncs += self.syncs.get();
        statistics.sync_time += Duration::from_nanos(self.sync_nanos.get());
        statistics.sync_time_max =
            statistics.sync_time_max.max(Duration::from_nanos(self.sync_nanos_max.get()));
        statistics.rotations += self.rotations.get();
        statistics.caller_rounds += self.caller_rounds.get();
    }
}

/// A count that one thread at a time keeps and others read.
#[derive(Debug, Default)]
pub(crate) struct Count(std::sync::atomic::AtomicU64);

impl Count {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }

    pub(crate) fn add(&self, more: u64) {
        self.0.store(self.get() + more, std::sync::atomic::Ordering::Relaxed);
    }

    fn raise(&self, to: u64) {
        self.0.store(self.get().max(to), std::sync::atomic::Ordering::Relaxed);
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
