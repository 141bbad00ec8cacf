//! The engine as the layers above know it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use ensilo_engine::history::TransactionRecord;
use ensilo_engine::{
    EngineOptions, EngineStatistics, Failpoint, Fault, KeyRange, NewStoreError, Recovered, Remains,
    StoredRow, TableId, WorkerCounters,
};
use ensilo_epoch::{Epoch, Epochs, Participant};
use ensilo_log::{Log, ReplayError};
use ensilo_slab::OutOfMemory;

use crate::engine::Silo;
use crate::handle::RecordHandle;
use crate::replay::{Replayer, derive_record};
use crate::silo::{Snapshot, Transaction, Variant};
use crate::store::Store;
use crate::worker::Worker;

impl<V: Variant> ensilo_engine::Engine for Silo<V> {
    const FAULT: Option<Fault> = V::FAULT;
    const SNAPSHOTS: bool = V::SNAPSHOTS;
    const TWO_PHASE_COMMIT: bool = true;
    const KEY_LEN_MAX: usize = ensilo_index::KEY_LEN_MAX;

    type Store = Store;
    type Found = RecordHandle;
    type Session = Worker<V>;
    type Replayer<'e> = Replayer<'e, V>;

    #[inline(always)]
    fn reached(failpoint: Failpoint) {
        V::reached(failpoint);
    }

    fn start(options: EngineOptions) -> Arc<Self> {
        Silo::new(options)
    }

    fn epochs(&self) -> &Arc<Epochs> {
        self.epochs()
    }

    fn start_log(&self, log: Arc<Log>) {
        self.start_log(log);
    }

    fn session(self: &Arc<Self>) -> Worker<V> {
        self.worker()
    }

    fn new_store(&self, id: TableId) -> Result<Arc<Store>, NewStoreError> {
        self.new_store(id)
    }

    fn drop_store(&self, id: TableId) -> bool {
        self.drop_store(id)
    }

    fn stores(&self) -> Vec<Arc<Store>> {
        self.stores()
    }

    fn last_key(&self, store: &Store) -> Option<Vec<u8>> {
        self.last_key(store)
    }

    fn key_ranges(&self, store: &Store, parts: usize) -> Vec<KeyRange> {
        self.key_ranges(store, parts)
    }

    fn walk(
        &self,
        store: &Store,
        range: &KeyRange,
        before: Epoch,
        each: impl FnMut(StoredRow<'_>) -> ControlFlow<()>,
        pause: impl FnMut() -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.walk(store, range, before, each, pause)
    }

    fn replayer(&self) -> Replayer<'_, V> {
        Replayer::new(self)
    }

    fn derive(
        &self,
        participant: &Participant,
        store: &Store,
        row: &StoredRow<'_>,
    ) -> Result<bool, OutOfMemory> {
        derive_record(participant, store, row)
    }

    fn has_prepared_begun_by(&self, epoch: Epoch) -> bool {
        self.shared.prepared.has_begun_by(epoch)
    }

    fn statistics(&self) -> EngineStatistics {
        self.statistics()
    }

    fn collect_orphaned(&self) -> Remains {
        self.collect_orphaned()
    }

    fn wanted_durable_epoch(&self) -> Option<Epoch> {
        self.wanted_durable_epoch()
    }

    fn is_sparse(&self) -> bool {
        self.is_sparse()
    }

    fn trim_orphaned(&self) -> u64 {
        self.trim_orphaned()
    }

    fn take_shortage(&self) -> bool {
        self.take_shortage()
    }

    fn lend_orphaned(&self) {
        self.lend_orphaned();
    }

    fn return_lent_memory(&self) {
        self.return_lent_memory();
    }

    fn return_unused_memory(&self, unused_for: Duration) -> u64 {
        self.return_unused_memory(unused_for)
    }
}

// SAFETY: a transaction of either kind owns the guard of its worker's participant, from beginning to end.
unsafe impl<V: Variant> ensilo_engine::Session for Worker<V> {
    type Store = Store;
    type Found = RecordHandle;
    type Transaction<'s> = Transaction<'s, V>;
    type Snapshot<'s> = Snapshot<'s, V>;

    #[inline]
    fn begin(&mut self) -> Transaction<'_, V> {
        self.begin()
    }

    #[inline]
    fn begin_snapshot(&mut self) -> Snapshot<'_, V> {
        self.begin_snapshot()
    }

    fn counters(&mut self) -> Arc<WorkerCounters> {
        self.counters()
    }

    fn remains(&mut self) -> Remains {
        self.remains()
    }

    fn collect(&mut self) -> Remains {
        self.collect()
    }

    fn trim(&mut self, is_interrupted: &dyn Fn() -> bool) -> u64 {
        self.trim(is_interrupted)
    }

    fn lend(&mut self, is_interrupted: &dyn Fn() -> bool) {
        self.lend(is_interrupted);
    }

    fn take_history(&mut self) -> Vec<TransactionRecord> {
        self.take_history()
    }
}

impl<V: Variant> ensilo_engine::Replayer for Replayer<'_, V> {
    fn finish(self) -> Result<Recovered, ReplayError> {
        self.finish()
    }
}
