//! Partitioned-Store: transactions that have what they touch to themselves, and do without concurrency control.
//!
//! # Source
//! Silo (SOSP 2013) §5.4, after H-Store: a transaction reads and writes records at once, in place. What it has changed it notes,
//! to take it back should it be rolled back. Where we deviate: the trees are the same as Silo's and keep their own concurrency control, so
//! that any number of partitions may share one, and the inserts of a load need no locks. It costs an uncontended lock for each insert and two looks
//! at a node's version for each look-up.
//!
//! # What it does not do
//! **Transactions are not isolated from each other**: the caller sees to it that no two at a time touch the same partition, by one
//! lock for each partition, taken in order before the transaction begins. Without, nothing that a transaction does is consistent; memory
//! stays safe, because rows are read and written by relaxed atomic words and what leaves a tree is retired. There are no snapshots and
//! there is no log.
//!
//! # Terms
//! - *moved*: said of a record when its row has outgrown it; its state is the address of the record that has the row now.
//! - A deleted record stays in its tree, marked by its state, until its transaction commits.

mod state;
mod undo;

use ensilo_engine::{Abort, RowRef};
use ensilo_epoch::{Epoch, Guard};

use crate::handle::BaselineHandle;
use crate::record::{Record, new_record};
use crate::store::{Insertion, Store};
use crate::transaction::{BaselineTransaction, Protocol};
use state::{DELETED, PRESENT, moved_to, present, set_state, state};
use undo::{Undo, UndoLog};

/// Transactions of a partitioned store.
#[derive(Debug)]
pub struct Partitions;

type PartitionTransaction<'s> = BaselineTransaction<'s, Partitions>;

impl Protocol for Partitions {
    const IS_TRANSACTIONAL: bool = true;

    type Undo = UndoLog;

    #[inline]
    fn resolve(_: &Store, _: &[u8], value: u64, _: &Guard<'_>) -> Option<Record> {
        present(value)
    }

    #[inline]
    fn read_row<R>(record: Record, mut decode: impl FnMut(RowRef<'_>) -> R) -> R {
        // It has no TID, and so no epoch.
        decode(record.row().committed_in(Epoch::MAX))
    }

    #[inline]
    fn successor(_: &PartitionTransaction<'_>, found: BaselineHandle) -> Record {
        let record = moved_to(found.record);
        assert!(state(record) != DELETED, "a record is used that the same transaction has deleted");
        record
    }

    #[inline]
    fn patch(
        tx: &mut PartitionTransaction<'_>,
        found: BaselineHandle,
        words: &[(u32, u64)],
    ) -> Result<(), Abort> {
        let record = Self::successor(tx, found);
        let row = record.row();
        for &(index, word) in words {
            assert!((index as usize) < row.len_words(), "a patch outside the row");
            let before = row.word(index as usize);
            tx.memory.undo.push(Undo::Word { record, index, before });
            record.store_word(index as usize, word);
        }
        Ok(())
    }

    fn put(
        tx: &mut PartitionTransaction<'_>,
        found: BaselineHandle,
        row: (&[u64], usize),
    ) -> Result<(), Abort> {
        let found = BaselineHandle { record: Self::successor(tx, found), ..found };
        write_row(tx, found, row)
    }

    fn insert(
        tx: &mut PartitionTransaction<'_>,
        store: &Store,
        key: &[u8],
        row: (&[u64], usize),
    ) -> Result<bool, Abort> {
        match store.insert(key, row, PRESENT, &tx.guard)? {
            Insertion::New(record) => {
                let found = tx.memory.found.push(record, key);
                tx.memory.undo.push(Undo::Inserted(found));
                Ok(true)
            }
            Insertion::Existing(record) if state(record) != DELETED => Ok(false),
            Insertion::Existing(record) => {
                set_state(record, PRESENT);
                tx.memory.undo.push(Undo::Revived(record));
                let found = tx.memory.found.push(record, key);
                write_row(tx, found, row).map(|()| true)
            }
        }
    }

    fn delete(tx: &mut PartitionTransaction<'_>, found: BaselineHandle) -> Result<(), Abort> {
        let record = Self::successor(tx, found);
        set_state(record, DELETED);
        tx.memory.undo.push(Undo::Deleted(BaselineHandle { record, ..found }));
        Ok(())
    }

    /// Frees what the transaction has deleted and what has moved.
    fn complete(tx: &mut PartitionTransaction<'_>) {
        for undo in tx.memory.undo.steps() {
            match *undo {
                // One that was revived and deleted again stands here twice: the second time it has left the tree.
                Undo::Deleted(found) if state(found.record) == DELETED => take_out(tx, found),
                // SAFETY: it left the tree when it moved.
                Undo::Moved { from, .. } => unsafe { from.record.retire(&tx.guard) },
                _ => {}
            }
        }
        tx.memory.undo.clear();
    }

    /// Takes back what was done, the last first.
    #[cold]
    fn take_back(tx: &mut PartitionTransaction<'_>) {
        while let Some(undo) = tx.memory.undo.pop() {
            match undo {
                Undo::Word { record, index, before } => record.store_word(index as usize, before),
                Undo::Row { record, start, len_bytes } => {
                    tx.memory.undo.restore_row(record, start, len_bytes)
                }
                Undo::Inserted(found) => take_out(tx, found),
                Undo::Deleted(found) => set_state(found.record, PRESENT),
                Undo::Revived(record) => set_state(record, DELETED),
                Undo::Moved { from, to } => move_back(tx, from, to),
            }
        }
        tx.memory.undo.clear();
    }
}

/// Writes a row over that of a record, or gives it another record.
fn write_row(
    tx: &mut PartitionTransaction<'_>,
    found: BaselineHandle,
    (row, len_bytes): (&[u64], usize),
) -> Result<(), Abort> {
    if !found.record.fits(len_bytes) {
        return move_row(tx, found, (row, len_bytes));
    }
    tx.memory.undo.overwrite(found.record, row, len_bytes);
    Ok(())
}

/// Gives a row that has outgrown its record another one.
fn move_row(
    tx: &mut PartitionTransaction<'_>,
    from: BaselineHandle,
    row: (&[u64], usize),
) -> Result<(), Abort> {
    let (store, key) = tx.place_of(from);
    let to = new_record(&tx.guard, from.record.store(), key, row, PRESENT)?;
    let (old, new) = (from.record.index_value(), to.index_value());
    assert!(store.index().replace(key, old, new, &tx.guard), "the partition belongs to this transaction");
    set_state(from.record, new);
    tx.memory.undo.push(Undo::Moved { from, to });
    Ok(())
}

fn move_back(tx: &PartitionTransaction<'_>, from: BaselineHandle, to: Record) {
    set_state(from.record, PRESENT);
    let (store, key) = tx.place_of(from);
    if store.index().replace(key, to.index_value(), from.record.index_value(), &tx.guard) {
        // SAFETY: it has just left the tree, by the hand of the one that put it there.
        unsafe { to.retire(&tx.guard) };
    }
}

/// Takes a record out of the tree, if it is there.
fn take_out(tx: &PartitionTransaction<'_>, found: BaselineHandle) {
    let (store, key) = tx.place_of(found);
    store.take_out(key, found.record, &tx.guard);
}
