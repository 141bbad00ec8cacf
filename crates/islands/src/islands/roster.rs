//! A file beside the instances that says how many there are, once all of them are stored.
//!
//! Without it an instance whose directory is lost would be made anew, with nothing in it, and the others would take that for what it has.
//!
//! # Layout
//! The file `instances` holds the number in decimal digits and a line feed.
//!
//! # Crash
//! It is written behind a rename when all instances have been opened for the first time. Where it is missing some may not have been made yet.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::directory_of;

/// Checks that each instance is there that was stored.
///
/// # Errors
/// One is missing, or the file cannot be read.
pub(super) fn check(directory: &Path) -> io::Result<()> {
    let path = path_in(directory);
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        read => read.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?,
    };
    let Ok(instances) = text.trim_end().parse::<u16>() else {
        return Err(io::Error::other(format!(
            "{}: it is damaged, and says no number of instances: if they are all there, remove it",
            path.display()
        )));
    };
    let is_lost = |instance: &u16| !has_files(&directory_of(directory, *instance));
    match (0..instances).find(is_lost) {
        Some(lost) => Err(io::Error::other(format!(
            "{}: instance {lost} of {instances} is lost, and what it had is not at the others: put its files back, or restore a copy of all",
            directory_of(directory, lost).display()
        ))),
        None => Ok(()),
    }
}

/// Notes that all of so many instances are stored, unless that is noted.
///
/// # Errors
/// The file cannot be written.
pub(super) fn note(directory: &Path, instances: usize) -> io::Result<()> {
    let path = path_in(directory);
    if path.exists() {
        return Ok(());
    }
    let begun = path.with_extension("begun");
    let mut file = File::create(&begun)?;
    writeln!(file, "{instances}")?;
    file.sync_all()?;
    std::fs::rename(&begun, &path)?;
    File::open(directory)?.sync_all()
}

/// Removes the file of copies that are of no use, if there is one.
pub(super) fn remove(directory: &Path) {
    // If it cannot be removed it is in the way of the next copy, which says so.
    let _ = std::fs::remove_file(path_in(directory));
}

fn has_files(directory: &Path) -> bool {
    std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some())
}

fn path_in(directory: &Path) -> PathBuf {
    directory.join("instances")
}
