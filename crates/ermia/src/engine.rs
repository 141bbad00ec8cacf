//! The engine: what the sessions of one database share.

use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use ensilo_engine::parts::end_keys;
use ensilo_engine::{
    Engine, EngineOptions, EngineStatistics, Failpoint, KeyRange, NewStoreError, Remains, StoredRow, TableId,
    TransactionStatistics, WorkerCounters,
};
use ensilo_epoch::{Epoch, Epochs, Participant};
use ensilo_log::Log;
use ensilo_slab::{OutOfMemory, Pool};
use ensilo_sync::barrier;
use ensilo_sync::sync::Mutex;

use crate::checkpoint::walk;
use crate::cold::{ColdRows, Evictor};
use crate::dropped_store::DroppedStore;
use crate::handle::ErmiaHandle;
use crate::isolation::{Isolation, Serializable};
use crate::log::SessionLog;
use crate::replay::{ErmiaReplayer, derive};
use crate::session::{ErmiaSession, SessionState};
use crate::shared::ErmiaShared;
use crate::store::{ErmiaStore, lock};

/// How many nodes of dropped stores a step takes apart, with all records in them.
const NODES_MAX: usize = 16;

/// How many blocks of retired memory a step frees.
const BLOCKS_MAX: usize = 64;

/// ERMIA's engine: one database's epochs, memory, stores and sessions; `I` chooses the isolation level at compile time.
pub struct Ermia<I: Isolation = Serializable> {
    pub(crate) shared: ErmiaShared,
    /// States of sessions that have ended: the next session goes on with one. Their garbage is collected meanwhile.
    #[allow(clippy::vec_box, reason = "a state is moved between here and its sessions")]
    parked: Mutex<Vec<Box<SessionState<I>>>>,
    dropped: Mutex<Vec<DroppedStore>>,
    counters: Mutex<Vec<Arc<WorkerCounters>>>,
    /// For what is done outside transactions.
    pub(crate) participant: Mutex<Participant>,
    pub(crate) evictor: Mutex<Evictor>,
}

impl<I: Isolation> Ermia<I> {
    /// Returns the state of a session that has ended, or a new one.
    pub(crate) fn take_state(&self) -> Box<SessionState<I>> {
        let parked = lock(&self.parked).pop();
        parked.unwrap_or_else(|| {
            let state = SessionState::new(self.shared.epochs.participant());
            lock(&self.counters).push(Arc::clone(&state.context.counters));
            Box::new(state)
        })
    }

    /// Returns the smallest key of a store and the largest one.
    fn end_keys(&self, store: &ErmiaStore) -> Option<(Vec<u8>, Vec<u8>)> {
        let participant = self.shared.epochs.participant();
        let guard = participant.pin();
        // Behind the pin: from there on nobody takes the store apart.
        if store.is_dropped() { None } else { end_keys(store.index(), &guard) }
    }

    /// Takes the state of a session that ends.
    pub(crate) fn give_back(&self, state: Box<SessionState<I>>) {
        lock(&self.parked).push(state);
    }

    /// Frees some of the garbage of one session that has ended.
    fn collect_parked(&self) -> Remains {
        let mut parked = lock(&self.parked);
        self.shared.keep_up();
        let remains = |state: &SessionState<I>| state.remains(&self.shared);
        if let Some(state) = parked.iter_mut().find(|state| remains(state) == Remains::Now) {
            state.collect(&self.shared);
            state.release_slot(&self.shared);
        }
        parked.iter().map(|state| remains(state)).max().unwrap_or(Remains::Nothing)
    }

    /// Frees some of a dropped store.
    fn collect_dropped(&self) -> Remains {
        let mut dropped = lock(&self.dropped);
        let horizon = self.shared.epochs.memory_horizon();
        let Some(at) = dropped.iter().position(|dropped| dropped.epoch < horizon) else {
            return if dropped.is_empty() { Remains::Nothing } else { Remains::Later };
        };
        let participant = lock(&self.participant);
        if dropped[at].free_some::<I>(&self.shared, &participant.pin(), NODES_MAX) {
            dropped.swap_remove(at);
        }
        Remains::Now
    }

    /// Lets some rows leave memory, if it is short.
    fn evict(&self) -> Remains {
        if self.shared.cold.is_none() {
            return Remains::Nothing;
        }
        let mut state = self.take_state();
        let remains = lock(&self.evictor).step(&self.shared, &mut state);
        state.release_slot(&self.shared);
        self.give_back(state);
        remains
    }

    /// Frees some of what the indexes of dropped stores consisted of, and of what participants left when they went.
    fn collect_retired(&self) -> Remains {
        let participant = lock(&self.participant);
        if participant.collect(BLOCKS_MAX) == BLOCKS_MAX {
            Remains::Now
        } else if participant.has_retired() || self.shared.epochs.has_orphans() {
            Remains::Later
        } else {
            Remains::Nothing
        }
    }
}

// SAFETY: an engine keeps its epochs, and a session's participant is one of these.
unsafe impl<I: Isolation> Engine for Ermia<I> {
    const EVICTS: bool = true;
    const SESSIONS_MAX: usize = crate::stamp::SLOTS;
    const LOGS_OPERATIONS: bool = true;
    const KEY_LEN_MAX: usize = ensilo_index::KEY_LEN_MAX;

    type Store = ErmiaStore;
    type Found = ErmiaHandle;
    type Session = ErmiaSession<I>;
    type Replayer<'e> = ErmiaReplayer<'e, I>;

    fn reached(failpoint: Failpoint) {
        I::reached(failpoint);
    }

    fn start(options: EngineOptions) -> io::Result<Arc<Self>> {
        let limit_bytes = options.memory_limit_bytes;
        let evicts = options.cold_place.is_some();
        let pool = if evicts { Pool::with_room(limit_bytes) } else { Pool::new(limit_bytes) };
        // A refusal is no failure yet: a transaction that finds no memory aborts.
        let _ = pool.prefault(options.prefault_bytes);
        let epochs = Epochs::try_new(options.epochs, pool)?;
        let participant = Mutex::new(epochs.participant());
        Ok(Arc::new(Ermia {
            shared: ErmiaShared::new(epochs, options.snapshot_age_max, options.cold_place, I::IS_HASTY),
            parked: Mutex::new(Vec::new()),
            dropped: Mutex::new(Vec::new()),
            counters: Mutex::new(Vec::new()),
            participant,
            evictor: Mutex::new(Evictor::default()),
        }))
    }

    fn epochs(&self) -> &Arc<Epochs> {
        &self.shared.epochs
    }

    fn fence_serial_order(&self) {
        self.shared.snapshot.fence(&self.shared.clock);
    }

    fn session(self: &Arc<Self>) -> ErmiaSession<I> {
        let mut state = self.take_state();
        if let Some(log) = self.shared.log.get() {
            state.context.log.get_or_insert_with(|| SessionLog::new(log));
        }
        ErmiaSession::new(Arc::clone(self), state)
    }

    fn new_store(&self, id: TableId) -> Result<Arc<ErmiaStore>, NewStoreError> {
        let mut stores = lock(&self.shared.stores);
        if id == TableId::NONE || id > TableId::MAX || stores.contains_key(&id) {
            return Err(NewStoreError::IdTaken(id));
        }
        let participant = lock(&self.participant);
        let store = ErmiaStore::new(id, &self.shared.epochs, &participant.pin());
        let store = Arc::new(store.map_err(NewStoreError::OutOfMemory)?);
        stores.insert(id, Arc::clone(&store));
        Ok(store)
    }

    fn drop_store(&self, id: TableId) -> bool {
        let stores = lock(&self.shared.stores);
        let Some(store) = stores.get(&id).filter(|store| !store.is_dropped()) else { return false };
        store.mark_dropped();
        // A commit that looks for dropped stores from now on sees the flag.
        barrier::heavy();
        let epoch = lock(&self.participant).retire_epoch();
        lock(&self.dropped).push(DroppedStore::new(Arc::clone(store), epoch));
        true
    }

    fn stores(&self) -> Vec<Arc<ErmiaStore>> {
        lock(&self.shared.stores).values().filter(|store| !store.is_dropped()).cloned().collect()
    }

    fn start_log(&self, log: Arc<Log>) {
        self.shared.clock.count_log_units();
        assert!(self.shared.log.set(log).is_ok(), "an engine has one log");
    }

    fn replayer(&self) -> ErmiaReplayer<'_, I> {
        ErmiaReplayer::new(self)
    }

    fn last_key(&self, store: &ErmiaStore) -> Option<Vec<u8>> {
        self.end_keys(store).map(|(_, last)| last)
    }

    fn key_ranges(&self, store: &ErmiaStore, parts: usize) -> Vec<KeyRange> {
        KeyRange::divide(self.end_keys(store), parts)
    }

    fn walk(
        &self,
        store: &ErmiaStore,
        range: &KeyRange,
        before: Epoch,
        each: impl FnMut(StoredRow<'_>) -> ControlFlow<()>,
        pause: impl FnMut() -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut state = self.take_state();
        let outcome = walk(&self.shared, &mut state, store, range, before, each, pause);
        state.release_slot(&self.shared);
        self.give_back(state);
        outcome
    }

    fn evicts(&self) -> bool {
        self.shared.cold.as_ref().is_some_and(ColdRows::takes_rows)
    }

    fn unreadable_rows(&self) -> Option<Arc<str>> {
        self.shared.cold.as_ref().and_then(ColdRows::unreadable)
    }

    fn rows_left_out(&self) -> u64 {
        self.shared.cold.as_ref().map_or(0, ColdRows::left_out)
    }

    fn eviction_failure(&self) -> Option<Arc<str>> {
        self.shared.cold.as_ref().and_then(ColdRows::failure)
    }

    fn remove_cold_files(&self) {
        if let Some(cold) = &self.shared.cold {
            cold.remove_files();
        }
    }

    fn derive(
        &self,
        participant: &Participant,
        store: &ErmiaStore,
        row: &StoredRow<'_>,
    ) -> Result<bool, OutOfMemory> {
        derive::<I>(participant, store, row)
    }

    fn statistics(&self) -> EngineStatistics {
        let mut transactions = TransactionStatistics::default();
        for counters in lock(&self.counters).iter() {
            counters.add_to(&mut transactions);
        }
        EngineStatistics {
            transactions,
            memory: self.shared.epochs.pool().usage(),
            epochs: self.shared.epochs.counters(),
            cold: self.shared.cold.as_ref().map(ColdRows::counters).unwrap_or_default(),
        }
    }

    fn collect_orphaned(&self) -> Remains {
        self.collect_parked().max(self.collect_dropped()).max(self.collect_retired()).max(self.evict())
    }

    fn is_sparse(&self) -> bool {
        self.shared.epochs.pool().is_sparse()
    }

    fn trim_orphaned(&self) -> u64 {
        let own = lock(&self.participant).heap().trim(&|| false);
        let parked = lock(&self.parked);
        let of_parked: u64 = parked.iter().map(|state| state.participant.heap().trim(&|| false)).sum();
        self.shared.epochs.pool().trim_parked() + own + of_parked
    }

    fn take_shortage(&self) -> bool {
        self.shared.epochs.pool().take_shortage()
    }

    fn lend_orphaned(&self) {
        lock(&self.parked).iter().for_each(|state| state.participant.heap().lend(&|| false));
        self.shared.epochs.pool().lend_parked();
    }

    fn return_lent_memory(&self) {
        self.shared.epochs.pool().return_lent();
    }

    fn return_unused_memory(&self, unused_for: Duration) -> u64 {
        self.shared.epochs.pool().return_unused(unused_for)
    }
}

impl<I: Isolation> fmt::Debug for Ermia<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ermia").field("shared", &self.shared).finish_non_exhaustive()
    }
}
