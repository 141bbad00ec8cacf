//! The files of a database that is open: the lock, what the manifest says, and how a checkpoint takes the
//! log's place.
//!
//! # Crash
//! A checkpoint is installed in this order: its parts are synced, their directory, the directory of the
//! database, what is kept for readers of changes, the manifest that names them, its copy. Only then are files removed that the manifest does not
//! need any more. After a crash anywhere in between there is either the manifest before, with all that it
//! needs, or the new one; what is left over goes when the database is next opened. If the last step fails, a
//! crash may leave either manifest, and the files of both stay ([`OwnManifest`]).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::{Disk, Listed};
use ensilo_epoch::Epoch;

use super::change_history::{KeptChanges, put_history};
use super::checkpoint_writer::{CheckpointPlace, WrittenParts};
use super::directory_locks::LockedDirectory;
use super::error::OpenError;
use super::file_access::{exists, list, sync_dir};
use super::log_file::{is_unused, list_log_files};
use super::named_files::NamedFiles;
use super::own_manifest::{OwnManifest, check_on_disk};
use super::sealed_files::SealedFiles;
use super::unread_list::UnreadList;
use crate::format::{CheckpointEntry, LogFileName, Manifest};

/// The files of an open database. Dropping this lets others open it.
#[derive(Debug)]
pub struct DatabaseFiles {
    manifest: OwnManifest,
    /// At least that of the manifest; checkpoints that were given up have used numbers too.
    next_checkpoint: u64,
    /// The log files of this generation that its loggers are done with.
    sealed: SealedFiles,
    /// What is kept for readers of changes, if the database is open for them.
    changes: Option<KeptChanges>,
}

/// A checkpoint with all parts written.
#[derive(Debug)]
pub struct FinishedCheckpoint {
    /// What [`DatabaseFiles::begin_checkpoint`] gave.
    pub place: CheckpointPlace,
    /// `e_h`: when the last record had been written, the global epoch was at most this.
    pub end_epoch: Epoch,
    /// What each writer left.
    pub written: Vec<WrittenParts>,
}

/// What became of an installed checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledCheckpoint {
    /// The checkpoint.
    pub entry: CheckpointEntry,
    /// Files that were not needed any more and are gone: parts of the checkpoint before, and log files.
    pub removed: Vec<PathBuf>,
}

impl DatabaseFiles {
    pub(super) fn new(
        directory: LockedDirectory,
        manifest: Manifest,
        sealed: SealedFiles,
        changes: Option<KeptChanges>,
    ) -> Self {
        let next_checkpoint = manifest.next_checkpoint;
        DatabaseFiles { manifest: OwnManifest::new(directory, manifest), next_checkpoint, sealed, changes }
    }

    /// Returns the disk that they lie on.
    #[must_use]
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.manifest.directory().disk
    }

    /// Returns the directory of the database.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.manifest.directory().dir
    }

    /// Returns what the manifest on the disk said when it was last looked at.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        self.files().manifest
    }

    pub(super) fn files(&self) -> NamedFiles<'_> {
        self.manifest.current()
    }

    /// Returns a place for the parts of a new checkpoint that begins in `begin_epoch`, `e_l`.
    ///
    /// # Errors
    /// [`OpenError`]; nothing that counts has changed.
    pub fn begin_checkpoint(&mut self, begin_epoch: Epoch) -> Result<CheckpointPlace, OpenError> {
        self.manifest.look_again()?;
        let (id, spelled, directory) = self.next_place()?;
        self.disk().create_dir_all(&directory).map_err(OpenError::io("create", &directory))?;
        Ok(CheckpointPlace {
            disk: Arc::clone(self.disk()),
            database: self.manifest().database,
            id,
            begin_epoch,
            directory,
            spelled,
        })
    }

    /// Returns a number of a checkpoint, and its directory, which is not there: one that could not be removed
    /// may be.
    fn next_place(&mut self) -> Result<(u64, String, PathBuf), OpenError> {
        loop {
            let id = self.next_checkpoint;
            self.next_checkpoint += 1;
            let spelled = format!("checkpoint-{id}");
            let directory = self.directory().join(&spelled);
            if !exists(self.files().disk, &directory)? {
                return Ok((id, spelled, directory));
            }
        }
    }

    /// Removes the parts of a checkpoint that could not be made, unless the manifest on the disk, or one that
    /// a crash may leave, names them.
    ///
    /// # Errors
    /// [`OpenError`]; what is left does no harm.
    pub fn give_up_checkpoint(&mut self, place: &CheckpointPlace) -> Result<(), OpenError> {
        match self.manifest.may_need_checkpoint(place.id)? {
            true => Ok(()),
            false => remove_directory(self.files().disk, &place.directory).map(drop),
        }
    }

    /// Makes a checkpoint the one that the next opening begins with, and removes what is not needed any more
    /// because of it.
    ///
    /// `durable_epoch` is the log's, and not before the end of the checkpoint.
    ///
    /// # Errors
    /// [`OpenError`]. The next opening begins with this checkpoint or the one before, and the files of both
    /// are there. Whether this one may be needed is known to [`DatabaseFiles::give_up_checkpoint`]. That a
    /// file which is not needed any more cannot be removed is no error: it goes with the next checkpoint or
    /// opening.
    ///
    /// # Panics
    /// When the checkpoint ends after the durable epoch: it could not be recovered from.
    pub fn install_checkpoint(
        &mut self,
        finished: FinishedCheckpoint,
        durable_epoch: Epoch,
    ) -> Result<InstalledCheckpoint, OpenError> {
        let entry = finished.entry();
        assert!(entry.end_epoch <= durable_epoch, "a checkpoint that needs more log than is stored");
        let NamedFiles { disk, dir, .. } = self.files();
        sync_dir(disk, &finished.place.directory)?;
        sync_dir(disk, dir)?;
        self.check_own()?;
        let manifest = self.manifest_with(&entry, durable_epoch);
        self.keep_changes(&manifest)?;
        let before = self.manifest.replace(manifest)?;
        self.files().keep_copy();
        let log_directories: Vec<&str> = before.iter().flat_map(Manifest::log_directories).collect();
        let removed = self.files().remove_leftovers(&log_directories);
        Ok(InstalledCheckpoint { entry, removed })
    }

    /// Says which log files are kept for readers of changes once this manifest is in place.
    fn keep_changes(&mut self, next: &Manifest) -> Result<(), OpenError> {
        let before = self.manifest.current();
        let Some(changes) = &mut self.changes else { return Ok(()) };
        changes.follow(&before, next, &self.sealed);
        put_history(before.disk, before.dir, &changes.history)
    }

    /// Writes into the manifest that everything up to `durable_epoch`, the log's, is stored: by that an older
    /// copy of a log directory is found at the next opening. Nothing is written if the manifest says so
    /// already, and nothing is removed.
    ///
    /// # Errors
    /// [`OpenError`]; the manifest says what it said, or this.
    pub fn note_durable(&mut self, durable_epoch: Epoch) -> Result<(), OpenError> {
        let known = self.manifest().durable_epoch;
        // Before the first epoch of the generation there are those that are void.
        if durable_epoch <= known || durable_epoch < self.manifest().first_epoch {
            return Ok(());
        }
        self.check_own()?;
        let manifest = Manifest { durable_epoch, ..self.manifest().clone() };
        self.manifest.replace(manifest).map(drop)
    }

    /// Removes log files that were made ahead for nothing: how many files a closed database has does not depend on which thread was faster. Where
    /// the files are not this opening's any more nothing is removed. One that stays is empty, and goes with the next opening.
    pub fn remove_unused(&mut self, unused: &[PathBuf]) {
        if !unused.is_empty() && self.check_own().is_ok() {
            for path in unused {
                let _ = self.disk().remove(path);
            }
        }
    }

    /// Checks whether the manifest and the log directories are still this opening's.
    fn check_own(&mut self) -> Result<(), OpenError> {
        self.manifest.look_again()?;
        self.files().check_claim()
    }

    /// Returns the manifest that names this checkpoint, and the log files after it alone.
    fn manifest_with(&self, entry: &CheckpointEntry, durable_epoch: Epoch) -> Manifest {
        let mut manifest = self.manifest().clone();
        manifest.durable_epoch = durable_epoch;
        manifest.next_checkpoint = self.next_checkpoint;
        manifest.earlier.retain(|file| file.durable_epoch >= entry.begin_epoch);
        for (number, logger) in (0u32..).zip(&mut manifest.loggers) {
            let sealed = self.sealed.of_logger(number).into_iter();
            logger.first_sequence = first_needed(logger.first_sequence, sealed, entry.begin_epoch);
        }
        manifest.checkpoint = Some(entry.clone());
        manifest
    }
}

/// Returns the first file that is needed once everything before `begin_epoch` is in a checkpoint, given the
/// sealed files.
///
/// The newest sealed file stays: the mark that it ends with says how far the logger came, and the file that
/// is written may not have one yet.
fn first_needed(first: u64, sealed: impl Iterator<Item = (u64, Epoch)>, begin_epoch: Epoch) -> u64 {
    let mut sealed: Vec<_> = sealed.filter(|file| file.0 >= first).collect();
    sealed.sort_unstable();
    sealed.pop();
    let done = sealed.iter().zip(first..).take_while(|((sequence, largest_epoch), expected)| {
        sequence == expected && *largest_epoch < begin_epoch
    });
    first + done.count() as u64
}

impl FinishedCheckpoint {
    pub(super) fn entry(&self) -> CheckpointEntry {
        let mut parts = Vec::new();
        let mut tables = std::collections::BTreeMap::new();
        for written in &self.written {
            parts.extend_from_slice(&written.parts);
            for (&table, &records) in &written.tables {
                *tables.entry(table).or_insert(0) += records;
            }
        }
        CheckpointEntry {
            id: self.place.id,
            begin_epoch: self.place.begin_epoch,
            end_epoch: self.end_epoch,
            parts,
            tables: tables.into_iter().collect(),
        }
    }
}

impl NamedFiles<'_> {
    /// Removes what the manifest does not need: log files of before its first ones, of earlier generations
    /// that are done with, and checkpoints other than its own, of which none is being made; but not what is kept for
    /// readers of changes, or what no repair could copy. `log_directories` are those to look in, as manifests spell them. It is the manifest
    /// on the disk, which is read again, and no other one can come up after a crash.
    ///
    /// Returns what is gone. What cannot be looked at or removed does no harm, and is tried again by the next
    /// checkpoint or opening.
    pub(super) fn remove_leftovers(&self, log_directories: &[&str]) -> Vec<PathBuf> {
        let NamedFiles { disk, dir, manifest } = *self;
        let mut removed = Vec::new();
        let unread = check_on_disk(disk, dir, Some(manifest)).and_then(|()| UnreadList::read(disk, dir));
        let (Ok(unread), Ok(changes)) = (unread, self.change_history()) else { return removed };
        let kept = changes.map(|changes| changes.kept).unwrap_or_default();
        let is_kept = |name: LogFileName| kept.iter().any(|kept| kept.file.name.is_same_file(name));
        for &spelled in log_directories {
            for name in list_log_files(disk, &dir.join(spelled)).unwrap_or_default() {
                let path = self.log_path(spelled, name);
                let is_done_with =
                    manifest.is_done_with(&name) && !is_kept(name) && !unread.keeps(disk, &path);
                if is_done_with && self.is_what_its_name_says(&path, name) && disk.remove(&path).is_ok() {
                    removed.push(path);
                }
            }
        }
        let kept = manifest.checkpoint.as_ref().map(|checkpoint| checkpoint.id);
        for entry in disk.list(dir).unwrap_or_default() {
            let directory = dir.join(&entry.name);
            let is_other = checkpoint_number(&entry).is_some_and(|id| Some(id) != kept);
            if is_other && !unread.keeps(disk, &directory) {
                removed.extend(remove_directory(disk, &directory).unwrap_or_default());
            }
        }
        removed
    }

    /// Returns whether a file is the log file of this database that its name says, or nothing was ever
    /// written to it. Whatever else has such a name is left alone, and what cannot be read.
    fn is_what_its_name_says(&self, path: &Path, name: LogFileName) -> bool {
        let is_known = || {
            let (_, identity, header) = self.read_log_header(path, name)?;
            Ok::<_, OpenError>(header.is_ok() || is_unused(self.disk, path, &identity)?)
        };
        is_known().unwrap_or(false)
    }
}

/// Returns the number of the checkpoint in this directory.
pub(crate) fn checkpoint_number(entry: &Listed) -> Option<u64> {
    let number = entry.name.strip_prefix("checkpoint-").and_then(crate::format::parse_number);
    number.filter(|_| entry.is_dir)
}

/// Removes a directory with everything in it, if it is there, and returns the files that are gone. Of a link
/// the name goes, and not what it leads to.
pub(crate) fn remove_directory(disk: &dyn Disk, directory: &Path) -> Result<Vec<PathBuf>, OpenError> {
    match disk.remove(directory) {
        Ok(()) => return Ok(vec![directory.to_path_buf()]),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        // Nothing else says that this is no link.
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => {}
        Err(error) => return Err(OpenError::io("remove", directory)(error)),
    }
    let mut removed = Vec::new();
    for entry in list(disk, directory)? {
        removed.extend(remove_directory(disk, &directory.join(entry.name))?);
    }
    disk.remove_dir(directory).map_err(OpenError::io("remove", directory))?;
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_go_up_to_the_first_that_is_needed_and_the_newest_sealed_one_stays() {
        let needed = |first, files: &[(u64, u64)], begin| {
            let sealed = files.iter().map(|&(sequence, epoch)| (sequence, Epoch::new(epoch)));
            first_needed(first, sealed, Epoch::new(begin))
        };
        assert_eq!(needed(1, &[], 100), 1);
        assert_eq!(needed(1, &[(1, 5)], 100), 1);
        assert_eq!(needed(1, &[(2, 7), (1, 5)], 100), 2);
        assert_eq!(needed(1, &[(1, 5), (2, 7), (3, 9)], 100), 3);
        assert_eq!(needed(1, &[(1, 5), (2, 7), (3, 9)], 7), 2);
        assert_eq!(needed(1, &[(1, 5), (2, 4), (3, 9)], 5), 1);
        assert_eq!(needed(2, &[(1, 1), (2, 2), (3, 3), (4, 4)], 100), 4);
        assert_eq!(needed(1, &[(1, 1), (3, 3), (4, 4)], 100), 2);
    }
}
