//! The locks of the directories of a database: its own, and all that its log files lie in.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::{Disk, Lock, LockHeld, Place};

use super::created_paths::CreatedPaths;
use super::directory::missing_manifest;
use super::error::OpenError;
use super::file_access::exists;
use super::file_names::LOCK;
use super::manifest_file::read_manifest;
use super::named_files::NamedFiles;
use crate::format::Manifest;

/// The locks that are held of the directories of a database, or shares of them. Each directory is locked
/// once, however it is spelled.
#[derive(Debug)]
pub(crate) struct DirectoryLocks {
    /// Goes first, while the locks are held.
    created: CreatedPaths,
    mode: LockMode,
    /// A directory without a lock file is not shared if the system cannot lock directories: nobody has had it
    /// open.
    held: Vec<(Place, Option<Box<dyn Lock>>)>,
}

/// How much of each lock is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockMode {
    /// Nobody else may even read the files.
    Exclusive,
    /// Nobody may open the database meanwhile. Nothing is written for that.
    Shared,
}

impl DirectoryLocks {
    /// Locks nothing.
    pub(super) fn none() -> Self {
        DirectoryLocks { created: CreatedPaths::default(), mode: LockMode::Shared, held: Vec::new() }
    }

    /// Locks the directory of a database, which is there.
    pub(super) fn of_database(disk: &dyn Disk, dir: &Path, mode: LockMode) -> Result<Self, OpenError> {
        DirectoryLocks::new(disk, dir, mode, CreatedPaths::default())
    }

    /// Locks the directory of a database for an opening, which takes back what it has made if it fails.
    /// `created` has what it has made so far.
    pub(super) fn of_opening(disk: &dyn Disk, dir: &Path, created: CreatedPaths) -> Result<Self, OpenError> {
        DirectoryLocks::new(disk, dir, LockMode::Exclusive, created)
    }

    fn new(disk: &dyn Disk, dir: &Path, mode: LockMode, created: CreatedPaths) -> Result<Self, OpenError> {
        let mut locks = DirectoryLocks { created, mode, held: Vec::new() };
        locks.add(disk, dir)?;
        Ok(locks)
    }

    /// Returns what goes with these locks unless it is kept: lock files that were missing, and more.
    pub(super) fn created(&mut self) -> &mut CreatedPaths {
        &mut self.created
    }

    /// Locks the log directories that a manifest names, as far as they are there.
    pub(super) fn add_named(&mut self, files: &NamedFiles<'_>) -> Result<(), OpenError> {
        let directories = files.log_directories_there()?;
        directories.iter().try_for_each(|directory| self.add(files.disk, directory))
    }

    /// Goes on behind the lock of the directory of a database that is there: locks its log directories, and
    /// sees that they are the database's. Returns its manifest.
    pub(super) fn add_checked(&mut self, disk: &dyn Disk, dir: &Path) -> Result<Manifest, OpenError> {
        let manifest = read_manifest(disk, dir)?.ok_or_else(|| missing_manifest(disk, dir))?;
        let files = NamedFiles { disk, dir, manifest: &manifest };
        self.add_named(&files)?;
        files.check_owners()?;
        Ok(manifest)
    }

    /// Locks a directory, which is there, unless it is locked already.
    pub(super) fn add(&mut self, disk: &dyn Disk, directory: &Path) -> Result<(), OpenError> {
        let place = disk.place(directory).map_err(OpenError::io("look for", directory))?;
        if self.held.iter().any(|(held, _)| *held == place) {
            return Ok(());
        }
        let file = directory.join(LOCK);
        let is_new = self.mode == LockMode::Exclusive && !exists(disk, &file)?;
        let lock = match self.mode {
            LockMode::Exclusive => disk.lock(&file).map(Some),
            LockMode::Shared => match disk.lock_shared(&file) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                lock => lock.map(Some),
            },
        };
        let lock = lock.map_err(|error| lock_error(file.clone(), error));
        if let Err(OpenError::Locked { .. }) = &lock {
            self.created.leave_directory(directory);
        }
        let lock = lock?;
        if is_new {
            self.created.file(file);
        }
        self.held.push((place, lock));
        Ok(())
    }
}

/// The directory of a database that this process has locked, with its log directories.
#[derive(Debug)]
pub(super) struct LockedDirectory {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
    pub(super) locks: DirectoryLocks,
}

impl LockedDirectory {
    /// Returns the files that this manifest names.
    pub(super) fn files<'d>(&'d self, manifest: &'d Manifest) -> NamedFiles<'d> {
        NamedFiles { disk: &*self.disk, dir: &self.dir, manifest }
    }
}

/// How often something is tried again that another opening may be in the way of.
const ATTEMPTS_MAX: u32 = 100;

/// Creates a directory, or locks one, once more if it has vanished meanwhile: an opening that is refused
/// takes back the directories that it has made, as long as nobody has put anything there.
pub(super) fn again_if_vanished<T>(
    mut attempt: impl FnMut() -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    for _ in 1..ATTEMPTS_MAX {
        match attempt() {
            Err(error) if error.is_not_found() => {}
            done => return done,
        }
    }
    attempt()
}

fn lock_error(file: PathBuf, error: io::Error) -> OpenError {
    match LockHeld::of(&error) {
        Some(held) => OpenError::Locked { file, process: held.process, is_read_only: false },
        None => OpenError::Io { doing: "lock", path: file, error },
    }
}
