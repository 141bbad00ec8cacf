//! What transactions need of their engine.

use std::sync::{Arc, OnceLock};

use ensilo_epoch::{Epoch, Epochs};
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
            epochs,
            snapshot_age_max,
        }
    }

    /// Deletions of snapshot intervals before this one may leave the tree: no snapshot sees past them, and they are durable. So a
    /// key that is missing from the tree is missing for good, whatever is lost in a crash.
    pub(crate) fn unhook_horizon(&self) -> Epoch {
        let horizon = self.epochs.snapshot_horizon();
        match self.log.get() {
            Some(log) => horizon.min(self.epochs.snapshot_of(log.durable_epoch())),
            None => horizon,
        }
    }
}
