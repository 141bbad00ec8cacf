//! The disk of the machine, without the mark of what is not finished: for whoever makes it, and may open it.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use ensilo::disk::{Disk, File, Listed, Lock, Place, RealDisk};

use super::backup::MARK;

/// [`RealDisk`], where a directory does not say that it is not finished.
#[derive(Debug)]
pub(super) struct UnfinishedDisk;

impl Disk for UnfinishedDisk {
    fn create(&self, path: &Path, preallocate_bytes: u64) -> io::Result<Box<dyn File>> {
        RealDisk.create(path, preallocate_bytes)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        RealDisk.open(path)
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn File>> {
        RealDisk.open_read(path)
    }

    fn create_cached(&self, path: &Path) -> io::Result<Box<dyn File>> {
        RealDisk.create_cached(path)
    }

    fn open_cached(&self, path: &Path) -> io::Result<Box<dyn File>> {
        RealDisk.open_cached(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Listed>> {
        let mut listed = RealDisk.list(dir)?;
        listed.retain(|entry| entry.name != MARK);
        Ok(listed)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        RealDisk.create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        RealDisk.sync_dir(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(path.file_name() != Some(OsStr::new(MARK)) && RealDisk.exists(path)?)
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<Option<u64>> {
        RealDisk.free_bytes(dir)
    }

    fn place(&self, path: &Path) -> io::Result<Place> {
        RealDisk.place(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        RealDisk.lock(path)
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        RealDisk.lock_shared(path)
    }
}
