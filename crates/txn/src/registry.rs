//! The stores of a database by id, found without a lock.
//!
//! Garbage names its store by id, because the store may be dropped before the garbage is ripe.

use std::collections::BTreeMap;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::Arc;

use ensilo_engine::TableId;
use ensilo_epoch::Epoch;
use ensilo_sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use ensilo_sync::sync::Mutex;

use crate::store::Store;

const BLOCK_BITS: u32 = 10;
const BLOCK_LEN: usize = 1 << BLOCK_BITS;
/// A model checker looks at every atomic one by one: one block is enough there.
const BLOCKS_MAX: usize =
    if cfg!(any(loom, shuttle)) { 1 } else { (TableId::MAX.0 as usize + 1) >> BLOCK_BITS };

type Block = Box<[AtomicPtr<Store>]>;

/// What the registry knows under an id.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Registered<'a> {
    /// A store in use.
    Store(&'a Store),
    /// A dropped store with a tree that still stands.
    Draining,
    /// A dropped store without its tree, or none yet.
    Gone,
}

/// Stands in a slot for [`Registered::Draining`] and, once the tree is gone, for an id that must not be used again.
const DRAINING: usize = 1;
const DRAINED: usize = 2;

/// Maps ids to stores. Ids are never used again, blocks of them are made when first needed and stay.
#[derive(Debug)]
pub(crate) struct StoreRegistry {
    blocks: Box<[AtomicPtr<Block>]>,
    /// Transactions that began before this epoch may have used a store that was dropped since.
    dropped_before: AtomicU64,
    /// Keeps every registered store alive, and serialises registration.
    owners: Mutex<BTreeMap<TableId, Arc<Store>>>,
}

impl StoreRegistry {
    pub(crate) fn new() -> Self {
        let blocks = (0..BLOCKS_MAX).map(|_| AtomicPtr::new(null_mut())).collect();
        StoreRegistry { blocks, dropped_before: AtomicU64::new(0), owners: Mutex::new(BTreeMap::new()) }
    }

    /// Returns the store under `id`, unless it was dropped; good as long as in [`Registry::get`].
    #[inline]
    pub(crate) fn store(&self, id: TableId) -> Option<&Store> {
        match self.get(id) {
            Registered::Store(store) => Some(store),
            Registered::Draining | Registered::Gone => None,
        }
    }

    /// Returns what stands under `id`. A reference is good while the caller is pinned: a dropped store is freed only when every
    /// transaction that is pinned at the drop has ended.
    pub(crate) fn get(&self, id: TableId) -> Registered<'_> {
        let Some(slot) = self.slot(id) else { return Registered::Gone };
        // Acquire: [register] the store is as complete as the pointer to it; [drain] a tree that is said to be gone is gone.
        let store = slot.load(Ordering::Acquire);
        match store.addr() {
            0 | DRAINED => Registered::Gone,
            DRAINING => Registered::Draining,
            // SAFETY: any other value is the address of a store; `remove` hands it to a caller who keeps it until no
            // pinned transaction can hold this reference.
            _ => Registered::Store(unsafe { &*store }),
        }
    }

    fn slot(&self, id: TableId) -> Option<&AtomicPtr<Store>> {
        let (block, at) = position(id);
        // Acquire: [register] a block is as complete as the pointer to it.
        let block = self.blocks[block].load(Ordering::Acquire);
        // SAFETY: blocks are freed only with the registry.
        unsafe { block.as_ref() }.map(|block| &block[at])
    }

    /// Registers `store`; false when its id has been used.
    pub(crate) fn insert(&self, store: &Arc<Store>) -> bool {
        let mut owners = lock(&self.owners);
        let (block, at) = position(store.id());
        let mut slots = self.blocks[block].load(Ordering::Acquire);
        if slots.is_null() {
            let fresh: Block = (0..BLOCK_LEN).map(|_| AtomicPtr::new(null_mut())).collect();
            slots = Box::into_raw(Box::new(fresh));
            // Release: [register].
            self.blocks[block].store(slots, Ordering::Release);
        }
        // SAFETY: non-null now, and blocks are freed only with the registry.
        let slot = unsafe { &(*slots)[at] };
        if !slot.load(Ordering::Relaxed).is_null() {
            return false;
        }
        // Release: [register].
        slot.store(Arc::as_ptr(store).cast_mut(), Ordering::Release);
        owners.insert(store.id(), Arc::clone(store));
        true
    }

    /// Takes the store under `id` out. The caller keeps it until every transaction that is pinned now has ended.
    pub(crate) fn remove(&self, id: TableId) -> Option<Arc<Store>> {
        let mut owners = lock(&self.owners);
        let store = owners.remove(&id)?;
        // Relaxed: who still sees the pointer is pinned, and the caller waits for them.
        self.slot(id)?.store(without_provenance_mut(DRAINING), Ordering::Relaxed);
        Some(store)
    }

    /// Says that transactions which began before `epoch` may have used a store that was dropped.
    pub(crate) fn set_dropped_before(&self, epoch: Epoch) {
        // Relaxed: the caller's heavy barrier follows.
        self.dropped_before.fetch_max(epoch.get(), Ordering::Relaxed);
    }

    /// Returns what was given to [`StoreRegistry::set_dropped_before`] last.
    #[inline]
    pub(crate) fn dropped_before(&self) -> Epoch {
        // Relaxed: a commit that writes looks behind the barrier that follows its locks, see `Silo::drop_store`. One that only reads
        // has no barrier and needs none: what it has read of a transaction that knew of the drop came to it behind that transaction's
        // TID, and the drop before that. Where such a transaction only read what another one then replaced, nothing carries the
        // drop from the one to the other but the heavy barrier of the drop, which stops every thread; without it, that all threads
        // see the stores of others in one order, as they do on the processors that Ensilo runs on.
        Epoch::new(self.dropped_before.load(Ordering::Relaxed))
    }

    /// Says that the tree of a store that was taken out is gone.
    pub(crate) fn set_drained(&self, id: TableId) {
        if let Some(slot) = self.slot(id) {
            // Release: [drain].
            slot.store(without_provenance_mut(DRAINED), Ordering::Release);
        }
    }

    /// Returns every registered store, by id.
    pub(crate) fn all(&self) -> Vec<Arc<Store>> {
        lock(&self.owners).values().cloned().collect()
    }
}

impl Drop for StoreRegistry {
    fn drop(&mut self) {
        for block in &mut self.blocks {
            let block = block.load(Ordering::Relaxed);
            if !block.is_null() {
                // SAFETY: made by `Box::into_raw` in `insert`, and nobody can hold a reference any more.
                drop(unsafe { Box::from_raw(block) });
            }
        }
    }
}

fn position(id: TableId) -> (usize, usize) {
    ((id.0 >> BLOCK_BITS) as usize, id.0 as usize & (BLOCK_LEN - 1))
}

/// Locks a mutex that guards what no holder leaves half done, so that a panic elsewhere does not matter.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> ensilo_sync::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
