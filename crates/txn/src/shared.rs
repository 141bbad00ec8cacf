//! What transactions need of their engine.

use std::sync::{Arc, OnceLock};

use ensilo_engine::history::RecordedRemovals;
use ensilo_epoch::Epochs;
use ensilo_log::Log;

use crate::global_tid::GlobalTid;
use crate::registry::StoreRegistry;
use crate::silo::PreparedRegistry;

/// What all workers of an engine share.
#[derive(Debug)]
pub(crate) struct SiloShared {
    pub(crate) epochs: Arc<Epochs>,
    pub(crate) stores: StoreRegistry,
    /// Where the TIDs of variants come from that count all in one place.
    pub(crate) global_tid: GlobalTid,
    /// What prepared transactions rely on.
    pub(crate) prepared: PreparedRegistry,
    /// Where commits are logged, once that was begun.
    pub(crate) log: OnceLock<Arc<Log>>,
    /// What variants that record histories note of deletions.
    pub(crate) recorded_removals: RecordedRemovals,
    /// How many snapshot epochs a snapshot transaction may fall behind before it aborts.
    pub(crate) snapshot_age_max: u64,
}

impl SiloShared {
    /// Without stores and without a log.
    pub(crate) fn new(epochs: Arc<Epochs>, snapshot_age_max: u64) -> Self {
        SiloShared {
            stores: StoreRegistry::new(),
            global_tid: GlobalTid::new(),
            prepared: PreparedRegistry::new(Arc::clone(epochs.pool())),
            log: OnceLock::new(),
            recorded_removals: RecordedRemovals::default(),
            epochs,
            snapshot_age_max,
        }
    }
}
