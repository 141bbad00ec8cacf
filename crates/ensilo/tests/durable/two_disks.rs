//! A machine with two disks.

use std::io;
use std::path::{Path, PathBuf};

use ensilo::disk::{Disk, File, Listed, Lock, Place};
use ensilo_test_disk::SimulatedDisk;

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

    fn of(&self, path: &Path) -> &SimulatedDisk {
        if path.starts_with(&self.mount) { &self.there } else { &self.here }
    }
}

impl Disk for TwoDisks {
    fn create(&self, path: &Path, preallocate_bytes: u64) -> io::Result<Box<dyn File>> {
        self.of(path).create(path, preallocate_bytes)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.of(path).open(path)
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.of(path).open_read(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.of(from).rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.of(path).remove(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.of(path).remove_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Listed>> {
        self.of(dir).list(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.of(dir).create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.of(dir).sync_dir(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.of(path).exists(path)
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<Option<u64>> {
        Ok(if dir.starts_with(&self.mount) { self.free_there } else { Some(u64::MAX) })
    }

    fn place(&self, path: &Path) -> io::Result<Place> {
        let device = u64::from(path.starts_with(&self.mount));
        Ok(self.of(path).place(path)?.on_device(device))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.of(path).lock(path)
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.of(path).lock_shared(path)
    }
}
