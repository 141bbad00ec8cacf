//! Copies of a database that can be opened in its place.
//!
//! A backup is a database of its own: all log files that count become files of an earlier generation, of
//! which nothing after the durable epoch counts, and a new generation begins that is empty. So a backup of a
//! running database needs no moment at which all its loggers stand still: what they have written after the
//! durable epoch was read is void.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;

use super::copy::{Watch, copy_file, copy_open_file};
use super::corruption::Corruption;
use super::database_files::DatabaseFiles;
use super::directory::missing_manifest;
use super::directory_locks::{DirectoryLocks, LockMode};
use super::error::OpenError;
use super::file_access::{make_directory, sync_dir};
use super::file_names::LOG;
use super::generation::log_identity;
use super::inspect::inspect_read_only;
use super::log_file::open_renamed;
use super::named_files::NamedFiles;
use super::needed_files::SealedNames;
use super::scan::{Needed, needed_up_to};
use super::target::TargetDirectory;
use crate::format::{
    BlockCodec, CheckpointPart, EarlierFile, FORMAT_VERSION, LogFileName, LoggerFiles, Manifest, OpeningId,
};

/// What a backup holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackedUp {
    /// Every transaction up to this epoch, and none after it.
    pub durable_epoch: Epoch,
    /// How many files were copied.
    pub files: u64,
    /// How many bytes were copied.
    pub bytes: u64,
}

/// Copies the database in `dir`, which nobody has open, to `target`, which is empty or missing and lies in no
/// database. The copy is verified; opening it is the restore.
///
/// # Errors
/// [`OpenError`]; what was made of the copy is gone. [`OpenError::Refused`] for a target that is none.
pub fn backup(disk: &Arc<dyn Disk>, dir: &Path, target: &Path) -> Result<BackedUp, OpenError> {
    let read = inspect_read_only(disk, dir)?;
    let Some((manifest, found)) = &read.found().database else { return Err(missing_manifest(&**disk, dir)) };
    let source = BackupSource {
        files: NamedFiles { disk: &**disk, dir, manifest },
        log: found.earlier_files(manifest, found.durable_epoch, SealedNames::Hints),
        durable_epoch: manifest.counted_to(found.durable_epoch),
        largest_epoch: found.largest_epoch,
    };
    copy_to(&source, target, &mut |_| Ok(()))
}

impl DatabaseFiles {
    /// Copies the running database to `target`, which is empty or missing and lies in no database, with all
    /// transactions up to `durable_epoch`, the log's, and none after it. The copy is verified; opening it is
    /// the restore. Transactions go on meanwhile; a checkpoint cannot be installed.
    ///
    /// `watch` is called again and again with the number of bytes that were copied; it may wait, and ends the
    /// copy by an error.
    ///
    /// # Errors
    /// [`OpenError`], that of `watch` among them; what was made of the copy is gone. [`OpenError::Refused`]
    /// for a target that is none.
    pub fn backup(
        &self,
        target: &Path,
        durable_epoch: Epoch,
        watch: &mut dyn FnMut(u64) -> Result<(), OpenError>,
    ) -> Result<BackedUp, OpenError> {
        let files = self.files();
        let (log, largest_epoch) = running_log(&files, durable_epoch)?;
        let durable_epoch = files.manifest.counted_to(durable_epoch);
        copy_to(&BackupSource { files, log, durable_epoch, largest_epoch }, target, watch)
    }
}

/// Returns the log files of a database that is being written, as far as they are needed for everything up to
/// `durable_epoch`; and an epoch that is not before any in them.
fn running_log(
    source: &NamedFiles<'_>,
    durable_epoch: Epoch,
) -> Result<(Vec<EarlierFile>, Epoch), OpenError> {
    let NamedFiles { disk, dir, manifest } = *source;
    let of_earlier = |file: &EarlierFile| EarlierFile {
        durable_epoch: file.durable_epoch.min(durable_epoch),
        ..file.clone()
    };
    let mut files: Vec<EarlierFile> = manifest.earlier.iter().map(of_earlier).collect();
    let opening = manifest.log_opening();
    let checkpoint_end = manifest.checkpoint_end().unwrap_or_default();
    let mut largest_epoch = manifest.first_epoch.max(durable_epoch).max(checkpoint_end);
    if durable_epoch < manifest.first_epoch {
        // Nothing was stored in this generation.
        return Ok((files, largest_epoch));
    }
    for (number, logger) in (0u32..).zip(&manifest.loggers) {
        for sequence in logger.first_sequence.. {
            let name = LogFileName::open(manifest.generation, number, sequence);
            let (name, file) = open_renamed(disk, &dir.join(&logger.directory), name)?;
            let path = source.log_path(&logger.directory, name);
            let identity = log_identity(manifest.database, opening, name);
            let codec = BlockCodec::new(&identity);
            let (needed, largest) =
                needed_up_to(&*file, &codec, durable_epoch).map_err(OpenError::io("read", &path))?;
            largest_epoch =
                largest_epoch.max(largest).max(name.largest_epoch(identity.epochs).unwrap_or_default());
            let (Needed::To(end) | Needed::Whole(end)) = needed else {
                let why = format!("{} does not reach epoch {durable_epoch}", path.display());
                return Err(OpenError::Refused(why));
            };
            let directory = logger.directory.clone();
            files.push(EarlierFile { directory, name, valid_bytes: Some(end), durable_epoch, opening });
            if needed == Needed::To(end) {
                break;
            }
        }
    }
    Ok((files, largest_epoch))
}

/// What is to be copied.
struct BackupSource<'a> {
    files: NamedFiles<'a>,
    /// The log files, as far as they are needed.
    log: Vec<EarlierFile>,
    /// Nothing after it counts.
    durable_epoch: Epoch,
    /// No epoch in any of the files is later.
    largest_epoch: Epoch,
}

impl BackupSource<'_> {
    fn parts(&self) -> impl Iterator<Item = &CheckpointPart> {
        self.files.manifest.checkpoint.iter().flat_map(|checkpoint| &checkpoint.parts)
    }

    /// Returns where the parts of the checkpoint lie, in the database and in the backup.
    fn checkpoint_directories(&self) -> Vec<&Path> {
        let mut directories: Vec<&Path> =
            self.parts().filter_map(|part| Path::new(&part.path).parent()).collect();
        directories.dedup();
        directories
    }

    /// Returns what the file `copy` of a backup in `dir` was copied from, if it was.
    fn original(&self, dir: &Path, copy: &Path) -> Option<PathBuf> {
        let within = copy.strip_prefix(dir).ok()?;
        if self.parts().any(|part| Path::new(&part.path) == within) {
            return Some(self.files.dir.join(within));
        }
        let name = LogFileName::parse(within.strip_prefix(LOG).ok()?.to_str()?)?;
        let file = self.log.iter().find(|file| file.name == name)?;
        Some(self.files.log_path(&file.directory, name))
    }
}

/// Makes a database of `source` in `dir`, and verifies it. If that fails, what was made is removed.
fn copy_to(source: &BackupSource<'_>, dir: &Path, watch: &mut Watch<'_>) -> Result<BackedUp, OpenError> {
    let target = TargetDirectory::claim(source.files.disk, &source.files, dir)?;
    let copied = BackupCopy { target: &target, source, watch, files: 0, bytes: 0 }.fill();
    if copied.is_err() {
        // What cannot be removed does no harm.
        let _ = target.give_up(&source.checkpoint_directories());
    }
    copied
}

/// Files that are being copied.
struct BackupCopy<'c> {
    target: &'c TargetDirectory<'c>,
    source: &'c BackupSource<'c>,
    watch: &'c mut Watch<'c>,
    files: u64,
    bytes: u64,
}

impl BackupCopy<'_> {
    /// Makes the database of all that is copied, and verifies it.
    fn fill(mut self) -> Result<BackedUp, OpenError> {
        let (target, source) = (self.target, self.source);
        let manifest = source.files.manifest;
        let _locks = DirectoryLocks::of_database(target.disk, target.dir, LockMode::Exclusive)?;
        self.copy_checkpoint()?;
        let earlier = self.copy_log()?;
        target.begin_generation(&Manifest {
            format: FORMAT_VERSION,
            generation: manifest.generation + 1,
            first_epoch: Epoch::new(source.largest_epoch.get() + 1),
            durable_epoch: source.durable_epoch,
            loggers: vec![LoggerFiles { directory: LOG.to_owned(), first_sequence: 1 }],
            earlier,
            opening: OpeningId::random(),
            previous_opening: OpeningId::default(),
            ..manifest.clone()
        })?;
        // What is damaged there was copied so, and is reported of the file that it was copied from: the copy
        // goes.
        target.verify(|corruption| {
            let file = source.original(target.dir, &corruption.file).unwrap_or(corruption.file);
            Corruption { file, ..corruption }
        })?;
        target.finish()?;
        Ok(BackedUp { durable_epoch: source.durable_epoch, files: self.files, bytes: self.bytes })
    }

    fn copy_checkpoint(&mut self) -> Result<(), OpenError> {
        let TargetDirectory { disk, dir, .. } = *self.target;
        for part in self.source.parts() {
            let to = dir.join(&part.path);
            let directory = to.parent().unwrap_or(dir).to_path_buf();
            make_directory(disk, &directory)?;
            let from = self.source.files.dir.join(&part.path);
            self.copy(|watch| copy_file(disk, &from, &to, Some(part.bytes), watch))?;
            sync_dir(disk, &directory)?;
        }
        Ok(())
    }

    /// Copies log files into one directory; returns them as they are there.
    fn copy_log(&mut self) -> Result<Vec<EarlierFile>, OpenError> {
        let TargetDirectory { disk, dir, .. } = *self.target;
        let (directory, source) = (dir.join(LOG), self.source);
        make_directory(disk, &directory)?;
        let mut earlier = Vec::new();
        for file in &source.log {
            let from = source.files.dir.join(&file.directory);
            let (name, original) = open_renamed(disk, &from, file.name)?;
            let (from, to) = (from.join(name.to_string()), directory.join(file.name.to_string()));
            self.copy(|watch| copy_open_file(disk, &*original, &from, &to, file.valid_bytes, watch))?;
            earlier.push(EarlierFile { directory: LOG.to_owned(), ..file.clone() });
        }
        sync_dir(disk, &directory)?;
        Ok(earlier)
    }

    /// Copies one file, and counts it.
    fn copy(&mut self, copy: impl FnOnce(&mut Watch<'_>) -> Result<u64, OpenError>) -> Result<(), OpenError> {
        let (before, watch) = (self.bytes, &mut self.watch);
        self.bytes += copy(&mut |bytes| watch(before + bytes))?;
        self.files += 1;
        Ok(())
    }
}
