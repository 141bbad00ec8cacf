//! Key-Value: the index and its records with gets and puts of single keys, each atomic by itself.
//!
//! # Source
//! Silo (SOSP 2013) §5.2: "the concurrent B+-tree underneath Silo", without read and write sets, TIDs, versions or a commit. What remains
//! of a record's TID word is a version that readers look at before and after they copy, and a lock for writers.
//!
//! # What it does not do
//! Nothing spans two operations: each write takes place when it is made, an abort takes nothing back, and what was read may be out of date
//! when it is written back. There are no snapshots and there is no log.

#[cfg(all(test, loom))]
mod model;

use std::ops::ControlFlow;

use ensilo_engine::{
    Abort, AbortReason, Committed, Direction, KeyBounds, NeverPrepared, Read, RowRef, Tid, WorkerCounters,
    Write,
};
use ensilo_epoch::{Epoch, ExclusiveGuard, Guard};
use ensilo_index::{Lookup, NodeStamp, ScanVisitor};
use ensilo_sync::cpu_relax;

use crate::engine::Protocol;
use crate::found_keys::{Found, FoundKeys};
use crate::record::{Record, assert_is_row};
use crate::store::{Insertion, Store, Stores};
use crate::version::Version;

/// Gets and puts of single keys.
#[derive(Debug)]
pub struct SingleKeys;

/// What a session keeps.
#[derive(Debug, Default)]
pub struct Context {
    found: FoundKeys,
    lookups: Vec<Option<Lookup>>,
}

/// Operations in a row, which have nothing to do with each other.
#[derive(Debug)]
pub struct KeyValueTransaction<'s> {
    stores: &'s Stores,
    guard: ExclusiveGuard<'s>,
    context: &'s mut Context,
    counters: &'s WorkerCounters,
}

impl Protocol for SingleKeys {
    const IS_TRANSACTIONAL: bool = false;

    type Context = Context;
    type Transaction<'s> = KeyValueTransaction<'s>;

    #[inline]
    fn begin<'s>(
        stores: &'s Stores,
        guard: ExclusiveGuard<'s>,
        context: &'s mut Context,
        counters: &'s WorkerCounters,
    ) -> KeyValueTransaction<'s> {
        context.found.clear();
        KeyValueTransaction { stores, guard, context, counters }
    }
}

/// The record that the tree has under `key` and that nobody has taken out of it since.
#[inline]
fn lookup(store: &Store, key: &[u8], guard: &Guard<'_>) -> Option<(Record, Version)> {
    let mut lookup = store.index().get(key, guard);
    loop {
        let Lookup::Found(value) = lookup else { return None };
        // SAFETY: a value of a store's tree is a record, read while this transaction is pinned.
        let record = unsafe { Record::from_index_value(value) };
        let version = Version::of(record);
        if !version.is_gone() {
            return Some((record, version));
        }
        cpu_relax();
        lookup = store.index().get(key, guard);
    }
}

/// What `decode` makes of one version of the row.
#[inline]
fn read_row<R>(record: Record, mut decode: impl FnMut(RowRef<'_>) -> R) -> R {
    loop {
        let version = Version::of(record);
        let value = decode(record.row());
        if version.is_still(record) {
            return value;
        }
    }
}

impl Read for KeyValueTransaction<'_> {
    type Store = Store;
    type Found = Found;

    #[inline]
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
        let is_gone = Version::of(found.record).is_gone();
        Ok(read_row(if is_gone { self.successor_of(found) } else { found.record }, decode))
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
    /// The record that is in the place of a handle's now.
    fn look_again(&self, found: Found) -> Option<(Record, Version)> {
        lookup(self.stores.of(found.record), self.context.found.of(found.entry), &self.guard)
    }

    /// The record that has taken the place of a handle's; if there is none, the handle's own, which was current after it was found.
    #[cold]
    fn successor_of(&self, found: Found) -> Record {
        self.look_again(found).map_or(found.record, |(record, _)| record)
    }

    /// The record of a handle, locked, with its version; another one if that has taken its place. `None` if the key is gone.
    fn lock(&self, found: Found) -> Option<(Record, Version)> {
        let (mut record, mut version) = (found.record, Version::of(found.record));
        loop {
            if version.is_gone() {
                (record, version) = self.look_again(found)?;
            }
            if version.try_lock(record) {
                return Some((record, version));
            }
            version = Version::of(record);
        }
    }

    /// Puts a record with another row in the place of a locked one.
    fn replace(
        &self,
        (record, version): (Record, Version),
        found: Found,
        row: (&[u64], usize),
    ) -> Result<(), Abort> {
        let (store, key) = (self.stores.of(record), self.context.found.of(found.entry));
        let new = Record::new(&self.guard, record.store(), key, row, Version::FIRST.raw())
            .inspect_err(|_| version.publish(record))?;
        let is_replaced = store.index().replace(key, record.index_value(), new.index_value(), &self.guard);
        assert!(is_replaced, "a locked record that is not gone is in the tree");
        version.gone().publish(record);
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
        let Some((record, version)) = self.lock(found) else { return Ok(()) };
        let len_words = record.row().len_words();
        if words.iter().any(|&(index, _)| index as usize >= len_words) {
            version.publish(record);
            panic!("a patch outside the row");
        }
        for &(index, word) in words {
            record.store_word(index as usize, word);
        }
        version.next().publish(record);
        Ok(())
    }

    fn put(&mut self, found: Found, row: &[u64], len_bytes: usize) -> Result<(), Abort> {
        self.context.found.refuse_others(found);
        // Before the lock, which a panic would leave held.
        assert_is_row(row, len_bytes);
        let Some((record, version)) = self.lock(found) else { return Ok(()) };
        if !record.fits(len_bytes) {
            return self.replace((record, version), found, (row, len_bytes));
        }
        record.store_row(row, len_bytes);
        version.next().publish(record);
        Ok(())
    }

    fn insert(&mut self, store: &Store, key: &[u8], row: &[u64], len_bytes: usize) -> Result<bool, Abort> {
        store.check()?;
        let insertion = store.insert(key, (row, len_bytes), Version::FIRST.raw(), &self.guard)?;
        Ok(matches!(insertion, Insertion::New(_)))
    }

    fn delete(&mut self, found: Found) -> Result<(), Abort> {
        self.context.found.refuse_others(found);
        let Some((record, version)) = self.lock(found) else { return Ok(()) };
        let key = self.context.found.of(found.entry);
        let is_removed = self.stores.of(record).take_out(key, record, &self.guard);
        assert!(is_removed, "a locked record that is not gone is in the tree");
        version.gone().publish(record);
        Ok(())
    }

    #[inline]
    fn commit(self) -> Result<Committed, Abort> {
        self.counters.count_commit();
        Ok(Committed { tid: Tid::ZERO, epoch: Epoch::new(0) })
    }

    fn check(&mut self) -> Result<Epoch, Abort> {
        Ok(Epoch::new(0))
    }

    fn abort(self) {
        self.counters.count_abort(AbortReason::User);
    }
}
