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
//! - *moved*: a record whose row has outgrown it; its link leads to the record that has the row now.
//! - A deleted record stays in its tree, marked absent, until its transaction commits.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use ensilo_engine::{
    Abort, AbortReason, Committed, Direction, KeyBounds, NeverPrepared, Read, RowRef, Tid, WorkerCounters,
    Write,
};
use ensilo_epoch::{Epoch, ExclusiveGuard, Participant};
use ensilo_index::{InsertError, Inserted, Lookup, NodeStamp, ScanVisitor};
use ensilo_log::Log;
use ensilo_slab::Pool;

use super::found_keys::FoundKeys;
use crate::engine::Shared;
use crate::protocol::{Found, Protocol};
use crate::record::RecordPtr;
use crate::store::Store;
use crate::tid::TidWord;
use ensilo_engine::history::TransactionRecord;

/// How many blocks of memory one call of the collector frees.
const BUDGET: usize = 64;

/// The word of every record that there is.
const PRESENT: TidWord = TidWord::live(Tid::ZERO);
/// The word of a record that the running transaction has deleted.
const DELETED: TidWord = TidWord::deleted(Tid::ZERO);

/// Transactions of a partitioned store.
#[derive(Debug)]
pub struct Partitioned;

/// What a worker keeps: what the running transaction has found, and how to take back what it has done.
#[derive(Debug, Default)]
pub struct PartitionContext {
    found: FoundKeys,
    undo: Vec<Undo>,
    /// Words as they were before.
    words: Vec<u64>,
    lookups: Vec<Option<Lookup>>,
    counters: Arc<WorkerCounters>,
    is_open: bool,
}

/// What one step has done, and what takes it back.
#[derive(Debug)]
enum Undo {
    /// Word `index` was overwritten.
    Word { record: RecordPtr, index: u32, before: u64 },
    /// The row was overwritten; its words stand in the context from `start` on.
    Row { record: RecordPtr, start: usize, len_bytes: u32 },
    /// The record was put into the tree, by the handle's key.
    Inserted(Found),
    /// The record was marked.
    Deleted(Found),
    /// The mark was taken off again, because the key was inserted anew.
    Revived(RecordPtr),
    /// The record moved.
    Moved { from: Found, to: RecordPtr },
}

/// A transaction that has what it touches to itself.
pub struct PartitionTransaction<'w> {
    shared: &'w Shared,
    guard: ExclusiveGuard<'w>,
    context: &'w mut PartitionContext,
}

impl Protocol for Partitioned {
    const SNAPSHOTS: bool = false;
    const LOGS: bool = false;

    type Context = PartitionContext;
    type Transaction<'w> = PartitionTransaction<'w>;
    type Snapshot<'w> = PartitionTransaction<'w>;

    fn context(_: &Arc<Pool>) -> PartitionContext {
        PartitionContext::default()
    }

    fn counters(context: &PartitionContext) -> &Arc<WorkerCounters> {
        &context.counters
    }

    fn attach_log(_: &mut PartitionContext, _: &Arc<Log>) {
        unreachable!("nothing opens a log for a protocol that does not write it");
    }

    #[inline]
    fn begin<'w>(
        shared: &'w Shared,
        participant: &'w mut Participant,
        context: &'w mut PartitionContext,
    ) -> PartitionTransaction<'w> {
        context.is_open = true;
        PartitionTransaction { shared, guard: participant.pin_exclusively(), context }
    }

    fn begin_snapshot<'w>(
        _: &'w Shared,
        _: &'w Participant,
        _: &'w mut PartitionContext,
    ) -> PartitionTransaction<'w> {
        panic!("a partitioned store has no snapshots");
    }

    fn collect(_: &Shared, participant: &Participant, _: &mut PartitionContext) -> bool {
        participant.collect(BUDGET) < BUDGET
    }

    fn take_history(_: &mut PartitionContext) -> Vec<TransactionRecord> {
        Vec::new()
    }
}

/// The record that has the row of this one now.
#[inline]
fn moved_to(mut record: RecordPtr) -> RecordPtr {
    while !record.tid().is_latest() {
        match record.previous() {
            Some(next) => record = next,
            None => return record,
        }
    }
    record
}

/// The record that an entry of a tree leads to, unless it is deleted.
#[inline]
fn present(value: u64) -> Option<RecordPtr> {
    // SAFETY: a value of a store's tree is a record, read while the transaction is pinned.
    let record = unsafe { RecordPtr::from_index_value(value) };
    (!record.tid().is_absent()).then_some(record)
}

impl PartitionTransaction<'_> {
    #[inline]
    fn lookup(&self, store: &Store, key: &[u8]) -> Option<RecordPtr> {
        match store.index().get(key, &self.guard) {
            Lookup::Found(value) => present(value),
            Lookup::Missing(_) => None,
        }
    }
}

impl Read for PartitionTransaction<'_> {
    type Store = Store;
    type Found = Found;

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
        let PartitionContext { found, lookups, .. } = &mut *self.context;
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
        assert!(!record.tid().is_absent(), "a record is read that the same transaction has deleted");
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

    fn largest_epoch_seen(&self) -> Epoch {
        Epoch::new(0)
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

impl PartitionContext {
    /// Overwrites the row, and keeps what it was.
    fn overwrite(&mut self, record: RecordPtr, row: &[u64], len_bytes: usize) {
        let before = record.row();
        let start = self.words.len();
        before.copy_to(&mut self.words);
        self.undo.push(Undo::Row { record, start, len_bytes: before.len_bytes() as u32 });
        record.store_row(row.iter().copied(), len_bytes);
    }

    fn restore_row(&mut self, record: RecordPtr, start: usize, len_bytes: u32) {
        let len_bytes = len_bytes as usize;
        let words = &self.words[start..][..len_bytes.div_ceil(8)];
        record.store_row(words.iter().copied(), len_bytes);
    }

    fn clear(&mut self) {
        self.found.clear();
        self.undo.clear();
        self.words.clear();
        self.is_open = false;
    }
}

impl PartitionTransaction<'_> {
    /// The record of a handle, which is to be written.
    fn record_to_write(&self, found: Found) -> RecordPtr {
        let record = moved_to(found.record);
        assert!(!record.tid().is_absent(), "a deleted record is written");
        record
    }

    fn store_of(&self, record: RecordPtr) -> Option<&Store> {
        self.shared.stores.store(record.table())
    }

    fn allocate(&self, store: &Store, key: &[u8], row: &[u64], len_bytes: usize) -> Result<RecordPtr, Abort> {
        let record = RecordPtr::allocate(&self.guard, store.id(), len_bytes, PRESENT)
            .map_err(|_| Abort::new(AbortReason::OutOfMemory, store.id(), key))?;
        record.store_row(row.iter().copied(), len_bytes);
        Ok(record)
    }

    /// Gives a row that has outgrown its record another one.
    fn move_row(
        &mut self,
        record: RecordPtr,
        entry: u32,
        row: &[u64],
        len_bytes: usize,
    ) -> Result<(), Abort> {
        let key = self.context.found.of(entry);
        let Some(store) = self.store_of(record) else {
            return Err(Abort::new(AbortReason::StoreDropped, record.table(), key));
        };
        let to = self.allocate(store, key, row, len_bytes)?;
        let is_replaced = store.index().replace(key, record.index_value(), to.index_value(), &self.guard);
        assert!(is_replaced, "the partition belongs to this transaction");
        record.set_previous(Some(to));
        record.set_own_tid(PRESENT.superseded());
        self.context
            .undo
            .push(Undo::Moved { from: Found { record, number: self.context.found.number(), entry }, to });
        Ok(())
    }

    /// Writes a row over that of a record, or gives it another record.
    fn write_row(
        &mut self,
        record: RecordPtr,
        entry: u32,
        row: &[u64],
        len_bytes: usize,
    ) -> Result<(), Abort> {
        if !record.fits(len_bytes) {
            return self.move_row(record, entry, row, len_bytes);
        }
        self.context.overwrite(record, row, len_bytes);
        Ok(())
    }

    /// Inserts a row where the tree has a record for the key; false when it is present.
    fn insert_over(&mut self, value: u64, key: &[u8], row: &[u64], len_bytes: usize) -> Result<bool, Abort> {
        if present(value).is_some() {
            return Ok(false);
        }
        // SAFETY: a value of a store's tree is a record, read while this transaction is pinned.
        let record = unsafe { RecordPtr::from_index_value(value) };
        record.set_own_tid(PRESENT);
        self.context.undo.push(Undo::Revived(record));
        let entry = self.context.found.push(record, key).entry;
        self.write_row(record, entry, row, len_bytes).map(|()| true)
    }

    /// Takes a record out of the tree, and frees it when nobody can reach it any more.
    fn take_out(&self, record: RecordPtr, entry: u32) {
        let key = self.context.found.of(entry);
        let is_removed = self
            .store_of(record)
            .is_some_and(|store| store.index().remove(key, record.index_value(), &self.guard));
        // If not, the store was dropped: its records go with it.
        if is_removed {
            // SAFETY: it has just left the tree, which only the one who took it out is told.
            unsafe { record.retire(&self.guard) };
        }
    }

    /// Frees what the transaction has deleted and what has moved.
    fn complete(&mut self) {
        for at in 0..self.context.undo.len() {
            match self.context.undo[at] {
                Undo::Deleted(found) if found.record.tid().is_absent() => {
                    // One that was revived and deleted again stands here twice: the second time it has left the tree.
                    self.take_out(found.record, found.entry);
                }
                // SAFETY: it left the tree when it moved.
                Undo::Moved { from, .. } => unsafe { from.record.retire(&self.guard) },
                _ => {}
            }
        }
        self.context.clear();
    }

    /// Takes back what was done, the last first.
    #[cold]
    fn take_back(&mut self) {
        while let Some(undo) = self.context.undo.pop() {
            match undo {
                Undo::Word { record, index, before } => record.store_word(index as usize, before),
                Undo::Row { record, start, len_bytes } => self.context.restore_row(record, start, len_bytes),
                Undo::Inserted(found) => self.take_out(found.record, found.entry),
                Undo::Deleted(found) => found.record.set_own_tid(PRESENT),
                Undo::Revived(record) => record.set_own_tid(DELETED),
                Undo::Moved { from, to } => self.move_back(from, to),
            }
        }
        self.context.clear();
    }

    fn move_back(&self, from: Found, to: RecordPtr) {
        from.record.set_own_tid(PRESENT);
        from.record.set_previous(None);
        let key = self.context.found.of(from.entry);
        let (old, new) = (to.index_value(), from.record.index_value());
        if self.store_of(to).is_some_and(|store| store.index().replace(key, old, new, &self.guard)) {
            // SAFETY: it has just left the tree, by the hand of the one that put it there.
            unsafe { to.retire(&self.guard) };
        }
    }
}

impl Write for PartitionTransaction<'_> {
    type Prepared = NeverPrepared;

    #[inline]
    fn patch(&mut self, found: Found, words: &[(u32, u64)]) -> Result<(), Abort> {
        self.context.found.refuse_others(found);
        let record = self.record_to_write(found);
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
        let record = self.record_to_write(found);
        self.write_row(record, found.entry, row, len_bytes)
    }

    fn insert(&mut self, store: &Store, key: &[u8], row: &[u64], len_bytes: usize) -> Result<bool, Abort> {
        store.check()?;
        let record = self.allocate(store, key, row, len_bytes)?;
        let inserted = store.index().insert_if_absent(key, record.index_value(), &self.guard, &mut ());
        if matches!(inserted, Ok(Inserted::New)) {
            let found = self.context.found.push(record, key);
            self.context.undo.push(Undo::Inserted(found));
            return Ok(true);
        }
        // SAFETY: the tree did not take the record, so nobody else knows it.
        unsafe { record.free(&self.guard) };
        match inserted {
            Ok(Inserted::Existing(value)) => self.insert_over(value, key, row, len_bytes),
            Ok(Inserted::New) => unreachable!("handled above"),
            Err(InsertError::KeyTooLong { .. }) => panic!("a key longer than KEY_LEN_MAX"),
            Err(_) => Err(Abort::new(AbortReason::OutOfMemory, store.id(), key)),
        }
    }

    fn delete(&mut self, found: Found) -> Result<(), Abort> {
        self.context.found.refuse_others(found);
        let record = moved_to(found.record);
        assert!(!record.tid().is_absent(), "a deleted record is deleted again");
        record.set_own_tid(DELETED);
        self.context.undo.push(Undo::Deleted(Found { record, ..found }));
        Ok(())
    }

    #[inline]
    fn commit(mut self) -> Result<Committed, Abort> {
        self.complete();
        self.context.counters.count_commit();
        Ok(Committed { tid: Tid::ZERO, epoch: Epoch::new(0) })
    }

    fn check(&mut self) -> Result<Epoch, Abort> {
        Ok(Epoch::new(0))
    }

    fn abort(self) {
        drop(self);
    }
}

impl Drop for PartitionTransaction<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.context.is_open {
            self.take_back();
            self.context.counters.count_abort(AbortReason::User);
        }
    }
}

impl fmt::Debug for PartitionTransaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionTransaction").field("undo", &self.context.undo.len()).finish_non_exhaustive()
    }
}
