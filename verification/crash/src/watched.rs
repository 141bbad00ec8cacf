//! A disk that keeps what a crash would leave right after an operation has failed, and after each one that follows.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ensilo_disk::{Disk, File, Lock};
use ensilo_test_disk::{Recorder, SimulatedDisk, forward_disk, forward_file};

/// What the `EIO` of a planned fault is.
const IO_ERROR: i32 = 5;

/// Passes everything on to a recorded disk. Faults are planned on the disk below that one.
#[derive(Debug)]
pub struct WatchedDisk {
    watch: Arc<Watch>,
}

/// The disk at a moment after an operation has failed.
#[derive(Debug)]
pub struct Image {
    /// What is on the disk, synced or not, with all that failed syncs have lost.
    pub disk: SimulatedDisk,
    /// So many operations were recorded before: what they acknowledged has to be there.
    pub position: usize,
    /// The operation before it, in few words.
    pub after: String,
}

/// What the disk and the files opened through it have in common.
struct Watch {
    recorder: Arc<Recorder>,
    disk: Arc<SimulatedDisk>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    images: Vec<Image>,
    has_failed: bool,
}

impl WatchedDisk {
    /// Watches what is done to `disk` through `recorder`.
    #[must_use]
    pub fn new(recorder: Arc<Recorder>, disk: Arc<SimulatedDisk>) -> WatchedDisk {
        WatchedDisk { watch: Arc::new(Watch { recorder, disk, seen: Mutex::default() }) }
    }

    /// Returns what was seen so far.
    #[must_use]
    pub fn take_images(&self) -> Vec<Image> {
        std::mem::take(&mut self.watch.lock_seen().images)
    }

    fn file(&self, path: &Path, inner: Box<dyn File>) -> Box<dyn File> {
        Box::new(WatchedFile { inner, name: path.display().to_string(), watch: Arc::clone(&self.watch) })
    }
}

impl Watch {
    /// An operation that may change something has ended so.
    fn after<T>(&self, what: &str, path: &dyn fmt::Display, outcome: io::Result<T>) -> io::Result<T> {
        let mut seen = self.lock_seen();
        let fails = outcome.as_ref().err().is_some_and(|error| error.raw_os_error() == Some(IO_ERROR));
        seen.has_failed |= fails;
        if seen.has_failed {
            // Read first: what is acknowledged from now on may not be in the image.
            let position = self.recorder.position();
            let after = format!("{what} of {path}{}", if fails { ", which fails" } else { "" });
            seen.images.push(Image { disk: self.disk.fork(), position, after });
        }
        outcome
    }

    fn lock_seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("images", &self.lock_seen().images.len()).finish_non_exhaustive()
    }
}

impl Disk for WatchedDisk {
    forward_disk!(|self, path| self.watch.recorder; open_read, list, exists, free_bytes, place, lock_shared);

    fn create(&self, path: &Path, preallocate_bytes: u64) -> io::Result<Box<dyn File>> {
        let created = self.watch.recorder.create(path, preallocate_bytes);
        let inner = self.watch.after("creation", &path.display(), created)?;
        Ok(self.file(path, inner))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        Ok(self.file(path, self.watch.recorder.open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.watch.after("renaming", &from.display(), self.watch.recorder.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.watch.after("removal", &path.display(), self.watch.recorder.remove(path))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.watch.after("removal", &path.display(), self.watch.recorder.remove_dir(path))
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.watch.after("creation", &dir.display(), self.watch.recorder.create_dir_all(dir))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.watch.after("sync", &dir.display(), self.watch.recorder.sync_dir(dir))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.watch.after("lock", &path.display(), self.watch.recorder.lock(path))
    }
}

struct WatchedFile {
    inner: Box<dyn File>,
    name: String,
    watch: Arc<Watch>,
}

impl File for WatchedFile {
    forward_file!(|self| self.inner; len_bytes, read_at);

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.watch.after("write", &self.name, self.inner.write_at(offset, bytes))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.watch.after("sync", &self.name, self.inner.sync_data())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.watch.after("sync", &self.name, self.inner.sync_all())
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        self.watch.after("length", &self.name, self.inner.set_len(len_bytes))
    }
}

impl fmt::Debug for WatchedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchedFile").field("inner", &self.inner).finish_non_exhaustive()
    }
}
