//! A worker: one thread's way into the engine.

use std::fmt;
use std::sync::Arc;

use ensilo_epoch::{Epoch, Participant};

use crate::engine::Engine;
use crate::history::TransactionRecord;
use crate::protocol::Protocol;

/// What stays of a worker when its thread leaves and another one takes over.
pub(crate) struct WorkerState<P: Protocol> {
    pub(crate) participant: Participant,
    pub(crate) context: P::Context,
    /// The last tick after which this worker has freed all that was ripe: until the next one there is nothing to do.
    collected_at: Epoch,
}

impl<P: Protocol> WorkerState<P> {
    pub(crate) fn new(participant: Participant) -> Self {
        WorkerState { participant, context: P::context(), collected_at: Epoch::new(0) }
    }

    /// Whether there is garbage, ripe or not.
    pub(crate) fn has_garbage(&self) -> bool {
        self.participant.has_retired() || P::has_garbage(&self.context)
    }

    /// Frees a bounded amount of garbage; true when nothing ripe is left.
    #[cold]
    fn collect(&mut self, engine: &Engine<P>) -> bool {
        let is_own_done = P::collect(&engine.shared, &self.participant, &mut self.context);
        engine.collect_for_others(&self.participant) && is_own_done
    }
}

/// Runs transactions, one at a time. Dropping it leaves its memory and garbage to the workers that stay.
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

    /// Begins a read-write transaction. Between transactions, so here, the worker frees a bounded amount of garbage.
    #[inline]
    pub fn begin(&mut self) -> P::Transaction<'_> {
        self.collect();
        let (engine, state) = self.parts();
        P::begin(&engine.shared, &state.participant, &mut state.context)
    }

    /// Begins a read-only transaction on the newest snapshot, which is at most about two snapshot intervals old.
    #[inline]
    pub fn begin_snapshot(&mut self) -> P::Snapshot<'_> {
        self.collect();
        let (engine, state) = self.parts();
        P::begin_snapshot(&engine.shared, &state.participant, &mut state.context)
    }

    /// Frees a bounded amount of garbage: the worker's own and that of workers that have left.
    #[inline]
    pub fn collect(&mut self) {
        let (engine, state) = self.parts();
        let tick = engine.shared.epochs.last_tick();
        if state.collected_at != tick && state.collect(engine) {
            state.collected_at = tick;
        }
    }

    /// Takes the committed transactions that were recorded since the last call; empty unless the protocol records.
    pub fn take_history(&mut self) -> Vec<TransactionRecord> {
        P::take_history(&mut self.parts().1.context)
    }

    #[inline]
    fn parts(&mut self) -> (&Arc<Engine<P>>, &mut WorkerState<P>) {
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
