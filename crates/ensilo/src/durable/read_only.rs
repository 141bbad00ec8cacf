//! A database in a directory that is only read: recovered into memory as ever, with a log that takes nothing.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use ensilo_disk::Disk;
use ensilo_engine::Engine;
use ensilo_epoch::Epoch;
use ensilo_log::{Log, LogStatistics, ReadOnlyFiles};

use super::statistics::CheckpointStatistics;
use super::statistics::{DurabilityStatistics, RecoveryStatistics};
use super::{check_epochs, open_failed, recover};
use crate::Result;
use crate::options::Options;
use crate::shared::Shared;

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

/// Opens the database in `directory` for reading alone.
pub(crate) fn open_read_only<E: Engine>(
    options: Options,
    disk: Arc<dyn Disk>,
    directory: PathBuf,
) -> Result<Shared<E>> {
    let files = ensilo_log::inspect_read_only(&disk, &directory).map_err(open_failed)?;
    let mut engine_options = options.engine_options();
    engine_options.epochs.first_epoch = Epoch::new(files.found().largest_epoch().get() + 1);
    check_epochs(&engine_options.epochs)?;
    let shared = Shared::<E>::new(options, engine_options)?;
    let recovery = recover(&shared, files.found(), &directory)?;
    let read_only = ReadOnly {
        log: Log::read_only(disk, Arc::clone(shared.engine.epochs())),
        durable_epoch: files.found().durable_epoch().unwrap_or_default(),
        recovery,
        files: Mutex::new(Some(files)),
    };
    shared.set_read_only(read_only);
    Ok(shared)
}

impl ReadOnly {
    pub(crate) fn statistics(&self) -> DurabilityStatistics {
        let log = LogStatistics { durable_epoch: self.durable_epoch, ..LogStatistics::default() };
        let checkpoints = CheckpointStatistics::default();
        DurabilityStatistics {
            is_read_only: true,
            ..DurabilityStatistics::new(&log, checkpoints, self.recovery.clone())
        }
    }

    /// Lets others open the database to write.
    pub(crate) fn close(&self) {
        drop(self.files.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}
