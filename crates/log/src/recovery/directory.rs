//! What a directory is, by the names of what lies in it: a database, one that has lost its manifest, an
//! interrupted creation of one, a copy that was not finished, or something else. Nothing is changed here, and
//! no manifest is asked which files count.
//!
//! # Crash
//! A new database has its manifest last. Until then there is nothing in its directory but locks, `OWNER`
//! files, `CHANGES`, and log files with nothing behind their headers: such a directory is taken for an empty one. A log
//! file in which something was logged, a checkpoint or a copy of the manifest proves that there was a
//! manifest, which is lost.

use std::io;
use std::path::Path;

use ensilo_disk::{Disk, Listed};

use super::corruption::Corruption;
use super::error::OpenError;
use super::file_access::{exists, list};
use super::file_names::{
    CHANGES, CHANGES_NEW, LOCK, MANIFEST, MANIFEST_COPY, MANIFEST_NEW, OWNER, OWNER_NEW, STATISTICS,
    UNFINISHED,
};
use super::forgiving::{ForgivingDisk, Unopened};
use super::log_file::is_empty_log_file;
use super::manifest_file::{manifest_is_lost, read_copy, read_manifest};
use crate::format::{LogFileName, Manifest};

/// Checks whether there is a database in `dir`: asked before anything is done there, also before the lock is
/// taken.
///
/// # Errors
/// What the directory is instead; [`OpenError::Io`].
pub(super) fn check_is_database(disk: &dyn Disk, dir: &Path) -> Result<(), OpenError> {
    let exists = |path: &Path| exists(disk, path);
    if exists(&dir.join(MANIFEST))? {
        check_finished(disk, dir)
    } else if exists(dir)? {
        Err(missing_manifest(disk, dir))
    } else {
        Err(OpenError::NotADatabase { directory: dir.to_path_buf(), holds: None })
    }
}

/// Returns what says which files belong to the database in `dir`, which may be open.
///
/// # Errors
/// What the directory is instead; [`OpenError`] when the manifest is damaged or the system fails.
pub fn manifest_of(disk: &dyn Disk, dir: &Path) -> Result<Manifest, OpenError> {
    check_is_database(disk, dir)?;
    read_manifest(disk, dir)?.ok_or_else(|| missing_manifest(disk, dir))
}

/// Checks whether there is, or was, a database in `dir`: as [`check_is_database`], for what can go by the
/// copy of the manifest.
pub(super) fn check_was_database(disk: &dyn Disk, dir: &Path) -> Result<(), OpenError> {
    match check_is_database(disk, dir) {
        Err(OpenError::Corrupt(_)) => Ok(()),
        checked => checked,
    }
}

/// Returns the manifest of the database in `dir`, or the copy of it if it is damaged or missing, and what is
/// wrong with it then.
///
/// # Errors
/// What is wrong with the manifest, if the copy cannot be read either; the others of reading it.
pub(super) fn either_manifest(
    disk: &dyn Disk,
    dir: &Path,
) -> Result<(Manifest, Option<Corruption>), OpenError> {
    let error = match read_manifest(disk, dir) {
        Ok(Some(manifest)) => return Ok((manifest, None)),
        Ok(None) => missing_manifest(disk, dir),
        Err(error) => error,
    };
    match (error, read_copy(disk, dir)) {
        (OpenError::Corrupt(corruption), Some(copy)) => Ok((copy, Some(*corruption))),
        (error, _) => Err(error),
    }
}

/// Returns the manifest of the database in `dir`, or its copy, as [`either_manifest`]. Where there seems to
/// be none because the system cannot read something, that is the error.
pub(super) fn read_either_manifest(
    disk: &ForgivingDisk<'_>,
    dir: &Path,
) -> Result<(Manifest, Option<Corruption>), OpenError> {
    let read = check_was_database(disk, dir).and_then(|()| either_manifest(disk, dir));
    read.map_err(|error| match (error, disk.unopened().pop()) {
        (OpenError::NotADatabase { .. }, Some(Unopened { path, doing, error })) => {
            OpenError::Io { doing, path, error: io::Error::other(error) }
        }
        (error, _) => error,
    })
}

/// Returns what a directory without a manifest is, if it must have one.
pub(super) fn missing_manifest(disk: &dyn Disk, dir: &Path) -> OpenError {
    match check_new(disk, dir) {
        // Where the directory cannot be listed nothing else shows that there was a manifest.
        Ok(()) if read_copy(disk, dir).is_some() => manifest_is_lost(disk, dir),
        // That a new database needs an empty directory is no matter here.
        Ok(()) | Err(OpenError::NotADatabase { .. }) => {
            OpenError::NotADatabase { directory: dir.to_path_buf(), holds: None }
        }
        Err(error) => error,
    }
}

/// Refuses a directory that holds something else before a lock file is made there, or written over. One that
/// becomes a database meanwhile is looked at under the lock. What an opening leaves of a new database that
/// fails later, such as for want of room, is that of an interrupted creation: the next one goes on with it.
pub(super) fn check_before_lock(disk: &dyn Disk, dir: &Path) -> Result<(), OpenError> {
    let manifest = dir.join(MANIFEST);
    let exists = || exists(disk, &manifest);
    if exists()? {
        return check_finished(disk, dir);
    }
    match check_new(disk, dir) {
        Err(error) if !exists()? => Err(error),
        _ => Ok(()),
    }
}

/// Checks whether a directory without a manifest may become a database: one that is empty, or where the
/// creation of one was interrupted.
pub(super) fn check_new(disk: &dyn Disk, dir: &Path) -> Result<(), OpenError> {
    let entries = list(disk, dir)?;
    if entries.iter().any(|entry| entry.name == UNFINISHED) {
        return Err(unfinished_backup(dir));
    }
    // A manifest that is listed here is a link that leads nowhere.
    if entries.iter().any(|entry| [MANIFEST, MANIFEST_COPY].contains(&&*entry.name)) {
        return Err(manifest_is_lost(disk, dir));
    }
    for entry in entries {
        match entry.name.as_str() {
            LOCK | OWNER | OWNER_NEW | MANIFEST_NEW | CHANGES | CHANGES_NEW | "lost+found" => continue,
            // A socket, which a process left. A file or a directory of that name is somebody's own.
            STATISTICS if !entry.is_file && !entry.is_dir => continue,
            name if name.starts_with('.') => continue,
            name if name.starts_with("checkpoint-") => return Err(manifest_is_lost(disk, dir)),
            _ => {}
        }
        if !is_unused_log(disk, dir, dir, &entry)? {
            return Err(OpenError::NotADatabase { directory: dir.to_path_buf(), holds: Some(entry.name) });
        }
    }
    Ok(())
}

/// Returns whether this is a log file of the database in `dir`, or a directory that holds nothing else, at
/// any depth, and nothing was logged yet.
///
/// # Errors
/// [`OpenError::Corrupt`] if something was logged there: the manifest is lost.
fn is_unused_log(disk: &dyn Disk, dir: &Path, within: &Path, entry: &Listed) -> Result<bool, OpenError> {
    let path = within.join(&entry.name);
    if entry.is_dir {
        for inner in list(disk, &path)? {
            let is_known = [LOCK, OWNER, OWNER_NEW].contains(&&*inner.name);
            if !is_known && !is_unused_log(disk, dir, &path, &inner)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    if !entry.is_file || LogFileName::parse(&entry.name).is_none() {
        return Ok(false);
    }
    match is_empty_log_file(disk, &path)? {
        true => Ok(true),
        false => Err(manifest_is_lost(disk, dir)),
    }
}

/// Checks whether the database in `dir` is no copy that was not finished: a manifest may be there before all
/// is verified.
fn check_finished(disk: &dyn Disk, dir: &Path) -> Result<(), OpenError> {
    let mark = dir.join(UNFINISHED);
    match exists(disk, &mark)? {
        true => Err(unfinished_backup(dir)),
        false => Ok(()),
    }
}

fn unfinished_backup(dir: &Path) -> OpenError {
    let why = "holds a copy of a database that was not finished, which is of no use; remove it";
    OpenError::Refused(format!("{} {why}", dir.display()))
}
