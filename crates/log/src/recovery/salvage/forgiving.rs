//! A disk of which sectors cannot be read any more: they read as zeros, which are no part of anything valid.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ensilo_disk::{Disk, File, Listed, Lock, Place};

/// What fails to be read as a whole is read in pieces of so many bytes, the sectors of most disks.
const SECTOR_BYTES: u64 = 4096;

/// The bytes that could not be read, by file, counted by sectors.
type Unread = Arc<Mutex<BTreeMap<PathBuf, BTreeMap<u64, u64>>>>;

/// The disk of a damaged database. Nothing is changed through it.
#[derive(Debug)]
pub(super) struct ForgivingDisk {
    disk: Arc<dyn Disk>,
    unread: Unread,
}

impl ForgivingDisk {
    pub(super) fn new(disk: &Arc<dyn Disk>) -> ForgivingDisk {
        ForgivingDisk { disk: Arc::clone(disk), unread: Unread::default() }
    }

    /// The files of which not all could be read, each with the number of bytes that could not.
    pub(super) fn unread(&self) -> Vec<(PathBuf, u64)> {
        let unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        unread.iter().map(|(path, sectors)| (path.clone(), sectors.values().sum())).collect()
    }
}

impl Disk for ForgivingDisk {
    fn create(&self, _: &Path, _: u64) -> io::Result<Box<dyn File>> {
        Err(changes_nothing())
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.open_read(path)
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let file = self.disk.open_read(path)?;
        Ok(Box::new(ForgivingFile { file, path: path.to_path_buf(), unread: Arc::clone(&self.unread) }))
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(changes_nothing())
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        Err(changes_nothing())
    }

    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        Err(changes_nothing())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Listed>> {
        self.disk.list(dir)
    }

    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        Err(changes_nothing())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Err(changes_nothing())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.disk.exists(path)
    }

    fn place(&self, path: &Path) -> io::Result<Place> {
        self.disk.place(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.disk.lock(path)
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.disk.lock_shared(path)
    }
}

/// A file of it.
#[derive(Debug)]
struct ForgivingFile {
    file: Box<dyn File>,
    path: PathBuf,
    unread: Unread,
}

impl ForgivingFile {
    /// Reads what lies within one sector, or zeros.
    fn read_piece(&self, offset: u64, bytes: &mut [u8]) {
        if self.file.read_at(offset, bytes).is_err() {
            bytes.fill(0);
            let mut unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
            let sectors = unread.entry(self.path.clone()).or_default();
            let count = sectors.entry(offset / SECTOR_BYTES).or_default();
            *count = (*count).max(bytes.len() as u64);
        }
    }
}

impl File for ForgivingFile {
    fn len_bytes(&self) -> io::Result<u64> {
        self.file.len_bytes()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        match self.file.read_at(offset, bytes) {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {}
            read => return read,
        }
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let left = usize::try_from(SECTOR_BYTES - at % SECTOR_BYTES).unwrap_or(usize::MAX);
            let (piece, behind) = rest.split_at_mut(left.min(rest.len()));
            self.read_piece(at, piece);
            at += piece.len() as u64;
            rest = behind;
        }
        Ok(())
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(changes_nothing())
    }

    fn sync_data(&self) -> io::Result<()> {
        Err(changes_nothing())
    }

    fn sync_all(&self) -> io::Result<()> {
        Err(changes_nothing())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(changes_nothing())
    }
}

fn changes_nothing() -> io::Error {
    io::ErrorKind::PermissionDenied.into()
}
