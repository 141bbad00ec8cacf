//! The disk at each position of a trace.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;

use ensilo_disk::{Disk, File};

use super::operation::{FileId, Operation};
use crate::simulated::{SimulatedDisk, SimulatedFile};

/// All that was done to a disk while it was recorded.
pub struct Trace {
    start: SimulatedDisk,
    operations: Vec<Operation>,
}

impl Trace {
    pub(super) fn new(start: SimulatedDisk, operations: Vec<Operation>) -> Trace {
        Trace { start, operations }
    }

    /// Returns the number of operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Returns whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Returns the operations in order.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Returns the disk after the first `count` operations, with what was synced by then stored and the rest
    /// unsynced. For many positions in a row use a [`cursor`](Self::cursor).
    ///
    /// # Panics
    /// When the trace is shorter than `count`; and as [`TraceCursor::step`].
    pub fn disk_after(&self, count: usize) -> SimulatedDisk {
        assert!(count <= self.len(), "the trace has {} operations", self.len());
        let mut cursor = self.cursor();
        while cursor.position() < count {
            cursor.step();
        }
        cursor.disk()
    }

    /// Returns a walk over the trace from its beginning.
    pub fn cursor(&self) -> TraceCursor<'_> {
        let disk = self.start.fork();
        TraceCursor {
            operations: &self.operations,
            start: disk.moment(),
            disk,
            files: BTreeMap::new(),
            position: 0,
        }
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// A walk over a trace, one operation at a time.
///
/// # Examples
/// ```
/// # use std::{path::Path, sync::Arc};
/// # use ensilo_disk::Disk;
/// # use ensilo_test_disk::{Recorder, SimulatedDisk};
/// # let recorder = Recorder::over(Arc::new(SimulatedDisk::new()));
/// # recorder.create(Path::new("a"), 0)?;
/// let trace = recorder.trace();
/// let mut cursor = trace.cursor();
/// while cursor.step().is_some() {
///     for seed in 0..4 {
///         let found = cursor.disk().crash(seed);
///         // open the database on `found` and look at it
///         # drop(found);
///     }
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct TraceCursor<'a> {
    operations: &'a [Operation],
    disk: SimulatedDisk,
    files: BTreeMap<FileId, SimulatedFile>,
    position: usize,
    /// The moment of the disk before the first operation.
    start: u64,
}

impl<'a> TraceCursor<'a> {
    /// Returns how many operations were done.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the disk at this position, for the caller to do with what it likes.
    pub fn disk(&self) -> SimulatedDisk {
        self.disk.fork()
    }

    /// Does the next operation and gives it; nothing at the end.
    ///
    /// # Panics
    /// When the operation cannot be done: it uses a file that was on the disk before the recording began, and the recorder was not
    /// made by [`Recorder::over`](super::Recorder::over).
    pub fn step(&mut self) -> Option<&'a Operation> {
        let operation = self.operations.get(self.position)?;
        self.disk.set_moment(self.moment_of(self.position));
        if let Err(error) = self.apply(operation) {
            panic!("operation {} cannot be replayed, {operation:?}: {error}", self.position);
        }
        self.position += 1;
        Some(operation)
    }

    /// Each operation of the trace has a moment of its own, so that a sync can name what it covers.
    fn moment_of(&self, position: usize) -> u64 {
        self.start + position as u64
    }

    fn apply(&mut self, operation: &Operation) -> io::Result<()> {
        match operation {
            Operation::Create { path, file, preallocate_bytes } => {
                self.provide_parent(path)?;
                self.files.insert(*file, self.disk.create_file(path, *preallocate_bytes)?);
            }
            Operation::Open { path, file } => {
                self.files.insert(*file, self.disk.open_file(path)?);
            }
            Operation::Write { file, offset, bytes } => {
                self.file(*file)?.write_shared(*offset, bytes.clone())?;
            }
            Operation::SetLen { file, len_bytes } => self.file(*file)?.set_len(*len_bytes)?,
            Operation::Sync { file, covered } => self.file(*file)?.sync_until(self.moment_of(*covered)),
            Operation::Close { file } => drop(self.files.remove(file)),
            Operation::Rename { from, to } => {
                self.provide_parent(to)?;
                self.disk.rename(from, to)?;
            }
            Operation::Remove { path } => self.disk.remove(path)?,
            Operation::RemoveDir { path } => self.disk.remove_dir(path)?,
            Operation::CreateDir { path } => {
                self.provide_parent(path)?;
                self.disk.create_dir_all(path)?;
            }
            Operation::SyncDir { path, covered } => {
                self.sync_dir(path, self.moment_of(*covered))?;
            }
            Operation::Lock { path } => {
                self.provide_parent(path)?;
                drop(self.disk.lock(path)?);
            }
            Operation::Note(_) => {}
        }
        Ok(())
    }

    /// The directory was removed if it is missing, while the sync ran; the sync of what was removed tells
    /// nothing.
    fn sync_dir(&self, path: &Path, before: u64) -> io::Result<()> {
        match self.disk.sync_dir_until(path, before) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            synced => synced,
        }
    }

    /// A directory that is used and was not created in the trace was there before it.
    fn provide_parent(&self, path: &Path) -> io::Result<()> {
        path.parent().map_or(Ok(()), |dir| self.disk.provide_dir(dir))
    }

    fn file(&self, file: FileId) -> io::Result<&SimulatedFile> {
        self.files.get(&file).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl fmt::Debug for TraceCursor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceCursor").field("position", &self.position).finish_non_exhaustive()
    }
}
