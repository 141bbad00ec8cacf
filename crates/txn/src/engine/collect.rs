//! What workers and stores leave behind when they go, and how it is freed in pieces by a thread in the background.
//!
//! Workers free their own garbage between transactions and nothing else, so that nobody pays for what others left.

use ensilo_engine::Remains;

use super::Silo;
use super::dropped_store::DroppedStore;
use crate::registry::lock;
use crate::silo::{Variant, free_garbage};
use crate::worker_state::WorkerState;

/// How many nodes of dropped stores a step takes apart, with all records in them.
const NODES_MAX: usize = 16;

/// How many blocks of retired memory a step frees.
const BLOCKS_MAX: usize = 64;

impl<V: Variant> Silo<V> {
    /// Calls `work` for the state of each worker that has left. A thread that comes meanwhile takes over another worker, or makes one.
    pub(super) fn for_each_parked(&self, mut work: impl FnMut(&WorkerState<V>)) {
        for _ in 0..self.parked.len() {
            let Some(state) = self.parked.pop_oldest() else { break };
            work(&state);
            self.parked.push(state);
        }
    }

    /// One parked worker at a time: a thread that wants to take one over waits for no more than that.
    pub(super) fn collect_parked(&self) -> Remains {
        let tick = self.shared.epochs.last_tick();
        self.parked.visit(|parked| {
            if let Some(state) = parked.iter_mut().find(|state| state.remains(tick) == Remains::Now) {
                state.collect(&self.shared);
            }
            parked.iter().map(|state| state.remains(tick)).max().unwrap_or(Remains::Nothing)
        })
    }

    pub(super) fn collect_dropped(&self) -> Remains {
        self.dropped.visit(|dropped| {
            let horizon = self.shared.epochs.memory_horizon();
            // A prepared transaction is not pinned: it says which stores it uses.
            let is_unused = |dropped: &DroppedStore| {
                dropped.epoch < horizon && !self.shared.prepared.uses_store(dropped.store.id())
            };
            let Some(at) = dropped.iter().position(is_unused) else {
                return if dropped.is_empty() { Remains::Nothing } else { Remains::Later };
            };
            let participant = lock(&self.participant);
            if dropped[at].free_some::<V>(&self.shared.stores, &participant.pin(), NODES_MAX) {
                dropped.swap_remove(at);
            }
            Remains::Now
        })
    }

    /// Frees some of what the trees of dropped stores consisted of, and of what participants left when they went.
    pub(super) fn collect_retired(&self) -> Remains {
        let participant = lock(&self.participant);
        if participant.collect(BLOCKS_MAX) == BLOCKS_MAX {
            Remains::Now
        } else if participant.has_retired() || self.shared.epochs.has_orphans() {
            Remains::Later
        } else {
            Remains::Nothing
        }
    }
}

impl<V: Variant> Silo<V> {
    /// Frees all stores, when no transaction will run any more.
    fn free_stores(&self) {
        let participant = self.shared.epochs.participant();
        let in_use = self.shared.stores.all().into_iter();
        let in_use = in_use.map(|store| DroppedStore::new(store, participant.global_epoch()));
        for mut dropped in self.dropped.take().into_iter().chain(in_use) {
            dropped.free_some::<V>(&self.shared.stores, &participant.pin(), usize::MAX);
        }
    }
}

impl<V: Variant> Drop for Silo<V> {
    /// Slabs go as a whole; records that lie elsewhere are freed one by one.
    fn drop(&mut self) {
        // No worker is left: each has a reference to the engine.
        if !V::SLABS {
            self.free_stores();
        }
        for mut state in self.parked.take() {
            free_garbage::<V>(&state.participant, std::mem::take(&mut state.context.garbage));
        }
    }
}
