//! The directories that an opening wants to log to: whether it may, and what it puts there before its
//! manifest is in place.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ensilo_disk::Disk;

use super::corruption::CorruptionKind;
use super::directory_locks::{DirectoryLocks, again_if_vanished};
use super::error::OpenError;
use super::file_access::exists;
use super::file_names::{MANIFEST, MANIFEST_NEW, OWNER_NEW};
use super::generation::{GenerationOptions, NewGeneration};
use super::location::Location;
use super::log_file::{is_empty_log_file, is_unused, list_log_files, read_log_header};
use super::manifest_file::{install_manifest, spell_path, spelled_path, write_new_manifest};
use super::ownership::{NAME_ANOTHER, bring_up, check_requested, write_claim};
use crate::format::{LogFileName, LoggerFiles, Manifest};

/// What helps where a log file is in the way.
const MOVE_IT: &str = "move it out of the directory, or name another directory for the log";

/// The log directories of a generation that is about to begin.
pub(super) struct RequestedDirectories<'w> {
    disk: &'w dyn Disk,
    dir: &'w Path,
    /// Each once.
    directories: BTreeSet<&'w PathBuf>,
    /// The loggers as the next manifest names them.
    pub(super) loggers: Vec<LoggerFiles>,
    /// The manifest that is in place, or the first one of a new database.
    before: &'w Manifest,
}

impl<'w> RequestedDirectories<'w> {
    /// Returns the directories, one for each logger, of the database in `dir`.
    pub(super) fn of(
        disk: &'w dyn Disk,
        dir: &'w Path,
        directories: &'w [PathBuf],
        before: &'w Manifest,
    ) -> Result<RequestedDirectories<'w>, OpenError> {
        let logger =
            |path: &PathBuf| Ok(LoggerFiles { directory: spell_path(disk, dir, path)?, first_sequence: 1 });
        let loggers = directories.iter().map(logger).collect::<Result<_, OpenError>>()?;
        Ok(RequestedDirectories { disk, dir, directories: directories.iter().collect(), loggers, before })
    }

    /// Locks those that are there, and sees whether the database may log to them. Returns the empty log files
    /// that have to go from them: those that an interrupted opening left in directories which no manifest has
    /// named yet.
    pub(super) fn check(&self, locks: &mut DirectoryLocks, is_new: bool) -> Result<Vec<PathBuf>, OpenError> {
        let mut there = BTreeSet::new();
        for &directory in &self.directories {
            let is_there = again_if_vanished(|| {
                let is_there = exists(self.disk, directory)?;
                if is_there { locks.add(self.disk, directory).map(|()| true) } else { Ok(false) }
            })?;
            if is_there {
                there.insert(directory);
            }
        }
        let own = Location::of(self.disk, self.dir)?;
        let mut in_the_way = Vec::new();
        for directory in self.not_named()? {
            let location = Location::of(self.disk, directory)?;
            refuse_within_other(self.disk, directory, &location, &own)?;
            if there.contains(directory) {
                let is_of_creation = is_new && location.lies_within(&own);
                let found = self.in_the_way_in(directory, is_of_creation);
                in_the_way.extend(found.map_err(refuse_unreadable)?);
            }
        }
        Ok(in_the_way)
    }

    /// Returns the directories that the manifest does not name, however it spells them. Of the others the
    /// survey has seen what lies there, and what the manifest is done with is left alone, as when leftovers
    /// are removed.
    fn not_named(&self) -> Result<Vec<&'w PathBuf>, OpenError> {
        let place = |spelled| Location::of(self.disk, &spelled_path(self.dir, spelled));
        let named = self.before.log_directories().into_iter().map(place).collect::<Result<Vec<_>, _>>()?;
        let mut not_named = Vec::new();
        for &directory in &self.directories {
            let location = Location::of(self.disk, directory)?;
            if !named.iter().any(|named| named.is_same(&location)) {
                not_named.push(directory);
            }
        }
        Ok(not_named)
    }

    /// Returns the log files that have to go from a directory that is there and that the manifest does not
    /// name.
    fn in_the_way_in(&self, directory: &Path, is_of_creation: bool) -> Result<Vec<PathBuf>, OpenError> {
        let is_left = check_requested(self.disk, self.dir, self.before, directory)?;
        let mut in_the_way = Vec::new();
        for name in list_log_files(self.disk, directory)? {
            let path = directory.join(name.to_string());
            let is_empty = || is_empty_log_file(self.disk, &path);
            if is_of_creation && is_empty()? || self.is_in_the_way(name, &path, is_left)? {
                in_the_way.push(path);
            }
        }
        Ok(in_the_way)
    }

    /// Returns whether this log file has to go: one to which nothing was logged, that an interrupted opening
    /// of this database left. One of an earlier generation stays where `is_left` says that this database has
    /// logged there. Any other may be needed by another database, or by a copy of this one, and stops the
    /// opening. What an interrupted creation left within the directory of the database is of another number;
    /// such a file elsewhere is another database's.
    fn is_in_the_way(&self, name: LogFileName, path: &Path, is_left: bool) -> Result<bool, OpenError> {
        let is_left = is_left && name.generation < self.before.generation;
        let (_, identity, header) = match read_log_header(self.disk, path, self.before, name) {
            // What counted of it a repair has given up.
            Err(error) if error.is_unreadable() && is_left => return Ok(false),
            header => header?,
        };
        match header {
            Err(CorruptionKind::OtherDatabase(database)) => {
                Err(OpenError::not_usable(path, &CorruptionKind::OtherDatabase(database), MOVE_IT))
            }
            _ if is_left => Ok(false),
            _ if is_unused(self.disk, path, &identity)? => Ok(true),
            _ => Err(OpenError::OtherOwner { file: path.to_path_buf(), directory: self.dir.to_path_buf() }),
        }
    }

    /// Creates and locks those that are missing.
    pub(super) fn create(&self, locks: &mut DirectoryLocks) -> Result<(), OpenError> {
        for directory in &self.directories {
            again_if_vanished(|| {
                locks.created().create_directory(self.disk, directory)?;
                locks.add(self.disk, directory)
            })?;
        }
        Ok(())
    }

    /// Installs the manifest of a new database if some of its log lies elsewhere: by it the files of an
    /// interrupted creation there are known as its own.
    pub(super) fn install_first_manifest(&self, locks: &mut DirectoryLocks) -> Result<(), OpenError> {
        let own = Location::of(self.disk, self.dir)?;
        let mut is_all_within = true;
        for directory in &self.directories {
            is_all_within &= Location::of(self.disk, directory)?.lies_within(&own);
        }
        if is_all_within {
            return Ok(());
        }
        [MANIFEST, MANIFEST_NEW].into_iter().for_each(|name| locks.created().file(self.dir.join(name)));
        install_manifest(self.disk, self.dir, self.before)
    }

    /// Brings each `OWNER` up to the manifest that is in place.
    pub(super) fn bring_up(&self, locks: &mut DirectoryLocks) -> Result<(), OpenError> {
        let named = self.before.log_directories().into_iter().map(|spelled| spelled_path(self.dir, spelled));
        let all = named.chain(self.directories.iter().map(|&directory| directory.clone()));
        all.for_each(|directory| locks.created().file(directory.join(OWNER_NEW)));
        bring_up(self.disk, self.dir, self.before, &self.directories)
    }

    /// Writes the next manifest, what claims the log directories, and the log files. None of that counts yet.
    pub(super) fn create_files(
        &self,
        locks: &mut DirectoryLocks,
        manifest: &Manifest,
        options: &GenerationOptions,
    ) -> Result<NewGeneration, OpenError> {
        locks.created().file(self.dir.join(MANIFEST_NEW));
        // Before the log files, which may take all the room that is left.
        write_new_manifest(self.disk, self.dir, manifest)?;
        write_claim(self.disk, self.dir, manifest)?;
        let GenerationOptions { directories, file_bytes, first_epoch } = options;
        for (logger, directory) in (0u32..).zip(directories) {
            let generation = manifest.generation;
            let name = LogFileName { generation, logger, sequence: 1, largest_epoch: None };
            let path = directory.join(name.to_string());
            // One that is there is none of this opening, and keeps it from going on.
            if !exists(self.disk, &path)? {
                locks.created().file(path);
            }
        }
        let Manifest { database, opening, generation, .. } = *manifest;
        NewGeneration::create(
            self.disk,
            database,
            opening,
            generation,
            *first_epoch,
            directories,
            *file_bytes,
        )
        .map_err(|(path, error)| OpenError::Io { doing: "create a log file in", path, error })
    }
}

/// What lies in the directory of another database is that one's, whatever it is.
fn refuse_within_other(
    disk: &dyn Disk,
    directory: &Path,
    location: &Location,
    own: &Location,
) -> Result<(), OpenError> {
    let Some(other) = location.other_database(disk, Some(own))? else { return Ok(()) };
    let why = match location.is_of(other) {
        true => format!("{} holds another database", directory.display()),
        false => format!("{} lies within another database, {}", directory.display(), other.display()),
    };
    Err(OpenError::Refused(format!("{why}; name another directory for the log")))
}

/// Returns the error, as one that says what helps where the disk cannot be read: a verification does not look
/// at what no manifest names.
fn refuse_unreadable(error: OpenError) -> OpenError {
    if !error.is_unreadable() {
        return error;
    }
    let OpenError::Io { doing, path, error } = error else { return error };
    let name = path.file_name().and_then(|name| LogFileName::parse(name.to_str()?));
    let remedy = if name.is_some() { MOVE_IT } else { NAME_ANOTHER };
    let remedy = format!("try again, what failed once may be read then; otherwise {remedy}");
    OpenError::not_usable(&path, &CorruptionKind::Unopened { doing, error: error.to_string() }, &remedy)
}
