//! A dropped store, until its memory is free.

use std::sync::Arc;

use ensilo_epoch::{Epoch, Guard};
use ensilo_index::Drain;
use ensilo_sync::atomic::Ordering;

use crate::cold::{COOLING, ColdWord};
use crate::isolation::Isolation;
use crate::oid_array::{DEAD, Oid, OidArray};
use crate::shared::ErmiaShared;
use crate::store::{ErmiaStore, Parts};
use crate::version::Version;

/// A dropped store. The transactions that may use it have to end before its memory can go.
#[derive(Debug)]
pub(crate) struct DroppedStore {
    store: Arc<ErmiaStore>,
    pub(crate) epoch: Epoch,
    /// What is left of it, once it is being taken apart.
    rest: Option<(Drain, OidArray)>,
}

impl DroppedStore {
    /// Returns a store that was dropped in `epoch`.
    pub(crate) fn new(store: Arc<ErmiaStore>, epoch: Epoch) -> Self {
        DroppedStore { store, epoch, rest: None }
    }

    /// Frees some nodes, and the records that they lead to, of a store that no transaction can reach; true when nothing is left. Versions
    /// that were overwritten are with the sessions that have overwritten them.
    pub(crate) fn free_some<I: Isolation>(
        &mut self,
        shared: &ErmiaShared,
        guard: &Guard<'_>,
        nodes_max: usize,
    ) -> bool {
        let DroppedStore { store, rest, .. } = self;
        if rest.is_none() {
            // SAFETY: the store was dropped in an epoch before the memory horizon: whoever pinned before has ended, and whoever
            // pinned after saw the flag.
            let parts = unsafe { store.take_apart() };
            *rest = parts.map(|Parts { index, records }| (index.into_drain(), records));
        }
        let Some((index, records)) = rest else { return true };
        index.step(guard, nodes_max, |value| {
            // SAFETY: the value was read from the store's index, under a pin.
            let word = records.slot(unsafe { Oid::from_index_value(value) }).load(Ordering::Acquire);
            if let Some(place) = ColdWord::from_slot(word) {
                shared.cold_rows().forget(place);
            } else if word != DEAD {
                // SAFETY: the newest version of a record that nobody else can reach: it was not overwritten, so no session frees it.
                let version = unsafe { Version::<I>::from_word(word & !COOLING) };
                // SAFETY: as above.
                version.into_iter().for_each(|version| unsafe { version.free(guard) });
            }
        })
    }
}
