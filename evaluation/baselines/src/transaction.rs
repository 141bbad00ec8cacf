//! What the transactions of both engines have in common: they read and write records at once, in place.

use std::fmt;
use std::ops::ControlFlow;

use ensilo_engine::{
    Abort, AbortReason, Committed, Direction, KeyBounds, NeverPrepared, Read, RowRef, Tid, WorkerCounters,
    Write,
};
use ensilo_epoch::{Epoch, ExclusiveGuard, Guard};
use ensilo_index::{Lookup, NodeStamp, ScanVisitor};

use crate::handle::{BaselineHandle, FoundKeys};
use crate::record::Record;
use crate::store::{Store, Stores};

/// What an engine of this crate does with records. Nobody else can name it: its functions take what the engine has checked.
pub trait Protocol: fmt::Debug + Send + Sync + Sized + 'static {
    /// As [`Engine::IS_TRANSACTIONAL`](ensilo_engine::Engine::IS_TRANSACTIONAL).
    const IS_TRANSACTIONAL: bool;

    /// What a transaction notes to take back what it has done.
    type Undo: fmt::Debug + Default + Send;

    /// Returns the record that a tree has for `key`, where it has just had `value`; `None` if the key is gone.
    fn resolve(store: &Store, key: &[u8], value: u64, guard: &Guard<'_>) -> Option<Record>;

    /// Returns what `decode` makes of one version of the row.
    fn read_row<R>(record: Record, decode: impl FnMut(RowRef<'_>) -> R) -> R;

    /// Returns the record that has the row of a handle's now.
    fn successor(tx: &BaselineTransaction<'_, Self>, found: BaselineHandle) -> Record;

    /// As [`Write::patch`].
    ///
    /// # Errors
    /// As [`Write::patch`].
    fn patch(
        tx: &mut BaselineTransaction<'_, Self>,
        found: BaselineHandle,
        words: &[(u32, u64)],
    ) -> Result<(), Abort>;

    /// As [`Write::put`].
    ///
    /// # Errors
    /// As [`Write::put`].
    fn put(
        tx: &mut BaselineTransaction<'_, Self>,
        found: BaselineHandle,
        row: (&[u64], usize),
    ) -> Result<(), Abort>;

    /// As [`Write::insert`].
    ///
    /// # Errors
    /// As [`Write::insert`].
    fn insert(
        tx: &mut BaselineTransaction<'_, Self>,
        store: &Store,
        key: &[u8],
        row: (&[u64], usize),
    ) -> Result<bool, Abort>;

    /// As [`Write::delete`].
    ///
    /// # Errors
    /// As [`Write::delete`].
    fn delete(tx: &mut BaselineTransaction<'_, Self>, found: BaselineHandle) -> Result<(), Abort>;

    /// Completes what the transaction has done: it commits.
    fn complete(tx: &mut BaselineTransaction<'_, Self>);

    /// Takes back what the transaction has done, as far as the engine does that.
    fn take_back(tx: &mut BaselineTransaction<'_, Self>);
}

/// What a session keeps from one transaction to the next.
#[derive(Debug, Default)]
pub(crate) struct SessionMemory<U> {
    pub(crate) found: FoundKeys,
    pub(crate) undo: U,
    lookups: Vec<Option<Lookup>>,
}

/// A transaction, or operations in a row, of the protocol `P`. See [`SingleKeys`](crate::SingleKeys) and
/// [`Partitions`](crate::Partitions) for what holds it together.
#[derive(Debug)]
pub struct BaselineTransaction<'s, P: Protocol> {
    pub(crate) stores: &'s Stores,
    pub(crate) guard: ExclusiveGuard<'s>,
    pub(crate) memory: &'s mut SessionMemory<P::Undo>,
    counters: &'s WorkerCounters,
    is_open: bool,
}

impl<'s, P: Protocol> BaselineTransaction<'s, P> {
    #[inline]
    pub(crate) fn begin(
        stores: &'s Stores,
        guard: ExclusiveGuard<'s>,
        memory: &'s mut SessionMemory<P::Undo>,
        counters: &'s WorkerCounters,
    ) -> Self {
        // Here and not at the end, which a leaked transaction does not come to: the handles of the one before are not those of this one.
        memory.found.clear();
        BaselineTransaction { stores, guard, memory, counters, is_open: true }
    }

    /// Returns the record under `key`, if there is one.
    #[inline]
    pub(crate) fn lookup(&self, store: &Store, key: &[u8]) -> Option<Record> {
        match store.index().get(key, &self.guard) {
            Lookup::Found(value) => P::resolve(store, key, value, &self.guard),
            Lookup::Missing(_) => None,
        }
    }

    /// Returns the store and the key of a handle.
    pub(crate) fn place_of(&self, found: BaselineHandle) -> (&Store, &[u8]) {
        (self.stores.of(found.record), self.memory.found.of(found.entry))
    }
}

impl<P: Protocol> Read for BaselineTransaction<'_, P> {
    type Store = Store;
    type Found = BaselineHandle;

    #[inline]
    fn has_found(&self, found: BaselineHandle) -> bool {
        self.memory.found.has(found)
    }

    #[inline]
    fn find(&mut self, store: &Store, key: &[u8]) -> Result<Option<BaselineHandle>, Abort> {
        store.check()?;
        let record = self.lookup(store, key);
        Ok(record.map(|record| self.memory.found.push(record, key)))
    }

    fn find_many<K: AsRef<[u8]>>(
        &mut self,
        store: &Store,
        keys: &[K],
        mut each: impl FnMut(usize, Option<BaselineHandle>),
    ) -> Result<(), Abort> {
        store.check()?;
        let SessionMemory { found, lookups, .. } = &mut *self.memory;
        lookups.clear();
        lookups.resize(keys.len(), None);
        store.index().get_many(keys, &self.guard, |at, lookup| lookups[at] = Some(lookup));
        for (at, (key, lookup)) in keys.iter().map(AsRef::as_ref).zip(lookups).enumerate() {
            let record = match lookup {
                Some(Lookup::Found(value)) => P::resolve(store, key, *value, &self.guard),
                _ => None,
            };
            each(at, record.map(|record| found.push(record, key)));
        }
        Ok(())
    }

    #[inline]
    fn read<R>(&mut self, found: BaselineHandle, decode: impl FnMut(RowRef<'_>) -> R) -> Result<R, Abort> {
        self.memory.found.refuse_others(found);
        Ok(P::read_row(P::successor(self, found), decode))
    }

    #[inline]
    fn get<R>(
        &mut self,
        store: &Store,
        key: &[u8],
        decode: impl FnMut(RowRef<'_>) -> R,
    ) -> Result<Option<R>, Abort> {
        store.check()?;
        Ok(self.lookup(store, key).map(|record| P::read_row(record, decode)))
    }

    fn scan<R>(
        &mut self,
        store: &Store,
        bounds: KeyBounds<'_>,
        direction: Direction,
        decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        each: impl FnMut(BaselineHandle, R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        store.check()?;
        let (guard, found) = (&*self.guard, &mut self.memory.found);
        let protocol = std::marker::PhantomData::<P>;
        store.scan(
            bounds,
            direction,
            guard,
            &mut BaselineScan { protocol, found, guard, store, decode, each },
        );
        Ok(())
    }

    fn largest_epoch_seen(&self) -> Epoch {
        // Nothing is logged.
        Epoch::new(0)
    }
}

impl<P: Protocol> Write for BaselineTransaction<'_, P> {
    type Prepared = NeverPrepared;

    #[inline]
    fn patch(&mut self, found: BaselineHandle, words: &[(u32, u64)]) -> Result<(), Abort> {
        self.memory.found.refuse_others(found);
        P::patch(self, found, words)
    }

    #[inline]
    fn put(&mut self, found: BaselineHandle, row: &[u64], len_bytes: usize) -> Result<(), Abort> {
        self.memory.found.refuse_others(found);
        P::put(self, found, (row, len_bytes))
    }

    #[inline]
    fn insert(&mut self, store: &Store, key: &[u8], row: &[u64], len_bytes: usize) -> Result<bool, Abort> {
        store.check()?;
        P::insert(self, store, key, (row, len_bytes))
    }

    #[inline]
    fn delete(&mut self, found: BaselineHandle) -> Result<(), Abort> {
        self.memory.found.refuse_others(found);
        P::delete(self, found)
    }

    #[inline]
    fn commit(mut self) -> Result<Committed, Abort> {
        P::complete(&mut self);
        self.is_open = false;
        self.counters.count_commit();
        Ok(Committed { tid: Tid::ZERO, epoch: Epoch::new(0) })
    }

    fn check(&mut self) -> Result<Epoch, Abort> {
        Ok(Epoch::new(0))
    }
}

impl<P: Protocol> Drop for BaselineTransaction<'_, P> {
    #[inline]
    fn drop(&mut self) {
        if self.is_open {
            P::take_back(self);
            self.counters.count_abort(AbortReason::User);
        }
    }
}

/// Visits entries one by one.
struct BaselineScan<'a, 'g, P, D, E> {
    protocol: std::marker::PhantomData<P>,
    found: &'a mut FoundKeys,
    guard: &'a Guard<'g>,
    store: &'a Store,
    decode: D,
    each: E,
}

impl<P, R, D, E> ScanVisitor for BaselineScan<'_, '_, P, D, E>
where
    P: Protocol,
    D: FnMut(&[u8], RowRef<'_>) -> R,
    E: FnMut(BaselineHandle, R) -> ControlFlow<()>,
{
    fn node(&mut self, _: NodeStamp) {}

    #[inline]
    fn entry(&mut self, key: &[u8], value: u64) -> ControlFlow<()> {
        let record = P::resolve(self.store, key, value, self.guard);
        let Some(record) = record else { return ControlFlow::Continue(()) };
        let value = P::read_row(record, |row| (self.decode)(key, row));
        (self.each)(self.found.push(record, key), value)
    }
}
