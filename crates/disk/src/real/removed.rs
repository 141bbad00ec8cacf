//! Files that are removed: their place comes back in pieces, unless somebody keeps them open.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// So much of a removed file is given back to the file system at once.
pub(super) const FREED_AT_ONCE_BYTES: u64 = 32 << 20;
const PAUSE_BETWEEN_PIECES: Duration = Duration::from_millis(10);

/// Keeps a file from being [cut](free) after it was removed, as long as it is open.
pub(super) fn keep(file: &fs::File, path: &Path) -> io::Result<()> {
    // A lock of somebody else's keeps the place as well, and where there are no locks no file is cut.
    let _ = file.try_lock_shared();
    let kept = file.metadata()?;
    // If it was removed between its opening and this lock it may be cut already. Some file systems count no names.
    let is_same = |there: fs::Metadata| (there.dev(), there.ino()) == (kept.dev(), kept.ino());
    if kept.nlink() > 0 || fs::metadata(path).is_ok_and(is_same) {
        Ok(())
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Gives the place of a file without a name back to the file system, in pieces: a file system that gets much back at once writes its
/// journal, and trims the disk, for so long that other files' syncs wait for tenths of a second. Left alone if it has another
/// name, or if somebody [keeps](crate::Disk::open_kept) it, or may for all that the file system says of locks: then its place comes back at once,
/// when the last one closes it.
pub(super) fn free(file: &fs::File) -> io::Result<()> {
    let metadata = file.metadata()?;
    if metadata.nlink() > 0 || file.try_lock().is_err() {
        return Ok(());
    }
    let mut len_bytes = metadata.len();
    while len_bytes > FREED_AT_ONCE_BYTES {
        len_bytes -= FREED_AT_ONCE_BYTES;
        file.set_len(len_bytes)?;
        thread::sleep(PAUSE_BETWEEN_PIECES);
    }
    Ok(())
}
