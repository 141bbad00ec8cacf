//! Noting what a transaction read and wrote, for levels that record their history.

use ensilo_engine::history::{RecordedRead, RecordedWrite, TransactionRecord};
use ensilo_engine::{Store as _, TableId, Tid};
use ensilo_epoch::Epoch;

pub(crate) use ensilo_engine::history::RecordedRemovals;

use crate::context::Context;
use crate::isolation::Isolation;
use crate::stamp::Stamp;

/// Every transaction of a history is of this epoch: its stamp says what a checker needs to know.
const EPOCH: Epoch = Epoch::new(1);

impl<I: Isolation> Context<I> {
    /// Notes a version that was read.
    pub(crate) fn record_read(&mut self, table: TableId, key: &[u8], stamp: Stamp, is_absent: bool) {
        let version = stamp.tid();
        self.recording.reads.push(RecordedRead { key: (table, key.into()), version, is_absent });
    }

    /// Notes that a key is missing: its last deletion was read, if one has left the index.
    pub(crate) fn record_missing(&mut self, removals: &RecordedRemovals, table: TableId, key: &[u8]) {
        match removals.last((table, key.into())) {
            Some(removed) => self.recording.reads.push(removed),
            None => self.recording.missing.push((table, key.into())),
        }
    }

    /// The same, unless a version of the key was read that says so.
    pub(crate) fn record_missing_unless_read(
        &mut self,
        removals: &RecordedRemovals,
        table: TableId,
        key: &[u8],
    ) {
        let last = self.recording.reads.last();
        if !last.is_some_and(|read| read.key.0 == table && *read.key.1 == *key) {
            self.record_missing(removals, table, key);
        }
    }

    /// Completes the record of a transaction that has committed.
    pub(crate) fn record_commit(&mut self, stamp: Stamp) {
        let noted = std::mem::take(&mut self.recording);
        let writes: Vec<_> = self
            .writes
            .iter()
            .filter(|write| !write.is_cancelled())
            .map(|write| RecordedWrite {
                // SAFETY: the engine keeps all of its stores.
                key: (unsafe { write.store.as_ref() }.id(), self.key(write.key).into()),
                is_absent: write.version.is_deletion(),
            })
            .collect();
        let tid = if writes.is_empty() { Tid::ZERO } else { stamp.tid() };
        self.history.push(TransactionRecord { tid, epoch: EPOCH, writes, ..noted });
    }
}
