//! What both engines have in common: epochs, stores, sessions, and what they count.

use std::io;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ensilo_engine::{
    ColdCounters, Engine, EngineOptions, EngineStatistics, NewStoreError, NoReplay, Remains, Session,
    TableId, TransactionStatistics, WorkerCounters,
};
use ensilo_epoch::{Epochs, Participant};
use ensilo_slab::Pool;

use crate::handle::BaselineHandle;
use crate::store::{Store, Stores};
use crate::transaction::{BaselineTransaction, Protocol, SessionMemory};

/// How many blocks of memory one call of the collector frees.
const BUDGET: usize = 64;

/// An engine that reads and writes records by the protocol `P`.
#[derive(Debug)]
pub struct BaselineEngine<P: Protocol> {
    epochs: Arc<Epochs>,
    stores: Stores,
    shared: Mutex<SharedState>,
    protocol: PhantomData<P>,
}

/// What is used outside transactions.
#[derive(Debug)]
struct SharedState {
    /// Makes the roots of new stores, and frees what sessions that have ended have left.
    participant: Participant,
    /// Of the sessions that there are.
    counters: Vec<Arc<WorkerCounters>>,
    /// What those have counted that have ended.
    ended: TransactionStatistics,
}

/// One user's way into the engine.
#[derive(Debug)]
pub struct BaselineSession<P: Protocol> {
    engine: Arc<BaselineEngine<P>>,
    participant: Participant,
    memory: SessionMemory<P::Undo>,
    counters: Arc<WorkerCounters>,
}

impl<P: Protocol> BaselineEngine<P> {
    fn shared(&self) -> MutexGuard<'_, SharedState> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: an engine keeps its epochs, and a session's participant is one of these.
unsafe impl<P: Protocol> Engine for BaselineEngine<P> {
    const ROWS_HAVE_EPOCHS: bool = false;
    const SNAPSHOTS: bool = false;
    const IS_TRANSACTIONAL: bool = P::IS_TRANSACTIONAL;
    const LOGS: bool = false;
    const KEY_LEN_MAX: usize = ensilo_index::KEY_LEN_MAX;

    type Store = Store;
    type Found = BaselineHandle;
    type Session = BaselineSession<P>;
    type Replayer<'e> = NoReplay;

    fn start(options: EngineOptions) -> io::Result<Arc<Self>> {
        let pool = Pool::new(options.memory_limit_bytes);
        // A refusal is no failure yet: a transaction that finds no memory aborts.
        let _ = pool.prefault(options.prefault_bytes);
        let epochs = Epochs::try_new(options.epochs, pool)?;
        let (counters, ended) = (Vec::new(), TransactionStatistics::default());
        let shared = Mutex::new(SharedState { participant: epochs.participant(), counters, ended });
        Ok(Arc::new(BaselineEngine { epochs, stores: Stores::new(), shared, protocol: PhantomData }))
    }

    fn epochs(&self) -> &Arc<Epochs> {
        &self.epochs
    }

    fn session(self: &Arc<Self>) -> BaselineSession<P> {
        let counters = Arc::new(WorkerCounters::default());
        self.shared().counters.push(Arc::clone(&counters));
        let (participant, memory) = (self.epochs.participant(), SessionMemory::default());
        BaselineSession { engine: Arc::clone(self), participant, memory, counters }
    }

    fn new_store(&self, id: TableId) -> Result<Arc<Store>, NewStoreError> {
        let shared = self.shared();
        self.stores.make(id, &shared.participant.pin())
    }

    fn drop_store(&self, id: TableId) -> bool {
        self.stores.get(id).is_some_and(|store| store.mark_dropped())
    }

    fn stores(&self) -> Vec<Arc<Store>> {
        self.stores.all()
    }

    fn replayer(&self) -> NoReplay {
        NoReplay
    }

    fn statistics(&self) -> EngineStatistics {
        let shared = self.shared();
        let mut transactions = shared.ended.clone();
        shared.counters.iter().for_each(|counters| counters.add_to(&mut transactions));
        EngineStatistics {
            transactions,
            memory: self.epochs.pool().usage(),
            epochs: self.epochs.counters(),
            cold: ColdCounters::default(),
        }
    }

    fn collect_orphaned(&self) -> Remains {
        match self.shared().participant.collect(BUDGET) {
            BUDGET => Remains::Now,
            _ if self.epochs.has_orphans() => Remains::Later,
            _ => Remains::Nothing,
        }
    }
}

// SAFETY: each transaction owns a guard of a participant of the engine's epochs.
unsafe impl<P: Protocol> Session for BaselineSession<P> {
    type Store = Store;
    type Found = BaselineHandle;
    type Transaction<'s> = BaselineTransaction<'s, P>;
    type Snapshot<'s> = BaselineTransaction<'s, P>;

    #[inline]
    fn begin(&mut self) -> BaselineTransaction<'_, P> {
        self.participant.collect(BUDGET);
        let guard = self.participant.pin_exclusively();
        BaselineTransaction::begin(&self.engine.stores, guard, &mut self.memory, &self.counters)
    }

    fn begin_snapshot(&mut self) -> BaselineTransaction<'_, P> {
        panic!("this engine has no snapshots");
    }

    fn counters(&mut self) -> Arc<WorkerCounters> {
        Arc::clone(&self.counters)
    }

    fn remains(&mut self) -> Remains {
        if !self.participant.has_retired() {
            Remains::Nothing
        } else if self.participant.retired_before(self.engine.epochs.memory_horizon()) == 0 {
            Remains::Later
        } else {
            Remains::Now
        }
    }

    fn collect(&mut self) -> Remains {
        self.participant.collect(BUDGET);
        self.remains()
    }
}

impl<P: Protocol> Drop for BaselineSession<P> {
    fn drop(&mut self) {
        let mut shared = self.engine.shared();
        self.counters.add_to(&mut shared.ended);
        shared.counters.retain(|counters| !Arc::ptr_eq(counters, &self.counters));
    }
}
