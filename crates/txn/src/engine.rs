//! The engine: what the workers of one database share.

mod collect;
mod dropped_store;
mod interface;

use std::fmt;
use std::sync::{Arc, OnceLock};

use dropped_store::DroppedStore;
use ensilo_engine::{
    EngineOptions, EngineStatistics, NewStoreError, TableId, TransactionStatistics, WorkerCounters,
};
use ensilo_epoch::{Epochs, Participant};
use ensilo_index::Masstree;
use ensilo_log::Log;
use ensilo_slab::{AccountId, Pool};
use ensilo_sync::barrier;
use ensilo_sync::sync::Mutex;

use crate::global_tid::GlobalTid;
use crate::registry::{StoreRegistry, lock};
use crate::shared::SiloShared;
use crate::silo::{PreparedRegistry, Standard, Variant};
use crate::store::Store;
use crate::work_list::WorkList;
use crate::worker_state::WorkerState;

/// Silo's engine: one database's epochs, memory, stores and workers; `V` chooses among its variants at compile time.
pub struct Silo<V: Variant = Standard> {
    pub(crate) shared: SiloShared,
    pool: Arc<Pool>,
    /// States of workers that have left: the next worker goes on with one. Their garbage is collected meanwhile.
    parked: WorkList<Box<WorkerState<V>>>,
    dropped: WorkList<DroppedStore>,
    counters: Mutex<Vec<Arc<WorkerCounters>>>,
    /// For what is done outside transactions: making the root of a new store.
    participant: Mutex<Participant>,
}

impl<V: Variant> Silo<V> {
    /// Starts an engine without stores; its epoch thread runs until the engine goes. Memory that cannot be had in advance is
    /// taken when it is needed.
    #[must_use]
    pub fn new(options: EngineOptions) -> Arc<Self> {
        let pool = Pool::new(options.memory_limit_bytes);
        // A refusal is no failure yet: whoever needs the memory will be told.
        let _ = pool.prefault(options.prefault_bytes);
        let snapshot_age_epochs_max =
            options.snapshot_age_max.saturating_mul(options.epochs.epochs_per_snapshot);
        let epochs = Epochs::new(options.epochs, Arc::clone(&pool));
        let participant = Mutex::new(epochs.participant());
        Arc::new(Silo {
            shared: SiloShared {
                epochs,
                stores: StoreRegistry::new(),
                global_tid: GlobalTid::new(),
                prepared: PreparedRegistry::new(Arc::clone(&pool)),
                log: OnceLock::new(),
                snapshot_age_epochs_max,
            },
            pool,
            parked: WorkList::new(),
            dropped: WorkList::new(),
            counters: Mutex::new(Vec::new()),
            participant,
        })
    }

    /// Makes all workers that begin from now on log what they commit.
    ///
    /// # Panics
    /// When the engine has a log.
    pub fn start_log(&self, log: Arc<Log>) {
        assert!(self.shared.log.set(log).is_ok(), "an engine has one log");
    }

    /// The engine's epochs.
    #[must_use]
    pub fn epochs(&self) -> &Arc<Epochs> {
        &self.shared.epochs
    }

    /// Makes an empty store under an id that was never used before.
    ///
    /// # Errors
    /// [`NewStoreError`]; nothing has changed.
    pub fn new_store(&self, id: TableId) -> Result<Arc<Store>, NewStoreError> {
        if id == TableId::NONE || id > TableId::MAX {
            return Err(NewStoreError::IdTaken(id));
        }
        let index = {
            let participant = lock(&self.participant);
            let guard = participant.pin();
            Masstree::new(&guard, AccountId(id.0)).map_err(NewStoreError::OutOfMemory)?
        };
        let store = Arc::new(Store::new(id, index));
        if self.shared.stores.insert(&store) {
            return Ok(store);
        }
        let participant = lock(&self.participant);
        // SAFETY: nobody else has seen this store.
        unsafe { store.take_apart() }.step(&participant.pin(), usize::MAX, |_| ());
        Err(NewStoreError::IdTaken(id))
    }

    /// Drops the store under `id`: operations on it abort from now on, and so does the commit of whoever has read in it, or written if it is a
    /// table's, unless that has passed its validation by now. [`Silo::collect_orphaned`] frees its memory, once the transactions that are running
    /// have ended. False when there is no such store.
    pub fn drop_store(&self, id: TableId) -> bool {
        let Some(store) = self.shared.stores.remove(id) else { return false };
        store.mark_dropped();
        self.refuse_commits_with_dropped();
        // [drop] The flag is stored before this epoch is read: once the memory horizon has passed it, every transaction sees the flag.
        let epoch = lock(&self.participant).retire_epoch();
        self.dropped.push(DroppedStore::new(store, epoch));
        true
    }

    /// Lets those commits look whether their stores are still there whose statements may not have seen the flag of a dropped one.
    ///
    /// Who begins in the epoch of this tick, or a later one, sees the flag: it reads the epoch from this tick or one behind it. Of the others, a
    /// commit that validates after the call sees the word that is set here.
    fn refuse_commits_with_dropped(&self) {
        self.shared.epochs.advance();
        self.shared.stores.set_dropped_before(self.shared.epochs.global_epoch());
        barrier::heavy();
    }

    /// Every store that was not dropped.
    #[must_use]
    pub fn stores(&self) -> Vec<Arc<Store>> {
        self.shared.stores.all()
    }

    /// What the engine counts.
    #[must_use]
    pub fn statistics(&self) -> EngineStatistics {
        let mut transactions = TransactionStatistics::default();
        for counters in lock(&self.counters).iter() {
            counters.add_to(&mut transactions);
        }
        EngineStatistics { transactions, memory: self.pool.usage(), epochs: self.shared.epochs.counters() }
    }

    /// The state of a worker that has left, or a new one.
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
