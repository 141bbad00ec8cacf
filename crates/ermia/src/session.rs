//! Sessions: one user's way into the engine.

use std::fmt;
use std::sync::Arc;

use ensilo_engine::history::TransactionRecord;
use ensilo_engine::{Remains, Session, WorkerCounters};
use ensilo_epoch::{Guard, Participant};
use ensilo_sync::Backoff;

use crate::context::Context;
use crate::engine::Ermia;
use crate::garbage::Garbage;
use crate::handle::ErmiaHandle;
use crate::isolation::{Isolation, Serializable};
use crate::prefetch::prefetch_records;
use crate::shared::ErmiaShared;
use crate::snapshot::Snapshot;
use crate::stamp::Stamp;
use crate::store::ErmiaStore;
use crate::transaction::Transaction;
use crate::transaction_table::Entry;

/// Retired memory that a session frees at most when a transaction begins.
const RETIRED_BUDGET: usize = 64;

/// What a session has that the next one can go on with.
#[derive(Debug)]
pub(crate) struct SessionState<I: Isolation> {
    pub(crate) participant: Participant,
    pub(crate) context: Context<I>,
    pub(crate) garbage: Garbage<I>,
    /// Its place in the table of transactions, which it keeps as long as there are enough.
    slot: Option<u16>,
}

impl<I: Isolation> SessionState<I> {
    pub(crate) fn new(participant: Participant) -> Self {
        let context = Context::new(Arc::clone(participant.heap().pool()));
        SessionState { participant, context, garbage: Garbage::new(), slot: None }
    }

    /// Returns the place in the table. Where there is none, it waits for one.
    #[inline]
    fn claim_slot(&mut self, shared: &ErmiaShared) -> u16 {
        if let Some(slot) = self.slot
            && !shared.table.is_crowded()
        {
            return slot;
        }
        self.claim_otherwise(shared)
    }

    #[cold]
    fn claim_otherwise(&mut self, shared: &ErmiaShared) -> u16 {
        let mut backoff = Backoff::new();
        loop {
            if let Some(slot) = self.slot.or_else(|| shared.table.claim()) {
                self.slot = Some(slot);
                return slot;
            }
            backoff.wait();
        }
    }

    /// Gives the place back, if others may need it.
    pub(crate) fn release_slot(&mut self, shared: &ErmiaShared) {
        if let Some(slot) = self.slot.take() {
            shared.table.release(slot);
        }
    }

    /// Gets ready for a transaction: ends one that was leaked, and frees some of the garbage.
    #[inline]
    fn prepare(&mut self, shared: &ErmiaShared) -> u16 {
        let _epochs = crate::region::epochs();
        let slot = self.claim_slot(shared);
        if shared.table.entry(slot).has_begun() {
            self.end_forgotten(shared, slot);
        }
        shared.keep_up();
        self.participant.collect(RETIRED_BUDGET);
        let SessionState { participant, context, garbage, .. } = self;
        collect_garbage(shared, shared.table.entry(slot), participant, garbage, &context.counters);
        slot
    }

    /// Ends a transaction of either kind that was leaked.
    #[cold]
    fn end_forgotten(&mut self, shared: &ErmiaShared, slot: u16) {
        let SessionState { participant, context, garbage, .. } = self;
        if context.is_open {
            Transaction::end_forgotten(shared, participant, context, garbage, slot);
        }
        shared.table.entry(slot).end();
        self.context.clear();
        self.participant.end_leaked_pins();
    }

    /// Hands `look` a pin and a stamp at which it may look at versions as a transaction that has begun there, outside of one.
    pub(crate) fn look<R>(&mut self, shared: &ErmiaShared, look: impl FnOnce(&Guard<'_>, Stamp) -> R) -> R {
        let slot = self.prepare(shared);
        look_at(shared, shared.table.entry(slot), &self.participant, look)
    }

    /// Frees a bounded amount of garbage.
    pub(crate) fn collect(&mut self, shared: &ErmiaShared) -> Remains {
        self.prepare(shared);
        self.remains(shared)
    }

    pub(crate) fn remains(&self, shared: &ErmiaShared) -> Remains {
        let horizon = shared.epochs.memory_horizon();
        if self.garbage.is_ripe(shared) || self.participant.retired_before(horizon) > 0 {
            Remains::Now
        } else if self.garbage.is_empty() && !self.participant.has_retired() {
            Remains::Nothing
        } else {
            Remains::Later
        }
    }
}

/// Frees a bounded amount of a session's garbage, between its transactions.
#[inline]
pub(crate) fn collect_garbage<I: Isolation>(
    shared: &ErmiaShared,
    entry: &Entry,
    participant: &Participant,
    garbage: &mut Garbage<I>,
    counters: &WorkerCounters,
) {
    if garbage.is_ripe(shared) {
        look_at(shared, entry, participant, |guard, _| garbage.collect(shared, guard, counters));
    }
}

/// Begins at a place of the table, for a look at versions.
fn look_at<R>(
    shared: &ErmiaShared,
    entry: &Entry,
    participant: &Participant,
    look: impl FnOnce(&Guard<'_>, Stamp) -> R,
) -> R {
    let now = |_: &Guard<'_>| shared.clock.now();
    let tick = shared.epochs.last_tick();
    let (guard, begin) = shared.horizon.enter_and_look(entry, tick, || participant.pin(), now);
    let _end = EndOnDrop(entry);
    look(&guard, begin)
}

/// Ends what was begun at a place of the table, also behind a panic.
struct EndOnDrop<'e>(&'e Entry);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Runs transactions, one at a time.
pub struct ErmiaSession<I: Isolation = Serializable> {
    engine: Arc<Ermia<I>>,
    /// Present until the session is dropped.
    state: Option<Box<SessionState<I>>>,
}

impl<I: Isolation> ErmiaSession<I> {
    pub(crate) fn new(engine: Arc<Ermia<I>>, state: Box<SessionState<I>>) -> Self {
        ErmiaSession { engine, state: Some(state) }
    }

    #[inline]
    fn parts(&mut self) -> (&ErmiaShared, &mut SessionState<I>) {
        match &mut self.state {
            Some(state) => (&self.engine.shared, state),
            None => unreachable!("the state leaves in drop only"),
        }
    }
}

// SAFETY: a transaction of either kind owns the guard of its session's participant, from beginning to end.
unsafe impl<I: Isolation> Session for ErmiaSession<I> {
    type Store = ErmiaStore;
    type Found = ErmiaHandle;
    type Transaction<'s> = Transaction<'s, I>;
    type Snapshot<'s> = Snapshot<'s, I>;

    const PREFETCHES: bool = true;

    #[inline]
    fn begin(&mut self) -> Transaction<'_, I> {
        let _engine = crate::region::engine();
        let (shared, state) = self.parts();
        let slot = state.prepare(shared);
        let SessionState { participant, context, garbage, .. } = state;
        Transaction::open(shared, participant, context, garbage, slot)
    }

    fn begin_snapshot(&mut self) -> Snapshot<'_, I> {
        let _engine = crate::region::engine();
        let (shared, state) = self.parts();
        let slot = state.prepare(shared);
        let SessionState { participant, context, .. } = state;
        Snapshot::open(shared, participant, context, slot)
    }

    fn favor_next(&mut self) {
        self.parts().1.context.favor_next = true;
    }

    fn prefetch<'k>(&mut self, count: usize, key: impl Fn(usize) -> (&'k ErmiaStore, &'k [u8])) {
        let _engine = crate::region::engine();
        let (shared, state) = self.parts();
        state.look(shared, |guard, _| prefetch_records::<I>(shared, guard, count, key));
    }

    fn counters(&mut self) -> Arc<WorkerCounters> {
        Arc::clone(&self.parts().1.context.counters)
    }

    fn remains(&mut self) -> Remains {
        let (shared, state) = self.parts();
        state.remains(shared)
    }

    fn collect(&mut self) -> Remains {
        let (shared, state) = self.parts();
        let remains = state.collect(shared);
        if shared.table.is_crowded() {
            state.release_slot(shared);
        }
        remains
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

impl<I: Isolation> Drop for ErmiaSession<I> {
    fn drop(&mut self) {
        if let Some(mut state) = self.state.take() {
            // Ends a transaction that was leaked.
            state.collect(&self.engine.shared);
            state.release_slot(&self.engine.shared);
            state.context.favor_next = false;
            self.engine.give_back(state);
        }
    }
}

impl<I: Isolation> fmt::Debug for ErmiaSession<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ErmiaSession").field("engine", &self.engine).finish_non_exhaustive()
    }
}
