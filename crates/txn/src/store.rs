//! A store: one tree of records, which is a table's primary tree or one of its secondary indexes.
//!
//! A second tree has the deleted records that snapshots still need. So a deleted key leaves the first at once, and nothing but a snapshot
//! walks over it.
//!
//! # Source
//! Silo (SOSP 2013) §3 and §4.7: to the commit protocol a secondary index is simply another table.

use std::cell::UnsafeCell;
use std::fmt;

use ensilo_engine::{Abort, AbortReason, Direction, KeyBounds, TableId};
use ensilo_epoch::Guard;
use ensilo_index::{Drain, Masstree, ScanVisitor};
use ensilo_slab::{AccountId, OutOfMemory};
use ensilo_sync::atomic::{AtomicBool, Ordering};

const _: () = assert!(!std::mem::needs_drop::<Trees>());

/// One tree of records, and those that were deleted from it.
pub struct Store {
    id: TableId,
    is_dropped: AtomicBool,
    /// Shared by all transactions, until they are taken out: see [`Store::take_apart`].
    trees: UnsafeCell<Trees>,
}

struct Trees {
    records: Masstree,
    /// Deleted records that have left the first tree and that snapshots still need.
    deleted: Masstree,
}

// SAFETY: the trees are Sync, and they are taken out only in `take_apart`, whose caller vouches that nobody shares them.
unsafe impl Sync for Store {}

impl Store {
    /// Returns a store without records.
    pub(crate) fn new(id: TableId, guard: &Guard<'_>) -> Result<Self, OutOfMemory> {
        let account = AccountId(id.0);
        let records = Masstree::new(guard, account)?;
        match Masstree::new(guard, account) {
            Ok(deleted) => {
                let trees = UnsafeCell::new(Trees { records, deleted });
                Ok(Store { id, is_dropped: AtomicBool::new(false), trees })
            }
            Err(error) => {
                records.into_drain().step(guard, usize::MAX, |_| ());
                Err(error)
            }
        }
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
        &self.trees().records
    }

    /// Returns the tree of deleted records for snapshots, under the same condition.
    #[inline]
    pub(crate) fn deleted(&self) -> &Masstree {
        &self.trees().deleted
    }

    #[inline]
    fn trees(&self) -> &Trees {
        // SAFETY: they are taken out only in `take_apart`, when no transaction is left that has found the store.
        unsafe { &*self.trees.get() }
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
        scan_tree(self.index(), bounds, direction, guard, visitor);
    }

    /// Begins to take the trees apart. A record in the second is owned by the worker that deleted it.
    ///
    /// # Safety
    /// Nobody else uses the trees, now or later: the store was dropped and every transaction of that time has ended, or nobody has seen
    /// the store. This is called once.
    pub(crate) unsafe fn take_apart(&self) -> [Drain; 2] {
        // SAFETY: the caller's promise makes this the last use of the field, which has nothing to drop.
        let Trees { records, deleted } = unsafe { self.trees.get().read() };
        [records, deleted].map(Masstree::into_drain)
    }

    pub(crate) fn mark_dropped(&self) {
        // Release: [drop].
        self.is_dropped.store(true, Ordering::Release);
    }
}

/// Shows the visitor the keys of a tree within the bounds, in the order that `direction` says.
#[inline]
pub(crate) fn scan_tree(
    tree: &Masstree,
    bounds: KeyBounds<'_>,
    direction: Direction,
    guard: &Guard<'_>,
    visitor: &mut impl ScanVisitor,
) {
    let direction = match direction {
        Direction::Forward => ensilo_index::Direction::Forward,
        Direction::Reverse => ensilo_index::Direction::Reverse,
    };
    tree.scan(bounds, direction, guard, visitor);
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
