//! A read-write transaction: Silo's, which locks each key before it looks at it.

use std::ops::ControlFlow;

use ensilo_engine::{Abort, Committed, Direction, Fault, KeyBounds, KeyChange, Read, RowRef, Write};
use ensilo_epoch::Epoch;
use ensilo_txn::{RecordHandle, Store, Transaction};

use crate::held::HeldLocks;
use crate::lock_table::Mode;
use crate::locking::Locking;
use crate::prepared::LockingPrepared;

/// A serializable read-write transaction under two-phase locking.
#[derive(Debug)]
pub struct LockingTransaction<'s, L: Locking> {
    /// Ended before the locks are given back: fields are dropped in this order.
    pub(crate) inner: Transaction<'s, L>,
    pub(crate) locks: HeldLocks<'s>,
}

impl<'s, L: Locking> LockingTransaction<'s, L> {
    #[inline]
    pub(crate) fn new(inner: Transaction<'s, L>, locks: HeldLocks<'s>) -> Self {
        LockingTransaction { inner, locks }
    }

    #[inline]
    fn lock(&mut self, store: &Store, key: &[u8], mode: Mode) -> Result<(), Abort> {
        self.locks.0.lock_key(store.id(), key, mode).map_err(|abort| self.inner.doom(abort))
    }

    fn lock_all<K: AsRef<[u8]>>(&mut self, store: &Store, keys: &[K]) -> Result<(), Abort> {
        keys.iter().try_for_each(|key| self.lock(store, key.as_ref(), Mode::Shared))
    }

    /// Locks a record that was found, to write to it.
    #[inline]
    fn lock_found(&mut self, found: RecordHandle) -> Result<(), Abort> {
        let (table, key) = self.inner.key_of(found);
        self.locks.0.lock_key(table, key, Mode::Exclusive).map_err(|abort| self.inner.doom(abort))
    }
}

impl<L: Locking> Read for LockingTransaction<'_, L> {
    type Store = Store;
    type Found = RecordHandle;

    #[inline]
    fn has_found(&self, found: RecordHandle) -> bool {
        self.inner.has_found(found)
    }

    #[inline]
    fn find(&mut self, store: &Store, key: &[u8]) -> Result<Option<RecordHandle>, Abort> {
        self.lock(store, key, Mode::Shared)?;
        self.inner.find(store, key)
    }

    fn find_many<K: AsRef<[u8]>>(
        &mut self,
        store: &Store,
        keys: &[K],
        each: impl FnMut(usize, Option<RecordHandle>),
    ) -> Result<(), Abort> {
        self.lock_all(store, keys)?;
        self.inner.find_many(store, keys, each)
    }

    #[inline]
    fn read<R>(&mut self, found: RecordHandle, decode: impl FnMut(RowRef<'_>) -> R) -> Result<R, Abort> {
        self.inner.read(found, decode)
    }

    #[inline]
    fn get<R>(
        &mut self,
        store: &Store,
        key: &[u8],
        decode: impl FnMut(RowRef<'_>) -> R,
    ) -> Result<Option<R>, Abort> {
        self.lock(store, key, Mode::Shared)?;
        self.inner.get(store, key, decode)
    }

    fn get_many<K: AsRef<[u8]>, R>(
        &mut self,
        store: &Store,
        keys: &[K],
        decode: impl FnMut(usize, RowRef<'_>) -> R,
        each: impl FnMut(usize, Option<R>) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.lock_all(store, keys)?;
        self.inner.get_many(store, keys, decode, each)
    }

    fn scan<R>(
        &mut self,
        store: &Store,
        bounds: KeyBounds<'_>,
        direction: Direction,
        mut decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        mut each: impl FnMut(RecordHandle, R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.scan_blocks(store, bounds, direction, |inner, block| {
            let mut flow = ControlFlow::Continue(());
            let note = |found, value| {
                flow = each(found, value);
                flow
            };
            inner.scan(store, block, direction, &mut decode, note).map(|()| flow)
        })
    }

    fn scan_to_read<R>(
        &mut self,
        store: &Store,
        bounds: KeyBounds<'_>,
        direction: Direction,
        mut decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        mut each: impl FnMut(R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.scan_blocks(store, bounds, direction, |inner, block| {
            let mut flow = ControlFlow::Continue(());
            let note = |value| {
                flow = each(value);
                flow
            };
            inner.scan_to_read(store, block, direction, &mut decode, note).map(|()| flow)
        })
    }

    fn check_reads(&mut self) -> Result<(), Abort> {
        self.locks.0.check()
    }

    fn largest_epoch_seen(&self) -> Epoch {
        self.inner.largest_epoch_seen()
    }
}

impl<'s, L: Locking> Write for LockingTransaction<'s, L> {
    const FAULT: Option<Fault> = L::FAULT;

    type Prepared = LockingPrepared<'s, L>;

    fn note_abort(&mut self, abort: &Abort) {
        self.inner.note_abort(abort);
    }

    #[inline]
    fn find_to_write(&mut self, store: &Store, key: &[u8]) -> Result<Option<RecordHandle>, Abort> {
        self.lock(store, key, Mode::Exclusive)?;
        self.inner.find(store, key)
    }

    #[inline]
    fn patch(&mut self, found: RecordHandle, words: &[(u32, u64)]) -> Result<(), Abort> {
        self.lock_found(found)?;
        self.inner.patch(found, words)
    }

    fn put(&mut self, found: RecordHandle, row: &[u64], len_bytes: usize) -> Result<(), Abort> {
        self.lock_found(found)?;
        self.inner.put(found, row, len_bytes)
    }

    fn insert(&mut self, store: &Store, key: &[u8], row: &[u64], len_bytes: usize) -> Result<bool, Abort> {
        self.lock(store, key, Mode::Exclusive)?;
        self.inner.insert(store, key, row, len_bytes)
    }

    fn peek<R>(
        &mut self,
        store: &Store,
        bounds: KeyBounds<'_>,
        direction: Direction,
        decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        each: impl FnMut(R) -> ControlFlow<()>,
        later: impl FnMut(R),
    ) -> Result<(), Abort> {
        self.inner.peek(store, bounds, direction, decode, each, later)
    }

    #[inline]
    fn prefetch_changes<'k>(
        &mut self,
        count: usize,
        key: impl Fn(usize) -> (&'k Store, &'k [u8], KeyChange),
    ) {
        self.inner.prefetch_changes(count, key);
    }

    fn delete(&mut self, found: RecordHandle) -> Result<(), Abort> {
        self.lock_found(found)?;
        self.inner.delete(found)
    }

    #[inline]
    fn commit(self) -> Result<Committed, Abort> {
        let LockingTransaction { inner, locks } = self;
        locks.0.begin_commit();
        let outcome = inner.commit();
        drop(locks);
        outcome
    }

    fn prepare(self) -> Result<LockingPrepared<'s, L>, Abort> {
        let LockingTransaction { inner, locks } = self;
        inner.prepare().map(|inner| LockingPrepared::new(inner, locks))
    }

    fn check(&mut self) -> Result<Epoch, Abort> {
        self.locks.0.check()?;
        self.inner.check()
    }

    #[inline]
    fn has_writes(&self) -> bool {
        self.inner.has_writes()
    }
}
