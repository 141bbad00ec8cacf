//! A database in a directory that is only read: recovered into memory as ever, with a log that takes nothing.

use std::sync::{Arc, Mutex};

use ensilo_epoch::Epoch;
use ensilo_log::{Log, LogStatistics, ReadOnlyFiles};

use super::statistics::{CheckpointStatistics, DurabilityStatistics, RecoveryStatistics};
use crate::loading::LoadStatistics;
use crate::mutex::lock;

/// What a database that is only read has in the place of log and checkpoints.
pub(crate) struct ReadOnly {
    /// Refuses all that is to be logged.
    pub(crate) log: Arc<Log>,
    /// Everything up to this epoch was found.
    pub(crate) durable_epoch: Epoch,
    recovery: RecoveryStatistics,
    /// Keeps writers away. `None` once the database is closed.
    files: Mutex<Option<ReadOnlyFiles>>,
}

impl ReadOnly {
    /// `files` keep their locks until [`ReadOnly::close`].
    pub(super) fn new(log: Arc<Log>, files: ReadOnlyFiles, recovery: RecoveryStatistics) -> Self {
        let durable_epoch = files.found().durable_epoch().unwrap_or_default();
        ReadOnly { log, durable_epoch, recovery, files: Mutex::new(Some(files)) }
    }

    pub(crate) fn statistics(&self, load: LoadStatistics) -> DurabilityStatistics {
        let log = LogStatistics { durable_epoch: self.durable_epoch, ..LogStatistics::default() };
        let checkpoints = CheckpointStatistics::default();
        DurabilityStatistics {
            is_read_only: true,
            ..DurabilityStatistics::new(&log, checkpoints, self.recovery.clone(), load)
        }
    }

    /// Lets others open the database to write.
    pub(crate) fn close(&self) {
        drop(lock(&self.files).take());
    }
}
