//! A store: an index from keys to records, and the indirection array that leads to their versions.

use std::cell::UnsafeCell;
use std::fmt;
use std::sync::{Arc, PoisonError};

use ensilo_engine::parts::Lookups;
use ensilo_engine::{Abort, AbortReason, Direction, KeyBounds, TableId};
use ensilo_epoch::{Epochs, Guard};
use ensilo_index::{Lookup, Masstree, ScanVisitor};
use ensilo_slab::{AccountId, OutOfMemory};
use ensilo_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use ensilo_sync::sync::{Mutex, MutexGuard};

use crate::cold::NOT_PLAIN;
use crate::isolation::Isolation;
use crate::oid_array::{Oid, OidArray};
use crate::version::Version;

/// A map from keys to rows: a table's primary store, or one of its secondary indexes. The engine keeps what remains of one that was
/// dropped, so that its address stays good.
pub struct ErmiaStore {
    id: TableId,
    /// Of the engine's epochs.
    epochs: u64,
    is_dropped: AtomicBool,
    /// Shared by all transactions, until they are taken out: see [`ErmiaStore::take_apart`].
    parts: UnsafeCell<Option<Parts>>,
}

#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) index: Masstree,
    pub(crate) records: OidArray,
}

// SAFETY: the parts are Sync, and they are taken out only in `take_apart`, whose caller vouches that nobody shares them.
unsafe impl Sync for ErmiaStore {}

impl ErmiaStore {
    /// Returns a store without records.
    pub(crate) fn new(id: TableId, epochs: &Epochs, guard: &Guard<'_>) -> Result<Self, OutOfMemory> {
        let records = OidArray::new(Arc::clone(epochs.pool()))?;
        let index = Masstree::new(guard, AccountId(id.0))?;
        let parts = UnsafeCell::new(Some(Parts { index, records }));
        Ok(ErmiaStore { id, epochs: epochs.id(), is_dropped: AtomicBool::new(false), parts })
    }

    /// Returns whether the store was dropped.
    #[inline]
    #[must_use]
    pub fn is_dropped(&self) -> bool {
        // Acquire: [drop] a transaction that pins once the memory horizon has passed the drop sees the flag.
        self.is_dropped.load(Ordering::Acquire)
    }

    pub(crate) fn mark_dropped(&self) {
        // Release: [drop].
        self.is_dropped.store(true, Ordering::Release);
    }

    /// Checks that the store was not dropped.
    ///
    /// # Panics
    /// When it is of another engine than that of these epochs.
    #[inline]
    pub(crate) fn check(&self, epochs: &Epochs) -> Result<(), Abort> {
        assert!(self.epochs == epochs.id(), "a store of another engine");
        if self.is_dropped() {
            return Err(Abort::new(AbortReason::StoreDropped, self.id, &[]));
        }
        Ok(())
    }

    #[inline]
    fn parts(&self) -> &Parts {
        // SAFETY: they are taken out only in `take_apart`, when no transaction is left that has found the store.
        match unsafe { &*self.parts.get() } {
            Some(parts) => parts,
            None => unreachable!("the store was found before it was dropped"),
        }
    }

    /// Returns the index, for a transaction that has found the store not dropped after it pinned.
    #[inline]
    pub(crate) fn index(&self) -> &Masstree {
        &self.parts().index
    }

    /// Returns the array, under the same condition.
    #[inline]
    pub(crate) fn records(&self) -> &OidArray {
        &self.parts().records
    }

    #[inline]
    pub(crate) fn slot(&self, oid: Oid) -> &AtomicU64 {
        self.records().slot(oid)
    }

    /// Returns the newest version of a record, if it is in memory and stays there for the time being: for what is done in advance.
    #[inline]
    pub(crate) fn in_memory<I: Isolation>(&self, oid: Oid) -> Option<Version<I>> {
        // Acquire: [head].
        let word = self.slot(oid).load(Ordering::Acquire);
        // SAFETY: as in `newest`.
        if word & NOT_PLAIN == 0 { unsafe { Version::from_word(word) } } else { None }
    }

    /// Starts to load the newest rows of what an index has found, whose slots are on their way.
    #[inline]
    pub(crate) fn load_rows<I: Isolation>(&self, lookups: &Lookups) {
        let _indirection = crate::region::indirection();
        let found = lookups.iter().filter_map(|lookup| match lookup {
            // SAFETY: the value was read from the store's index, under a pin.
            Lookup::Found(value) => Some(unsafe { Oid::from_index_value(value) }),
            Lookup::Missing(_) => None,
        });
        found.clone().for_each(|oid| self.load_header::<I>(oid));
        found.filter_map(|oid| self.in_memory::<I>(oid)).for_each(|version| version.record().prefetch_row());
    }

    /// Starts to load the head of a record's newest version.
    #[inline]
    pub(crate) fn load_header<I: Isolation>(&self, oid: Oid) {
        let _indirection = crate::region::indirection();
        if let Some(version) = self.in_memory::<I>(oid) {
            version.record().prefetch_header();
        }
    }

    pub(crate) fn scan(
        &self,
        bounds: KeyBounds<'_>,
        direction: Direction,
        guard: &Guard<'_>,
        visitor: &mut impl ScanVisitor,
    ) {
        let direction = match direction {
            Direction::Forward => ensilo_index::Direction::Forward,
            Direction::Reverse => ensilo_index::Direction::Reverse,
        };
        self.index().scan(bounds, direction, guard, visitor);
    }

    /// Takes the parts out.
    ///
    /// # Safety
    /// Nobody else uses them, now or later: the store was dropped and every transaction of that time has ended.
    pub(crate) unsafe fn take_apart(&self) -> Option<Parts> {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.parts.get() }.take()
    }
}

impl ensilo_engine::Store for ErmiaStore {
    #[inline]
    fn id(&self) -> TableId {
        self.id
    }
}

impl fmt::Debug for ErmiaStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ErmiaStore")
            .field("id", &self.id)
            .field("is_dropped", &self.is_dropped())
            .finish_non_exhaustive()
    }
}

/// Locks a mutex that guards what no holder leaves half done, so that a panic elsewhere does not matter.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
