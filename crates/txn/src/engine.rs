//! The engine: what the workers of one database share.

mod collect;
mod dropped_store;
mod interface;

use std::fmt;
use std::io;
use std::sync::Arc;

use dropped_store::DroppedStore;
use ensilo_engine::{EngineOptions, WorkerCounters};
use ensilo_epoch::{Epochs, Participant};
use ensilo_slab::Pool;
use ensilo_sync::sync::Mutex;

use crate::registry::lock;
use crate::shared::SiloShared;
use crate::silo::{Standard, Variant};
use crate::work_list::WorkList;
use crate::worker_state::WorkerState;

/// Silo's engine: one database's epochs, memory, stores and workers; `V` chooses among its variants at compile time.
pub struct Silo<V: Variant = Standard> {
    pub(crate) shared: SiloShared,
    /// States of workers that have left: the next worker goes on with one. Their garbage is collected meanwhile.
    parked: WorkList<Box<WorkerState<V>>>,
    dropped: WorkList<DroppedStore>,
    counters: Mutex<Vec<Arc<WorkerCounters>>>,
    /// For what is done outside transactions: making the root of a new store.
    participant: Mutex<Participant>,
}

impl<V: Variant> Silo<V> {
    /// Returns an engine without stores; its epoch thread runs until the engine goes. Memory that cannot be had in advance is taken
    /// when it is needed.
    ///
    /// # Errors
    /// When the system gives no thread for the epochs.
    fn new(options: EngineOptions) -> io::Result<Self> {
        let pool = Pool::new(options.memory_limit_bytes);
        // A refusal is no failure yet: a transaction that finds no memory aborts.
        let _ = pool.prefault(options.prefault_bytes);
        let epochs = Epochs::try_new(options.epochs, pool)?;
        let participant = Mutex::new(epochs.participant());
        Ok(Silo {
            shared: SiloShared::new(epochs, options.snapshot_age_max),
            parked: WorkList::new(),
            dropped: WorkList::new(),
            counters: Mutex::new(Vec::new()),
            participant,
        })
    }

    /// Returns the state of a worker that has left, or a new one.
    pub(crate) fn take_state(&self) -> Box<WorkerState<V>> {
        self.parked.pop().unwrap_or_else(|| {
            let state = WorkerState::new(self.shared.epochs.participant());
            lock(&self.counters).push(Arc::clone(&state.context.counters));
            Box::new(state)
        })
    }

    /// Gives back the state of a worker that leaves.
    pub(crate) fn give_back(&self, state: Box<WorkerState<V>>) {
        self.parked.push(state);
    }
}

impl<V: Variant> fmt::Debug for Silo<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Silo").field("shared", &self.shared).finish_non_exhaustive()
    }
}
