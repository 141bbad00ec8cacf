//! What the workers of a replay leave to do until its end.

use std::collections::VecDeque;

use ensilo_engine::TableId;
use ensilo_epoch::Epoch;

use super::chain::ChainMemory;
use super::list_memory::ListMemory;
use super::touched::TouchedRecords;
use crate::record::RecordPtr;
use crate::silo::Garbage;

/// What a worker leaves to do until everything is replayed, and what it has counted.
#[derive(Default)]
pub(super) struct Leftover {
    /// Records with pending words, and such of them that others have replaced since. Each list is that of one of them.
    pub(super) pending: VecDeque<PendingRecord>,
    /// Where lists of pending words come from.
    pub(super) memory: ListMemory,
    /// Where entries of chains come from.
    pub(super) chains: ChainMemory,
    /// All writes of epochs before it were applied.
    pub(super) floor: Epoch,
    /// Records whose links lead to something.
    pub(super) touched: TouchedRecords,
    /// Records that others have replaced, and that workers may remember; a replay that fails leaves them where they are.
    pub(super) superseded: Vec<RecordPtr>,
    /// Keys that this worker deleted.
    pub(super) tombstones: Vec<(TableId, Box<[u8]>)>,
    /// Records outside of slabs that longer ones have replaced; a replay that fails leaves them where they are.
    pub(super) garbage: Garbage,
    /// Rows by store, as the difference that this worker made.
    pub(super) rows: Vec<i64>,
    /// Whether the last row that this worker has put had none before it.
    pub(super) puts_are_new: bool,
    /// See [`crate::Fault::ForgetTombstones`].
    pub(super) forgets_tombstones: bool,
}

/// A record that has pending words.
pub(super) struct PendingRecord {
    pub(super) record: RecordPtr,
    /// The epoch of its latest word, as known when the record was put here.
    pub(super) epoch: Epoch,
}

impl Leftover {
    pub(super) fn push_pending(&mut self, record: RecordPtr, epoch: Epoch) {
        self.pending.push_back(PendingRecord { record, epoch });
    }

    pub(super) fn count_row(&mut self, table: TableId, difference: i64) {
        let at = table.0 as usize;
        if self.rows.len() <= at {
            self.rows.resize(at + 1, 0);
        }
        self.rows[at] += difference;
    }
}

impl Drop for Leftover {
    /// No record keeps a link to memory that is gone; after a replay that has ended well none has one.
    fn drop(&mut self) {
        self.touched.abandon();
    }
}
