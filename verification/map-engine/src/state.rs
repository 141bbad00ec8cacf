//! What the lock of an engine guards: the rows of all stores.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ensilo_engine::{
    RawRow, RowRef, Store, TableId, Tid, TransactionStatistics, WorkerCounters, assert_is_row,
};
use ensilo_sync::atomic::AtomicU64;

/// A store: its rows lie in the engine.
#[derive(Debug)]
pub struct MapStore(TableId);

impl MapStore {
    pub(crate) fn new(id: TableId) -> Self {
        MapStore(id)
    }
}

impl Store for MapStore {
    fn id(&self) -> TableId {
        self.0
    }
}

/// Locks the state of an engine, which no panic leaves half done.
pub(crate) fn lock(state: &Mutex<MapState>) -> MutexGuard<'_, MapState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the lock guards.
#[derive(Debug, Default)]
pub(crate) struct MapState {
    /// How many transactions have changed anything.
    pub(crate) version: u64,
    pub(crate) last_tid: Tid,
    /// By id; `None` for a store that was dropped.
    pub(crate) stores: BTreeMap<TableId, Option<Rows>>,
    /// Of the sessions that there are.
    pub(crate) counters: Vec<Arc<WorkerCounters>>,
    /// What those have counted that have ended.
    pub(crate) ended: TransactionStatistics,
}

pub(crate) type Rows = BTreeMap<Vec<u8>, Row>;

/// A row, as words that are read one by one.
#[derive(Debug)]
pub(crate) struct Row {
    /// Of the transaction that has committed it; [`Tid::ZERO`] before.
    pub(crate) tid: Tid,
    pub(crate) words: Vec<AtomicU64>,
    pub(crate) len_bytes: usize,
}

impl MapState {
    pub(crate) fn rows(&self, store: TableId) -> Option<&Rows> {
        self.stores.get(&store)?.as_ref()
    }
}

impl Row {
    pub(crate) fn new(words: &[u64], len_bytes: usize) -> Row {
        assert_is_row(words, len_bytes);
        Row { tid: Tid::ZERO, words: words.iter().copied().map(AtomicU64::new).collect(), len_bytes }
    }

    pub(crate) fn as_ref(&self) -> RowRef<'_> {
        let row = RawRow::new(&self.words, self.len_bytes);
        if self.tid == Tid::ZERO { row.uncommitted() } else { row.committed_in(self.tid.epoch()) }
    }
}
