//! What a running log knows of the files that it has sealed, so that nobody has to believe their names.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ensilo_epoch::Epoch;

use crate::format::LogFileName;

/// The sealed files of a generation. The writers of the log and the removal of its files share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct SealedFiles(Arc<Mutex<Vec<(LogFileName, Epoch)>>>);

impl SealedFiles {
    /// A file was sealed and synced, and has its last name. No entry in it has an epoch after
    /// `largest_epoch`.
    pub(crate) fn add(&self, name: LogFileName, largest_epoch: Epoch) {
        self.lock().push((name, largest_epoch));
    }

    /// Sequence numbers and last epochs of a logger's files, in any order.
    pub(super) fn of_logger(&self, logger: u32) -> Vec<(u64, Epoch)> {
        let files = self.lock();
        let own = files.iter().filter(|(name, _)| name.logger == logger);
        own.map(|(name, largest_epoch)| (name.sequence, *largest_epoch)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(LogFileName, Epoch)>> {
        // Every change is a single step: what a panicking thread left is used as it is.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
