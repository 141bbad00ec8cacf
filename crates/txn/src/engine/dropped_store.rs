//! A dropped store, until its memory is free.

use std::sync::Arc;

use ensilo_epoch::{Epoch, Guard};
use ensilo_index::Drain;

use crate::record::RecordPtr;
use crate::registry::StoreRegistry;
use crate::silo::Variant;
use crate::store::Store;

/// A dropped store. The transactions that may use it have to end before its memory can go.
#[derive(Debug)]
pub(super) struct DroppedStore {
    pub(super) store: Arc<Store>,
    pub(super) epoch: Epoch,
    /// What is left of its trees, once they are being taken apart.
    drains: Option<[Drain; 2]>,
}

impl DroppedStore {
    /// Returns a store that was dropped in `epoch`.
    pub(super) fn new(store: Arc<Store>, epoch: Epoch) -> Self {
        DroppedStore { store, epoch, drains: None }
    }

    /// Frees some nodes, and the records in them, of a store that no transaction can reach; true when nothing is left.
    pub(super) fn free_some<V: Variant>(
        &mut self,
        stores: &StoreRegistry,
        guard: &Guard<'_>,
        nodes_max: usize,
    ) -> bool {
        let DroppedStore { store, drains, .. } = self;
        // SAFETY: the store was dropped in an epoch before the memory horizon: whoever pinned before has ended, and whoever
        // pinned after saw the flag and left the tree alone. `drains` remembers that it was done.
        let [records, deleted] = drains.get_or_insert_with(|| unsafe { store.take_apart() });
        let is_empty = records.step(guard, nodes_max, |value| {
            // SAFETY: the values of a store's tree are its records, which nobody else can reach; a deleted record belongs
            // to the unhook list of the worker that deleted it, which retires it when it finds the store gone.
            unsafe {
                let record = RecordPtr::from_index_value(value);
                if record.belongs_to_unhook() {
                } else if V::SLABS {
                    record.free(guard);
                } else {
                    record.free_general(guard);
                }
            }
        });
        // Its records stand on the lists of the workers that deleted them.
        let is_empty = is_empty && deleted.step(guard, nodes_max, |_| ());
        if is_empty {
            stores.set_drained(store.id());
        }
        is_empty
    }
}
