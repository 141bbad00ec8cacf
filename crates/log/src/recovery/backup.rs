//! Copies of a database that can be opened in its place.
//!
//! A backup is a database of its own: all log files that count become files of an earlier generation, of which nothing after the
//! durable epoch counts, and a new generation begins that is empty. So a backup of a running database needs no moment at which
//! all its loggers stand still: what they have written after the durable epoch was read is void.

mod target;

use std::io;
use std::path::Path;
use std::sync::Arc;

use ensilo_disk::{Disk, File};
use ensilo_epoch::Epoch;

use self::target::{Source, copy_to};
use super::chain::Depth;
use super::database_files::{DatabaseFiles, list_log_files};
use super::directory::{check_is_database, missing_manifest};
use super::directory_locks::{DirectoryLocks, Share};
use super::error::OpenError;
use super::generation::log_identity;
use super::inspect::sound_survey;
use super::manifest_file::{read_manifest, spelled_path};
use super::ownership::check_named;
use super::scan::{Needed, needed_up_to};
use super::survey::Names;
use crate::format::{BlockCodec, EarlierFile, LogFileName, LoggerFiles, Manifest};

pub(super) use target::{LOG, Target, UNFINISHED};

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

/// Copies the database in `dir`, which nobody has open, to `target`, which is empty or missing and lies in no database. The copy is
/// verified; opening it is the restore.
///
/// # Errors
/// [`OpenError`]; what was made of the copy is gone. [`OpenError::Refused`] for a target that is none.
pub fn backup(disk: &Arc<dyn Disk>, dir: &Path, target: &Path) -> Result<BackedUp, OpenError> {
    check_is_database(&**disk, dir)?;
    let mut locks = DirectoryLocks::of_database(&**disk, dir, Share::Part)?;
    let manifest = read_manifest(&**disk, dir)?.ok_or_else(|| missing_manifest(&**disk, dir))?;
    locks.add_named(&**disk, dir, &manifest)?;
    check_named(&**disk, dir, &manifest)?;
    let found = sound_survey(&**disk, dir, &manifest, Depth::Tail)?;
    let source = Source {
        dir,
        manifest: &manifest,
        log: found.earlier_files(&manifest, found.durable_epoch, Names::Hints),
        durable_epoch: manifest.counted_to(found.durable_epoch),
        largest_epoch: found.largest_epoch,
    };
    copy_to(&**disk, &source, target, &mut |_| Ok(()))
}

impl DatabaseFiles {
    /// Copies the running database to `target`, which is empty or missing and lies in no database, with all transactions up to
    /// `durable_epoch`, the log's, and none after it. The copy is verified; opening it is the restore. Transactions go on meanwhile; a
    /// checkpoint cannot be installed.
    ///
    /// `watch` is told again and again how many bytes were copied; it may wait, and ends the copy by an error.
    ///
    /// # Errors
    /// [`OpenError`], that of `watch` among them; what was made of the copy is gone. [`OpenError::Refused`] for a target that is none.
    pub fn backup(
        &self,
        target: &Path,
        durable_epoch: Epoch,
        watch: &mut dyn FnMut(u64) -> Result<(), OpenError>,
    ) -> Result<BackedUp, OpenError> {
        let (disk, dir, manifest) = (&**self.disk(), self.directory(), self.manifest());
        let (log, largest_epoch) = running_log(disk, dir, manifest, durable_epoch)?;
        let durable_epoch = manifest.counted_to(durable_epoch);
        copy_to(disk, &Source { dir, manifest, log, durable_epoch, largest_epoch }, target, watch)
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
    let (mut files, opening) = (manifest.earlier.clone(), manifest.log_opening());
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
            let codec = BlockCodec::new(&log_identity(manifest.database, opening, name));
            let (needed, largest) =
                needed_up_to(&*file, &codec, durable_epoch).map_err(OpenError::io("read", &path))?;
            largest_epoch = largest_epoch.max(largest).max(name.largest_epoch.unwrap_or_default());
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
    let name = LogFileName { generation: manifest.generation, logger, sequence, largest_epoch: None };
    open_renamed(disk, &directory, name)
}

/// Opens a log file that is given its other name at any moment, once.
fn open_renamed(
    disk: &dyn Disk,
    directory: &Path,
    name: LogFileName,
) -> Result<(LogFileName, Box<dyn File>), OpenError> {
    let under_open_name = |name: &LogFileName| LogFileName { largest_epoch: None, ..*name };
    let mut error = io::Error::from(io::ErrorKind::NotFound);
    // A list that is made at that moment may have neither name, and the opening after it may come too late.
    for _ in 0..3 {
        let names = list_log_files(disk, directory)?;
        let Some(name) = names.into_iter().find(|other| under_open_name(other) == under_open_name(&name))
        else {
            continue;
        };
        match disk.open_read(&directory.join(name.to_string())) {
            Ok(file) => return Ok((name, file)),
            Err(again) => error = again,
        }
    }
    Err(OpenError::Io { doing: "open", path: directory.join(name.to_string()), error })
}
