//! Disks that do not do what they say, between a database and a disk that does: mistakes that a check has to find before it is
//! believed.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ensilo_disk::{Disk, File, Listed, Lock, Place};

/// What a disk leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Syncs of what was written to log files: what is acknowledged is not on the disk yet.
    LogSync,
    /// Syncs of directories: files may lose their names.
    DirectorySync,
    /// Syncs of checkpoints and of the manifest that names them, so that the log is cut before they are on the disk.
    CheckpointSync,
}

/// A disk that lies.
#[derive(Debug)]
pub struct LyingDisk {
    inner: Arc<dyn Disk>,
    lie: Lie,
    is_lying: Arc<AtomicBool>,
}

impl LyingDisk {
    /// `inner` behind a disk that is honest until [`LyingDisk::begin_to_lie`].
    #[must_use]
    pub fn new(inner: Arc<dyn Disk>, lie: Lie) -> LyingDisk {
        LyingDisk { inner, lie, is_lying: Arc::default() }
    }

    /// From now on syncs are left out.
    pub fn begin_to_lie(&self) {
        self.is_lying.store(true, Ordering::Relaxed);
    }

    fn file(&self, path: &Path, inner: Box<dyn File>) -> Box<dyn File> {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let is_checkpoint = name.ends_with(".ckpt") || name.starts_with("MANIFEST");
        // The header of a log file is synced by `sync_all`.
        let (leaves_data, leaves_all) = match self.lie {
            Lie::LogSync => (name.starts_with("log-"), false),
            Lie::DirectorySync => (false, false),
            Lie::CheckpointSync => (is_checkpoint, is_checkpoint),
        };
        Box::new(LyingFile { inner, is_lying: Arc::clone(&self.is_lying), leaves_data, leaves_all })
    }

    fn leaves_out_directory(&self, dir: &Path) -> bool {
        let is_left_out = match self.lie {
            Lie::LogSync => false,
            Lie::DirectorySync => true,
            Lie::CheckpointSync => !dir.ends_with("log"),
        };
        is_left_out && self.is_lying.load(Ordering::Relaxed)
    }
}

impl Disk for LyingDisk {
    fn create(&self, path: &Path, preallocate_bytes: u64) -> io::Result<Box<dyn File>> {
        Ok(self.file(path, self.inner.create(path, preallocate_bytes)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        Ok(self.file(path, self.inner.open(path)?))
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.inner.open_read(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.remove_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Listed>> {
        self.inner.list(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.inner.create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        if self.leaves_out_directory(dir) { Ok(()) } else { self.inner.sync_dir(dir) }
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.inner.exists(path)
    }

    fn place(&self, path: &Path) -> io::Result<Place> {
        self.inner.place(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.inner.lock(path)
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.inner.lock_shared(path)
    }
}

/// A file whose syncs are left out.
struct LyingFile {
    inner: Box<dyn File>,
    is_lying: Arc<AtomicBool>,
    leaves_data: bool,
    leaves_all: bool,
}

impl File for LyingFile {
    fn len_bytes(&self) -> io::Result<u64> {
        self.inner.len_bytes()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, bytes)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.inner.write_at(offset, bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        let is_left_out = self.leaves_data && self.is_lying.load(Ordering::Relaxed);
        if is_left_out { Ok(()) } else { self.inner.sync_data() }
    }

    fn sync_all(&self) -> io::Result<()> {
        let is_left_out = self.leaves_all && self.is_lying.load(Ordering::Relaxed);
        if is_left_out { Ok(()) } else { self.inner.sync_all() }
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        self.inner.set_len(len_bytes)
    }
}

impl fmt::Debug for LyingFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LyingFile").field("inner", &self.inner).finish_non_exhaustive()
    }
}
