//! How a transaction of a partition ends: it frees what it has deleted, or takes back what it has done.

use ensilo_engine::AbortReason;

use super::{Context, DELETED, PRESENT, PartitionTransaction, set_state, state};
use crate::found_keys::Found;
use crate::record::Record;

/// What one step has done, and what takes it back.
#[derive(Debug)]
pub(super) enum Undo {
    /// Word `index` was overwritten.
    Word { record: Record, index: u32, before: u64 },
    /// The row was overwritten; its words stand in the context from `start` on.
    Row { record: Record, start: usize, len_bytes: u32 },
    /// The record was put into the tree, by the handle's key.
    Inserted(Found),
    /// The record was marked.
    Deleted(Found),
    /// The mark was taken off again, because the key was inserted anew.
    Revived(Record),
    /// The record moved.
    Moved { from: Found, to: Record },
}

impl Context {
    /// Overwrites the row, and keeps what it was.
    pub(super) fn overwrite(&mut self, record: Record, row: &[u64], len_bytes: usize) {
        let before = record.row();
        let start = self.words.len();
        before.copy_to(&mut self.words);
        self.undo.push(Undo::Row { record, start, len_bytes: before.len_bytes() as u32 });
        record.store_row(row, len_bytes);
    }

    fn restore_row(&self, record: Record, start: usize, len_bytes: usize) {
        record.store_row(&self.words[start..][..len_bytes.div_ceil(8)], len_bytes);
    }

    fn clear(&mut self) {
        self.found.clear();
        self.undo.clear();
        self.words.clear();
        self.is_open = false;
    }
}

impl PartitionTransaction<'_> {
    /// Frees what the transaction has deleted and what has moved.
    pub(super) fn complete(&mut self) {
        for at in 0..self.context.undo.len() {
            match self.context.undo[at] {
                // One that was revived and deleted again stands here twice: the second time it has left the tree.
                Undo::Deleted(found) if state(found.record) == DELETED => self.take_out(found),
                // SAFETY: it left the tree when it moved.
                Undo::Moved { from, .. } => unsafe { from.record.retire(&self.guard) },
                _ => {}
            }
        }
        self.context.clear();
    }

    /// Takes a record out of the tree, if it is there.
    fn take_out(&self, Found { record, entry, .. }: Found) {
        let key = self.context.found.of(entry);
        self.stores.of(record).take_out(key, record, &self.guard);
    }

    /// Takes back what was done, the last first.
    #[cold]
    fn take_back(&mut self) {
        while let Some(undo) = self.context.undo.pop() {
            match undo {
                Undo::Word { record, index, before } => record.store_word(index as usize, before),
                Undo::Row { record, start, len_bytes } => {
                    self.context.restore_row(record, start, len_bytes as usize);
                }
                Undo::Inserted(found) => self.take_out(found),
                Undo::Deleted(found) => set_state(found.record, PRESENT),
                Undo::Revived(record) => set_state(record, DELETED),
                Undo::Moved { from, to } => self.move_back(from, to),
            }
        }
        self.context.clear();
    }

    fn move_back(&self, from: Found, to: Record) {
        set_state(from.record, PRESENT);
        let (store, key) = (self.stores.of(to), self.context.found.of(from.entry));
        if store.index().replace(key, to.index_value(), from.record.index_value(), &self.guard) {
            // SAFETY: it has just left the tree, by the hand of the one that put it there.
            unsafe { to.retire(&self.guard) };
        }
    }
}

impl Drop for PartitionTransaction<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.context.is_open {
            self.take_back();
            self.counters.count_abort(AbortReason::User);
        }
    }
}
