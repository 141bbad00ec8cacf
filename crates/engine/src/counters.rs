//! What a worker counts: plain words that it alone writes and anyone may read.

use ensilo_sync::atomic::{AtomicU64, Ordering};

use crate::abort::AbortReason;

/// The counters of one worker. They are written by their owner with a load and a store, never with a shared read-modify-write.
#[derive(Debug, Default)]
pub struct WorkerCounters {
    commits: Counter,
    snapshots: Counter,
    aborts: [Counter; AbortReason::ALL.len()],
    /// Versions kept for snapshots, in records and bytes: grows and shrinks.
    versions: Counter,
    version_bytes: Counter,
    /// Deleted records that still stand in their store, or are kept for snapshots.
    unhooks: Counter,
    /// The most attempts that one request took.
    attempts_max: Counter,
}

impl WorkerCounters {
    /// Counts a transaction that committed.
    pub fn count_commit(&self) {
        self.commits.add(1);
    }

    /// Counts a snapshot transaction that ended.
    pub fn count_snapshot(&self) {
        self.snapshots.add(1);
    }

    /// Counts a transaction that aborted.
    pub fn count_abort(&self, reason: AbortReason) {
        self.aborts[reason.index()].add(1);
    }

    /// Counts a version that is kept for snapshots.
    pub fn version_kept(&self, bytes: usize) {
        self.versions.add(1);
        self.version_bytes.add(bytes as u64);
    }

    /// Counts a version that is not kept any more.
    pub fn version_freed(&self, bytes: usize) {
        self.versions.subtract(1);
        self.version_bytes.subtract(bytes as u64);
    }

    /// Counts a deleted record, which stays in its store for a while, or for snapshots.
    pub fn unhook_waits(&self) {
        self.unhooks.add(1);
    }

    /// Counts a deleted record that is retired.
    pub fn unhook_ended(&self) {
        self.unhooks.subtract(1);
    }

    /// Notes a request that took more than one attempt.
    pub fn note_attempts(&self, attempts: u32) {
        self.attempts_max.raise_to(u64::from(attempts));
    }

    /// Transactions that have ended. It stays as long as the worker is idle.
    #[must_use]
    pub fn ended(&self) -> u64 {
        let aborts: u64 = self.aborts.iter().map(Counter::get).sum();
        self.commits.get() + self.snapshots.get() + aborts
    }

    /// Adds this worker's counters to `sum`.
    pub fn add_to(&self, sum: &mut TransactionStatistics) {
        sum.commits += self.commits.get();
        sum.snapshots += self.snapshots.get();
        for (sum, own) in sum.aborts.iter_mut().zip(&self.aborts) {
            *sum += own.get();
        }
        sum.versions += self.versions.get();
        sum.version_bytes += self.version_bytes.get();
        sum.deleted_records += self.unhooks.get();
        sum.attempts_max = sum.attempts_max.max(self.attempts_max.get());
    }
}

/// The sum over all workers, past ones included. Read while they run, the figures are each exact for some moment, not for the same one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactionStatistics {
    /// Committed read-write transactions.
    pub commits: u64,
    /// Ended snapshot transactions.
    pub snapshots: u64,
    /// Aborted transactions by [`AbortReason::index`]; a retried transaction counts at each attempt.
    pub aborts: [u64; AbortReason::ALL.len()],
    /// Record versions kept for snapshots, and those that somebody may still look at.
    pub versions: u64,
    /// Bytes of those versions.
    pub version_bytes: u64,
    /// Deleted records that snapshots may still need.
    pub deleted_records: u64,
    /// The most attempts that one request took; 0 when each has committed at its first. Those that only found no memory do not count.
    pub attempts_max: u64,
}

impl TransactionStatistics {
    /// Aborts of all reasons.
    #[must_use]
    pub fn aborts_total(&self) -> u64 {
        self.aborts.iter().sum()
    }
}

/// A counter with one writer.
#[derive(Debug, Default)]
struct Counter(AtomicU64);

impl Counter {
    #[inline]
    fn add(&self, amount: u64) {
        // Relaxed, and no read-modify-write: one writer; readers want a recent value only.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
    }

    fn subtract(&self, amount: u64) {
        self.add(amount.wrapping_neg());
    }

    fn raise_to(&self, value: u64) {
        self.add(value.saturating_sub(self.get()));
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
