//! Disks that report syncs which they have not done, between a database and a disk that does them: mistakes that a check has to find before
//! it is believed.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ensilo_disk::{Disk, File};
use ensilo_test_disk::{forward_disk, forward_file};

/// The syncs that a disk leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OmittedSync {
    /// Syncs of what was written to log files: what is acknowledged is not on the disk yet.
    Log,
    /// Syncs of directories: files may lose their names.
    Directory,
    /// Syncs of checkpoints and of the manifest that names them, so that the log is cut before they are on the disk.
    Checkpoint,
}

/// A disk that leaves syncs out, and reports them as done.
#[derive(Debug)]
pub struct OmittingDisk {
    inner: Arc<dyn Disk>,
    omitted: OmittedSync,
    is_omitting: Arc<AtomicBool>,
}

impl OmittingDisk {
    /// Returns a disk over `inner` that leaves nothing out until [`OmittingDisk::begin_to_omit`].
    #[must_use]
    pub fn new(inner: Arc<dyn Disk>, omitted: OmittedSync) -> OmittingDisk {
        OmittingDisk { inner, omitted, is_omitting: Arc::default() }
    }

    /// Leaves syncs out from now on.
    pub fn begin_to_omit(&self) {
        self.is_omitting.store(true, Ordering::Relaxed);
    }

    fn file(&self, path: &Path, inner: Box<dyn File>) -> Box<dyn File> {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let is_checkpoint = name.ends_with(".ckpt") || name.starts_with("MANIFEST");
        // The header of a log file is synced by `sync_all`.
        let (leaves_data, leaves_all) = match self.omitted {
            OmittedSync::Log => (name.starts_with("log-"), false),
            OmittedSync::Directory => (false, false),
            OmittedSync::Checkpoint => (is_checkpoint, is_checkpoint),
        };
        Box::new(OmittingFile { inner, is_omitting: Arc::clone(&self.is_omitting), leaves_data, leaves_all })
    }

    fn leaves_out_directory(&self, dir: &Path) -> bool {
        let is_left_out = match self.omitted {
            OmittedSync::Log => false,
            OmittedSync::Directory => true,
            OmittedSync::Checkpoint => !dir.ends_with("log"),
        };
        is_left_out && self.is_omitting.load(Ordering::Relaxed)
    }
}

impl Disk for OmittingDisk {
    forward_disk!(|self, path| self.inner; open_read, rename, remove, remove_dir, list, create_dir_all, exists);
    forward_disk!(|self, path| self.inner; free_bytes, place, lock, lock_shared);

    fn create(&self, path: &Path, preallocate_bytes: u64) -> io::Result<Box<dyn File>> {
        Ok(self.file(path, self.inner.create(path, preallocate_bytes)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        Ok(self.file(path, self.inner.open(path)?))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        if self.leaves_out_directory(dir) { Ok(()) } else { self.inner.sync_dir(dir) }
    }
}

/// A file without some of its syncs.
struct OmittingFile {
    inner: Box<dyn File>,
    is_omitting: Arc<AtomicBool>,
    leaves_data: bool,
    leaves_all: bool,
}

impl File for OmittingFile {
    forward_file!(|self| self.inner; len_bytes, read_at, write_at, set_len);

    fn sync_data(&self) -> io::Result<()> {
        let is_left_out = self.leaves_data && self.is_omitting.load(Ordering::Relaxed);
        if is_left_out { Ok(()) } else { self.inner.sync_data() }
    }

    fn sync_all(&self) -> io::Result<()> {
        let is_left_out = self.leaves_all && self.is_omitting.load(Ordering::Relaxed);
        if is_left_out { Ok(()) } else { self.inner.sync_all() }
    }
}

impl fmt::Debug for OmittingFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OmittingFile").field("inner", &self.inner).finish_non_exhaustive()
    }
}
