//! A worker: one thread's way into the engine.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use ensilo_engine::{Remains, WorkerCounters};
use ensilo_epoch::{Epoch, Participant};

use crate::engine::{Shared, Silo};
use crate::silo::{self, Context, Snapshot, Standard, Transaction, Variant};
use ensilo_engine::history::TransactionRecord;

/// How often [`Heap::lend`](ensilo_slab::Heap::lend) asks whether it goes on, before a worker that lends between two transactions says no.
const LEND_STEPS: u32 = 4;

/// What stays of a worker when its thread leaves and another one takes over.
pub(crate) struct WorkerState<V: Variant> {
    pub(crate) participant: Participant,
    pub(crate) context: Context,
    variant: PhantomData<V>,
    /// The last tick after which this worker has freed all that was ripe: until the next one there is nothing to do.
    collected_at: Epoch,
    /// The last shortage of memory in which this worker has lent what it had free.
    lent_in: u64,
}

impl<V: Variant> WorkerState<V> {
    pub(crate) fn new(participant: Participant) -> Self {
        let context = Context::new(Arc::clone(participant.heap().pool()));
        WorkerState { participant, context, variant: PhantomData, collected_at: Epoch::new(0), lent_in: 0 }
    }

    /// What waits to be freed, as far as `tick` tells.
    pub(crate) fn remains(&self, tick: Epoch) -> Remains {
        if !self.participant.has_retired() && !self.has_garbage() {
            Remains::Nothing
        } else if self.collected_at == tick {
            Remains::Later
        } else {
            Remains::Now
        }
    }

    /// Whether [`silo::collect`] has something left to free, now or later, beside what the participant has retired.
    fn has_garbage(&self) -> bool {
        V::COLLECTS && !self.context.garbage.is_empty()
    }

    /// Frees a bounded amount of garbage, unless this worker has freed all that was ripe at `tick`.
    #[inline]
    pub(crate) fn collect(&mut self, shared: &Shared) {
        let tick = shared.epochs.last_tick();
        if self.collected_at != tick {
            self.collect_ripe(shared, tick);
        }
    }

    #[cold]
    fn collect_ripe(&mut self, shared: &Shared, tick: Epoch) {
        if silo::collect::<V>(shared, &self.participant, &mut self.context) {
            self.collected_at = tick;
        }
        if self.lent_in != self.participant.heap().pool().shortages() {
            self.lend_some();
        }
    }

    /// Lends some of the free memory, because others have found none.
    #[cold]
    fn lend_some(&mut self) {
        let heap = self.participant.heap();
        self.lent_in = heap.pool().shortages();
        let steps = Cell::new(0);
        heap.lend(&|| steps.replace(steps.get() + 1) >= LEND_STEPS);
    }
}

/// Runs transactions, one at a time. Dropping it leaves its memory to the next worker, and its garbage to
/// [`Silo::collect_left_behind`].
pub struct Worker<V: Variant = Standard> {
    engine: Arc<Silo<V>>,
    /// Present until the worker is dropped.
    state: Option<Box<WorkerState<V>>>,
}

impl<V: Variant> Worker<V> {
    pub(crate) fn new(engine: Arc<Silo<V>>, state: Box<WorkerState<V>>) -> Self {
        Worker { engine, state: Some(state) }
    }

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
            self.engine.park(state);
        }
    }
}

impl<V: Variant> fmt::Debug for Worker<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("engine", &self.engine).finish_non_exhaustive()
    }
}
