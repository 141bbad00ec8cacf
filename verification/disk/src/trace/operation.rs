//! One step of a trace.

use std::path::PathBuf;
use std::sync::Arc;

/// An open file within a trace: each that is created or opened gets one of its own, and keeps it when it is renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u64);

/// Something that was done to a disk, and succeeded.
///
/// Reads are not recorded. A copy shares the bytes of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// A file was created and is open as `file`.
    Create {
        /// Its name.
        path: PathBuf,
        /// What the operations on it call it.
        file: FileId,
        /// Its length from the start.
        preallocate_bytes: u64,
    },
    /// A file that was there is open as `file`.
    Open {
        /// Its name.
        path: PathBuf,
        /// What the operations on it call it.
        file: FileId,
    },
    /// Bytes were written.
    Write {
        /// To which file.
        file: FileId,
        /// Where they begin.
        offset: u64,
        /// The bytes.
        bytes: Arc<[u8]>,
    },
    /// A file got another length.
    SetLen {
        /// Which file.
        file: FileId,
        /// The length in bytes.
        len_bytes: u64,
    },
    /// A file was synced, its data or all of it.
    Sync {
        /// Which file.
        file: FileId,
        /// The operations before this position survive; later ones came while the sync ran.
        covered: usize,
    },
    /// An open file was closed.
    Close {
        /// Which file.
        file: FileId,
    },
    /// A file or directory got another name.
    Rename {
        /// The name before.
        from: PathBuf,
        /// The name after.
        to: PathBuf,
    },
    /// A file was removed.
    Remove {
        /// Its name.
        path: PathBuf,
    },
    /// A directory was removed.
    RemoveDir {
        /// Its name.
        path: PathBuf,
    },
    /// A directory was created. `create_dir_all` gives one for each that was missing.
    CreateDir {
        /// Its name.
        path: PathBuf,
    },
    /// The names of a directory were synced.
    SyncDir {
        /// The directory.
        path: PathBuf,
        /// The operations before this position survive; later ones came while the sync ran.
        covered: usize,
    },
    /// A lock was taken, and its file created if it was missing.
    Lock {
        /// The file of the lock.
        path: PathBuf,
    },
    /// A mark by the test, with a meaning of the test's own.
    Note(u64),
}
