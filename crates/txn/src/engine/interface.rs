//! The engine as the layers above know it.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use ensilo_engine::parts::end_keys;
use ensilo_engine::{
    ColdCounters, Engine, EngineOptions, EngineStatistics, Failpoint, Fault, KeyRange, NewStoreError,
    Remains, StoredRow, TableId, TransactionStatistics,
};
use ensilo_epoch::{Epoch, Epochs, Participant};
use ensilo_log::Log;
use ensilo_slab::OutOfMemory;
use ensilo_sync::barrier;

use super::Silo;
use super::dropped_store::DroppedStore;
use crate::checkpoint::walk;
use crate::handle::RecordHandle;
use crate::registry::lock;
use crate::replay::{SiloReplayer, derive_record};
use crate::silo::Variant;
use crate::store::Store;
use crate::worker::Worker;

// SAFETY: an engine keeps its epochs, and a worker's participant is one of these.
unsafe impl<V: Variant> Engine for Silo<V> {
    const FAULT: Option<Fault> = V::FAULT;
    const SNAPSHOTS: bool = V::SNAPSHOTS;
    const TWO_PHASE_COMMIT: bool = true;
    const KEY_LEN_MAX: usize = ensilo_index::KEY_LEN_MAX;

    type Store = Store;
    type Found = RecordHandle;
    type Session = Worker<V>;
    type Replayer<'e> = SiloReplayer<'e, V>;

    #[inline(always)]
    fn reached(failpoint: Failpoint) {
        V::reached(failpoint);
    }

    fn start(options: EngineOptions) -> io::Result<Arc<Self>> {
        Silo::new(options).map(Arc::new)
    }

    fn epochs(&self) -> &Arc<Epochs> {
        &self.shared.epochs
    }

    fn start_log(&self, log: Arc<Log>) {
        assert!(self.shared.log.set(log).is_ok(), "an engine has one log");
    }

    fn session(self: &Arc<Self>) -> Worker<V> {
        let mut state = self.take_state();
        if let Some(log) = self.shared.log.get() {
            state.context.log.get_or_insert_with(|| log.writer());
        }
        Worker::new(Arc::clone(self), state)
    }

    fn new_store(&self, id: TableId) -> Result<Arc<Store>, NewStoreError> {
        if id == TableId::NONE || id > TableId::MAX {
            return Err(NewStoreError::IdTaken(id));
        }
        let store = {
            let participant = lock(&self.participant);
            let store = Store::new(id, &participant.pin()).map_err(NewStoreError::OutOfMemory)?;
            Arc::new(store)
        };
        if self.shared.stores.insert(&store) {
            return Ok(store);
        }
        let participant = lock(&self.participant);
        // SAFETY: nobody else has seen this store.
        for mut tree in unsafe { store.take_apart() } {
            tree.step(&participant.pin(), usize::MAX, |_| ());
        }
        Err(NewStoreError::IdTaken(id))
    }

    fn drop_store(&self, id: TableId) -> bool {
        let Some(store) = self.shared.stores.remove(id) else { return false };
        store.mark_dropped();
        self.refuse_commits_with_dropped();
        // [drop] The flag is stored before this epoch is read: once the memory horizon has passed it, every transaction sees the flag.
        let epoch = lock(&self.participant).retire_epoch();
        self.dropped.push(DroppedStore::new(store, epoch));
        true
    }

    fn stores(&self) -> Vec<Arc<Store>> {
        self.shared.stores.all()
    }

    fn last_key(&self, store: &Store) -> Option<Vec<u8>> {
        self.end_keys(store).map(|(_, last)| last)
    }

    fn key_ranges(&self, store: &Store, parts: usize) -> Vec<KeyRange> {
        KeyRange::divide(self.end_keys(store), parts)
    }

    fn walk(
        &self,
        store: &Store,
        range: &KeyRange,
        before: Epoch,
        each: impl FnMut(StoredRow<'_>) -> ControlFlow<()>,
        pause: impl FnMut() -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        walk(&self.shared.epochs.participant(), store, range, before, each, pause)
    }

    fn replayer(&self) -> SiloReplayer<'_, V> {
        SiloReplayer::new(self)
    }

    fn derive(
        &self,
        participant: &Participant,
        store: &Store,
        row: &StoredRow<'_>,
    ) -> Result<bool, OutOfMemory> {
        derive_record::<V>(participant, store, row)
    }

    fn has_prepared_begun_by(&self, epoch: Epoch) -> bool {
        self.shared.prepared.has_begun_by(epoch)
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
            cold: ColdCounters::default(),
        }
    }

    fn collect_orphaned(&self) -> Remains {
        let parked = self.collect_parked();
        let dropped = self.collect_dropped();
        parked.max(dropped).max(self.collect_retired())
    }

    fn is_sparse(&self) -> bool {
        self.shared.epochs.pool().is_sparse()
    }

    fn trim_orphaned(&self) -> u64 {
        let mut bytes =
            self.shared.epochs.pool().trim_parked() + lock(&self.participant).heap().trim(&|| false);
        self.for_each_parked(|state| bytes += state.participant.heap().trim(&|| false));
        bytes
    }

    fn take_shortage(&self) -> bool {
        self.shared.epochs.pool().take_shortage()
    }

    fn lend_orphaned(&self) {
        self.for_each_parked(|state| state.participant.heap().lend(&|| false));
    }

    fn return_lent_memory(&self) {
        self.shared.epochs.pool().return_lent();
    }

    fn return_unused_memory(&self, unused_for: Duration) -> u64 {
        self.shared.epochs.pool().return_unused(unused_for)
    }
}

impl<V: Variant> Silo<V> {
    fn end_keys(&self, store: &Store) -> Option<(Vec<u8>, Vec<u8>)> {
        let participant = self.shared.epochs.participant();
        let guard = participant.pin();
        // Behind the pin: from there on nobody takes the store apart.
        if store.is_dropped() { None } else { end_keys(store.index(), &guard) }
    }

    /// Makes commits look whether their stores are still there, where their statements may not have seen the flag of a dropped one.
    ///
    /// Who begins in the epoch of this tick, or a later one, sees the flag: it reads the epoch from this tick or one behind it. Of
    /// the others, a commit that validates after the call sees the word that is set here.
    fn refuse_commits_with_dropped(&self) {
        self.shared.epochs.advance();
        self.shared.stores.set_dropped_before(self.shared.epochs.global_epoch());
        barrier::heavy();
    }
}
