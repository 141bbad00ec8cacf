//! The set of indexes that writers of a table keep: read by every write, changed by `create_index` and
//! `drop_index`.
//!
//! A reader loads one pointer and writes nothing. A changer publishes a new set and keeps the old one until
//! every transaction that may have loaded it has ended.
//!
//! # Invariants
//! - X1: a set is freed only when the memory horizon has passed the epoch that was read after it was
//!   replaced: every transaction that may have loaded it has ended then, since each is pinned in these epochs
//!   ([`ensilo_engine::Session`]).
//! - X2: a [`Pinned`] is copied out of a transaction by the statements of this crate only, and each is done
//!   with what it loaded before it returns, so while the transaction is under way.
//!
//! # Memory ordering
//! | edge | from | to | what it carries |
//! |---|---|---|---|
//! | `[index-set]` | `publish`: `current` Release | `load`: `current` Acquire | the set and the indexes in it |

#![allow(unsafe_code, reason = "sets of indexes are read without a lock and freed by epochs")]

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};

use ensilo_engine::Store;
use ensilo_epoch::{Epoch, Epochs};
use ensilo_sync::unchecked::AtomicPtr;

use super::index_core::IndexCore;
use crate::mutex::lock;

/// Says that a transaction is under way; kept beside it.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Pinned<'t>(PhantomData<&'t ()>);

impl Pinned<'_> {
    /// # Safety
    /// The value is kept beside a transaction of the engine, and its copies are used while that is under way
    /// only.
    #[inline(always)]
    pub(crate) unsafe fn new() -> Self {
        Pinned(PhantomData)
    }
}

/// The indexes of a table.
pub(crate) struct IndexSet<S> {
    /// Those that writers keep.
    pub(crate) indexes: Box<[Arc<IndexCore<S>>]>,
    /// Those that writers leave alone, because they are broken or are not kept yet.
    not_kept: Box<[Arc<IndexCore<S>>]>,
    /// The columns that any of those names that are kept, or are about to be, as [`column_mask`] makes it.
    columns: u64,
}

/// The indexes of a table, those that its writers keep and the others. See the module's documentation.
pub(crate) struct IndexSetCell<S> {
    current: AtomicPtr<IndexSet<S>>,
    replaced: Mutex<Vec<Replaced<S>>>,
}

struct Replaced<S> {
    /// From `Box::into_raw`. Not a Box: transactions may hold references until the horizon has passed.
    set: *mut IndexSet<S>,
    epoch: Epoch,
}

// SAFETY: the set is shared by reference until it is freed, and what it holds may be dropped on any thread.
unsafe impl<S> Send for Replaced<S> where IndexSet<S>: Send + Sync {}

impl<S: Store> IndexSet<S> {
    pub(crate) fn new(indexes: Vec<Arc<IndexCore<S>>>) -> Self {
        let announced = indexes.iter().filter(|index| index.is_or_will_be_kept());
        let columns = announced.flat_map(|index| index.schema.parts());
        let columns = columns.fold(0, |mask, part| mask | column_mask(&[part.column]));
        let (indexes, not_kept): (Vec<_>, Vec<_>) = indexes.into_iter().partition(|index| index.is_kept());
        IndexSet { indexes: indexes.into(), not_kept: not_kept.into(), columns }
    }

    /// Returns whether any index that is kept, or is about to be, names a column of `mask`. Never says no wrongly.
    #[inline(always)]
    pub(crate) fn touches(&self, mask: u64) -> bool {
        self.columns & mask != 0
    }
}

/// One bit a column; all columns from number 63 on share the last one.
pub(crate) const fn column_mask(columns: &[usize]) -> u64 {
    let mut mask = 0;
    let mut at = 0;
    while at < columns.len() {
        mask |= 1 << if columns[at] < 63 { columns[at] } else { 63 };
        at += 1;
    }
    mask
}

impl<S> Default for IndexSet<S> {
    fn default() -> Self {
        IndexSet { indexes: Box::default(), not_kept: Box::default(), columns: 0 }
    }
}

impl<S> Default for IndexSetCell<S> {
    fn default() -> Self {
        let current = Box::into_raw(Box::new(IndexSet::default()));
        IndexSetCell { current: AtomicPtr::new(current), replaced: Mutex::default() }
    }
}

impl<S: Store> IndexSetCell<S> {
    /// Returns the set that is in force.
    #[inline(always)]
    pub(crate) fn load<'p>(&'p self, _pinned: Pinned<'p>) -> &'p IndexSet<S> {
        // Acquire: [index-set].
        let current = self.current.load(Ordering::Acquire);
        // SAFETY: the pointer came from a Box. By X2 a transaction is under way as long as the reference
        // lives, and by X1 the set outlives it.
        unsafe { &*current }
    }

    /// Returns the indexes that are in force, broken ones too, for callers outside of transactions.
    pub(crate) fn snapshot(&self) -> Vec<Arc<IndexCore<S>>> {
        let _replaced = lock(&self.replaced);
        // SAFETY: sets are replaced and freed under the lock only.
        let current = unsafe { &*self.current.load(Ordering::Acquire) };
        [&*current.indexes, &*current.not_kept].concat()
    }

    /// Puts another set in force: transactions that begin after this call see it.
    pub(crate) fn publish(&self, indexes: Vec<Arc<IndexCore<S>>>, epochs: &Epochs) {
        let mut replaced = lock(&self.replaced);
        let fresh = Box::into_raw(Box::new(IndexSet::new(indexes)));
        // Release: [index-set].
        let old = self.current.swap(fresh, Ordering::AcqRel);
        // Two stores in a row on either side (this one and the epoch, the pin and this one): the epoch must
        // not be read before the new set can be seen, or the old one would count as older than it is.
        fence(Ordering::SeqCst);
        replaced.push(Replaced { set: old, epoch: epochs.global_epoch() });
        let horizon = epochs.memory_horizon();
        replaced.retain(|replaced| {
            let is_needed = replaced.epoch >= horizon;
            if !is_needed {
                // SAFETY: made by `Box::into_raw`, taken out of the cell once, removed from this list now;
                // X1.
                drop(unsafe { Box::from_raw(replaced.set) });
            }
            is_needed
        });
    }
}

impl<S> Drop for IndexSetCell<S> {
    fn drop(&mut self) {
        let current = *self.current.get_mut();
        let replaced = self
            .replaced
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .drain(..)
            .map(|replaced| replaced.set)
            .collect::<Vec<_>>();
        for set in replaced.into_iter().chain([current]) {
            // SAFETY: made by `Box::into_raw`, and in one place only; nobody borrows the cell any more.
            drop(unsafe { Box::from_raw(set) });
        }
    }
}

impl<S: Store> fmt::Debug for IndexSetCell<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.snapshot()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_a_bit_for_every_column() {
        assert_eq!(column_mask(&[]), 0);
        assert_eq!(column_mask(&[0, 5]), 0b10_0001);
        assert_eq!(column_mask(&[63]), column_mask(&[700]));
    }
}
