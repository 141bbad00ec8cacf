//! Own writes whose records have left the tree.
//!
//! A transaction finds what it has written by the record that it wrote to. Another transaction may commit in between and put a larger row's
//! record into that one's place, or delete the row, whose record then leaves the tree. The writer cannot commit any more; but until it
//! finds that out it would read the other's row, or none, where it has written its own. So a read that may have come upon such a key
//! looks for it among the keys that were written, and ends the attempt if it is one.
//!
//! What may be such a key:
//! - a record that is not the transaction's own, with a version of the epoch in which the transaction began, or of a later one, or with
//!   none yet: others have come into the tree before;
//! - a key that is missing, or not in a range that was read, if a deletion can have left the tree since: the snapshot horizon has passed
//!   the beginning of the transaction, or it has written over a record that was deleted before.

use std::hash::{DefaultHasher, Hash, Hasher};

use ensilo_engine::{Abort, AbortReason, TableId, Tid};
use ensilo_epoch::{Epoch, Guard};

use super::buffer::Buffer;
use super::context::{Context, WALKED_MAX};
use crate::pointer_map::PointerMap;
use crate::tid::TidWord;

/// What a transaction keeps to find lost writes.
#[derive(Debug)]
pub(super) struct LostWrites {
    /// Positions of writes by the hash of store and key, kept once they are more than [`WALKED_MAX`] and somebody has asked.
    keys: PointerMap,
    /// How many writes are in the map.
    mapped: usize,
    /// Positions of writes over records that were deleted before: these may leave the tree at any time.
    revived: Buffer<u32>,
    /// At this snapshot horizon the records of all writes were as they were seen.
    checked_at: Epoch,
}

impl LostWrites {
    pub(super) fn new() -> Self {
        let (keys, revived) = (PointerMap::default(), Buffer::new());
        LostWrites { keys, mapped: 0, revived, checked_at: Epoch::new(0) }
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.mapped = 0;
        self.revived.clear();
        self.checked_at = Epoch::new(0);
    }
}

impl Context {
    /// Notes that the last write is an insert over a deleted record.
    pub(super) fn note_revived(&mut self) -> Result<(), Abort> {
        self.lost.revived.push(self.writes.end() - 1, &mut self.held).map(|_| ())
    }

    /// Whether a record with this version, which is not one of this transaction's own writes, may stand in the place of one that is. The
    /// transaction began in epoch `began`.
    #[inline]
    pub(super) fn may_hide_write(&self, word: TidWord, began: Epoch) -> bool {
        !self.writes.is_empty() && (word.tid().epoch() >= began || word.tid() == Tid::ZERO)
    }

    /// Whether a key that is missing from the tree may be one that this transaction has written.
    #[inline]
    pub(super) fn may_miss_write(&self, guard: &Guard<'_>) -> bool {
        !self.writes.is_empty() && (!self.lost.revived.is_empty() || has_horizon_passed(guard))
    }

    /// Whether this transaction has written the key.
    #[cold]
    pub(super) fn has_written(&mut self, store: TableId, key: &[u8]) -> Result<bool, Abort> {
        if self.writes.len() <= WALKED_MAX {
            return Ok((0..self.writes.len()).any(|at| self.is_key_of(at, store, key)));
        }
        self.map_keys()?;
        let at = self.lost.keys.get(hash_of(store, key));
        Ok(at.is_some_and(|at| self.is_key_of(at as usize, store, key)))
    }

    /// Puts the keys of the writes into the map that came since the last time.
    fn map_keys(&mut self) -> Result<(), Abort> {
        let Context { writes, keys, lost, held, .. } = self;
        held.add(lost.keys.growth_bytes(writes.len() - lost.mapped))?;
        for (at, write) in (lost.mapped as u32..).zip(&writes[lost.mapped..]) {
            let hash = hash_of(write.record.table(), write.key.of(keys));
            if lost.keys.get(hash).is_none() {
                lost.keys.insert(hash, at);
            }
        }
        lost.mapped = writes.len();
        Ok(())
    }

    fn is_key_of(&self, at: usize, store: TableId, key: &[u8]) -> bool {
        let write = &self.writes[at];
        self.key(write.key) == key && write.record.table() == store
    }

    /// After a range was read: whether the records of own writes are still where they were. A deletion that is seen here and has not
    /// left the tree ends the attempt as well; it could not commit.
    #[inline]
    pub(super) fn check_writes_in_place(&mut self, guard: &Guard<'_>) -> Result<(), Abort> {
        if self.may_miss_write(guard) { self.find_lost_write(guard) } else { Ok(()) }
    }

    #[cold]
    fn find_lost_write(&mut self, guard: &Guard<'_>) -> Result<(), Abort> {
        let horizon = guard.epochs().snapshot_horizon();
        // What changes after such a look leaves the tree only when the horizon has moved on.
        let is_checked = horizon <= self.lost.checked_at || !has_horizon_passed(guard);
        if is_checked {
            return self.lost.revived.iter().try_for_each(|&at| self.check_in_place(at as usize));
        }
        (0..self.writes.len()).try_for_each(|at| self.check_in_place(at))?;
        self.lost.checked_at = horizon;
        Ok(())
    }

    fn check_in_place(&self, at: usize) -> Result<(), Abort> {
        let write = &self.writes[at];
        if write.record.tid().unlocked() == write.observed {
            return Ok(());
        }
        Err(self.abort_at(AbortReason::ReadValidation, write.record, write.key))
    }
}

/// Whether records that were deleted since the transaction began can have left the tree.
#[inline]
fn has_horizon_passed(guard: &Guard<'_>) -> bool {
    let epochs = guard.epochs();
    epochs.snapshot_horizon() > epochs.snapshot_of(guard.epoch())
}

fn hash_of(store: TableId, key: &[u8]) -> usize {
    let mut hasher = DefaultHasher::new();
    (store, key).hash(&mut hasher);
    hasher.finish() as usize
}
