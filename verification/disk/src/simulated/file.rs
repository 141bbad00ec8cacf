//! Open files and locks of a simulated disk.

use std::fmt;
use std::io;
use std::sync::Arc;

use ensilo_disk::{File, Lock};

use super::locks::Locked;
use super::names::Inode;
use super::shared::SharedState;

/// An open file, counted by the disk.
pub(crate) struct SimulatedFile {
    shared: Arc<SharedState>,
    inode: Inode,
}

impl SimulatedFile {
    /// Takes over the count that opening has added.
    pub(super) fn new(shared: &Arc<SharedState>, inode: Inode) -> SimulatedFile {
        SimulatedFile { shared: shared.clone(), inode }
    }

    /// Writes bytes that the disk keeps without a copy.
    pub(crate) fn write_shared(&self, offset: u64, bytes: Arc<[u8]>) -> io::Result<()> {
        self.shared.lock_state().write(self.inode, offset, bytes)
    }

    /// Makes the file survive as it was before the moment `before`.
    pub(crate) fn sync_until(&self, before: u64) {
        self.shared.lock_state().sync_until(self.inode, before);
    }

    fn sync(&self) -> io::Result<()> {
        self.shared.sync(
            false,
            |state| state.fail_sync(self.inode),
            |state, moment| {
                state.sync_until(self.inode, moment);
                Ok(())
            },
        )
    }
}

impl File for SimulatedFile {
    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.shared.lock_state().file(self.inode)?.live.len_bytes())
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.shared.lock_state().read(self.inode, offset, bytes)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_shared(offset, bytes.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync()
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        self.shared.lock_state().set_len(self.inode, len_bytes)
    }
}

impl Drop for SimulatedFile {
    fn drop(&mut self) {
        self.shared.lock_state().close(self.inode);
    }
}

impl fmt::Debug for SimulatedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedFile").field("inode", &self.inode).finish_non_exhaustive()
    }
}

/// The lock on a file, or a share of it, held by the disk.
pub(super) struct SimulatedLock {
    shared: Arc<SharedState>,
    locked: Locked,
}

impl SimulatedLock {
    pub(super) fn new(shared: &Arc<SharedState>, locked: Locked) -> SimulatedLock {
        SimulatedLock { shared: shared.clone(), locked }
    }
}

impl Lock for SimulatedLock {}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        self.shared.lock_state().unlock(self.locked);
    }
}

impl fmt::Debug for SimulatedLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedLock").field("locked", &self.locked).finish_non_exhaustive()
    }
}
