//! The engine: Silo's, with a table of locks.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ensilo_engine::{
    Engine, EngineOptions, EngineStatistics, Failpoint, Fault, KeyRange, NewStoreError, Remains, StoredRow,
    TableId,
};
use ensilo_epoch::{Epoch, Epochs, Participant};
use ensilo_log::Log;
use ensilo_slab::OutOfMemory;
use ensilo_sync::unchecked::AtomicU32;
use ensilo_txn::{RecordHandle, Silo, SiloReplayer, Store};

use crate::lock_table::LockTable;
use crate::locking::{Locking, WaitDie};
use crate::session::LockingSession;

/// Strict two-phase locking; `L` says what a transaction does that meets a lock in conflict.
#[derive(Debug)]
pub struct TwoPhaseLocking<L: Locking = WaitDie> {
    silo: Arc<Silo<L>>,
    pub(crate) locks: Arc<LockTable>,
    /// Ages count from here.
    pub(crate) started: Instant,
    sessions: AtomicU32,
}

impl<L: Locking> TwoPhaseLocking<L> {
    /// Returns a number that no session has, as long as there were fewer than 2^32.
    pub(crate) fn next_session(&self) -> u32 {
        // Relaxed: the numbers need only differ.
        self.sessions.fetch_add(1, ensilo_sync::atomic::Ordering::Relaxed)
    }
}

// SAFETY: the epochs are those of Silo's engine, which keeps them, and the sessions' transactions those of its workers.
unsafe impl<L: Locking> Engine for TwoPhaseLocking<L> {
    const FAULT: Option<Fault> = L::FAULT;
    const SNAPSHOTS: bool = L::SNAPSHOTS;
    const TWO_PHASE_COMMIT: bool = true;
    const KEY_LEN_MAX: usize = ensilo_txn::KEY_LEN_MAX;

    type Store = Store;
    type Found = RecordHandle;
    type Session = LockingSession<L>;
    type Replayer<'e> = SiloReplayer<'e, L>;

    #[inline(always)]
    fn reached(failpoint: Failpoint) {
        L::reached(failpoint);
    }

    fn start(options: EngineOptions) -> io::Result<Arc<Self>> {
        const { assert!(!L::VALIDATES, "what is locked is not validated") };
        Ok(Arc::new(TwoPhaseLocking {
            silo: Silo::start(options)?,
            locks: Arc::new(LockTable::new()),
            started: Instant::now(),
            sessions: AtomicU32::new(0),
        }))
    }

    fn epochs(&self) -> &Arc<Epochs> {
        self.silo.epochs()
    }

    fn session(self: &Arc<Self>) -> LockingSession<L> {
        LockingSession::new(Arc::clone(self), self.silo.session())
    }

    fn new_store(&self, id: TableId) -> Result<Arc<Store>, NewStoreError> {
        self.silo.new_store(id)
    }

    fn drop_store(&self, id: TableId) -> bool {
        self.silo.drop_store(id)
    }

    fn stores(&self) -> Vec<Arc<Store>> {
        self.silo.stores()
    }

    fn has_prepared_begun_by(&self, epoch: Epoch) -> bool {
        self.silo.has_prepared_begun_by(epoch)
    }

    fn statistics(&self) -> EngineStatistics {
        self.silo.statistics()
    }

    fn start_log(&self, log: Arc<Log>) {
        self.silo.start_log(log);
    }

    fn replayer(&self) -> SiloReplayer<'_, L> {
        self.silo.replayer()
    }

    fn last_key(&self, store: &Store) -> Option<Vec<u8>> {
        self.silo.last_key(store)
    }

    fn key_ranges(&self, store: &Store, parts: usize) -> Vec<KeyRange> {
        self.silo.key_ranges(store, parts)
    }

    fn walk(
        &self,
        store: &Store,
        range: &KeyRange,
        before: Epoch,
        each: impl FnMut(StoredRow<'_>) -> ControlFlow<()>,
        pause: impl FnMut() -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.silo.walk(store, range, before, each, pause)
    }

    fn derive(
        &self,
        participant: &Participant,
        store: &Store,
        row: &StoredRow<'_>,
    ) -> Result<bool, OutOfMemory> {
        self.silo.derive(participant, store, row)
    }

    fn collect_orphaned(&self) -> Remains {
        self.silo.collect_orphaned()
    }

    fn is_sparse(&self) -> bool {
        self.silo.is_sparse()
    }

    fn trim_orphaned(&self) -> u64 {
        self.silo.trim_orphaned()
    }

    fn take_shortage(&self) -> bool {
        self.silo.take_shortage()
    }

    fn lend_orphaned(&self) {
        self.silo.lend_orphaned();
    }

    fn return_lent_memory(&self) {
        self.silo.return_lent_memory();
    }

    fn return_unused_memory(&self, unused_for: Duration) -> u64 {
        self.silo.return_unused_memory(unused_for)
    }
}
