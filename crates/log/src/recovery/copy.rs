//! Copying files of a database, one after the other, each synced.

use std::path::{Path, PathBuf};

use ensilo_disk::{Disk, File};

use super::error::OpenError;
use super::file_access::{PIECE_BYTES, exists, pieces};

/// So much is copied between two syncs, so that a log on the same disk never waits for long.
const SYNC_BYTES: u64 = 32 << 20;

/// Gets the number of bytes that were copied so far; it may wait, and ends the copy by an error.
pub(super) type Watch<'w> = dyn FnMut(u64) -> Result<(), OpenError> + 'w;

/// Copies the first `bytes` bytes of a file, all if `None`, to a new one, and syncs it, but not its name.
/// Returns how many. `watch` is called after each piece.
pub(super) fn copy_file(
    disk: &dyn Disk,
    from: &Path,
    to: &Path,
    bytes: Option<u64>,
    watch: &mut Watch<'_>,
) -> Result<u64, OpenError> {
    let source = disk.open_read(from).map_err(OpenError::io("open", from))?;
    copy_open_file(disk, &*source, from, to, bytes, watch)
}

/// Like [`copy_file`], for a file that is open already, and was found at `from`.
pub(super) fn copy_open_file(
    disk: &dyn Disk,
    source: &dyn File,
    from: &Path,
    to: &Path,
    bytes: Option<u64>,
    watch: &mut Watch<'_>,
) -> Result<u64, OpenError> {
    let len = match bytes {
        Some(bytes) => bytes,
        None => source.len_bytes().map_err(OpenError::io("read", from))?,
    };
    let target = disk.create(to, 0).map_err(OpenError::io("create", to))?;
    let mut buffer = vec![0; PIECE_BYTES];
    for (at, piece) in pieces(0..len) {
        let (bytes, copied) = (&mut buffer[..piece], at + piece as u64);
        source.read_at(at, bytes).map_err(OpenError::io("read", from))?;
        target.write_at(at, bytes).map_err(OpenError::io("write", to))?;
        if copied % SYNC_BYTES == 0 {
            target.sync_data().map_err(OpenError::io("sync", to))?;
        }
        watch(copied)?;
    }
    target.sync_all().map_err(OpenError::io("sync", to))?;
    Ok(len)
}

/// Returns the first of `prefix1`, `prefix2`, ... in `dir` that is not there, not even as a link that leads
/// nowhere.
pub(super) fn free_name(disk: &dyn Disk, dir: &Path, prefix: &str) -> Result<PathBuf, OpenError> {
    // Where nothing can be listed, what is made there fails if the name is taken by such a link.
    let listed = disk.list(dir).unwrap_or_default();
    for number in 1u64.. {
        let name = format!("{prefix}{number}");
        let path = dir.join(&name);
        let is_listed = listed.iter().any(|entry| entry.name == name);
        if !is_listed && !exists(disk, &path)? {
            return Ok(path);
        }
    }
    unreachable!("a directory with 2^64 entries");
}
