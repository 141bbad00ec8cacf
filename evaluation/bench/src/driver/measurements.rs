//! What one worker counts and times: per transaction type, in memory that no other worker writes.

use ensilo::AbortReason;
use serde::{Deserialize, Serialize};

use super::latencies::Latencies;

/// Why an attempt did not commit, as the report names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbortKind {
    /// A record that was read had changed by the time of the commit.
    ReadValidation,
    /// The set of keys in a range that was read, or of a key that was missing, had changed.
    NodeValidation,
    /// Another transaction held the lock of a record for too long.
    LockHeld,
    /// An insert met a key that exists.
    KeyExists,
    /// A snapshot transaction outlived its snapshot.
    SnapshotTooOld,
    /// The memory limit was reached.
    OutOfMemory,
    /// The transaction asked for its own rollback.
    Rollback,
    /// Anything else.
    Other,
}

impl AbortKind {
    /// Every kind, in the order of reports.
    pub const ALL: [Self; 8] = [
        Self::ReadValidation,
        Self::NodeValidation,
        Self::LockHeld,
        Self::KeyExists,
        Self::SnapshotTooOld,
        Self::OutOfMemory,
        Self::Rollback,
        Self::Other,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadValidation => "read_validation",
            Self::NodeValidation => "node_validation",
            Self::LockHeld => "lock_held",
            Self::KeyExists => "key_exists",
            Self::SnapshotTooOld => "snapshot_too_old",
            Self::OutOfMemory => "out_of_memory",
            Self::Rollback => "rollback",
            Self::Other => "other",
        }
    }
}

impl From<AbortReason> for AbortKind {
    #[inline]
    fn from(reason: AbortReason) -> Self {
        match reason {
            AbortReason::ReadValidation => Self::ReadValidation,
            AbortReason::NodeValidation => Self::NodeValidation,
            AbortReason::LockHeld => Self::LockHeld,
            AbortReason::KeyExists => Self::KeyExists,
            AbortReason::SnapshotTooOld => Self::SnapshotTooOld,
            AbortReason::OutOfMemory => Self::OutOfMemory,
            _ => Self::Other,
        }
    }
}

/// Aborted attempts by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aborts {
    total: u64,
    by_kind: [u64; AbortKind::ALL.len()],
}

impl Aborts {
    /// Counts one aborted attempt.
    #[inline]
    pub fn count(&mut self, kind: AbortKind) {
        self.total += 1;
        self.by_kind[kind as usize] += 1;
    }

    /// How many attempts aborted for `kind`.
    pub fn of(&self, kind: AbortKind) -> u64 {
        self.by_kind[kind as usize]
    }

    /// How many attempts aborted at all.
    #[inline]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        self.total += other.total;
        for (mine, theirs) in self.by_kind.iter_mut().zip(other.by_kind) {
            *mine += theirs;
        }
    }
}

/// Counts and latencies of one transaction type.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct TypeMeasurements {
    /// Requests that committed.
    pub committed: u64,
    /// Attempts that did not, by reason. A request that was retried twice and then committed counts twice here.
    pub aborts: Aborts,
    /// The most of them of a single request.
    pub aborts_of_request_max: u64,
    /// From the start of a request to its end, retries included, of committed and rolled-back requests.
    pub latencies: Latencies,
    /// From the start of a request until it was seen to be stored, of those that had to wait for the disk.
    pub durable_latencies: Latencies,
}

impl TypeMeasurements {
    /// Adds the counts and latencies of `other`.
    pub fn add(&mut self, other: &Self) {
        self.committed += other.committed;
        self.aborts.add(&other.aborts);
        self.aborts_of_request_max = self.aborts_of_request_max.max(other.aborts_of_request_max);
        self.latencies.add(&other.latencies);
        self.durable_latencies.add(&other.durable_latencies);
    }
}

/// Counts and latencies of all transaction types, in the workload's order of types.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measurements {
    types: Vec<TypeMeasurements>,
}

impl Measurements {
    /// Empty measurements of `types` transaction types.
    pub fn new(types: usize) -> Self {
        Self { types: vec![TypeMeasurements::default(); types] }
    }

    /// Counts one finished request of type `transaction`.
    #[inline]
    pub fn record(&mut self, transaction: usize, committed: bool, aborts: &Aborts, latency_ns: u64) {
        let of_type = &mut self.types[transaction];
        of_type.committed += u64::from(committed);
        if aborts.total() > 0 {
            of_type.aborts.add(aborts);
            of_type.aborts_of_request_max = of_type.aborts_of_request_max.max(aborts.total());
        }
        of_type.latencies.record(latency_ns);
    }

    /// Counts how long a committed request of type `transaction` took until it was stored.
    #[inline]
    pub fn record_stored(&mut self, transaction: usize, latency_ns: u64) {
        self.types[transaction].durable_latencies.record(latency_ns);
    }

    /// Forgets everything counted so far, as at the end of the warm-up.
    pub fn clear(&mut self) {
        for of_type in &mut self.types {
            of_type.committed = 0;
            of_type.aborts = Aborts::default();
            of_type.aborts_of_request_max = 0;
            of_type.latencies.clear();
            of_type.durable_latencies.clear();
        }
    }

    /// Adds what another worker counted.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.types.iter_mut().zip(&other.types) {
            mine.add(theirs);
        }
    }

    /// By transaction type.
    pub fn types(&self) -> &[TypeMeasurements] {
        &self.types
    }

    /// Requests that committed.
    pub fn committed(&self) -> u64 {
        self.types.iter().map(|of_type| of_type.committed).sum()
    }

    /// From the start of a request until it was seen to be stored, over all types.
    pub fn durable_latencies(&self) -> Latencies {
        let mut sum = Latencies::new();
        self.types.iter().for_each(|of_type| sum.add(&of_type.durable_latencies));
        sum
    }

    /// Attempts that did not commit, by reason.
    pub fn aborts(&self) -> Aborts {
        let mut sum = Aborts::default();
        self.types.iter().for_each(|of_type| sum.add(&of_type.aborts));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_latencies_add_up_over_workers() {
        let mut one = Measurements::new(2);
        let mut two = Measurements::new(2);
        let mut aborts = Aborts::default();
        one.record(0, true, &aborts, 1_000);
        aborts.count(AbortKind::ReadValidation);
        aborts.count(AbortKind::ReadValidation);
        two.record(0, true, &aborts, 3_000);
        let mut rollback = Aborts::default();
        rollback.count(AbortKind::Rollback);
        two.record(1, false, &rollback, 2_000);
        two.record_stored(0, 5_000_000);
        one.add(&two);
        assert_eq!(one.committed(), 2);
        assert_eq!(one.aborts().total(), 3);
        assert_eq!(one.types().iter().map(|of_type| of_type.aborts_of_request_max).max(), Some(2));
        assert_eq!(one.aborts().of(AbortKind::ReadValidation), 2);
        assert_eq!(one.types()[1].aborts.of(AbortKind::Rollback), 1);
        let p99 = one.types()[0].latencies.quantile_ns(0.99);
        assert!((2_970..=3_030).contains(&p99), "{p99}");
        assert_eq!(one.durable_latencies().count(), 1);
        one.clear();
        assert_eq!((one.committed(), one.aborts().total(), one.types()[0].latencies.count()), (0, 0, 0));
    }

    #[test]
    fn kinds_are_listed_in_the_order_of_their_counters() {
        for (at, kind) in AbortKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, at);
        }
    }
}
