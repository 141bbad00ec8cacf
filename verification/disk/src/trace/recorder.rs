//! A disk that writes down what is done to another one.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ensilo_disk::{Disk, File, Lock};

use super::cursor::Trace;
use super::operation::{FileId, Operation};
use crate::simulated::SimulatedDisk;
use crate::{forward_disk, forward_file};

/// Passes all operations on to another disk and keeps a [`Trace`] of those that changed something.
///
/// Changes of names go one after the other; reads, writes and syncs of files run as freely as the disk below lets them.
///
/// # Examples
/// ```
/// use std::path::Path;
/// use std::sync::Arc;
/// use ensilo_disk::Disk;
/// use ensilo_test_disk::{Recorder, SimulatedDisk};
///
/// let recorder = Arc::new(Recorder::over(Arc::new(SimulatedDisk::new())));
/// let disk: Arc<dyn Disk> = recorder.clone();
/// let log = disk.create(Path::new("log"), 0)?;
/// disk.sync_dir(Path::new(""))?;
/// log.write_at(0, b"one")?;
/// log.sync_data()?;
/// recorder.note(1);
///
/// let trace = recorder.trace();
/// assert_eq!(trace.disk_after(trace.len()).crash(7).contents(Path::new("log"))?, b"one");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Recorder {
    inner: Arc<dyn Disk>,
    start: SimulatedDisk,
    record: Arc<Record>,
}

/// What the recorder and the files opened through it write to.
struct Record {
    pages: Mutex<Pages>,
}

#[derive(Default)]
struct Pages {
    operations: Vec<Operation>,
    next_file: u64,
}

impl Recorder {
    /// Records what is done to `inner`, in which nothing is expected to be but directories: those that operations use and do not create
    /// count as stored.
    pub fn new(inner: Arc<dyn Disk>) -> Recorder {
        Recorder { inner, start: SimulatedDisk::new(), record: Arc::new(Record::new()) }
    }

    /// Records what is done to a simulated disk with whatever is on it.
    pub fn over(disk: Arc<SimulatedDisk>) -> Recorder {
        let start = disk.fork();
        Recorder { inner: disk, start, record: Arc::new(Record::new()) }
    }

    /// Puts a mark into the trace.
    pub fn note(&self, mark: u64) {
        self.record.push(Operation::Note(mark));
    }

    /// Returns how many operations were recorded so far: the position of the next one.
    pub fn position(&self) -> usize {
        self.record.position()
    }

    /// Returns what was recorded so far.
    pub fn trace(&self) -> Trace {
        Trace::new(self.start.fork(), self.record.lock_pages().operations.clone())
    }

    fn recorded_file(&self, inner: Box<dyn File>, file: FileId) -> Box<dyn File> {
        Box::new(RecordedFile { inner, file, record: self.record.clone() })
    }

    /// Those of the directories along `dir` that are not there.
    fn missing_dirs(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let mut missing = Vec::new();
        for dir in dir.ancestors() {
            if dir.as_os_str().is_empty() || self.inner.exists(dir)? {
                break;
            }
            missing.push(dir.to_path_buf());
        }
        missing.reverse();
        Ok(missing)
    }
}

impl Record {
    fn new() -> Record {
        Record { pages: Mutex::new(Pages::default()) }
    }

    fn push(&self, operation: Operation) {
        self.lock_pages().operations.push(operation);
    }

    fn position(&self) -> usize {
        self.lock_pages().operations.len()
    }

    fn lock_pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pages {
    fn new_file(&mut self) -> FileId {
        self.next_file += 1;
        FileId(self.next_file - 1)
    }
}

/// Changes of names hold the lock of the record until they stand in it, so that the trace has them in the order in which the disk had.
impl Disk for Recorder {
    forward_disk!(|self, path| self.inner; open_read, list, exists, free_bytes, place, lock_shared);

    fn create(&self, path: &Path, preallocate_bytes: u64) -> io::Result<Box<dyn File>> {
        let mut pages = self.record.lock_pages();
        let inner = self.inner.create(path, preallocate_bytes)?;
        let file = pages.new_file();
        pages.operations.push(Operation::Create { path: path.into(), file, preallocate_bytes });
        Ok(self.recorded_file(inner, file))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let mut pages = self.record.lock_pages();
        let inner = self.inner.open(path)?;
        let file = pages.new_file();
        pages.operations.push(Operation::Open { path: path.into(), file });
        Ok(self.recorded_file(inner, file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut pages = self.record.lock_pages();
        self.inner.rename(from, to)?;
        pages.operations.push(Operation::Rename { from: from.into(), to: to.into() });
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut pages = self.record.lock_pages();
        self.inner.remove(path)?;
        pages.operations.push(Operation::Remove { path: path.into() });
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut pages = self.record.lock_pages();
        self.inner.remove_dir(path)?;
        pages.operations.push(Operation::RemoveDir { path: path.into() });
        Ok(())
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut pages = self.record.lock_pages();
        let missing = self.missing_dirs(dir)?;
        self.inner.create_dir_all(dir)?;
        pages.operations.extend(missing.into_iter().map(|path| Operation::CreateDir { path }));
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let covered = self.record.position();
        self.inner.sync_dir(dir)?;
        self.record.push(Operation::SyncDir { path: dir.into(), covered });
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let mut pages = self.record.lock_pages();
        let lock = self.inner.lock(path)?;
        pages.operations.push(Operation::Lock { path: path.into() });
        Ok(lock)
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let position = self.position();
        f.debug_struct("Recorder")
            .field("inner", &self.inner)
            .field("position", &position)
            .finish_non_exhaustive()
    }
}

struct RecordedFile {
    inner: Box<dyn File>,
    file: FileId,
    record: Arc<Record>,
}

impl RecordedFile {
    fn sync(&self, sync: impl FnOnce(&dyn File) -> io::Result<()>) -> io::Result<()> {
        // Read before the sync begins: what is recorded while it runs may have come too late for it.
        let covered = self.record.position();
        sync(&*self.inner)?;
        self.record.push(Operation::Sync { file: self.file, covered });
        Ok(())
    }
}

impl File for RecordedFile {
    forward_file!(|self| self.inner; len_bytes, read_at);

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.inner.write_at(offset, bytes)?;
        self.record.push(Operation::Write { file: self.file, offset, bytes: bytes.into() });
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync(|inner| inner.sync_data())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync(|inner| inner.sync_all())
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        self.inner.set_len(len_bytes)?;
        self.record.push(Operation::SetLen { file: self.file, len_bytes });
        Ok(())
    }
}

impl Drop for RecordedFile {
    fn drop(&mut self) {
        self.record.push(Operation::Close { file: self.file });
    }
}

impl fmt::Debug for RecordedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedFile")
            .field("inner", &self.inner)
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}
