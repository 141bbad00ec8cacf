//! A worker: one thread's way into the engine.

use std::fmt;
use std::sync::Arc;

use ensilo_engine::history::TransactionRecord;
use ensilo_engine::{Remains, Session, WorkerCounters};
use ensilo_sync::region::{self, Region};

use crate::engine::Silo;
use crate::handle::RecordHandle;
use crate::prefetch::prefetch_records;
use crate::silo::{Snapshot, Standard, Transaction, Variant};
use crate::store::Store;
use crate::worker_state::WorkerState;

/// Runs transactions, one at a time. Dropping it leaves its memory to the next worker, and its garbage to
/// [`Engine::collect_orphaned`](ensilo_engine::Engine::collect_orphaned).
pub struct Worker<V: Variant = Standard> {
    engine: Arc<Silo<V>>,
    /// Present until the worker is dropped.
    state: Option<Box<WorkerState<V>>>,
}

impl<V: Variant> Worker<V> {
    pub(crate) fn new(engine: Arc<Silo<V>>, state: Box<WorkerState<V>>) -> Self {
        Worker { engine, state: Some(state) }
    }

    /// Returns the engine that this worker belongs to.
    #[must_use]
    pub fn engine(&self) -> &Arc<Silo<V>> {
        &self.engine
    }

    #[inline]
    pub(crate) fn parts(&mut self) -> (&Arc<Silo<V>>, &mut WorkerState<V>) {
        match &mut self.state {
            Some(state) => (&self.engine, state),
            None => unreachable!("the state leaves in drop only"),
        }
    }
}

// SAFETY: a transaction of either kind owns the guard of its worker's participant, from beginning to end.
unsafe impl<V: Variant> Session for Worker<V> {
    type Store = Store;
    type Found = RecordHandle;
    type Transaction<'s> = Transaction<'s, V>;
    type Snapshot<'s> = Snapshot<'s, V>;

    const PROTECTS: bool = true;
    const PREFETCHES: bool = true;

    #[inline]
    fn begin(&mut self) -> Transaction<'_, V> {
        let _engine = region::enter(Region::Engine);
        let (engine, state) = self.parts();
        state.collect(&engine.shared);
        Transaction::begin(&engine.shared, &mut state.participant, &mut state.context)
    }

    #[inline]
    fn begin_snapshot(&mut self) -> Snapshot<'_, V> {
        let _engine = region::enter(Region::Engine);
        let (engine, state) = self.parts();
        state.collect(&engine.shared);
        Snapshot::begin(&engine.shared, &mut state.participant, &mut state.context)
    }

    fn protect_next(&mut self) -> bool {
        let (engine, state) = self.parts();
        state.context.protect_next(&engine.shared)
    }

    fn prefetch<'k>(&mut self, count: usize, key: impl Fn(usize) -> (&'k Store, &'k [u8])) {
        let _engine = region::enter(Region::Engine);
        let (_, state) = self.parts();
        prefetch_records(&state.participant, count, key);
    }

    fn counters(&mut self) -> Arc<WorkerCounters> {
        Arc::clone(&self.parts().1.context.counters)
    }

    fn remains(&mut self) -> Remains {
        let (engine, state) = self.parts();
        state.remains(engine.shared.epochs.last_tick())
    }

    fn collect(&mut self) -> Remains {
        let (engine, state) = self.parts();
        state.collect(&engine.shared);
        self.remains()
    }

    fn trim(&mut self, is_interrupted: &dyn Fn() -> bool) -> u64 {
        self.parts().1.participant.heap().trim(is_interrupted)
    }

    fn lend(&mut self, is_interrupted: &dyn Fn() -> bool) {
        self.parts().1.participant.heap().lend(is_interrupted);
    }

    fn take_history(&mut self) -> Vec<TransactionRecord> {
        std::mem::take(&mut self.parts().1.context.history)
    }
}

impl<V: Variant> Drop for Worker<V> {
    fn drop(&mut self) {
        if let Some(mut state) = self.state.take() {
            state.context.give_up_turn(&self.engine.shared);
            self.engine.give_back(state);
        }
    }
}

impl<V: Variant> fmt::Debug for Worker<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("engine", &self.engine).finish_non_exhaustive()
    }
}
