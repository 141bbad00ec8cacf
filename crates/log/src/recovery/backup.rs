//! Copies of a database that can be opened in its place.
//!
//! A backup is a database of its own: all log files that count become files of an earlier generation, of which nothing after the
//! durable epoch counts, and a new generation begins that is empty. So a backup of a running database needs no moment at which
//! all its loggers stand still: what they have written after the durable epoch was read is void.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::{Disk, File};
use ensilo_epoch::Epoch;

use super::chain::Depth;
use super::copy::copy_file;
use super::database_files::{DatabaseFiles, list_log_files};
use super::error::{Consequence, Finding, OpenError};
use super::generation::{NewGeneration, create_directory, log_identity};
use super::inspect::{missing_manifest, sound_survey, take_lock};
use super::manifest_file::{install_manifest, read_manifest, spelled_path};
use super::scan::{Needed, needed_up_to};
use super::survey::before;
use super::verify::verify_locked;
use crate::format::{
    BlockCodec, EarlierFile, FILE_HEADER_BYTES, FileHeader, LogFileName, LoggerFiles, Manifest,
};

/// The directory for log files within a backup.
const LOG: &str = "log";

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

/// Copies the database in `dir`, which nobody has open, to `target`, which is empty or missing. The copy is verified; opening it is the
/// restore.
///
/// # Errors
/// [`OpenError`]; `target` is of no use then.
pub fn backup(disk: &Arc<dyn Disk>, dir: &Path, target: &Path) -> Result<BackedUp, OpenError> {
    if !disk.exists(dir).map_err(OpenError::io("look for", dir))? {
        return Err(OpenError::NotADatabase { directory: dir.to_path_buf(), holds: None });
    }
    let _lock = take_lock(&**disk, dir)?;
    let manifest = read_manifest(&**disk, dir)?.ok_or_else(|| missing_manifest(&**disk, dir))?;
    let found = sound_survey(&**disk, dir, &manifest, Depth::Tail)?;
    let log = found.earlier_files(&manifest, found.durable_epoch);
    let copy = Copy { disk: &**disk, dir, target, manifest: &manifest };
    copy.make(&log, found.durable_epoch, found.largest_epoch)
}

impl DatabaseFiles {
    /// Copies the running database to `target`, which is empty or missing, with all transactions up to `durable_epoch`, the log's, and
    /// none after it. The copy is verified; opening it is the restore. Transactions go on meanwhile; a checkpoint cannot be installed.
    ///
    /// # Errors
    /// [`OpenError`]; `target` is of no use then.
    pub fn backup(&self, target: &Path, durable_epoch: Epoch) -> Result<BackedUp, OpenError> {
        let (disk, dir, manifest) = (self.disk(), self.directory(), self.manifest());
        let (log, largest_epoch) = running_log(disk, dir, manifest, durable_epoch)?;
        Copy { disk, dir, target, manifest }.make(&log, durable_epoch, largest_epoch)
    }
}

/// The log files of a database that is being written, as far as they are needed for everything up to `durable_epoch`; and an epoch that
/// is not before any in them.
fn running_log(
    disk: &dyn Disk,
    dir: &Path,
    manifest: &Manifest,
    durable_epoch: Epoch,
) -> Result<(Vec<EarlierFile>, Epoch), OpenError> {
    let mut files = manifest.earlier.clone();
    let mut largest_epoch = manifest.first_epoch.max(durable_epoch);
    if let Some(checkpoint) = &manifest.checkpoint {
        largest_epoch = largest_epoch.max(checkpoint.end_epoch);
    }
    if durable_epoch < manifest.first_epoch {
        // Nothing was stored in this generation.
        return Ok((files, largest_epoch));
    }
    for (number, logger) in (0u32..).zip(&manifest.loggers) {
        for sequence in logger.first_sequence.. {
            let (name, file) = open_running(disk, dir, manifest, logger, number, sequence)?;
            let path = spelled_path(dir, &logger.directory).join(name.to_string());
            let codec = BlockCodec::new(&log_identity(manifest.database, name));
            let (needed, largest) =
                needed_up_to(&*file, &codec, durable_epoch).map_err(OpenError::io("read", &path))?;
            largest_epoch = largest_epoch.max(largest);
            let valid_bytes = match needed {
                Needed::To(end) | Needed::Whole(end) => Some(end),
                Needed::TooShort => {
                    let why = format!("{} does not reach epoch {durable_epoch}", path.display());
                    return Err(OpenError::Refused(why));
                }
            };
            files.push(EarlierFile { directory: logger.directory.clone(), name, valid_bytes, durable_epoch });
            if matches!(needed, Needed::To(_)) {
                break;
            }
        }
    }
    Ok((files, largest_epoch))
}

/// Opens a log file by its sequence number, whichever of its names it has by now.
fn open_running(
    disk: &dyn Disk,
    dir: &Path,
    manifest: &Manifest,
    files: &LoggerFiles,
    logger: u32,
    sequence: u64,
) -> Result<(LogFileName, Box<dyn File>), OpenError> {
    let directory = spelled_path(dir, &files.directory);
    let open_name = LogFileName { generation: manifest.generation, logger, sequence, largest_epoch: None };
    let mut error = io::Error::from(io::ErrorKind::NotFound);
    // It is renamed once at most, between the list and the opening.
    for _ in 0..2 {
        let names = list_log_files(disk, &directory)?;
        let is_it = |name: &LogFileName| LogFileName { largest_epoch: None, ..*name } == open_name;
        let Some(name) = names.into_iter().find(is_it) else { break };
        match disk.open(&directory.join(name.to_string())) {
            Ok(file) => return Ok((name, file)),
            Err(again) => error = again,
        }
    }
    Err(OpenError::Io { doing: "open", path: directory.join(open_name.to_string()), error })
}

/// A copy that is being made.
struct Copy<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    target: &'a Path,
    manifest: &'a Manifest,
}

impl Copy<'_> {
    /// Makes the copy with these log files, and verifies it.
    fn make(
        &self,
        log: &[EarlierFile],
        durable_epoch: Epoch,
        largest_epoch: Epoch,
    ) -> Result<BackedUp, OpenError> {
        let Copy { disk, target, .. } = *self;
        create_directory(disk, target).map_err(OpenError::io("create", target))?;
        let listed = disk.list(target).map_err(OpenError::io("list", target))?;
        if let Some(entry) = listed.into_iter().next() {
            return Err(OpenError::NotADatabase { directory: target.to_path_buf(), holds: Some(entry.name) });
        }
        let _lock = take_lock(disk, target)?;
        let mut done = BackedUp { durable_epoch, files: 0, bytes: 0 };
        self.copy_checkpoint(&mut done)?;
        let earlier = self.copy_log(log, &mut done)?;
        self.begin_generation(earlier, Epoch::new(largest_epoch.get() + 1))?;
        let mut first = None;
        verify_locked(disk, target, &mut |damage| {
            first.get_or_insert(damage);
        })?;
        match first {
            None => Ok(done),
            Some(damage) => Err(OpenError::Damaged(Box::new(damage))),
        }
    }

    fn copy_checkpoint(&self, done: &mut BackedUp) -> Result<(), OpenError> {
        for part in self.manifest.checkpoint.iter().flat_map(|checkpoint| &checkpoint.parts) {
            let to = self.target.join(&part.path);
            let directory = to.parent().unwrap_or(self.target).to_path_buf();
            create_directory(self.disk, &directory).map_err(OpenError::io("create", &directory))?;
            done.bytes += copy_file(self.disk, &self.dir.join(&part.path), &to, Some(part.bytes))?;
            done.files += 1;
            self.disk.sync_dir(&directory).map_err(OpenError::io("sync", &directory))?;
        }
        Ok(())
    }

    /// Copies log files into one directory; returns them as they are there.
    fn copy_log(&self, log: &[EarlierFile], done: &mut BackedUp) -> Result<Vec<EarlierFile>, OpenError> {
        let directory = self.target.join(LOG);
        create_directory(self.disk, &directory).map_err(OpenError::io("create", &directory))?;
        let mut earlier = Vec::new();
        for file in log {
            let from = spelled_path(self.dir, &file.directory);
            let to = directory.join(file.name.to_string());
            done.bytes += self.copy_log_file(&from, file, &to)?;
            done.files += 1;
            if let Some(bytes) = file.valid_bytes {
                self.say_length(&to, bytes)?;
            }
            earlier.push(EarlierFile { directory: LOG.to_owned(), ..file.clone() });
        }
        self.disk.sync_dir(&directory).map_err(OpenError::io("sync", &directory))?;
        Ok(earlier)
    }

    /// Copies a log file; one that is running may get its other name at any moment, once.
    fn copy_log_file(&self, from: &Path, file: &EarlierFile, to: &Path) -> Result<u64, OpenError> {
        let copied = copy_file(self.disk, &from.join(file.name.to_string()), to, file.valid_bytes);
        match copied {
            Err(OpenError::Io { doing: "open", error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                let same = |name: &LogFileName| LogFileName { largest_epoch: None, ..*name };
                let renamed = list_log_files(self.disk, from)?
                    .into_iter()
                    .find(|name| same(name) == same(&file.name))
                    .unwrap_or(file.name);
                copy_file(self.disk, &from.join(renamed.to_string()), to, file.valid_bytes)
            }
            copied => copied,
        }
    }

    /// Lets the header of a copied log file say how long the copy is, so that it is not taken for one that was cut.
    fn say_length(&self, path: &Path, reserved_bytes: u64) -> Result<(), OpenError> {
        let file = self.disk.open(path).map_err(OpenError::io("open", path))?;
        let mut bytes = vec![0; FILE_HEADER_BYTES];
        file.read_at(0, &mut bytes).map_err(OpenError::io("read", path))?;
        let header = FileHeader::decode(&bytes).map_err(|damage| {
            OpenError::damaged(path, Some(0), Finding::Header(damage), Consequence::Everything)
        })?;
        let header = FileHeader { reserved_bytes, ..header };
        file.write_at(0, &header.encode()).map_err(OpenError::io("write", path))?;
        file.sync_all().map_err(OpenError::io("sync", path))
    }

    /// Begins a generation in the copy, without anything in it, and installs its manifest.
    fn begin_generation(&self, earlier: Vec<EarlierFile>, first_epoch: Epoch) -> Result<(), OpenError> {
        let manifest = Manifest {
            generation: self.manifest.generation + 1,
            first_epoch,
            durable_epoch: before(first_epoch),
            loggers: vec![LoggerFiles { directory: LOG.to_owned(), first_sequence: 1 }],
            earlier,
            ..self.manifest.clone()
        };
        let directories: [PathBuf; 1] = [self.target.join(LOG)];
        let (database, generation) = (manifest.database, manifest.generation);
        NewGeneration::create(self.disk, database, generation, first_epoch, &directories, 0)
            .map_err(|(path, error)| OpenError::Io { doing: "create a log file in", path, error })?;
        install_manifest(self.disk, self.target, &manifest)
    }
}
