//! What is said of a checkpoint that was made.

use std::time::Duration;

use ensilo_log::InstalledCheckpoint;

/// A checkpoint that was made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Checkpoint {
    /// Its number.
    pub id: u64,
    /// Rows that changed in this epoch or later are left to the log.
    pub begin_epoch: u64,
    /// The bytes of its files.
    pub bytes: u64,
    /// Its rows.
    pub rows: u64,
    /// Files that were not needed any more because of it and are gone: those of the checkpoint before, and of
    /// the log.
    pub files_removed: u64,
    /// How long it took.
    pub duration: Duration,
}

impl Checkpoint {
    pub(super) fn new(installed: &InstalledCheckpoint, duration: Duration) -> Self {
        let entry = &installed.entry;
        Checkpoint {
            id: entry.id,
            begin_epoch: entry.begin_epoch.get(),
            bytes: entry.parts.iter().map(|part| part.bytes).sum(),
            rows: entry.records(),
            files_removed: installed.removed.len() as u64,
            duration,
        }
    }
}
