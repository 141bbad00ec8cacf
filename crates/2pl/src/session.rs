//! A session: Silo's, with the locks of its transaction.

use std::sync::Arc;

use ensilo_engine::history::TransactionRecord;
use ensilo_engine::parts::HeldMemory;
use ensilo_engine::{Engine, Remains, Session, WorkerCounters};
use ensilo_txn::{RecordHandle, Snapshot, Store, Worker};

use crate::engine::TwoPhaseLocking;
use crate::held::LockSet;
use crate::lock_table::{Owner, Requester};
use crate::locking::Locking;
use crate::transaction::LockingTransaction;

/// One user's way into the engine.
#[derive(Debug)]
pub struct LockingSession<L: Locking> {
    engine: Arc<TwoPhaseLocking<L>>,
    /// Dropped before the locks are. A transaction that was leaked stays open in its state, and is undone by the next session that takes that over.
    worker: Worker<L>,
    locks: LockSet,
}

impl<L: Locking> LockingSession<L> {
    pub(crate) fn new(engine: Arc<TwoPhaseLocking<L>>, worker: Worker<L>) -> Self {
        let owner = Owner { began_ns: 0, session: engine.next_session() };
        let requester = Requester { owner, waits: L::WAITS };
        let held = HeldMemory::new(Arc::clone(engine.epochs().pool()));
        let locks = LockSet::new(Arc::clone(&engine.locks), requester, engine.started, held);
        LockingSession { engine, worker, locks }
    }
}

// SAFETY: a transaction of either kind is one of Silo's, which owns the guard of a participant of these epochs, with locks beside it.
unsafe impl<L: Locking> Session for LockingSession<L> {
    type Store = Store;
    type Found = RecordHandle;
    type Transaction<'s> = LockingTransaction<'s, L>;
    type Snapshot<'s> = Snapshot<'s, L>;

    const PREFETCHES: bool = true;

    #[inline]
    fn begin(&mut self) -> LockingTransaction<'_, L> {
        // One that was leaked is undone here, before its locks are given back.
        let inner = self.worker.begin();
        let locks = self.locks.begin(|| self.engine.next_session());
        LockingTransaction::new(inner, locks)
    }

    #[inline]
    fn begin_snapshot(&mut self) -> Snapshot<'_, L> {
        // What follows it is another transaction.
        self.locks.set_retry(false);
        self.worker.begin_snapshot()
    }

    fn retry_next(&mut self) {
        self.locks.set_retry(true);
    }

    fn prefetch<'k>(&mut self, count: usize, key: impl Fn(usize) -> (&'k Store, &'k [u8])) {
        self.worker.prefetch(count, key);
    }

    fn counters(&mut self) -> Arc<WorkerCounters> {
        self.worker.counters()
    }

    fn remains(&mut self) -> Remains {
        self.worker.remains()
    }

    fn collect(&mut self) -> Remains {
        self.worker.collect()
    }

    fn trim(&mut self, is_interrupted: &dyn Fn() -> bool) -> u64 {
        self.worker.trim(is_interrupted)
    }

    fn lend(&mut self, is_interrupted: &dyn Fn() -> bool) {
        self.worker.lend(is_interrupted);
    }

    fn take_history(&mut self) -> Vec<TransactionRecord> {
        self.worker.take_history()
    }
}
