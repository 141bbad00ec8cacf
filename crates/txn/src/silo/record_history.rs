//! Noting what a transaction read and wrote, for variants that record their history.

use std::ops::Bound;

use ensilo_engine::history::{RecordedRange, RecordedRead, RecordedWrite, TransactionRecord};
use ensilo_engine::{Committed, Direction, KeyBounds, TableId, Tid};
use ensilo_epoch::Epoch;

use super::context::Context;
use super::write_set::RecordChange;
use crate::record::RecordPtr;
use crate::tid::TidWord;

impl Context {
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
        let writes = self.writes.iter().filter(|write| !matches!(write.change, RecordChange::Cancelled));
        let writes: Vec<_> = writes
            .map(|write| RecordedWrite {
                key: (write.record.store(), self.key(write.key).into()),
                is_absent: matches!(write.change, RecordChange::Delete),
            })
            .collect();
        let tid = if writes.is_empty() { Tid::ZERO } else { committed.tid };
        let record = TransactionRecord {
            tid,
            epoch: committed.epoch,
            is_snapshot: false,
            reads: reads.collect(),
            writes,
            ..noted
        };
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
