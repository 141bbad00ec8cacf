//! Files for an opening of the database to write its log to.

use std::io;
use std::path::{Path, PathBuf};

use ensilo_disk::{Disk, File, PAGE_BYTES, is_disk_full};
use ensilo_epoch::Epoch;

use super::error::OpenError;
use super::file_access::create_directory;
use super::named_files::NamedFiles;
use super::sealed_files::SealedFiles;
use crate::format::{
    BLOCK_HEADER_BYTES, DatabaseId, EpochWidth, FILE_HEADER_BYTES, FileHeader, FileIdentity, LogFileName,
    Manifest, OpeningId,
};

/// Where the log of a new generation goes.
#[derive(Debug, Clone)]
pub struct GenerationOptions {
    /// One directory for each logger; several may be the same. Missing ones are created.
    pub directories: Vec<PathBuf>,
    /// For how many bytes the first file of each logger has room from the beginning.
    pub file_bytes: u64,
    /// The first epoch of the generation, later than [`crate::Found::largest_epoch`].
    pub first_epoch: Epoch,
}

/// What the log of a new generation starts with.
#[derive(Debug)]
pub struct NewGeneration {
    /// The database.
    pub database: DatabaseId,
    /// The opening that begins the generation.
    pub opening: OpeningId,
    /// The number of the generation.
    pub generation: u64,
    /// No transaction of the generation has an earlier epoch, and none on disk has this one or a later one.
    pub first_epoch: Epoch,
    /// The loggers, by number.
    pub loggers: Vec<NewLogger>,
    /// The files that the loggers are done with.
    pub(crate) sealed: SealedFiles,
}

/// Where a logger begins.
#[derive(Debug)]
pub struct NewLogger {
    /// Where its files lie.
    pub directory: PathBuf,
    /// The sequence number of its first file.
    pub sequence: u64,
    /// The file, which has its header and lies safely on disk.
    pub file: Box<dyn File>,
    /// How long it is.
    pub reserved_bytes: u64,
    /// Why it is shorter than was asked for, if the disk was full.
    pub shortage: Option<io::Error>,
}

/// A log file that was created, as long as the disk has room for.
#[derive(Debug)]
pub(crate) struct CreatedLogFile {
    pub(crate) file: Box<dyn File>,
    pub(crate) reserved_bytes: u64,
    /// Why it is shorter than was asked for.
    pub(crate) shortage: Option<io::Error>,
}

impl NewGeneration {
    /// Returns the generation of a log that has no files.
    pub(crate) fn none() -> NewGeneration {
        NewGeneration {
            database: DatabaseId(0),
            opening: OpeningId::default(),
            generation: 0,
            first_epoch: Epoch::default(),
            loggers: Vec::new(),
            sealed: SealedFiles::default(),
        }
    }

    /// Creates the first log file of a logger in each of `directories`, and those of the directories that are
    /// missing.
    ///
    /// What is in these files counts from the moment on at which a manifest names the generation. They are
    /// shorter than `file_bytes` if the disk is full, down to a few pages.
    ///
    /// # Errors
    /// Those of the system, with the directory.
    pub fn create(
        disk: &dyn Disk,
        database: DatabaseId,
        opening: OpeningId,
        generation: u64,
        first_epoch: Epoch,
        directories: &[PathBuf],
        file_bytes: u64,
    ) -> Result<NewGeneration, (PathBuf, io::Error)> {
        let mut loggers = Vec::new();
        for (logger, directory) in (0u32..).zip(directories) {
            let at = |error| (directory.clone(), error);
            create_directory(disk, directory).map_err(at)?;
            let name = LogFileName::open(generation, logger, 1);
            let plan = LogFilePlan { disk, directory, database, opening, name, first_epoch, file_bytes };
            let CreatedLogFile { file, reserved_bytes, shortage } = plan.create_within_room().map_err(at)?;
            let directory = directory.clone();
            loggers.push(NewLogger { directory, sequence: 1, file, reserved_bytes, shortage });
        }
        let sealed = SealedFiles::default();
        Ok(NewGeneration { database, opening, generation, first_epoch, loggers, sealed })
    }
}

impl NamedFiles<'_> {
    /// Creates the first log files of the generation that the manifest begins, as [`NewGeneration::create`]
    /// does.
    pub(super) fn create_log(
        &self,
        directories: &[PathBuf],
        file_bytes: u64,
    ) -> Result<NewGeneration, OpenError> {
        let Manifest { database, opening, generation, first_epoch, .. } = *self.manifest;
        NewGeneration::create(self.disk, database, opening, generation, first_epoch, directories, file_bytes)
            .map_err(|(path, error)| OpenError::Io { doing: "create a log file in", path, error })
    }
}

/// The shortest log file, where the disk has no room for a whole one: the rest of the disk is left to the
/// file that is written, and to a checkpoint, which frees log.
const RESERVED_BYTES_MIN: u64 = 2 * PAGE_BYTES as u64;

/// A log file that is to be created.
#[derive(Copy, Clone)]
pub(crate) struct LogFilePlan<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) directory: &'a Path,
    pub(crate) database: DatabaseId,
    pub(crate) opening: OpeningId,
    pub(crate) name: LogFileName,
    /// No entry of the file has an earlier epoch.
    pub(crate) first_epoch: Epoch,
    /// How long it is to be: in whole pages, with room for a block behind the header.
    pub(crate) file_bytes: u64,
}

impl LogFilePlan<'_> {
    /// Creates the file with its header, and syncs it and its name: whatever is written into it and synced
    /// from now on is there after a crash.
    ///
    /// # Crash
    /// The length is synced before the header that names it is written: a file with a header that is shorter
    /// was cut by somebody.
    ///
    /// # Errors
    /// `AlreadyExists`; those of the system.
    pub(crate) fn create(self) -> io::Result<CreatedLogFile> {
        let LogFilePlan { disk, directory, database, opening, name, first_epoch, file_bytes } = self;
        let bytes_min = (FILE_HEADER_BYTES + BLOCK_HEADER_BYTES) as u64;
        let reserved_bytes = file_bytes.max(bytes_min).next_multiple_of(PAGE_BYTES as u64);
        let identity = log_identity(database, opening, name);
        let header = FileHeader { identity, first_epoch, reserved_bytes };
        let path = directory.join(name.to_string());
        let file = disk.create(&path, reserved_bytes)?;
        let written = || {
            file.sync_all()?;
            file.write_at(0, &header.encode())?;
            file.sync_all()?;
            disk.sync_dir(directory)
        };
        match written() {
            Ok(()) => Ok(CreatedLogFile { file, reserved_bytes, shortage: None }),
            Err(error) => {
                // What was half made is not left in the way of the next attempt; the error that counts is the
                // first one.
                let _ = disk.remove(&path);
                Err(error)
            }
        }
    }

    /// Creates the file as [`LogFilePlan::create`] does, or a shorter one if the disk is full: it can be made
    /// longer when it is written.
    ///
    /// # Errors
    /// As [`LogFilePlan::create`].
    pub(crate) fn create_within_room(self) -> io::Result<CreatedLogFile> {
        match self.create() {
            Err(error) if is_disk_full(&error) => {
                let short = LogFilePlan { file_bytes: RESERVED_BYTES_MIN, ..self };
                Ok(CreatedLogFile { shortage: Some(error), ..short.create()? })
            }
            created => created,
        }
    }
}

/// Returns what the header of the log file of this name says, if this opening writes it, in the format of this
/// version.
#[must_use]
pub fn log_identity(database: DatabaseId, opening: OpeningId, name: LogFileName) -> FileIdentity {
    FileIdentity { database, file: name.role(), opening, epochs: EpochWidth::default() }
}
