//! What a recording protocol notes of every committed transaction, for a checker to judge.
//!
//! The recorder is a consumer of the commit protocol like the log will be: it gets the TID, the epoch and the table, key
//! and kind of every write at the moment of the commit. It costs nothing unless the protocol's variant turns it on.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::PoisonError;

use ensilo_epoch::Epoch;
use ensilo_sync::sync::{Mutex, MutexGuard};

use crate::key_range::KeyBounds;
use crate::store::TableId;
use crate::tid::Tid;
use crate::transaction::Direction;

/// An encoded key of a store.
pub type RecordKey = (TableId, Box<[u8]>);

/// One committed transaction.
#[derive(Clone, Debug, Default)]
pub struct TransactionRecord {
    /// The TID that its writes carry; [`Tid::ZERO`] when it wrote nothing.
    pub tid: Tid,
    /// The epoch in which it lies in the serial order; of a snapshot transaction the snapshot epoch: it lies
    /// before the first commit of that epoch.
    pub epoch: Epoch,
    /// Whether it read a snapshot: for every key the newest version of an epoch before `epoch`.
    pub is_snapshot: bool,
    /// Records that were read.
    pub reads: Vec<RecordedRead>,
    /// Keys that were not in the tree.
    pub missing: Vec<RecordKey>,
    /// Ranges that were read: what `reads` does not list was not in the tree.
    pub ranges: Vec<RecordedRange>,
    /// Records that were written.
    pub writes: Vec<RecordedWrite>,
}

/// A record that was read: the version, and whether it was a deletion or a placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedRead {
    /// Store and key.
    pub key: RecordKey,
    /// The TID of the version.
    pub version: Tid,
    /// Whether the version says that the key does not exist.
    pub is_absent: bool,
}

/// A range that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedRange {
    /// The store.
    pub table: TableId,
    /// Where the range begins.
    pub low: Bound<Box<[u8]>>,
    /// Where the range ends.
    pub high: Bound<Box<[u8]>>,
}

/// A record that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedWrite {
    /// Store and key.
    pub key: RecordKey,
    /// Whether the write deleted the key.
    pub is_absent: bool,
}

/// The deletions that have left their trees, one a key. A tree without the key does not say which of them a transaction reads, when that
/// may be one of its own epoch.
#[derive(Debug, Default)]
pub struct RecordedRemovals(Mutex<BTreeMap<RecordKey, Tid>>);

impl RecordedRemovals {
    /// Takes a deletion out of its tree by `remove`, which says whether it has, and notes it. What misses the key in the tree afterwards,
    /// and asks here then, learns of it.
    pub fn note<R>(&self, key: RecordKey, tid: Tid, remove: impl FnOnce() -> (bool, R)) -> R {
        let mut removals = self.lock();
        let (is_removed, result) = remove();
        if is_removed && tid != Tid::ZERO {
            removals.insert(key, tid);
        }
        result
    }

    /// Returns the read of the last deletion of a key, if there was one that has left the tree.
    #[must_use]
    pub fn last(&self, key: RecordKey) -> Option<RecordedRead> {
        let version = self.lock().get(&key).copied()?;
        Some(RecordedRead { key, version, is_absent: true })
    }

    /// Returns the reads of the last deletions in a range that have left the tree, but for the keys `met` that have not.
    #[must_use]
    pub fn in_range(&self, range: &RecordedRange, met: &[Box<[u8]>]) -> Vec<RecordedRead> {
        let is_within = |key: &[u8]| match &range.high {
            Bound::Included(high) => key <= &**high,
            Bound::Excluded(high) => key < &**high,
            Bound::Unbounded => true,
        };
        let low = match &range.low {
            Bound::Included(low) => Bound::Included((range.table, low.clone())),
            Bound::Excluded(low) => Bound::Excluded((range.table, low.clone())),
            Bound::Unbounded => Bound::Included((range.table, Box::default())),
        };
        let removals = self.lock();
        let from_low = removals.range((low, Bound::Unbounded));
        let in_range = from_low.take_while(|((table, key), _)| *table == range.table && is_within(key));
        let removed = in_range.filter(|((_, key), _)| !met.contains(key));
        removed.map(|(key, &version)| RecordedRead { key: key.clone(), version, is_absent: true }).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RecordKey, Tid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the part of `bounds` that a scan has seen which stopped at `stopped_at`, or all of it.
#[must_use]
pub fn recorded_range(
    table: TableId,
    bounds: KeyBounds<'_>,
    direction: Direction,
    stopped_at: Option<&[u8]>,
) -> RecordedRange {
    let (low, high) = match (stopped_at, direction) {
        (None, _) => bounds,
        (Some(key), Direction::Forward) => (bounds.0, Bound::Included(key)),
        (Some(key), Direction::Reverse) => (Bound::Included(key), bounds.1),
    };
    RecordedRange { table, low: low.map(Into::into), high: high.map(Into::into) }
}
