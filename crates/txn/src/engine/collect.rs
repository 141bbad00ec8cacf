//! What workers and stores leave behind when they go, and how it is freed in pieces by a thread in the background.
//!
//! Workers free their own garbage between transactions and nothing else, so that nobody pays for what others left.

use std::time::Duration;

use ensilo_engine::Remains;
use ensilo_epoch::Epoch;

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
    /// Frees a bounded amount of what nobody else sees to: the garbage of workers that have left, and dropped stores. Called again and
    /// again by one thread.
    pub fn collect_orphaned(&self) -> Remains {
        let parked = self.collect_parked();
        let dropped = self.collect_dropped();
        parked.max(dropped).max(self.collect_retired())
    }

    /// Whether so much of the memory that was taken from the system is free that trimming workers may bring something.
    #[must_use]
    pub fn is_sparse(&self) -> bool {
        self.pool.is_sparse()
    }

    /// Takes memory back, for any worker, that workers which have left have whole. Returns how many bytes.
    pub fn trim_orphaned(&self) -> u64 {
        let mut bytes = self.pool.trim_parked() + lock(&self.participant).heap().trim(&|| false);
        self.for_each_parked(|state| bytes += state.participant.heap().trim(&|| false));
        bytes
    }

    /// Whether a worker has found no memory under the limit since this was called last. Others may have some to
    /// [lend](crate::Worker::lend).
    pub fn take_shortage(&self) -> bool {
        self.pool.take_shortage()
    }

    /// Lends the free memory of workers that have left to those that find none.
    pub fn lend_orphaned(&self) {
        self.for_each_parked(|state| state.participant.heap().lend(&|| false));
    }

    /// Gives memory that was lent and not used back to where it came from, so that it can be free as a whole.
    pub fn return_lent_memory(&self) {
        self.pool.return_lent();
    }

    /// A thread that comes meanwhile takes over another worker, or makes one.
    fn for_each_parked(&self, mut work: impl FnMut(&WorkerState<V>)) {
        for _ in 0..self.parked.len() {
            let Some(state) = self.parked.pop_oldest() else { break };
            work(&state);
            self.parked.push(state);
        }
    }

    /// Gives memory back to the system that nobody has used for so long, except for a small reserve.
    pub fn return_unused_memory(&self, unused_for: Duration) -> u64 {
        self.pool.return_unused(unused_for)
    }

    /// The epoch that has to be durable before deleted records can leave their trees that no snapshot needs any more; `None` where none
    /// waits for that. While nothing is logged the durable epoch stands still, unless somebody asks for it.
    #[must_use]
    pub fn wanted_durable_epoch(&self) -> Option<Epoch> {
        let durable = self.shared.log.get()?.durable_epoch();
        let horizon = self.shared.epochs.snapshot_horizon();
        let is_held_back = self.shared.epochs.snapshot_of(durable) < horizon;
        let has_deleted = || lock(&self.counters).iter().any(|counters| counters.has_deleted_records());
        (is_held_back && has_deleted()).then_some(horizon)
    }

    /// One parked worker at a time: a thread that wants to take one over waits for no more than that.
    fn collect_parked(&self) -> Remains {
        let tick = self.shared.epochs.last_tick();
        self.parked.visit(|parked| {
            if let Some(state) = parked.iter_mut().find(|state| state.remains(tick) == Remains::Now) {
                state.collect(&self.shared);
            }
            parked.iter().map(|state| state.remains(tick)).max().unwrap_or(Remains::Nothing)
        })
    }

    fn collect_dropped(&self) -> Remains {
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

    /// What the trees of dropped stores consisted of, and what participants left when they went.
    fn collect_retired(&self) -> Remains {
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
