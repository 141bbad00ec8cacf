//! A database that is only read.
//!
//! Nothing is written, synced, made or removed, so that neither room nor a right to write is needed. What an
//! earlier process wrote and did not sync is shown as the system shows it.

use std::path::Path;
use std::sync::Arc;

use ensilo_disk::Disk;

use super::directory::check_is_database;
use super::directory_locks::{DirectoryLocks, LockMode, LockedDirectory};
use super::error::OpenError;
use super::inspect::{Found, sound_survey};

/// What a directory holds, to be read alone. As long as this lives, nobody can open it to write; others may
/// read it.
#[derive(Debug)]
pub struct ReadOnlyFiles(pub(super) Found);

impl ReadOnlyFiles {
    /// Returns what was found.
    #[must_use]
    pub fn found(&self) -> &Found {
        &self.0
    }
}

/// Looks at the database in `dir`, to read it. Changes nothing.
///
/// # Errors
/// [`OpenError`] when there is no database, it is damaged, or somebody has it open to write.
pub fn inspect_read_only(disk: &Arc<dyn Disk>, dir: &Path) -> Result<ReadOnlyFiles, OpenError> {
    check_is_database(&**disk, dir)?;
    let mut locks = DirectoryLocks::of_database(&**disk, dir, LockMode::Shared)?;
    let manifest = locks.add_checked(&**disk, dir)?;
    let survey = sound_survey(&**disk, dir, &manifest)?;
    let directory = LockedDirectory { disk: Arc::clone(disk), dir: dir.to_path_buf(), locks };
    Ok(ReadOnlyFiles(Found::new(directory, Some((manifest, survey)))))
}
