//! The directories that an opening wants to log to: whether it may, and what it puts there before its manifest is in place.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ensilo_disk::Disk;

use super::database_files::list_log_files;
use super::directory::is_empty_log_file;
use super::directory_locks::DirectoryLocks;
use super::error::{Consequence, Finding, OpenError};
use super::generation::NewGeneration;
use super::inspect::GenerationOptions;
use super::log_file::read_log_header;
use super::manifest_file::{
    MANIFEST, MANIFEST_NEW, install_manifest, spell_path, spelled_path, write_new_manifest,
};
use super::ownership::{OWNER_NEW, bring_up, check_wanted, write_claim};
use crate::format::{LogFileName, LoggerFiles, Manifest};

/// The log directories of a generation that is about to begin.
pub(super) struct Wanted<'w> {
    disk: &'w dyn Disk,
    dir: &'w Path,
    /// Each once.
    directories: BTreeSet<&'w PathBuf>,
    /// The loggers as the next manifest names them.
    pub(super) loggers: Vec<LoggerFiles>,
    /// The manifest that is in place, or the first one of a new database.
    before: &'w Manifest,
}

impl<'w> Wanted<'w> {
    /// The directories, one for each logger, of the database in `dir`.
    pub(super) fn of(
        disk: &'w dyn Disk,
        dir: &'w Path,
        directories: &'w [PathBuf],
        before: &'w Manifest,
    ) -> Result<Wanted<'w>, OpenError> {
        let logger =
            |path: &PathBuf| Ok(LoggerFiles { directory: spell_path(dir, path)?, first_sequence: 1 });
        let loggers = directories.iter().map(logger).collect::<Result<_, OpenError>>()?;
        Ok(Wanted { disk, dir, directories: directories.iter().collect(), loggers, before })
    }

    /// Locks those that are there, and sees whether the database may log to them. Returns the empty log files that have to go from them: those
    /// that an interrupted opening left in directories which no manifest has named yet.
    pub(super) fn check(&self, locks: &mut DirectoryLocks, is_new: bool) -> Result<Vec<PathBuf>, OpenError> {
        let mut there = Vec::new();
        for &directory in &self.directories {
            if self.disk.exists(directory).map_err(OpenError::io("look for", directory))? {
                locks.add(self.disk, directory)?;
                there.push(directory);
            }
        }
        check_wanted(self.disk, self.dir, self.before, &self.directories)?;
        let mut in_the_way = Vec::new();
        for directory in there {
            for name in list_log_files(self.disk, directory)? {
                let path = directory.join(name.to_string());
                if self.is_in_the_way(name, &path, is_new && directory.starts_with(self.dir))? {
                    in_the_way.push(path);
                }
            }
        }
        Ok(in_the_way)
    }

    /// Whether this log file has to go. One that a manifest should know of, or another database's, stops the opening. An empty one that an
    /// interrupted creation left within the directory of the database is of another number; elsewhere it may be another database's.
    fn is_in_the_way(&self, name: LogFileName, path: &Path, is_of_creation: bool) -> Result<bool, OpenError> {
        if is_of_creation && is_empty_log_file(self.disk, path)? {
            return Ok(true);
        }
        let is_earlier = name.generation <= self.before.generation;
        let (_, _, header) = match read_log_header(self.disk, path, self.before, name) {
            // What counted of it a repair has given up.
            Err(error) if error.is_unreadable() && is_earlier => return Ok(false),
            header => header?,
        };
        match header {
            Err(finding @ Finding::OtherDatabase(_)) => {
                Err(OpenError::damaged(path, None, finding, Consequence::Everything))
            }
            _ if is_earlier => Ok(false),
            _ if is_empty_log_file(self.disk, path)? => Ok(true),
            // No manifest of this opening has named the directory: the survey would have found the file.
            _ => Err(OpenError::OtherOwner { file: path.to_path_buf(), directory: self.dir.to_path_buf() }),
        }
    }

    /// Creates and locks those that are missing.
    pub(super) fn create(&self, locks: &mut DirectoryLocks) -> Result<(), OpenError> {
        for directory in &self.directories {
            locks.made().create_directory(self.disk, directory)?;
            locks.add(self.disk, directory)?;
        }
        Ok(())
    }

    /// Installs the manifest of a new database if some of its log lies elsewhere: whoever finds the files of an interrupted creation there
    /// knows by it whose they are.
    pub(super) fn install_first_manifest(&self, locks: &mut DirectoryLocks) -> Result<(), OpenError> {
        if self.directories.iter().all(|directory| directory.starts_with(self.dir)) {
            return Ok(());
        }
        [MANIFEST, MANIFEST_NEW].into_iter().for_each(|name| locks.made().file(self.dir.join(name)));
        install_manifest(self.disk, self.dir, self.before)
    }

    /// Brings each `OWNER` up to the manifest that is in place.
    pub(super) fn bring_up(&self, locks: &mut DirectoryLocks) -> Result<(), OpenError> {
        let named = self.before.log_directories().into_iter().map(|spelled| spelled_path(self.dir, spelled));
        let all = named.chain(self.directories.iter().map(|&directory| directory.clone()));
        all.for_each(|directory| locks.made().file(directory.join(OWNER_NEW)));
        bring_up(self.disk, self.dir, self.before, &self.directories)
    }

    /// Writes the next manifest, what claims the log directories, and the log files. None of that counts yet.
    pub(super) fn create_files(
        &self,
        locks: &mut DirectoryLocks,
        manifest: &Manifest,
        options: &GenerationOptions,
    ) -> Result<NewGeneration, OpenError> {
        locks.made().file(self.dir.join(MANIFEST_NEW));
        // Before the log files, which may take all the room that is left.
        write_new_manifest(self.disk, self.dir, manifest)?;
        write_claim(self.disk, self.dir, manifest)?;
        let GenerationOptions { directories, file_bytes, first_epoch } = options;
        for (logger, directory) in (0u32..).zip(directories) {
            let generation = manifest.generation;
            let name = LogFileName { generation, logger, sequence: 1, largest_epoch: None };
            let path = directory.join(name.to_string());
            // One that is there is none of this opening, and keeps it from going on.
            if !self.disk.exists(&path).map_err(OpenError::io("look for", &path))? {
                locks.made().file(path);
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
