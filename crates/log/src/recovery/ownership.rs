//! Which database the log directories belong to: `OWNER` in each says which opening of which database writes
//! there.
//!
//! A copy of a database's directory alone leads to the log directories of the original; an older state of it
//! knows less than they hold; and an opening may find that another one has come since. The number of the
//! opening, drawn at random, stands in the manifest and in each `OWNER`, and is compared from both sides.
//!
//! # Crash
//! An opening begins so, each step synced before the next:
//! 1. each `OWNER` in a directory that it will write to is brought up to the opening of the manifest on the
//!    disk;
//! 2. its own manifest is put in place, which says that this opening was the previous one;
//! 3. `OWNER` is written in each log directory. Only then is anything logged.
//!
//! So after a crash each `OWNER` names the opening of the manifest or the previous one, and nothing was
//! logged that the manifest does not know of.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ensilo_disk::Disk;

use super::corruption::{Corruption, CorruptionKind, DataLoss};
use super::error::OpenError;
use super::file_access::{exists, remove_if_there, rename, sync_dir, write_new};
use super::file_names::{OWNER, OWNER_NEW};
use super::log_file::list_log_files;
use super::manifest_file::{read_manifest, read_whole};
use super::named_files::NamedFiles;
use crate::format::{Manifest, OpeningId, Owner};

/// What helps where the database may not log to a directory.
pub(super) const NAME_ANOTHER: &str = "name another directory for the log";

impl NamedFiles<'_> {
    /// Checks whether the log directories that the manifest names hold its log.
    ///
    /// # Errors
    /// Why not: [`OpenError::OtherOwner`], [`OpenError::Corrupt`]; [`OpenError::Io`].
    pub(super) fn check_owners(&self) -> Result<(), OpenError> {
        let directories = self.log_directories_there()?;
        directories.iter().try_for_each(|directory| self.check_owner(directory, true))
    }

    /// Returns what is wrong with the log directories that the manifest names: each corruption that
    /// [`NamedFiles::check_owners`] would fail with.
    ///
    /// # Errors
    /// The others of [`NamedFiles::check_owners`].
    pub(super) fn corruptions_of_owners(&self) -> Result<Vec<Corruption>, OpenError> {
        let mut corruptions = Vec::new();
        for directory in self.log_directories_there()? {
            match self.check_owner(&directory, true) {
                Err(OpenError::Corrupt(corruption)) => corruptions.push(*corruption),
                checked => checked?,
            }
        }
        Ok(corruptions)
    }

    /// Returns the log directories in which no `OWNER` can be found, each as a corruption, although an
    /// opening has written one there: the one that wrote the manifest, or the one before. In what a backup or
    /// a salvage has made nothing was opened yet, and an earlier version wrote none.
    ///
    /// # Errors
    /// [`OpenError::Io`].
    pub(super) fn missing_owners(&self) -> Result<Vec<Corruption>, OpenError> {
        let mut corruptions = Vec::new();
        if [self.manifest.opening, self.manifest.previous_opening].contains(&OpeningId::default()) {
            return Ok(corruptions);
        }
        for directory in self.log_directories_there()? {
            let file = directory.join(OWNER);
            if !exists(self.disk, &file)? {
                let (kind, loss) = (CorruptionKind::Missing, DataLoss::Everything);
                corruptions.push(Corruption { file, offset: None, kind, loss });
            }
        }
        Ok(corruptions)
    }

    /// Checks whether the database may log from now on to this directory, which is there and which the
    /// manifest does not name, as far as its `OWNER` says. Returns whether that says that this database has
    /// logged there before.
    ///
    /// # Errors
    /// As [`NamedFiles::check_owners`]; [`OpenError::Refused`] where another database keeps its log.
    pub(super) fn check_requested(&self, directory: &Path) -> Result<bool, OpenError> {
        self.check_owner(directory, false)?;
        let owner = read_owner(self.disk, directory)?;
        Ok(owner.is_some_and(|owner| owner.database == self.manifest.database))
    }

    /// Brings each `OWNER` in the log directories, and in these others, up to the opening of the manifest,
    /// which lies on the disk.
    pub(super) fn bring_owners_up(&self, others: &BTreeSet<&Path>) -> Result<(), OpenError> {
        let all: BTreeSet<PathBuf> =
            self.log_directories().chain(others.iter().map(|&directory| directory.to_path_buf())).collect();
        for directory in all {
            let found = read_owner(self.disk, &directory)?;
            if found.is_some_and(|owner| !self.is_of_opening(&owner)) {
                self.write_new_owner(&directory)?;
                put_owner_in_place(self.disk, &directory)?;
            }
        }
        Ok(())
    }

    /// Writes what [`NamedFiles::claim`] puts in place: from then on that takes no more room on the disk.
    pub(super) fn write_claim(&self) -> Result<(), OpenError> {
        let directories = self.log_directories_there()?;
        directories.iter().try_for_each(|directory| self.write_new_owner(directory))
    }

    /// Says in each log directory that the manifest names that its opening writes there.
    pub(super) fn claim(&self) -> Result<(), OpenError> {
        let directories = self.log_directories_there()?;
        directories.iter().try_for_each(|directory| put_owner_in_place(self.disk, directory))
    }

    /// Checks whether the log directories are still those of the opening that wrote the manifest.
    ///
    /// # Errors
    /// [`OpenError::TakenOver`] if one is not; [`OpenError::Io`].
    pub(super) fn check_claim(&self) -> Result<(), OpenError> {
        for directory in self.log_directories() {
            match read_owner(self.disk, &directory) {
                Ok(Some(owner)) if self.is_of_opening(&owner) => {}
                Err(OpenError::Corrupt(corruption)) if corruption.kind.is_unread() => {
                    return Err(OpenError::Corrupt(corruption));
                }
                Ok(_) | Err(OpenError::Corrupt(_)) => {
                    return Err(OpenError::TakenOver { file: directory.join(OWNER) });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn is_of_opening(&self, owner: &Owner) -> bool {
        (owner.database, owner.opening) == (self.manifest.database, self.manifest.opening)
    }

    /// Checks whether a log directory, which the manifest names or does not name yet, may be used with it.
    /// One without an `OWNER` may: an earlier version wrote none.
    fn check_owner(&self, directory: &Path, is_named: bool) -> Result<(), OpenError> {
        let NamedFiles { disk, dir, manifest } = *self;
        let Some(owner) = read_owner(disk, directory)? else { return Ok(()) };
        let file = directory.join(OWNER);
        let corrupt = |kind| Err(OpenError::corrupt(&file, None, kind, DataLoss::Everything));
        if owner.database != manifest.database {
            let kind = CorruptionKind::OtherDatabase(owner.database);
            return match is_named {
                true => corrupt(kind),
                false if list_log_files(disk, directory)?.is_empty() => Ok(()),
                false => Err(OpenError::not_usable(&file, &kind, NAME_ANOTHER)),
            };
        }
        if let Some(directory) = self.other_holder(directory, &owner) {
            return Err(OpenError::OtherOwner { file, directory });
        }
        if [manifest.opening, manifest.previous_opening].contains(&owner.opening) {
            return Ok(());
        }
        match owner.generation.cmp(&manifest.generation) {
            Ordering::Less if is_named => corrupt(CorruptionKind::OlderDirectory),
            // What is in it may be the log of the same database in another directory, which has been moved
            // since.
            Ordering::Less if is_same(disk, dir, Path::new(&owner.directory)) => Ok(()),
            Ordering::Less if list_log_files(disk, directory)?.is_empty() => Ok(()),
            _ => Err(OpenError::OtherOwner { file, directory: PathBuf::from(owner.directory) }),
        }
    }

    /// Returns the other directory with the same database that the `OWNER` of a log directory names, if the
    /// manifest there names this log directory too: then this is a copy, and the log is not.
    fn other_holder(&self, directory: &Path, owner: &Owner) -> Option<PathBuf> {
        let (disk, other) = (self.disk, PathBuf::from(&owner.directory));
        if disk.place(&other).ok()? == disk.place(self.dir).ok()? {
            return None;
        }
        // What cannot be read does not hold a database that could be opened.
        let manifest = &read_manifest(disk, &other).ok()??;
        let place = disk.place(directory).ok()?;
        let is_it = |named: PathBuf| disk.place(&named).is_ok_and(|named| named == place);
        let is_held = manifest.database == self.manifest.database
            && NamedFiles { disk, dir: &other, manifest }.log_directories().any(is_it);
        is_held.then_some(other)
    }

    /// Writes the next `OWNER` of a directory beside the one that counts, and syncs it.
    fn write_new_owner(&self, directory: &Path) -> Result<(), OpenError> {
        let Manifest { database, opening, generation, .. } = *self.manifest;
        let absolute = std::path::absolute(self.dir).map_err(OpenError::io("find", self.dir))?;
        let spelled = absolute.to_string_lossy().into_owned();
        let new = directory.join(OWNER_NEW);
        remove_if_there(self.disk, &new)?;
        let owner = Owner { database, opening, generation, directory: spelled };
        write_new(self.disk, &new, &owner.encode())
    }
}

/// Returns whether both are one directory, which is there.
fn is_same(disk: &dyn Disk, one: &Path, other: &Path) -> bool {
    matches!((disk.place(one), disk.place(other)), (Ok(one), Ok(other)) if one == other)
}

/// Returns the `OWNER` of a directory, `None` if there is none.
fn read_owner(disk: &dyn Disk, directory: &Path) -> Result<Option<Owner>, OpenError> {
    let decode = |bytes: &[u8]| Owner::decode(bytes).map_err(CorruptionKind::Header);
    match read_whole(disk, &directory.join(OWNER), decode)? {
        None => Ok(None),
        Some(Ok(owner)) => Ok(Some(owner)),
        Some(Err(place)) => Err(OpenError::from(place.with_loss(DataLoss::Everything))),
    }
}

/// Puts the `OWNER` that was written last in the place of the one before. When this returns, it is there
/// after any crash.
fn put_owner_in_place(disk: &dyn Disk, directory: &Path) -> Result<(), OpenError> {
    rename(disk, directory, OWNER_NEW, OWNER)?;
    sync_dir(disk, directory)
}
