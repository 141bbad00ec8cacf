//! The smallest engine under Ensilo's tables: one lock and an ordered map for each store.
//!
//! It shows that an engine can come from a crate of its own, and it is what the tests of tables, indexes and requests run on beside the
//! real one: what fails on both is a fault above the engine.
//!
//! A transaction works on the state that it met first, and commits only if nobody else has committed since. It keeps no versions,
//! so there are no snapshots, and it has no log.
#![deny(unsafe_code)]

mod state;
mod transaction;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use ensilo_engine::{
    ColdCounters, Engine, EngineOptions, EngineStatistics, NewStoreError, NoReplay, Session, TableId,
    WorkerCounters,
};
use ensilo_epoch::{Epochs, Participant};
use ensilo_slab::Pool;

pub use state::MapStore;
use state::{MapState, Rows};
pub use transaction::{MapHandle, MapTransaction};

/// See the crate's documentation.
#[derive(Debug)]
pub struct MapEngine {
    epochs: Arc<Epochs>,
    state: Mutex<MapState>,
}

/// One user's way into the engine.
#[derive(Debug)]
pub struct MapSession {
    engine: Arc<MapEngine>,
    participant: Participant,
    counters: Arc<WorkerCounters>,
}

impl MapEngine {
    fn lock(&self) -> MutexGuard<'_, MapState> {
        state::lock(&self.state)
    }
}

// SAFETY: an engine keeps its epochs, and a session's participant is one of these.
#[allow(unsafe_code, reason = "the trait promises memory to the layers above")]
unsafe impl Engine for MapEngine {
    const SNAPSHOTS: bool = false;
    const LOGS: bool = false;
    const KEY_LEN_MAX: usize = usize::MAX;

    type Store = MapStore;
    type Found = MapHandle;
    type Session = MapSession;
    type Replayer<'e> = NoReplay;

    fn start(options: EngineOptions) -> io::Result<Arc<Self>> {
        let epochs = Epochs::try_new(options.epochs, Pool::new(options.memory_limit_bytes))?;
        Ok(Arc::new(MapEngine { epochs, state: Mutex::default() }))
    }

    fn epochs(&self) -> &Arc<Epochs> {
        &self.epochs
    }

    fn session(self: &Arc<Self>) -> MapSession {
        let counters = Arc::new(WorkerCounters::default());
        self.lock().counters.push(Arc::clone(&counters));
        MapSession { engine: Arc::clone(self), participant: self.epochs.participant(), counters }
    }

    fn new_store(&self, id: TableId) -> Result<Arc<MapStore>, NewStoreError> {
        let mut state = self.lock();
        if id == TableId::NONE || id > TableId::MAX || state.stores.contains_key(&id) {
            return Err(NewStoreError::IdTaken(id));
        }
        state.stores.insert(id, Some(Rows::new()));
        Ok(Arc::new(MapStore::new(id)))
    }

    fn drop_store(&self, id: TableId) -> bool {
        let mut state = self.lock();
        let is_there = state.stores.get_mut(&id).and_then(Option::take).is_some();
        // Transactions that have used it find that the state has changed.
        state.version += u64::from(is_there);
        is_there
    }

    fn stores(&self) -> Vec<Arc<MapStore>> {
        let state = self.lock();
        let present = state.stores.iter().filter(|(_, rows)| rows.is_some());
        present.map(|(&id, _)| Arc::new(MapStore::new(id))).collect()
    }

    fn replayer(&self) -> NoReplay {
        NoReplay
    }

    fn statistics(&self) -> EngineStatistics {
        let state = self.lock();
        let mut transactions = state.ended.clone();
        state.counters.iter().for_each(|counters| counters.add_to(&mut transactions));
        EngineStatistics {
            transactions,
            memory: self.epochs.pool().usage(),
            epochs: self.epochs.counters(),
            cold: ColdCounters::default(),
        }
    }
}

// SAFETY: each transaction owns a guard of a participant of the engine's epochs.
#[allow(unsafe_code, reason = "a session vouches for the guards of its transactions")]
unsafe impl Session for MapSession {
    type Store = MapStore;
    type Found = MapHandle;
    type Transaction<'s> = MapTransaction<'s>;
    type Snapshot<'s> = MapTransaction<'s>;

    fn begin(&mut self) -> MapTransaction<'_> {
        MapTransaction::new(&self.engine.state, self.participant.pin_exclusively(), &self.counters)
    }

    fn begin_snapshot(&mut self) -> MapTransaction<'_> {
        panic!("this engine has no snapshots");
    }

    fn counters(&mut self) -> Arc<WorkerCounters> {
        Arc::clone(&self.counters)
    }
}

impl Drop for MapSession {
    fn drop(&mut self) {
        let mut state = self.engine.lock();
        self.counters.add_to(&mut state.ended);
        state.counters.retain(|counters| !Arc::ptr_eq(counters, &self.counters));
    }
}
