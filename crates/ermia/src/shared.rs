//! What transactions need of their engine.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use ensilo_engine::{ColdPlace, TableId};
use ensilo_epoch::Epochs;
use ensilo_log::Log;
use ensilo_sync::sync::Mutex;

use crate::cold::ColdRows;
use crate::horizon::Horizon;
use crate::record_history::RecordedRemovals;
use crate::safe_snapshot::SafeSnapshot;
use crate::stamp::Clock;
use crate::store::ErmiaStore;
use crate::transaction_table::TransactionTable;

/// What all sessions of an engine share.
#[derive(Debug)]
pub(crate) struct ErmiaShared {
    pub(crate) epochs: Arc<Epochs>,
    pub(crate) clock: Clock,
    pub(crate) table: TransactionTable,
    pub(crate) horizon: Horizon,
    pub(crate) snapshot: SafeSnapshot,
    /// All stores that there ever were: sessions hold their addresses.
    pub(crate) stores: Mutex<BTreeMap<TableId, Arc<ErmiaStore>>>,
    /// What levels that record histories note of deletions.
    pub(crate) recorded_removals: RecordedRemovals,
    /// How many snapshot epochs a snapshot transaction may fall behind before it aborts.
    pub(crate) snapshot_age_max: u64,
    /// Set once the database has one.
    pub(crate) log: OnceLock<Arc<Log>>,
    /// Rows that have left memory, where they may.
    pub(crate) cold: Option<ColdRows>,
}

impl ErmiaShared {
    pub(crate) fn new(
        epochs: Arc<Epochs>,
        snapshot_age_max: u64,
        cold_place: Option<ColdPlace>,
        is_hasty: bool,
    ) -> Self {
        let limit_bytes = epochs.pool().limit_bytes();
        ErmiaShared {
            epochs,
            clock: Clock::new(),
            table: TransactionTable::new(),
            horizon: Horizon::new(is_hasty),
            snapshot: SafeSnapshot::new(),
            stores: Mutex::new(BTreeMap::new()),
            recorded_removals: RecordedRemovals::default(),
            snapshot_age_max,
            log: OnceLock::new(),
            cold: cold_place.map(|place| ColdRows::new(place, limit_bytes)),
        }
    }

    /// Returns where a row is that a slot says is cold.
    pub(crate) fn cold_rows(&self) -> &ColdRows {
        match &self.cold {
            Some(cold) => cold,
            None => unreachable!("a row has gone there"),
        }
    }

    /// Moves the horizon on as far as it goes, for want of memory.
    #[cold]
    pub(crate) fn keep_up_now(&self) {
        self.snapshot.forget();
        self.horizon.keep_up_now(&self.epochs, &self.clock, &self.table, &self.snapshot);
    }

    /// Moves the horizon on, if the epochs have, or many transactions have committed.
    #[inline]
    pub(crate) fn keep_up(&self) {
        self.horizon.keep_up(&self.epochs, &self.clock, &self.table, &self.snapshot);
    }
}
