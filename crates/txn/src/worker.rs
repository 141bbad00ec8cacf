//! A worker: one thread's way into the engine.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use ensilo_engine::{Remains, WorkerCounters};
use ensilo_epoch::{Epoch, Participant};

use crate::engine::{Engine, Shared};
use crate::protocol::Protocol;
use ensilo_engine::history::TransactionRecord;

/// How often [`Heap::lend`](ensilo_slab::Heap::lend) asks whether it goes on, before a worker that lends between two transactions says no.
const LEND_STEPS: u32 = 4;

/// What stays of a worker when its thread leaves and another one takes over.
pub(crate) struct WorkerState<P: Protocol> {
    pub(crate) participant: Participant,
    pub(crate) context: P::Context,
    /// The last tick after which this worker has freed all that was ripe: until the next one there is nothing to do.
    collected_at: Epoch,
    /// The last shortage of memory in which this worker has lent what it had free.
    lent_in: u64,
}

impl<P: Protocol> WorkerState<P> {
    pub(crate) fn new(participant: Participant) -> Self {
        let context = P::context(participant.heap().pool());
        WorkerState { participant, context, collected_at: Epoch::new(0), lent_in: 0 }
    }

    /// What waits to be freed, as far as `tick` tells.
    pub(crate) fn remains(&self, tick: Epoch) -> Remains {
        if !self.participant.has_retired() && !P::has_garbage(&self.context) {
            Remains::Nothing
        } else if self.collected_at == tick {
            Remains::Later
        } else {
            Remains::Now
        }
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
        if P::collect(shared, &self.participant, &mut self.context) {
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
/// [`Engine::collect_left_behind`].
pub struct Worker<P: Protocol> {
    engine: Arc<Engine<P>>,
    /// Present until the worker is dropped.
    state: Option<Box<WorkerState<P>>>,
}

impl<P: Protocol> Worker<P> {
    pub(crate) fn new(engine: Arc<Engine<P>>, state: Box<WorkerState<P>>) -> Self {
        Worker { engine, state: Some(state) }
    }

    /// The engine that this worker belongs to.
    #[must_use]
    pub fn engine(&self) -> &Arc<Engine<P>> {
        &self.engine
    }

    /// Begins a read-write transaction. Between transactions, so here, the worker frees a bounded amount of its garbage.
    #[inline]
    pub fn begin(&mut self) -> P::Transaction<'_> {
        let (engine, state) = self.parts();
        state.collect(&engine.shared);
        P::begin(&engine.shared, &mut state.participant, &mut state.context)
    }

    /// Begins a read-only transaction on the newest snapshot, which is at most about two snapshot intervals old.
    #[inline]
    pub fn begin_snapshot(&mut self) -> P::Snapshot<'_> {
        let (engine, state) = self.parts();
        state.collect(&engine.shared);
        P::begin_snapshot(&engine.shared, &state.participant, &mut state.context)
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
        Arc::clone(P::counters(&self.parts().1.context))
    }

    /// Takes the committed transactions that were recorded since the last call; empty unless the protocol records.
    pub fn take_history(&mut self) -> Vec<TransactionRecord> {
        P::take_history(&mut self.parts().1.context)
    }

    #[inline]
    pub(crate) fn parts(&mut self) -> (&Arc<Engine<P>>, &mut WorkerState<P>) {
        match &mut self.state {
            Some(state) => (&self.engine, state),
            None => unreachable!("the state leaves in drop only"),
        }
    }
}

impl<P: Protocol> Drop for Worker<P> {
    fn drop(&mut self) {
        if let Some(state) = self.state.take() {
            self.engine.park(state);
        }
    }
}

impl<P: Protocol> fmt::Debug for Worker<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("engine", &self.engine).finish_non_exhaustive()
    }
}
