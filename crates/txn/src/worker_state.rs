//! What stays of a worker when its thread leaves and another one takes over.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;

use ensilo_engine::Remains;
use ensilo_epoch::{Epoch, Participant};
use ensilo_sync::region::{self, Region};

use crate::shared::SiloShared;
use crate::silo::{Context, Variant, collect_garbage, take_out_deleted};

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

    /// Returns what waits to be freed, as far as `tick` tells.
    pub(crate) fn remains(&self, tick: Epoch) -> Remains {
        if !self.participant.has_retired() && !self.has_garbage() {
            Remains::Nothing
        } else if self.collected_at == tick && !self.context.garbage.has_unhooks() {
            Remains::Later
        } else {
            Remains::Now
        }
    }

    /// Returns whether [`collect_garbage`] has something left to free, now or later, beside what the participant has retired.
    fn has_garbage(&self) -> bool {
        V::COLLECTS && !self.context.garbage.is_empty()
    }

    /// Frees a bounded amount of garbage, unless this worker has freed all that was ripe at `tick`.
    #[inline]
    pub(crate) fn collect(&mut self, shared: &SiloShared) {
        let _epochs = region::enter(Region::Epochs);
        let tick = shared.epochs.last_tick();
        if self.collected_at != tick {
            self.collect_ripe(shared, tick);
        } else if self.context.garbage.has_unhooks() {
            take_out_deleted::<V>(shared, &self.participant, &mut self.context);
        }
    }

    #[cold]
    fn collect_ripe(&mut self, shared: &SiloShared, tick: Epoch) {
        if collect_garbage::<V>(shared, &self.participant, &mut self.context) {
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
