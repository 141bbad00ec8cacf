//! What is done with files and directories, with errors that name them.

use std::io;
use std::ops::Range;
use std::path::Path;

use ensilo_disk::{Disk, File, Listed};

use super::error::OpenError;

/// So much is read or written at once.
pub(super) const PIECE_BYTES: usize = 1 << 20;

/// Returns whether there is something at this path.
pub(super) fn exists(disk: &dyn Disk, path: &Path) -> Result<bool, OpenError> {
    disk.exists(path).map_err(OpenError::io("look for", path))
}

/// Returns what a directory holds.
pub(super) fn list(disk: &dyn Disk, directory: &Path) -> Result<Vec<Listed>, OpenError> {
    disk.list(directory).map_err(OpenError::io("list", directory))
}

/// A file that is open, and its length.
pub(super) type OpenFile = (Box<dyn File>, u64);

/// Opens a file.
pub(super) fn open(disk: &dyn Disk, path: &Path) -> Result<OpenFile, OpenError> {
    let file = disk.open_read(path).map_err(OpenError::io("open", path))?;
    let bytes = file.len_bytes().map_err(OpenError::io("read", path))?;
    Ok((file, bytes))
}

/// Writes a new file, and syncs it, but not its name.
pub(super) fn write_new(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<(), OpenError> {
    let file = disk.create(path, 0).map_err(OpenError::io("create", path))?;
    file.write_at(0, bytes).map_err(OpenError::io("write", path))?;
    file.sync_all().map_err(OpenError::io("sync", path))
}

/// Creates a directory, and syncs the one that it is in; also if it is there: the process that made it may
/// have come no further.
pub(super) fn create_directory(disk: &dyn Disk, directory: &Path) -> io::Result<()> {
    let parent = match directory.parent() {
        None => return disk.create_dir_all(directory),
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
    };
    if disk.exists(directory)? {
        return match disk.sync_dir(parent) {
            // Whoever may not even read it has made no directory in it that had to be synced.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            synced => synced,
        };
    }
    create_directory(disk, parent)?;
    disk.create_dir_all(directory)?;
    disk.sync_dir(parent)
}

/// Creates a directory, as [`create_directory`] does.
pub(super) fn make_directory(disk: &dyn Disk, directory: &Path) -> Result<(), OpenError> {
    create_directory(disk, directory).map_err(OpenError::io("create", directory))
}

/// Syncs the names in a directory.
pub(super) fn sync_dir(disk: &dyn Disk, directory: &Path) -> Result<(), OpenError> {
    disk.sync_dir(directory).map_err(OpenError::io("sync", directory))
}

/// Renames a file within a directory, without a sync.
pub(super) fn rename(disk: &dyn Disk, directory: &Path, from: &str, to: &str) -> Result<(), OpenError> {
    let from = directory.join(from);
    disk.rename(&from, &directory.join(to)).map_err(OpenError::io("rename", &from))
}

/// Removes a file, if it is there.
pub(super) fn remove_if_there(disk: &dyn Disk, path: &Path) -> Result<(), OpenError> {
    // A link that leads nowhere is not there to be looked for, but its name is taken.
    match disk.remove(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(OpenError::io("remove", path)),
    }
}

/// Returns a range of bytes of a file in pieces that are read and written at once, of a mebibyte but for the
/// last one.
pub(super) fn pieces(bytes: Range<u64>) -> impl Iterator<Item = (u64, usize)> {
    let piece = move |at: u64| (at, (bytes.end - at).min(PIECE_BYTES as u64) as usize);
    (bytes.start..bytes.end).step_by(PIECE_BYTES).map(piece)
}
