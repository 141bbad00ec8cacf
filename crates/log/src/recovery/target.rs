//! The directory that a backup, or another new database, is made in.
//!
//! # Crash
//! The first thing in the directory is a mark, synced with its name; the last is the manifest, and when all
//! was verified the mark goes, which is synced before success is reported. A directory with the mark is
//! refused, whatever else is in it: a backup that was interrupted cannot be taken for a database, nor one
//! that was not verified.

use std::path::Path;

use ensilo_disk::Disk;

use super::corruption::Corruption;
use super::database_files::remove_directory;
use super::error::OpenError;
use super::file_access::{exists, list, make_directory, remove_if_there, sync_dir};
use super::file_names::{LOCK, LOG, MANIFEST, MANIFEST_COPY, MANIFEST_NEW, UNFINISHED};
use super::location::Location;
use super::named_files::NamedFiles;
use super::verify::verify_locked;
use crate::format::Manifest;

/// A directory that a database is made in, with the mark.
pub(super) struct TargetDirectory<'t> {
    pub(super) disk: &'t dyn Disk,
    pub(super) dir: &'t Path,
    /// Whether the directory was there before.
    was_there: bool,
}

impl<'t> TargetDirectory<'t> {
    /// Puts the mark into a directory that is empty or missing, and lies neither in a database nor where the
    /// one of these files keeps its log.
    pub(super) fn claim(
        disk: &'t dyn Disk,
        source: &NamedFiles<'_>,
        dir: &'t Path,
    ) -> Result<Self, OpenError> {
        let location = Location::of(disk, dir)?;
        refuse_within_database(disk, dir, &location)?;
        refuse_within_log(disk, source, dir, &location)?;
        let was_there = exists(disk, dir)?;
        make_directory(disk, dir)?;
        refuse_unless_empty(disk, dir)?;
        let target = TargetDirectory { disk, dir, was_there };
        // That the mark is not there yet keeps out whoever else wants to make a backup here.
        let path = dir.join(UNFINISHED);
        let mark = match disk.create(&path, 0) {
            Ok(mark) => mark,
            Err(error) => {
                let _ = target.remove_if_new();
                return Err(OpenError::Io { doing: "create", path, error });
            }
        };
        let synced = mark.sync_all().map_err(OpenError::io("sync", &path)).and_then(|()| sync_dir(disk, dir));
        if synced.is_err() {
            let _ = target.remove_mark();
        }
        synced.map(|()| target)
    }

    /// Makes the log file of a generation without anything in it, and installs its manifest.
    pub(super) fn begin_generation(&self, manifest: &Manifest) -> Result<(), OpenError> {
        let files = NamedFiles { disk: self.disk, dir: self.dir, manifest };
        files.create_log(&[self.dir.join(LOG)], 0)?;
        files.install_manifest()?;
        files.keep_copy();
        Ok(())
    }

    /// Reads all of it, and fails with the first damage, as `named` names it.
    pub(super) fn verify(&self, named: impl FnOnce(Corruption) -> Corruption) -> Result<(), OpenError> {
        let mut first = None;
        verify_locked(self.disk, self.dir, &mut |corruption| {
            first.get_or_insert(corruption);
        })?;
        first.map_or(Ok(()), |corruption| Err(OpenError::Corrupt(Box::new(named(corruption)))))
    }

    /// Removes the mark: the database is whole.
    pub(super) fn finish(&self) -> Result<(), OpenError> {
        let mark = self.dir.join(UNFINISHED);
        self.disk.remove(&mark).map_err(OpenError::io("remove", &mark))?;
        sync_dir(self.disk, self.dir)
    }

    /// Removes everything, the manifest first and the mark last. The manifest goes also where a sync fails;
    /// then the other files stay, so that what a crash leaves has the mark, has no manifest, or is all of a
    /// database. If no mark can be made, nothing is removed: without one what is there is a whole database.
    pub(super) fn give_up(&self, checkpoint_directories: &[impl AsRef<Path>]) -> Result<(), OpenError> {
        self.put_mark_back()?;
        let marked = sync_dir(self.disk, self.dir);
        let names = [MANIFEST, MANIFEST_COPY, MANIFEST_NEW];
        let removed = names.map(|name| remove_if_there(self.disk, &self.dir.join(name)));
        let synced = sync_dir(self.disk, self.dir);
        [marked].into_iter().chain(removed).chain([synced]).collect::<Result<(), OpenError>>()?;
        for directory in checkpoint_directories {
            remove_directory(self.disk, &self.dir.join(directory))?;
        }
        remove_directory(self.disk, &self.dir.join(LOG))?;
        remove_if_there(self.disk, &self.dir.join(LOCK))?;
        sync_dir(self.disk, self.dir)?;
        self.remove_mark()
    }

    /// The mark may be gone already, if the sync that followed has failed.
    fn put_mark_back(&self) -> Result<(), OpenError> {
        let mark = self.dir.join(UNFINISHED);
        if !exists(self.disk, &mark)? {
            self.disk.create(&mark, 0).map_err(OpenError::io("create", &mark))?;
        }
        Ok(())
    }

    /// Removes the mark, and the directory if it is new.
    fn remove_mark(&self) -> Result<(), OpenError> {
        remove_if_there(self.disk, &self.dir.join(UNFINISHED))?;
        self.remove_if_new()
    }

    fn remove_if_new(&self) -> Result<(), OpenError> {
        if self.was_there {
            return Ok(());
        }
        self.disk.remove_dir(self.dir).map_err(OpenError::io("remove", self.dir))
    }
}

/// A directory of a database is no place for another one: the database removes what it does not know.
fn refuse_within_database(disk: &dyn Disk, dir: &Path, location: &Location) -> Result<(), OpenError> {
    let Some(directory) = location.other_database(disk, None)? else { return Ok(()) };
    let why = match location.is_of(directory) {
        true => format!("{} holds a database already", dir.display()),
        false => format!("{} lies within the database {}", dir.display(), directory.display()),
    };
    Err(OpenError::Refused(format!("{why}; name another directory")))
}

/// Nor is a directory that the database keeps its log in, wherever that lies, or one that such a directory is
/// to lie in.
fn refuse_within_log(
    disk: &dyn Disk,
    source: &NamedFiles<'_>,
    dir: &Path,
    location: &Location,
) -> Result<(), OpenError> {
    for log in source.log_directories() {
        let of_log = Location::of(disk, &log)?;
        let why = match (location.lies_within(&of_log), of_log.lies_within(location)) {
            (true, _) => "lies within",
            (false, true) => "encloses",
            (false, false) => continue,
        };
        return Err(OpenError::Refused(format!(
            "{} {why} {}, where the database keeps its log; name another directory",
            dir.display(),
            log.display()
        )));
    }
    Ok(())
}

fn refuse_unless_empty(disk: &dyn Disk, dir: &Path) -> Result<(), OpenError> {
    let listed = list(disk, dir)?;
    // A new file system has this in its root.
    match listed.into_iter().find(|entry| entry.name != "lost+found") {
        Some(entry) => Err(OpenError::Refused(format!(
            "{} is not empty, it holds {}; name another directory",
            dir.display(),
            entry.name
        ))),
        None => Ok(()),
    }
}
