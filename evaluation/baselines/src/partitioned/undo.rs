//! How a transaction of a partition takes back what it has done.

use crate::handle::BaselineHandle;
use crate::record::Record;

/// What one step has done, and what takes it back.
#[derive(Debug)]
pub(super) enum Undo {
    /// Word `index` was overwritten.
    Word { record: Record, index: u32, before: u64 },
    /// The row was overwritten; its words stand in the log from `start` on.
    Row { record: Record, start: usize, len_bytes: u32 },
    /// The record was put into the tree, by the handle's key.
    Inserted(BaselineHandle),
    /// The record was marked.
    Deleted(BaselineHandle),
    /// The mark was taken off again, because the key was inserted anew.
    Revived(Record),
    /// The record moved.
    Moved { from: BaselineHandle, to: Record },
}

/// What the running transaction has done, in order.
#[derive(Debug, Default)]
pub struct UndoLog {
    steps: Vec<Undo>,
    /// Words as they were before.
    words: Vec<u64>,
}

impl UndoLog {
    #[inline]
    pub(super) fn push(&mut self, undo: Undo) {
        self.steps.push(undo);
    }

    pub(super) fn pop(&mut self) -> Option<Undo> {
        self.steps.pop()
    }

    pub(super) fn steps(&self) -> &[Undo] {
        &self.steps
    }

    /// Overwrites the row, and keeps what it was.
    pub(super) fn overwrite(&mut self, record: Record, row: &[u64], len_bytes: usize) {
        let before = record.row();
        let start = self.words.len();
        before.copy_to(&mut self.words);
        self.push(Undo::Row { record, start, len_bytes: before.len_bytes() as u32 });
        record.store_row(row.iter().copied(), len_bytes);
    }

    pub(super) fn restore_row(&self, record: Record, start: usize, len_bytes: u32) {
        let len_bytes = len_bytes as usize;
        record.store_row(self.words[start..][..len_bytes.div_ceil(8)].iter().copied(), len_bytes);
    }

    pub(super) fn clear(&mut self) {
        self.steps.clear();
        self.words.clear();
    }
}
