//! Noting what a transaction read and wrote, for variants that record their history.

use ensilo_engine::history::{
    RecordedRange, RecordedRead, RecordedRemovals, RecordedWrite, TransactionRecord,
};
use ensilo_engine::{Committed, TableId, Tid};
use ensilo_epoch::Epoch;

use super::context::Context;
use super::write_set::RecordChange;
use crate::record::RecordPtr;
use crate::tid::TidWord;

impl Context {
    /// Notes that a key is missing from its tree: its last deletion was read, if there was one.
    pub(super) fn record_missing(&mut self, removals: &RecordedRemovals, store: TableId, key: &[u8]) {
        if !self.record_removed(removals, store, key) {
            self.recording.missing.push((store, key.into()));
        }
    }

    /// Notes that the last deletion of a key was read, if there was one that has left the tree.
    pub(super) fn record_removed(&mut self, removals: &RecordedRemovals, store: TableId, key: &[u8]) -> bool {
        let removed = removals.last((store, key.into()));
        let is_known = removed.is_some();
        self.recording.reads.extend(removed);
        is_known
    }

    /// Notes a range that was read, and the deletions in it that have left the tree, but for the keys `met` that have not.
    pub(super) fn record_range(
        &mut self,
        removals: &RecordedRemovals,
        range: RecordedRange,
        met: &[Box<[u8]>],
    ) {
        self.recording.reads.extend(removals.in_range(&range, met));
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

    /// Notes the stores of all that was read, before the transaction is no longer pinned: without registration, deleted records that it has
    /// read may be freed before its decision.
    pub(super) fn record_prepared(&mut self) {
        self.prepared_reads = self.reads.iter().map(|read| read.record.store()).collect();
    }

    /// Completes the record of a read-write transaction.
    pub(super) fn record_commit(&mut self, committed: Committed) {
        let noted = std::mem::take(&mut self.recording);
        let stores = std::mem::take(&mut self.prepared_reads);
        let reads = self.reads.iter().enumerate().map(|(at, read)| {
            let store = stores.get(at).copied().unwrap_or_else(|| read.record.store());
            recorded_read(store, self.key(read.key), read.word)
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
