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
use super::log_file::{is_empty_log_file, is_unused, list_log_files};
use super::manifest_file::spell_path;
use super::named_files::NamedFiles;
use super::ownership::NAME_ANOTHER;
use crate::format::{LogFileName, LoggerFiles, Manifest};

/// What helps where a log file is in the way.
const MOVE_IT: &str = "move it out of the directory, or name another directory for the log";

/// The log directories of a generation that is about to begin.
pub(super) struct RequestedDirectories<'w> {
    /// By the manifest that is in place, or the first one of a new database.
    before: NamedFiles<'w>,
    /// Each once.
    directories: BTreeSet<&'w Path>,
    /// The loggers as the next manifest names them.
    pub(super) loggers: Vec<LoggerFiles>,
}

impl<'w> RequestedDirectories<'w> {
    /// Returns the directories, one for each logger, of the database with these files.
    pub(super) fn of(before: NamedFiles<'w>, directories: &'w [PathBuf]) -> Result<Self, OpenError> {
        let logger = |path: &PathBuf| {
            Ok(LoggerFiles { directory: spell_path(before.disk, before.dir, path)?, first_sequence: 1 })
        };
        let loggers = directories.iter().map(logger).collect::<Result<_, OpenError>>()?;
        Ok(RequestedDirectories {
            before,
            directories: directories.iter().map(PathBuf::as_path).collect(),
            loggers,
        })
    }

    /// Locks those that are there, and sees whether the database may log to them. Returns the empty log files
    /// that have to go from them: those that an interrupted opening left in directories which no manifest has
    /// named yet.
    pub(super) fn check(&self, locks: &mut DirectoryLocks, is_new: bool) -> Result<Vec<PathBuf>, OpenError> {
        let mut there = BTreeSet::new();
        for &directory in &self.directories {
            let is_there = again_if_vanished(|| {
                let is_there = exists(self.before.disk, directory)?;
                if is_there { locks.add(self.before.disk, directory).map(|()| true) } else { Ok(false) }
            })?;
            if is_there {
                there.insert(directory);
            }
        }
        let own = Location::of(self.before.disk, self.before.dir)?;
        let mut in_the_way = Vec::new();
        for directory in self.not_named()? {
            let location = Location::of(self.before.disk, directory)?;
            refuse_within_other(self.before.disk, directory, &location, &own)?;
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
    fn not_named(&self) -> Result<Vec<&'w Path>, OpenError> {
        let place = |directory: PathBuf| Location::of(self.before.disk, &directory);
        let named = self.before.log_directories().map(place).collect::<Result<Vec<_>, _>>()?;
        let mut not_named = Vec::new();
        for &directory in &self.directories {
            let location = Location::of(self.before.disk, directory)?;
            if !named.iter().any(|named| named.is_same(&location)) {
                not_named.push(directory);
            }
        }
        Ok(not_named)
    }

    /// Returns the log files that have to go from a directory that is there and that the manifest does not
    /// name.
    fn in_the_way_in(&self, directory: &Path, is_of_creation: bool) -> Result<Vec<PathBuf>, OpenError> {
        let is_left = self.before.check_requested(directory)?;
        let mut in_the_way = Vec::new();
        for name in list_log_files(self.before.disk, directory)? {
            let path = directory.join(name.to_string());
            let is_empty = || is_empty_log_file(self.before.disk, &path);
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
        let is_left = is_left && name.generation < self.before.manifest.generation;
        let (_, identity, header) = match self.before.read_log_header(path, name) {
            // What counted of it a repair has given up.
            Err(error) if error.is_unreadable() && is_left => return Ok(false),
            header => header?,
        };
        match header {
            Err(CorruptionKind::OtherDatabase(database)) => {
                Err(OpenError::not_usable(path, &CorruptionKind::OtherDatabase(database), MOVE_IT))
            }
            _ if is_left => Ok(false),
            _ if is_unused(self.before.disk, path, &identity)? => Ok(true),
            _ => Err(OpenError::OtherOwner {
                file: path.to_path_buf(),
                directory: self.before.dir.to_path_buf(),
            }),
        }
    }

    /// Creates and locks those that are missing.
    pub(super) fn create(&self, locks: &mut DirectoryLocks) -> Result<(), OpenError> {
        for directory in &self.directories {
            again_if_vanished(|| {
                locks.created().create_directory(self.before.disk, directory)?;
                locks.add(self.before.disk, directory)
            })?;
        }
        Ok(())
    }

    /// Installs the manifest of a new database if some of its log lies elsewhere: by it the files of an
    /// interrupted creation there are known as its own.
    pub(super) fn install_first_manifest(&self, locks: &mut DirectoryLocks) -> Result<(), OpenError> {
        let own = Location::of(self.before.disk, self.before.dir)?;
        let mut is_all_within = true;
        for directory in &self.directories {
            is_all_within &= Location::of(self.before.disk, directory)?.lies_within(&own);
        }
        if is_all_within {
            return Ok(());
        }
        [MANIFEST, MANIFEST_NEW]
            .into_iter()
            .for_each(|name| locks.created().file(self.before.dir.join(name)));
        self.before.install_manifest()
    }

    /// Brings each `OWNER` up to the manifest that is in place.
    pub(super) fn bring_up(&self, locks: &mut DirectoryLocks) -> Result<(), OpenError> {
        let requested = self.directories.iter().map(|&directory| directory.to_path_buf());
        let all = self.before.log_directories().chain(requested);
        all.for_each(|directory| locks.created().file(directory.join(OWNER_NEW)));
        self.before.bring_owners_up(&self.directories)
    }

    /// Writes the next manifest, what claims the log directories, and the log files. None of that counts yet.
    pub(super) fn create_files(
        &self,
        locks: &mut DirectoryLocks,
        manifest: &Manifest,
        options: &GenerationOptions,
    ) -> Result<NewGeneration, OpenError> {
        let next = NamedFiles { manifest, ..self.before };
        locks.created().file(next.dir.join(MANIFEST_NEW));
        // Before the log files, which may take all the room that is left.
        next.write_new_manifest()?;
        next.write_claim()?;
        for (logger, directory) in (0u32..).zip(&options.directories) {
            let path = directory.join(LogFileName::open(manifest.generation, logger, 1).to_string());
            // One that is there is none of this opening, and keeps it from going on.
            if !exists(self.before.disk, &path)? {
                locks.created().file(path);
            }
        }
        next.create_log(&options.directories, options.file_bytes)
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
    let remedy = if LogFileName::of(&path).is_some() { MOVE_IT } else { NAME_ANOTHER };
    let remedy = format!("try again, what failed once may be read then; otherwise {remedy}");
    OpenError::not_usable(&path, &CorruptionKind::Unopened { doing, error: error.to_string() }, &remedy)
}
