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
    /// Keeps writers away. `None` once the database is closed, and beside a writer.
    files: Mutex<Option<ReadOnlyFiles>>,
    is_beside_writer: bool,
}

impl ReadOnly {
    /// `files`, which were replayed, keep their locks until [`ReadOnly::close`].
    pub(super) fn new(log: Arc<Log>, files: ReadOnlyFiles, recovery: RecoveryStatistics) -> Self {
        let durable_epoch = durable_epoch_of(&files);
        ReadOnly { log, durable_epoch, recovery, files: Mutex::new(Some(files)), is_beside_writer: false }
    }

    /// The same of files that were found beside a writer, and are not needed any more.
    pub(super) fn beside_writer(log: Arc<Log>, files: &ReadOnlyFiles, recovery: RecoveryStatistics) -> Self {
        let durable_epoch = durable_epoch_of(files);
        ReadOnly { log, durable_epoch, recovery, files: Mutex::new(None), is_beside_writer: true }
    }

    pub(crate) fn statistics(&self, load: LoadStatistics) -> DurabilityStatistics {
        let log = LogStatistics { durable_epoch: self.durable_epoch, ..LogStatistics::default() };
        let checkpoints = CheckpointStatistics::default();
        DurabilityStatistics {
            is_read_only: true,
            is_beside_writer: self.is_beside_writer,
            ..DurabilityStatistics::new(&log, checkpoints, self.recovery.clone(), load)
        }
    }

    /// Lets others open the database to write.
    pub(crate) fn close(&self) {
        drop(lock(&self.files).take());
    }
}

fn durable_epoch_of(files: &ReadOnlyFiles) -> Epoch {
    files.found().durable_epoch().unwrap_or_default()
}
