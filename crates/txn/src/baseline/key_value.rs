//! Key-Value: the index and its records with gets and puts of single keys, each atomic by itself.
//!
//! # Source
//! Silo (SOSP 2013) §5.2: "the concurrent B+-tree underneath Silo", without read and write sets, TIDs, versions or a commit. What remains
//! of a record's TID word is a version that readers look at before and after they copy, and a lock for writers.
//!
//! # What it does not do
//! Nothing spans two operations: each write takes place when it is made, an abort takes nothing back, and what was read may be out of date
//! when it is written back. There are no snapshots and there is no log.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use ensilo_engine::{
    Abort, AbortReason, Committed, Direction, KeyBounds, NeverPrepared, Read, RowRef, Tid, WorkerCounters,
    Write,
};
use ensilo_epoch::{Epoch, ExclusiveGuard, Guard, Participant};
use ensilo_index::{InsertError, Inserted, Lookup, NodeStamp, ScanVisitor};
use ensilo_log::Log;
use ensilo_slab::Pool;
use ensilo_sync::cpu_relax;

use super::found_keys::FoundKeys;
use crate::engine::Shared;
use crate::protocol::{Found, Protocol};
use crate::record::RecordPtr;
use crate::store::Store;
use crate::tid::TidWord;
use ensilo_engine::history::TransactionRecord;

/// How many blocks of memory one call of the collector frees.
const BUDGET: usize = 64;

/// Gets and puts of single keys.
#[derive(Debug)]
pub struct KeyValue;

/// What a worker keeps.
#[derive(Debug, Default)]
pub struct KeyValueContext {
    found: FoundKeys,
    lookups: Vec<Option<Lookup>>,
    counters: Arc<WorkerCounters>,
}

/// Operations in a row, which have nothing to do with each other.
pub struct KeyValueTransaction<'w> {
    shared: &'w Shared,
    guard: ExclusiveGuard<'w>,
    context: &'w mut KeyValueContext,
}

impl Protocol for KeyValue {
    const SNAPSHOTS: bool = false;
    const IS_TRANSACTIONAL: bool = false;
    const LOGS: bool = false;

    type Context = KeyValueContext;
    type Transaction<'w> = KeyValueTransaction<'w>;
    type Snapshot<'w> = KeyValueTransaction<'w>;

    fn context(_: &Arc<Pool>) -> KeyValueContext {
        KeyValueContext::default()
    }

    fn counters(context: &KeyValueContext) -> &Arc<WorkerCounters> {
        &context.counters
    }

    fn attach_log(_: &mut KeyValueContext, _: &Arc<Log>) {
        unreachable!("nothing opens a log for a protocol that does not write it");
    }

    #[inline]
    fn begin<'w>(
        shared: &'w Shared,
        participant: &'w mut Participant,
        context: &'w mut KeyValueContext,
    ) -> KeyValueTransaction<'w> {
        context.found.clear();
        KeyValueTransaction { shared, guard: participant.pin_exclusively(), context }
    }

    fn begin_snapshot<'w>(
        _: &'w Shared,
        _: &'w Participant,
        _: &'w mut KeyValueContext,
    ) -> KeyValueTransaction<'w> {
        panic!("single keys have no snapshots");
    }

    fn collect(_: &Shared, participant: &Participant, _: &mut KeyValueContext) -> bool {
        participant.collect(BUDGET) < BUDGET
    }

    fn take_history(_: &mut KeyValueContext) -> Vec<TransactionRecord> {
        Vec::new()
    }
}

/// The record that the tree has under `key` and that nobody has taken out of it since.
#[inline]
fn lookup(store: &Store, key: &[u8], guard: &Guard<'_>) -> Option<(RecordPtr, TidWord)> {
    let mut lookup = store.index().get(key, guard);
    loop {
        let Lookup::Found(value) = lookup else { return None };
        // SAFETY: a value of a store's tree is a record, read while this transaction is pinned.
        let record = unsafe { RecordPtr::from_index_value(value) };
        let word = stable(record);
        if word.is_latest() {
            return Some((record, word));
        }
        cpu_relax();
        lookup = store.index().get(key, guard);
    }
}

/// The version of a record that no writer is at work on.
#[inline]
fn stable(record: RecordPtr) -> TidWord {
    loop {
        if let Ok(word) = record.stable_tid() {
            return word;
        }
    }
}

/// What `decode` makes of one version of the row.
#[inline]
fn read_row<R>(record: RecordPtr, mut decode: impl FnMut(RowRef<'_>) -> R) -> R {
    loop {
        let word = stable(record);
        let value = decode(record.row());
        if record.still(word) {
            return value;
        }
    }
}

impl Read for KeyValueTransaction<'_> {
    type Store = Store;
    type Found = Found;

    fn has_found(&self, found: Found) -> bool {
        self.context.found.has(found)
    }

    #[inline]
    fn find(&mut self, store: &Store, key: &[u8]) -> Result<Option<Found>, Abort> {
        store.check()?;
        let found = lookup(store, key, &self.guard);
        Ok(found.map(|(record, _)| self.context.found.push(record, key)))
    }

    fn find_many<K: AsRef<[u8]>>(
        &mut self,
        store: &Store,
        keys: &[K],
        mut each: impl FnMut(usize, Option<Found>),
    ) -> Result<(), Abort> {
        store.check()?;
        let mut lookups = std::mem::take(&mut self.context.lookups);
        lookups.clear();
        lookups.resize(keys.len(), None);
        store.index().get_many(keys, &self.guard, |at, lookup| lookups[at] = Some(lookup));
        for (at, key) in keys.iter().enumerate() {
            // The descents have brought the nodes and records into the cache; what they found may have changed since.
            let is_there = matches!(lookups[at], Some(Lookup::Found(_)));
            each(at, if is_there { self.find(store, key.as_ref())? } else { None });
        }
        self.context.lookups = lookups;
        Ok(())
    }

    #[inline]
    fn read<R>(&mut self, found: Found, decode: impl FnMut(RowRef<'_>) -> R) -> Result<R, Abort> {
        self.context.found.refuse_others(found);
        let record = if stable(found.record).is_latest() { found.record } else { self.successor_of(found) };
        Ok(read_row(record, decode))
    }

    #[inline]
    fn get<R>(
        &mut self,
        store: &Store,
        key: &[u8],
        decode: impl FnMut(RowRef<'_>) -> R,
    ) -> Result<Option<R>, Abort> {
        store.check()?;
        Ok(lookup(store, key, &self.guard).map(|(record, _)| read_row(record, decode)))
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
        let mut scan = Scan { found: &mut self.context.found, guard: &self.guard, store, decode, each };
        store.scan(bounds, direction, &self.guard, &mut scan);
        Ok(())
    }

    fn largest_epoch_seen(&self) -> Epoch {
        Epoch::new(0)
    }
}

/// Visits entries one by one.
struct Scan<'a, 'g, D, E> {
    found: &'a mut FoundKeys,
    guard: &'a Guard<'g>,
    store: &'a Store,
    decode: D,
    each: E,
}

impl<R, D, E> ScanVisitor for Scan<'_, '_, D, E>
where
    D: FnMut(&[u8], RowRef<'_>) -> R,
    E: FnMut(Found, R) -> ControlFlow<()>,
{
    fn node(&mut self, _: NodeStamp) {}

    fn entry(&mut self, key: &[u8], _: u64) -> ControlFlow<()> {
        let Some((record, _)) = lookup(self.store, key, self.guard) else { return ControlFlow::Continue(()) };
        let value = read_row(record, |row| (self.decode)(key, row));
        (self.each)(self.found.push(record, key), value)
    }
}

impl KeyValueTransaction<'_> {
    /// The record that has taken the place of a handle's; if there is none, the handle's own, which was current after it was found.
    #[cold]
    fn successor_of(&self, found: Found) -> RecordPtr {
        let store = self.store_of(found.record);
        let successor =
            store.and_then(|store| lookup(store, self.context.found.of(found.entry), &self.guard));
        successor.map_or(found.record, |(record, _)| record)
    }

    /// The record of a handle, locked, with its version; another one if that has taken its place. `None` if the key is gone.
    fn lock(&self, found: Found) -> Option<(RecordPtr, TidWord)> {
        let (mut record, mut word) = (found.record, stable(found.record));
        loop {
            if !word.is_latest() {
                let store = self.store_of(record)?;
                (record, word) = lookup(store, self.context.found.of(found.entry), &self.guard)?;
            }
            if record.try_lock(word) {
                return Some((record, word));
            }
            word = stable(record);
        }
    }

    /// The store of a record; `None` when it was dropped.
    fn store_of(&self, record: RecordPtr) -> Option<&Store> {
        self.shared.stores.store(record.table())
    }

    fn allocate(&self, store: &Store, key: &[u8], row: &[u64], len_bytes: usize) -> Result<RecordPtr, Abort> {
        let word = TidWord::live(Tid::ZERO).next_version();
        let record = RecordPtr::allocate(&self.guard, store.id(), len_bytes, word)
            .map_err(|_| Abort::new(AbortReason::OutOfMemory, store.id(), key))?;
        record.store_row(row.iter().copied(), len_bytes);
        Ok(record)
    }

    /// Puts a record with another row in the place of a locked one.
    fn replace(
        &self,
        (record, word): (RecordPtr, TidWord),
        found: Found,
        row: &[u64],
        len_bytes: usize,
    ) -> Result<(), Abort> {
        let key = self.context.found.of(found.entry);
        let replacement = match self.store_of(record) {
            Some(store) => self.allocate(store, key, row, len_bytes).map(|new| (store, new)),
            None => Err(Abort::new(AbortReason::StoreDropped, record.table(), key)),
        };
        let (store, replacement) = replacement.inspect_err(|_| record.publish(word))?;
        let (old, new) = (record.index_value(), replacement.index_value());
        assert!(store.index().replace(key, old, new, &self.guard), "a locked, latest record is in the tree");
        record.publish(word.superseded());
        // SAFETY: it has just left the tree, by the hand of the one that held its lock.
        unsafe { record.retire(&self.guard) };
        Ok(())
    }
}

impl Write for KeyValueTransaction<'_> {
    type Prepared = NeverPrepared;

    #[inline]
    fn patch(&mut self, found: Found, words: &[(u32, u64)]) -> Result<(), Abort> {
        self.context.found.refuse_others(found);
        let Some((record, word)) = self.lock(found) else { return Ok(()) };
        let len_words = record.row().len_words();
        if words.iter().any(|&(index, _)| index as usize >= len_words) {
            record.publish(word);
            panic!("a patch outside the row");
        }
        for &(index, word) in words {
            record.store_word(index as usize, word);
        }
        record.publish(word.next_version());
        Ok(())
    }

    fn put(&mut self, found: Found, row: &[u64], len_bytes: usize) -> Result<(), Abort> {
        self.context.found.refuse_others(found);
        let Some((record, word)) = self.lock(found) else { return Ok(()) };
        if !record.fits(len_bytes) {
            return self.replace((record, word), found, row, len_bytes);
        }
        record.store_row(row.iter().copied(), len_bytes);
        record.publish(word.next_version());
        Ok(())
    }

    fn insert(&mut self, store: &Store, key: &[u8], row: &[u64], len_bytes: usize) -> Result<bool, Abort> {
        store.check()?;
        let record = self.allocate(store, key, row, len_bytes)?;
        let inserted = store.index().insert_if_absent(key, record.index_value(), &self.guard, &mut ());
        if matches!(inserted, Ok(Inserted::New)) {
            return Ok(true);
        }
        // SAFETY: the tree did not take the record, so nobody else knows it.
        unsafe { record.free(&self.guard) };
        match inserted {
            Ok(_) => Ok(false),
            Err(InsertError::KeyTooLong { .. }) => panic!("a key longer than KEY_LEN_MAX"),
            Err(_) => Err(Abort::new(AbortReason::OutOfMemory, store.id(), key)),
        }
    }

    fn delete(&mut self, found: Found) -> Result<(), Abort> {
        self.context.found.refuse_others(found);
        let Some((record, word)) = self.lock(found) else { return Ok(()) };
        let key = self.context.found.of(found.entry);
        let is_removed = self
            .store_of(record)
            .is_some_and(|store| store.index().remove(key, record.index_value(), &self.guard));
        if !is_removed {
            // The store was dropped: its records go with it.
            record.publish(word);
            return Ok(());
        }
        record.publish(word.superseded());
        // SAFETY: it has just left the tree, by the hand of the one that held its lock.
        unsafe { record.retire(&self.guard) };
        Ok(())
    }

    #[inline]
    fn commit(self) -> Result<Committed, Abort> {
        self.context.counters.count_commit();
        Ok(Committed { tid: Tid::ZERO, epoch: Epoch::new(0) })
    }

    fn check(&mut self) -> Result<Epoch, Abort> {
        Ok(Epoch::new(0))
    }

    fn abort(self) {
        self.context.counters.count_abort(AbortReason::User);
    }
}

impl fmt::Debug for KeyValueTransaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyValueTransaction").finish_non_exhaustive()
    }
}
