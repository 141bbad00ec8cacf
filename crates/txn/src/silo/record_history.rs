//! Noting what a transaction read and wrote, for variants that record their history.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::PoisonError;

use ensilo_engine::history::{RecordKey, RecordedRange, RecordedRead, RecordedWrite, TransactionRecord};
use ensilo_engine::{Committed, Direction, KeyBounds, TableId, Tid};
use ensilo_epoch::Epoch;
use ensilo_index::Removal;
use ensilo_sync::sync::{Mutex, MutexGuard};

use super::context::Context;
use super::write_set::RecordChange;
use crate::record::RecordPtr;
use crate::tid::TidWord;

/// The deletions that have left their trees, one a key. A tree without the key does not say which of them a transaction reads, when that
/// may be one of its own epoch.
#[derive(Debug, Default)]
pub(crate) struct RecordedRemovals(Mutex<BTreeMap<RecordKey, Tid>>);

impl RecordedRemovals {
    /// Takes a deletion out of its tree by `remove`, and notes it. What misses the key in the tree afterwards, and asks here then, learns
    /// of it.
    pub(super) fn note(&self, key: RecordKey, tid: Tid, remove: impl FnOnce() -> Removal) -> Removal {
        let mut removals = self.lock();
        let removal = remove();
        if matches!(removal, Removal::Done | Removal::KeptLayer(_)) && tid != Tid::ZERO {
            removals.insert(key, tid);
        }
        removal
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RecordKey, Tid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Context {
    /// Notes that a key is missing from its tree: its last deletion was read, if there was one.
    pub(super) fn record_missing(&mut self, removals: &RecordedRemovals, store: TableId, key: &[u8]) {
        if !self.record_removed(removals, store, key) {
            self.recording.missing.push((store, key.into()));
        }
    }

    /// Notes that the last deletion of a key was read, if there was one that has left the tree.
    pub(super) fn record_removed(&mut self, removals: &RecordedRemovals, store: TableId, key: &[u8]) -> bool {
        let key = (store, Box::from(key));
        let removed = removals.lock().get(&key).copied();
        self.recording.reads.extend(removed.map(|version| RecordedRead { key, version, is_absent: true }));
        removed.is_some()
    }

    /// Notes a range that was read, and the deletions in it that have left the tree, but for the keys `met` that have not.
    pub(super) fn record_range(
        &mut self,
        removals: &RecordedRemovals,
        range: RecordedRange,
        met: &[Box<[u8]>],
    ) {
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
        let removals = removals.lock();
        let from_low = removals.range((low, Bound::Unbounded));
        let in_range = from_low.take_while(|((table, key), _)| *table == range.table && is_within(key));
        let removed = in_range.filter(|((_, key), _)| !met.contains(key));
        let reads =
            removed.map(|(key, &version)| RecordedRead { key: key.clone(), version, is_absent: true });
        self.recording.reads.extend(reads);
        drop(removals);
        self.recording.ranges.push(range);
    }

    /// Notes a read of a snapshot transaction; those of others stand in the read set.
    pub(super) fn record_read(&mut self, record: RecordPtr, key: &[u8], word: TidWord) {
        self.recording.reads.push(recorded_read(record.store(), key, word));
    }

    /// Completes the record of a snapshot transaction.
    pub(super) fn record_snapshot(&mut self, epoch: Epoch) {
        let noted = std::mem::take(&mut self.recording);
        self.history.push(TransactionRecord { tid: Tid::ZERO, epoch, is_snapshot: true, ..noted });
    }

    /// Completes the record of a read-write transaction.
    pub(super) fn record_commit(&mut self, committed: Committed) {
        let noted = std::mem::take(&mut self.recording);
        let reads = self.reads.iter().map(|read| {
            let key = self.key(read.key);
            recorded_read(read.record.store(), key, read.word)
        });
        // In place of a placeholder, the deletion before it if there was one.
        let is_known = |read: &RecordedRead| {
            read.version != Tid::ZERO || noted.reads.iter().all(|removed| removed.key != read.key)
        };
        let reads: Vec<_> = reads.filter(is_known).chain(noted.reads.iter().cloned()).collect();
        let writes = self.writes.iter().filter(|write| !matches!(write.change, RecordChange::Cancelled));
        let writes: Vec<_> = writes
            .map(|write| RecordedWrite {
                key: (write.record.store(), self.key(write.key).into()),
                is_absent: matches!(write.change, RecordChange::Delete),
            })
            .collect();
        let tid = if writes.is_empty() { Tid::ZERO } else { committed.tid };
        let record =
            TransactionRecord { tid, epoch: committed.epoch, is_snapshot: false, reads, writes, ..noted };
        self.history.push(record);
    }
}

fn recorded_read(table: TableId, key: &[u8], word: TidWord) -> RecordedRead {
    RecordedRead { key: (table, key.into()), version: word.tid(), is_absent: word.is_absent() }
}

/// Returns the part of `bounds` that a scan has seen which stopped at `stopped_at`, or all of it.
pub(super) fn recorded_range(
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
