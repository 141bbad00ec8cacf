//! A store: one tree of records, which is a table's primary tree or one of its secondary indexes.
//!
//! # Source
//! Silo (SOSP 2013) §3 and §4.7: to the commit protocol a secondary index is simply another table.

use std::cell::UnsafeCell;
use std::fmt;

use ensilo_engine::{Abort, AbortReason, Direction, KeyBounds, TableId};
use ensilo_epoch::Guard;
use ensilo_index::{Drain, Masstree, ScanVisitor};
use ensilo_sync::atomic::{AtomicBool, Ordering};

const _: () = assert!(!std::mem::needs_drop::<Masstree>());

/// One tree of records.
pub struct Store {
    id: TableId,
    is_dropped: AtomicBool,
    /// Shared by all transactions, until it is taken out: see [`Store::take_apart`].
    index: UnsafeCell<Masstree>,
}

// SAFETY: the tree is Sync, and it is taken out only in `take_apart`, whose caller vouches that nobody shares it.
unsafe impl Sync for Store {}

impl Store {
    pub(crate) fn new(id: TableId, index: Masstree) -> Self {
        Store { id, is_dropped: AtomicBool::new(false), index: UnsafeCell::new(index) }
    }

    /// Returns the store's id.
    #[inline]
    #[must_use]
    pub fn id(&self) -> TableId {
        self.id
    }

    /// Returns whether the store was dropped; operations on it abort with [`crate::AbortReason::StoreDropped`].
    #[inline]
    #[must_use]
    pub fn is_dropped(&self) -> bool {
        // Acquire: [drop] a transaction that pinned after the drop's epoch had passed sees the flag: it read the epoch
        // with Acquire after the advancing thread had seen the dropper's store (see Silo::drop_store).
        self.is_dropped.load(Ordering::Acquire)
    }

    /// Checks that the store was not dropped.
    ///
    /// # Errors
    /// [`AbortReason::StoreDropped`].
    #[inline]
    pub(crate) fn check(&self) -> Result<(), Abort> {
        if self.is_dropped() {
            return Err(Abort::new(AbortReason::StoreDropped, self.id, &[]));
        }
        Ok(())
    }

    /// Returns the tree, for a transaction that has found the store not dropped after it pinned, or through the registry.
    #[inline]
    pub(crate) fn index(&self) -> &Masstree {
        // SAFETY: it is taken out only in `take_apart`, when no such transaction is left.
        unsafe { &*self.index.get() }
    }

    /// Shows the visitor the keys within the bounds, in the order that `direction` says.
    #[inline]
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

    /// Begins to take the tree apart.
    ///
    /// # Safety
    /// Nobody else uses the tree, now or later: the store was dropped and every transaction of that time has ended, or nobody has seen
    /// the store. This is called once.
    pub(crate) unsafe fn take_apart(&self) -> Drain {
        // SAFETY: the caller's promise makes this the last use of the field, which has nothing to drop.
        unsafe { self.index.get().read() }.into_drain()
    }

    pub(crate) fn mark_dropped(&self) {
        // Release: [drop].
        self.is_dropped.store(true, Ordering::Release);
    }
}

impl ensilo_engine::Store for Store {
    #[inline]
    fn id(&self) -> TableId {
        self.id
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("id", &self.id)
            .field("is_dropped", &self.is_dropped())
            .finish_non_exhaustive()
    }
}
