//! A machine with two disks.

use std::io;
use std::path::{Path, PathBuf};

use ensilo::disk::{Disk, Place};
use ensilo_test_disk::{SimulatedDisk, forward_disk};

/// Two disks, of which the second is seen under a directory of the first. Nothing is renamed from one to the other.
#[derive(Debug)]
pub(crate) struct TwoDisks {
    pub(crate) here: SimulatedDisk,
    pub(crate) there: SimulatedDisk,
    pub(crate) mount: PathBuf,
    /// What it says that is free on the second.
    pub(crate) free_there: Option<u64>,
}

impl TwoDisks {
    pub(crate) fn new(mount: &str) -> Self {
        let there = SimulatedDisk::new();
        there.create_dir_all(Path::new(mount)).unwrap();
        TwoDisks { here: SimulatedDisk::new(), there, mount: mount.into(), free_there: None }
    }

    fn disk_of(&self, path: &Path) -> &SimulatedDisk {
        if path.starts_with(&self.mount) { &self.there } else { &self.here }
    }
}

impl Disk for TwoDisks {
    forward_disk!(|self, path| self.disk_of(path); create, open, open_read, rename, remove, remove_dir, list);
    forward_disk!(|self, path| self.disk_of(path); create_dir_all, sync_dir, exists, lock, lock_shared);

    fn free_bytes(&self, dir: &Path) -> io::Result<Option<u64>> {
        Ok(if dir.starts_with(&self.mount) { self.free_there } else { Some(u64::MAX) })
    }

    fn place(&self, path: &Path) -> io::Result<Place> {
        let device = u64::from(path.starts_with(&self.mount));
        Ok(self.disk_of(path).place(path)?.on_device(device))
    }
}
