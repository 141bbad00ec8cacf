//! Operations on the bytes of files, and syncs. The inode is that of an open file, so it is there.

use std::io;
use std::sync::Arc;

use super::{DiskState, check_len};
use crate::simulated::faults::{SyncPause, io_error, no_space};
use crate::simulated::file_node::FileNode;
use crate::simulated::names::Inode;

/// The sectors that become unreadable.
const SECTOR_BYTES: u64 = 4096;

/// A sync on its way.
pub(in crate::simulated) struct BegunSync {
    /// What was done before this moment is covered.
    pub(in crate::simulated) moment: u64,
    pub(in crate::simulated) fails: bool,
    pub(in crate::simulated) pause: Option<Arc<SyncPause>>,
}

impl DiskState {
    pub(in crate::simulated) fn file(&self, inode: Inode) -> io::Result<&FileNode> {
        self.check_alive()?;
        Ok(&self.files[&inode])
    }

    pub(in crate::simulated) fn read(
        &mut self,
        inode: Inode,
        offset: u64,
        bytes: &mut [u8],
    ) -> io::Result<()> {
        self.check_alive()?;
        if self.faults.count_read() {
            return Err(io_error());
        }
        let sectors = offset / SECTOR_BYTES..offset.saturating_add(bytes.len() as u64).div_ceil(SECTOR_BYTES);
        if self.spoiled.iter().any(|(spoiled, sector)| *spoiled == inode && sectors.contains(sector)) {
            return Err(io_error());
        }
        let content = &self.files[&inode].live;
        if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > content.len_bytes()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        content.read(offset, bytes);
        Ok(())
    }

    pub(in crate::simulated) fn write(
        &mut self,
        inode: Inode,
        offset: u64,
        bytes: Arc<[u8]>,
    ) -> io::Result<()> {
        self.check_alive()?;
        let fails = self.faults.count_write();
        let end = offset.saturating_add(bytes.len() as u64);
        check_len(end)?;
        let grows_by = end.saturating_sub(self.files[&inode].live.len_bytes());
        let excess = grows_by.saturating_sub(self.space_left());
        let (done, result) = if fails {
            (self.faults.random.index(bytes.len() + 1), Err(io_error()))
        } else if excess > 0 {
            let excess = usize::try_from(excess).unwrap_or(usize::MAX);
            (bytes.len().saturating_sub(excess), Err(no_space()))
        } else {
            (bytes.len(), Ok(()))
        };
        let moment = self.tick();
        let bytes = if done == bytes.len() { bytes } else { bytes[..done].into() };
        self.file_mut(inode).write(moment, offset, bytes);
        result
    }

    pub(in crate::simulated) fn set_len(&mut self, inode: Inode, len_bytes: u64) -> io::Result<()> {
        self.check_alive()?;
        check_len(len_bytes)?;
        let fails = self.faults.count_write();
        let grows_by = len_bytes.saturating_sub(self.files[&inode].live.len_bytes());
        if grows_by > self.space_left() {
            return Err(no_space());
        }
        if !fails || self.faults.random.coin() {
            let moment = self.tick();
            self.file_mut(inode).set_len(moment, len_bytes);
        }
        if fails { Err(io_error()) } else { Ok(()) }
    }

    pub(in crate::simulated) fn begin_sync(&mut self, is_of_dir: bool) -> io::Result<BegunSync> {
        self.check_alive()?;
        let fails = if is_of_dir { self.faults.count_dir_sync() } else { self.faults.count_sync() };
        Ok(BegunSync { moment: self.moment, fails, pause: self.faults.pause() })
    }

    pub(in crate::simulated) fn sync_until(&mut self, inode: Inode, before: u64) {
        self.file_mut(inode).sync(before);
    }

    pub(in crate::simulated) fn fail_sync(&mut self, inode: Inode) {
        let mut random = self.faults.random.clone();
        self.file_mut(inode).fail_sync(&mut random);
        self.faults.random = random;
    }
}
