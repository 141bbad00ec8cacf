//! A disk in memory that fails on demand.
//!
//! It keeps apart what a running process sees and what a power failure leaves, so that a test can crash a database at any moment, as
//! often as it likes, and look at what comes back. Nothing here touches the disk of the machine.
//!
//! # Terms
//! - *live*: what reads see now. *stored*: what survives for certain. *unsynced*: the changes in between, in order.
//! - *power failure*: only stored bytes and some unsynced ones are left ([`SimulatedDisk::crash`]).
//! - *end of the process*: all bytes are left, the unsynced ones still unsynced ([`SimulatedDisk::kill`]).
//!
//! # Crash
//! What a power failure leaves of each file and of all names is drawn from the seed.
//! - `I1` Bytes: each sector of 512 bytes shows the file as it was after some number of the unsynced writes, and each sector has a number
//!   of its own. So writes are lost, torn at sectors, and stored out of order; but within a sector a later write never comes without an
//!   earlier one, because a system writes back whole sectors of what it has cached.
//! - `I2` Length: the one after some number of the unsynced changes, or a whole number of sectors within a write that made the file
//!   longer. What is inside the length and was not stored reads as zeros. Bytes that were cut off come back only with the old length.
//! - `I3` Names: any of the unsynced creations, renames and removals, each whole or not at all, and with each all those before it
//!   that touched one of its names. A rename never leaves two names or none.
//! - `I4` A file without a stored name is gone, however often its bytes were synced. So is what lies in a directory, if the name
//!   of that is not stored.
//! - `I5` A sync covers what was done before it began. What other threads do while it runs may be lost.

mod content;
mod damage;
mod faults;
mod file;
mod file_node;
mod locks;
mod names;
mod random;
mod shared;
mod state;

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, MutexGuard};

use ensilo_disk::{Disk, File, Listed, Lock, LockHeld, Place, ReadOnly};

pub use faults::{Counts, Faults, SyncPause};
pub(crate) use file::SimulatedFile;
use file::SimulatedLock;
use shared::SharedState;
use state::DiskState;

/// A disk in memory. Its power fails when a test calls for it.
///
/// One value stands for the disk as one process sees it. [`crash`](Self::crash) and [`kill`](Self::kill) end that process: this
/// value and all files and locks opened through it refuse every call from then on, and the disk that the next process
/// finds is a new value. Paths are looked up from the root, with or without a leading `/`.
///
/// Copies share their bytes until one of them writes, so that a disk of many megabytes is forked and crashed in microseconds.
///
/// # Examples
/// ```
/// use std::path::Path;
/// use ensilo_disk::Disk;
/// use ensilo_test_disk::SimulatedDisk;
///
/// let disk = SimulatedDisk::new();
/// let file = disk.create(Path::new("log"), 0)?;
/// file.write_at(0, b"synced")?;
/// file.sync_data()?;
/// disk.sync_dir(Path::new(""))?;
/// file.write_at(0, b"hidden")?;
/// for seed in 0..100 {
///     let found = disk.crash(seed).contents(Path::new("log"))?;
///     assert!(found == b"synced" || found == b"hidden");
/// }
/// assert!(file.write_at(0, b"late").is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct SimulatedDisk {
    shared: Arc<SharedState>,
}

impl SimulatedDisk {
    /// Returns an empty disk: a root directory and nothing in it.
    pub fn new() -> SimulatedDisk {
        SimulatedDisk::of(DiskState::default())
    }

    /// Returns a copy that goes its own way: the same bytes and names, with the same changes unsynced.
    ///
    /// This disk and its process go on. The copy has no open files, no locks held and no faults, as after the end of a process.
    pub fn fork(&self) -> SimulatedDisk {
        SimulatedDisk::of(self.lock_state().fork())
    }

    /// Returns what is found after a power failure now, drawn from `seed`; all of it counts as synced.
    ///
    /// This disk is dead from then on. Called again it gives other outcomes of the same power failure; to let its process go on,
    /// crash a [`fork`](Self::fork).
    pub fn crash(&self, seed: u64) -> SimulatedDisk {
        self.end_process();
        SimulatedDisk::of(self.lock_state().crash(seed))
    }

    /// Returns what the next process finds when this one ends without a power failure: everything, and what was not
    /// synced still is not.
    ///
    /// This disk is dead from then on.
    pub fn kill(&self) -> SimulatedDisk {
        self.end_process();
        self.fork()
    }

    /// Returns whether a power failure would change nothing: no byte and no name is unsynced, and no failed sync has
    /// lost one.
    pub fn is_synced(&self) -> bool {
        self.lock_state().is_synced()
    }

    /// Plans faults, in place of those planned before, and counts operations from 0 again. A sync that hangs goes on to hang until its
    /// own pause ends.
    pub fn set_faults(&self, faults: Faults) {
        self.lock_state().faults.plan(faults);
    }

    /// Returns how many operations of each kind were asked for since the faults were planned, or since the disk was
    /// made. A run without faults tells how many places there are to put one.
    pub fn counts(&self) -> Counts {
        self.lock_state().faults.counts()
    }

    fn of(state: DiskState) -> SimulatedDisk {
        SimulatedDisk { shared: Arc::new(SharedState::new(state)) }
    }

    /// Refuses all calls from now on, and wakes those that hang, which then fail.
    fn end_process(&self) {
        // Not under the lock: a call in a pause takes the lock of the disk within that of the pause.
        let pauses = self.lock_state().end_process();
        pauses.iter().for_each(|pause| pause.wake());
    }

    fn lock_state(&self) -> MutexGuard<'_, DiskState> {
        self.shared.lock_state()
    }
}

/// For the replay of a trace, which names the moments of its operations itself.
impl SimulatedDisk {
    pub(crate) fn create_file(&self, path: &Path, preallocate_bytes: u64) -> io::Result<SimulatedFile> {
        let inode = self.lock_state().create(path, preallocate_bytes)?;
        Ok(SimulatedFile::new(&self.shared, inode))
    }

    pub(crate) fn open_file(&self, path: &Path) -> io::Result<SimulatedFile> {
        let inode = self.lock_state().open(path)?;
        Ok(SimulatedFile::new(&self.shared, inode))
    }

    /// Makes the names of a directory survive as they were before the moment `before`.
    pub(crate) fn sync_dir_until(&self, dir: &Path, before: u64) -> io::Result<()> {
        self.lock_state().sync_dir_until(dir, before)
    }

    /// Makes a directory and those above it that are missing, as if they had always been there.
    pub(crate) fn provide_dir(&self, dir: &Path) -> io::Result<()> {
        self.lock_state().provide_dir(dir)
    }

    pub(crate) fn moment(&self) -> u64 {
        self.lock_state().moment()
    }

    /// The changes from here on happen at `moment`, which is not before that of the last one.
    pub(crate) fn set_moment(&self, moment: u64) {
        self.lock_state().set_moment(moment);
    }
}

impl Disk for SimulatedDisk {
    fn create(&self, path: &Path, preallocate_bytes: u64) -> io::Result<Box<dyn File>> {
        Ok(Box::new(self.create_file(path, preallocate_bytes)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        Ok(Box::new(self.open_file(path)?))
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn File>> {
        Ok(Box::new(ReadOnly::new(self.open(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.lock_state().rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.lock_state().remove(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.lock_state().remove_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Listed>> {
        self.lock_state().list(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.lock_state().create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.shared.sync(true, |_| {}, |state, moment| state.sync_dir_until(dir, moment))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.lock_state().exists(path)
    }

    fn free_bytes(&self, _: &Path) -> io::Result<Option<u64>> {
        let state = self.lock_state();
        state.check_alive()?;
        Ok(Some(state.space_left()))
    }

    fn place(&self, path: &Path) -> io::Result<Place> {
        Ok(Place::of_inode(self.lock_state().place(path)?))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let held = self.lock_state().lock(path)?;
        Ok(Box::new(SimulatedLock::new(&self.shared, held)))
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let held = self.lock_state().lock_shared(path)?;
        Ok(Box::new(SimulatedLock::new(&self.shared, held)))
    }

    fn lock_holder(&self, path: &Path) -> Option<LockHeld> {
        self.lock_state().lock_holder(path)
    }
}

impl Default for SimulatedDisk {
    fn default() -> SimulatedDisk {
        SimulatedDisk::new()
    }
}

impl fmt::Debug for SimulatedDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedDisk").field("files", &self.files()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
