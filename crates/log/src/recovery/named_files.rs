//! The files of a database, as its manifest names them.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use ensilo_disk::Disk;

use super::error::OpenError;
use super::file_access::exists;
use super::forgiving::ForgivingDisk;
use crate::format::{CheckpointPart, LogFileName, Manifest};

/// The files that a manifest names of the database in a directory. The manifest is the one that lies there,
/// or one that is to be put there.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedFiles<'d> {
    pub(super) disk: &'d dyn Disk,
    pub(super) dir: &'d Path,
    pub(super) manifest: &'d Manifest,
}

impl NamedFiles<'_> {
    /// Returns the path of a log file in a directory that the manifest spells so.
    pub(super) fn log_path(&self, spelled: &str, name: LogFileName) -> PathBuf {
        self.dir.join(spelled).join(name.to_string())
    }

    /// Returns the part of the checkpoint that has this path.
    pub(super) fn part_at(&self, path: &Path) -> Option<&CheckpointPart> {
        let parts = &self.manifest.checkpoint.as_ref()?.parts;
        parts.iter().find(|part| self.dir.join(&part.path) == path)
    }

    /// Returns the log directories, whether or not they are there.
    pub(super) fn log_directories(&self) -> impl Iterator<Item = PathBuf> {
        self.manifest.log_directories().into_iter().map(|spelled| self.dir.join(spelled))
    }

    /// Returns the log directories as far as they are there, each once, however it is spelled.
    pub(super) fn log_directories_there(&self) -> Result<Vec<PathBuf>, OpenError> {
        let (mut there, mut places) = (Vec::new(), Vec::new());
        for directory in self.log_directories() {
            if exists(self.disk, &directory)? {
                let place = self.disk.place(&directory).map_err(OpenError::io("look for", &directory))?;
                if !places.contains(&place) {
                    places.push(place);
                    there.push(directory);
                }
            }
        }
        Ok(there)
    }
}

/// The same files, some of which may be damaged: they are read through a disk that remembers what it could
/// not read.
#[derive(Debug, Clone, Copy)]
pub(super) struct SuspectFiles<'d> {
    pub(super) disk: &'d ForgivingDisk<'d>,
    files: NamedFiles<'d>,
}

impl<'d> SuspectFiles<'d> {
    /// Returns the files that the manifest of the database in `dir` names.
    pub(super) fn new(disk: &'d ForgivingDisk<'d>, dir: &'d Path, manifest: &'d Manifest) -> Self {
        SuspectFiles { disk, files: NamedFiles { disk, dir, manifest } }
    }
}

impl<'d> Deref for SuspectFiles<'d> {
    type Target = NamedFiles<'d>;

    fn deref(&self) -> &NamedFiles<'d> {
        &self.files
    }
}
