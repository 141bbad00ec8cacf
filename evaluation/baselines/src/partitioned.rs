//! Partitioned-Store: transactions that have what they touch to themselves, and do without concurrency control.
//!
//! # Source
//! Silo (SOSP 2013) §5.4, after H-Store: a transaction reads and writes records at once, in place. What it has changed it notes, to take it
//! back should it be rolled back. Where we deviate: the trees are the same as Silo's and keep their own concurrency control, so that any
//! number of partitions may share one, and the inserts of a load need no locks. It costs an uncontended lock for each insert and two looks
//! at a node's version for each look-up.
//!
//! # What it does not do
//! **Transactions are not isolated from each other**: whoever runs them sees to it that no two at a time touch the same partition, by one
//! lock for each partition, taken in order before the transaction begins. Without, nothing that a transaction does is consistent; memory
//! stays safe, because rows are read and written by relaxed atomic words and whatever leaves a tree is retired. There are no snapshots and
//! there is no log.
//!
//! # Terms
//! - *moved*: said of a record whose row has outgrown it; its state is the address of the record that has the row now.
//! - A deleted record stays in its tree, marked by its state, until its transaction commits.

mod undo;

use std::ops::ControlFlow;

use ensilo_engine::{
    Abort, Committed, Direction, KeyBounds, NeverPrepared, Read, RowRef, Tid, WorkerCounters, Write,
};
use ensilo_epoch::{Epoch, ExclusiveGuard};
use ensilo_index::{Lookup, NodeStamp, ScanVisitor};
use ensilo_sync::atomic::Ordering;

use crate::engine::Protocol;
use crate::found_keys::{Found, FoundKeys};
use crate::record::Record;
use crate::store::{Insertion, Store, Stores};
use undo::Undo;

/// The state of every record that there is.
const PRESENT: u64 = 0;
/// The state of a record that the running transaction has deleted. An address is larger.
const DELETED: u64 = 1;

/// Transactions of a partitioned store.
#[derive(Debug)]
pub struct Partitions;

/// What a session keeps: what the running transaction has found, and how to take back what it has done.
#[derive(Debug, Default)]
pub struct Context {
    found: FoundKeys,
    undo: Vec<Undo>,
    /// Words as they were before.
    words: Vec<u64>,
    lookups: Vec<Option<Lookup>>,
    is_open: bool,
}

/// A transaction that has what it touches to itself.
#[derive(Debug)]
pub struct PartitionTransaction<'s> {
    stores: &'s Stores,
    guard: ExclusiveGuard<'s>,
    context: &'s mut Context,
    counters: &'s WorkerCounters,
}

impl Protocol for Partitions {
    const IS_TRANSACTIONAL: bool = true;

    type Context = Context;
    type Transaction<'s> = PartitionTransaction<'s>;

    #[inline]
    fn begin<'s>(
        stores: &'s Stores,
        guard: ExclusiveGuard<'s>,
        context: &'s mut Context,
        counters: &'s WorkerCounters,
    ) -> PartitionTransaction<'s> {
        context.is_open = true;
        PartitionTransaction { stores, guard, context, counters }
    }
}

#[inline]
fn state(record: Record) -> u64 {
    // Acquire: whoever comes upon the record without having it to itself finds what was written before its state.
    record.state().load(Ordering::Acquire)
}

#[inline]
fn set_state(record: Record, state: u64) {
    // Release: as in `state`.
    record.state().store(state, Ordering::Release);
}

/// The record that has the row of this one now.
#[inline]
fn moved_to(mut record: Record) -> Record {
    loop {
        match state(record) {
            PRESENT | DELETED => return record,
            // SAFETY: any other state is the address of a record that is retired only when this one no longer leads to it or is retired too.
            address => record = unsafe { Record::from_index_value(address) },
        }
    }
}

/// The record that an entry of a tree leads to, unless it is deleted.
#[inline]
fn present(value: u64) -> Option<Record> {
    // SAFETY: a value of a store's tree is a record, read while the transaction is pinned.
    let record = unsafe { Record::from_index_value(value) };
    (state(record) != DELETED).then_some(record)
}

impl PartitionTransaction<'_> {
    #[inline]
    fn lookup(&self, store: &Store, key: &[u8]) -> Option<Record> {
        match store.index().get(key, &self.guard) {
            Lookup::Found(value) => present(value),
            Lookup::Missing(_) => None,
        }
    }
}

impl Read for PartitionTransaction<'_> {
    type Store = Store;
    type Found = Found;

    #[inline]
    fn has_found(&self, found: Found) -> bool {
        self.context.found.has(found)
    }

    #[inline]
    fn find(&mut self, store: &Store, key: &[u8]) -> Result<Option<Found>, Abort> {
        store.check()?;
        let record = self.lookup(store, key);
        Ok(record.map(|record| self.context.found.push(record, key)))
    }

    fn find_many<K: AsRef<[u8]>>(
        &mut self,
        store: &Store,
        keys: &[K],
        mut each: impl FnMut(usize, Option<Found>),
    ) -> Result<(), Abort> {
        store.check()?;
        let Context { found, lookups, .. } = &mut *self.context;
        lookups.clear();
        lookups.resize(keys.len(), None);
        store.index().get_many(keys, &self.guard, |at, lookup| lookups[at] = Some(lookup));
        for (at, (key, lookup)) in keys.iter().zip(lookups).enumerate() {
            let record = match lookup {
                Some(Lookup::Found(value)) => present(*value),
                _ => None,
            };
            each(at, record.map(|record| found.push(record, key.as_ref())));
        }
        Ok(())
    }

    #[inline]
    fn read<R>(&mut self, found: Found, mut decode: impl FnMut(RowRef<'_>) -> R) -> Result<R, Abort> {
        self.context.found.refuse_others(found);
        let record = moved_to(found.record);
        assert!(state(record) != DELETED, "a record is read that the same transaction has deleted");
        Ok(decode(record.row()))
    }

    #[inline]
    fn get<R>(
        &mut self,
        store: &Store,
        key: &[u8],
        mut decode: impl FnMut(RowRef<'_>) -> R,
    ) -> Result<Option<R>, Abort> {
        store.check()?;
        Ok(self.lookup(store, key).map(|record| decode(record.row())))
    }

    fn scan<R>(
        &mut self,
        store: &Store,
        bounds: KeyBounds<'_>,
        direction: Direction,
        decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        each: impl FnMut(Found, R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        store.check()?;
        let mut scan = Scan { found: &mut self.context.found, decode, each };
        store.scan(bounds, direction, &self.guard, &mut scan);
        Ok(())
    }
}

/// Visits entries one by one.
struct Scan<'a, D, E> {
    found: &'a mut FoundKeys,
    decode: D,
    each: E,
}

impl<R, D, E> ScanVisitor for Scan<'_, D, E>
where
    D: FnMut(&[u8], RowRef<'_>) -> R,
    E: FnMut(Found, R) -> ControlFlow<()>,
{
    fn node(&mut self, _: NodeStamp) {}

    #[inline]
    fn entry(&mut self, key: &[u8], value: u64) -> ControlFlow<()> {
        let Some(record) = present(value) else { return ControlFlow::Continue(()) };
        let value = (self.decode)(key, record.row());
        (self.each)(self.found.push(record, key), value)
    }
}

impl PartitionTransaction<'_> {
    /// The handle of the record that has the row of a handle's now, and that is to be written.
    fn to_write(&self, found: Found) -> Found {
        let record = moved_to(found.record);
        assert!(state(record) != DELETED, "a deleted record is written");
        Found { record, ..found }
    }

    /// Writes a row over that of a record, or gives it another record.
    fn write_row(&mut self, found: Found, row: &[u64], len_bytes: usize) -> Result<(), Abort> {
        if !found.record.fits(len_bytes) {
            return self.move_row(found, row, len_bytes);
        }
        self.context.overwrite(found.record, row, len_bytes);
        Ok(())
    }

    /// Gives a row that has outgrown its record another one.
    fn move_row(&mut self, from: Found, row: &[u64], len_bytes: usize) -> Result<(), Abort> {
        let (store, key) = (self.stores.of(from.record), self.context.found.of(from.entry));
        let to = Record::new(&self.guard, from.record.store(), key, (row, len_bytes), PRESENT)?;
        let (old, new) = (from.record.index_value(), to.index_value());
        assert!(
            store.index().replace(key, old, new, &self.guard),
            "the partition belongs to this transaction"
        );
        set_state(from.record, new);
        self.context.undo.push(Undo::Moved { from, to });
        Ok(())
    }

    /// Inserts a row where the tree has a record for the key; false when it is present.
    fn insert_over(
        &mut self,
        record: Record,
        key: &[u8],
        row: &[u64],
        len_bytes: usize,
    ) -> Result<bool, Abort> {
        if state(record) != DELETED {
            return Ok(false);
        }
        set_state(record, PRESENT);
        self.context.undo.push(Undo::Revived(record));
        let found = self.context.found.push(record, key);
        self.write_row(found, row, len_bytes).map(|()| true)
    }
}

impl Write for PartitionTransaction<'_> {
    type Prepared = NeverPrepared;

    #[inline]
    fn patch(&mut self, found: Found, words: &[(u32, u64)]) -> Result<(), Abort> {
        self.context.found.refuse_others(found);
        let Found { record, .. } = self.to_write(found);
        let row = record.row();
        for &(index, word) in words {
            assert!((index as usize) < row.len_words(), "a patch outside the row");
            let before = row.word(index as usize);
            self.context.undo.push(Undo::Word { record, index, before });
            record.store_word(index as usize, word);
        }
        Ok(())
    }

    fn put(&mut self, found: Found, row: &[u64], len_bytes: usize) -> Result<(), Abort> {
        self.context.found.refuse_others(found);
        self.write_row(self.to_write(found), row, len_bytes)
    }

    fn insert(&mut self, store: &Store, key: &[u8], row: &[u64], len_bytes: usize) -> Result<bool, Abort> {
        store.check()?;
        match store.insert(key, (row, len_bytes), PRESENT, &self.guard)? {
            Insertion::New(record) => {
                let found = self.context.found.push(record, key);
                self.context.undo.push(Undo::Inserted(found));
                Ok(true)
            }
            Insertion::Existing(record) => self.insert_over(record, key, row, len_bytes),
        }
    }

    fn delete(&mut self, found: Found) -> Result<(), Abort> {
        self.context.found.refuse_others(found);
        let found = self.to_write(found);
        set_state(found.record, DELETED);
        self.context.undo.push(Undo::Deleted(found));
        Ok(())
    }

    #[inline]
    fn commit(mut self) -> Result<Committed, Abort> {
        self.complete();
        self.counters.count_commit();
        Ok(Committed { tid: Tid::ZERO, epoch: Epoch::new(0) })
    }

    fn check(&mut self) -> Result<Epoch, Abort> {
        Ok(Epoch::new(0))
    }
}
