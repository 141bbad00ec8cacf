//! The manifest of an open database: the one that lies on the disk, and those that a crash may leave in its
//! place.
//!
//! # Crash
//! A manifest is put in place by a rename and a sync of the directory. If one of them fails, a crash may
//! leave this manifest or the one before. Both are possible until a later manifest is in place and synced.
//!
//! # Invariants
//! - `M1` Nothing is removed that the manifest on the disk or a possible one needs.
//! - `M2` Before anything is removed or replaced, the manifest on the disk is read again: what it says
//!   counts, not what is remembered.

use std::mem;
use std::path::Path;

use ensilo_disk::Disk;

use super::directory_locks::LockedDirectory;
use super::error::OpenError;
use super::file_names::MANIFEST;
use super::manifest_file::{put_manifest_in_place, read_manifest};
use super::named_files::NamedFiles;
use crate::format::Manifest;

/// What an open database knows of its manifest.
#[derive(Debug)]
pub(crate) struct OwnManifest {
    /// The directory that it lies in.
    directory: LockedDirectory,
    /// The one that was on the disk when it was last looked at.
    current: Manifest,
    /// Others that a crash may leave, because their rename or its sync failed, or that of a later one.
    possible: Vec<Manifest>,
}

impl OwnManifest {
    /// Returns the manifest that was read from the disk, or is in place and synced.
    pub(super) fn new(directory: LockedDirectory, current: Manifest) -> OwnManifest {
        OwnManifest { directory, current, possible: Vec::new() }
    }

    /// Returns the directory that it lies in.
    pub(super) fn directory(&self) -> &LockedDirectory {
        &self.directory
    }

    /// Returns the manifest that was on the disk when it was last looked at, as the files that it names.
    pub(super) fn current(&self) -> NamedFiles<'_> {
        self.directory.files(&self.current)
    }

    /// Reads the manifest on the disk again. From then on [`OwnManifest::current`] is that one.
    ///
    /// # Errors
    /// [`OpenError::TakenOver`] if it is none that this opening has put there; those of reading it.
    pub(super) fn look_again(&mut self) -> Result<(), OpenError> {
        let LockedDirectory { disk, dir, .. } = &self.directory;
        let on_disk = read_manifest(&**disk, dir)?;
        if on_disk.as_ref() == Some(&self.current) {
            return Ok(());
        }
        match self.possible.iter_mut().find(|possible| on_disk.as_ref() == Some(possible)) {
            Some(possible) => {
                mem::swap(&mut self.current, possible);
                Ok(())
            }
            None => Err(was_replaced(dir)),
        }
    }

    /// Puts `next` in the place of the manifest on the disk. Returns all that were possible before, and are
    /// not any more.
    ///
    /// # Errors
    /// [`OpenError`]. `next` is possible from then on, unless it could not even be written.
    pub(super) fn replace(&mut self, next: Manifest) -> Result<Vec<Manifest>, OpenError> {
        self.look_again()?;
        let files = self.directory.files(&next);
        files.write_new_manifest()?;
        if let Err(error) = put_manifest_in_place(files.disk, files.dir) {
            self.possible.push(next);
            // If it cannot be read now, it is read before anything is removed.
            let _ = self.look_again();
            return Err(error);
        }
        let mut before = mem::take(&mut self.possible);
        before.push(mem::replace(&mut self.current, next));
        Ok(before)
    }

    /// Returns whether the manifest on the disk, or one that a crash may leave, names the checkpoint of this
    /// number. The manifest on the disk is read again.
    ///
    /// # Errors
    /// As [`OwnManifest::look_again`].
    pub(super) fn may_need_checkpoint(&mut self, id: u64) -> Result<bool, OpenError> {
        self.look_again()?;
        let mut manifests = self.possible.iter().chain([&self.current]);
        Ok(manifests.any(|manifest| manifest.checkpoint.as_ref().is_some_and(|entry| entry.id == id)))
    }
}

/// Checks whether the manifest on the disk is still the one that was read or put there, `None` for none.
///
/// # Errors
/// [`OpenError::TakenOver`] if it is another one; those of reading it.
pub(super) fn check_on_disk(
    disk: &dyn Disk,
    dir: &Path,
    expected: Option<&Manifest>,
) -> Result<(), OpenError> {
    if read_manifest(disk, dir)?.as_ref() == expected { Ok(()) } else { Err(was_replaced(dir)) }
}

fn was_replaced(dir: &Path) -> OpenError {
    OpenError::TakenOver { file: dir.join(MANIFEST) }
}
