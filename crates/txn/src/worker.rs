//! A worker: one thread's way into the engine.

use std::fmt;
use std::sync::Arc;

use ensilo_engine::history::TransactionRecord;
use ensilo_engine::{Remains, WorkerCounters};

use crate::engine::Silo;
use crate::silo::{Snapshot, Standard, Transaction, Variant};
use crate::worker_state::WorkerState;

/// Runs transactions, one at a time. Dropping it leaves its memory to the next worker, and its garbage to
/// [`Silo::collect_orphaned`].
pub struct Worker<V: Variant = Standard> {
    engine: Arc<Silo<V>>,
    /// Present until the worker is dropped.
    state: Option<Box<WorkerState<V>>>,
}

impl<V: Variant> Silo<V> {
    /// A worker for the calling thread. It takes over from one that has left, if there is one: its last TID, its memory and its garbage.
    #[must_use]
    pub fn worker(self: &Arc<Self>) -> Worker<V> {
        let mut state = self.take_state();
        if let Some(log) = self.shared.log.get() {
            state.context.log.get_or_insert_with(|| log.writer());
        }
        Worker { engine: Arc::clone(self), state: Some(state) }
    }
}

impl<V: Variant> Worker<V> {
    /// The engine that this worker belongs to.
    #[must_use]
    pub fn engine(&self) -> &Arc<Silo<V>> {
        &self.engine
    }

    /// Begins a read-write transaction. Between transactions, so here, the worker frees a bounded amount of its garbage.
    #[inline]
    pub fn begin(&mut self) -> Transaction<'_, V> {
        let (engine, state) = self.parts();
        state.collect(&engine.shared);
        Transaction::begin(&engine.shared, &mut state.participant, &mut state.context)
    }

    /// Begins a read-only transaction on the newest snapshot, which is at most about two snapshot intervals old.
    #[inline]
    pub fn begin_snapshot(&mut self) -> Snapshot<'_, V> {
        let (engine, state) = self.parts();
        state.collect(&engine.shared);
        Snapshot::begin(&engine.shared, &state.participant, &mut state.context)
    }

    /// Frees a bounded amount of the worker's garbage, as another thread may do while the worker has nothing to do.
    pub fn collect(&mut self) -> Remains {
        let (engine, state) = self.parts();
        state.collect(&engine.shared);
        self.remains()
    }

    /// What waits to be freed.
    pub fn remains(&mut self) -> Remains {
        let (engine, state) = self.parts();
        state.remains(engine.shared.epochs.last_tick())
    }

    /// Gives memory back, for any worker, that this one has whole and does not use. Takes a while, and ends early when interrupted. Returns
    /// how many bytes.
    pub fn trim(&mut self, is_interrupted: &dyn Fn() -> bool) -> u64 {
        self.parts().1.participant.heap().trim(is_interrupted)
    }

    /// Lends the memory that this worker has free to workers that find none under the limit.
    pub fn lend(&mut self, is_interrupted: &dyn Fn() -> bool) {
        self.parts().1.participant.heap().lend(is_interrupted);
    }

    /// What the worker counts.
    #[must_use]
    pub fn counters(&mut self) -> Arc<WorkerCounters> {
        Arc::clone(&self.parts().1.context.counters)
    }

    /// Takes the committed transactions that were recorded since the last call; empty unless the variant records.
    pub fn take_history(&mut self) -> Vec<TransactionRecord> {
        std::mem::take(&mut self.parts().1.context.history)
    }

    #[inline]
    pub(crate) fn parts(&mut self) -> (&Arc<Silo<V>>, &mut WorkerState<V>) {
        match &mut self.state {
            Some(state) => (&self.engine, state),
            None => unreachable!("the state leaves in drop only"),
        }
    }
}

impl<V: Variant> Drop for Worker<V> {
    fn drop(&mut self) {
        if let Some(state) = self.state.take() {
            self.engine.give_back(state);
        }
    }
}

impl<V: Variant> fmt::Debug for Worker<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("engine", &self.engine).finish_non_exhaustive()
    }
}
