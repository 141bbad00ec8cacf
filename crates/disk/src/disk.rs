//! What a database asks of a disk.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;

use rustix::io::Errno;

/// Directories and files.
///
/// What a call has changed survives a power failure only after a sync: a file's bytes and length after [`File::sync_data`], its name
/// after [`Disk::sync_dir`] of its directory.
pub trait Disk: Send + Sync + fmt::Debug {
    /// Creates a file of `preallocate_bytes` zeros, for which the space is reserved.
    ///
    /// # Errors
    /// `AlreadyExists`; `StorageFull`; those of the system.
    fn create(&self, path: &Path, preallocate_bytes: u64) -> io::Result<Box<dyn File>>;

    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// `NotFound`; `InvalidInput` for a pipe, a socket or a device; those of the system.
    fn open(&self, path: &Path) -> io::Result<Box<dyn File>>;

    /// Opens a file that is only looked at. Nothing can be done to it, not even a sync, and no right to write it is needed.
    ///
    /// # Errors
    /// `NotFound`; `InvalidInput` for a pipe, a socket or a device; those of the system. What would change the file
    /// fails with `PermissionDenied`.
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn File>>;

    /// Creates an empty file for reading and writing whose pages stay in the system's cache, and for which no second handle is kept that
    /// goes past it. For files of which there are many.
    ///
    /// # Errors
    /// As [`Disk::create`].
    fn create_cached(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.create(path, 0)
    }

    /// Opens a file that is only looked at, as [`Disk::create_cached`] has created it.
    ///
    /// # Errors
    /// As [`Disk::open_read`].
    fn open_cached(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.open_read(path)
    }

    /// Opens a file that is only looked at, and that another process of this machine may remove meanwhile: where the system can, its bytes
    /// stay as long as it is open, and their place on the disk stays taken. It comes back all at once when the file is closed, for which the
    /// syncs of other files may have to wait. Nothing else is kept from being done to the file. It takes one handle, and another one from the
    /// first whole pages on that are read of it.
    ///
    /// # Errors
    /// As [`Disk::open_read`]; `NotFound` also for a file that is just being removed.
    fn open_kept(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.open_read(path)
    }

    /// Gives a file another name in one step; a file that has that name is replaced.
    ///
    /// # Errors
    /// `NotFound`; those of the system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file, or a link, and not what it leads to.
    ///
    /// # Errors
    /// `NotFound`; `IsADirectory`, which no link is; those of the system.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `NotFound`, `DirectoryNotEmpty`; those of the system.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// Returns what a directory holds, by name. A link is what it leads to.
    ///
    /// # Errors
    /// `NotFound`; those of the system.
    fn list(&self, dir: &Path) -> io::Result<Vec<Listed>>;

    /// Creates a directory and those above it that are missing. Fine if it is there.
    ///
    /// # Errors
    /// Those of the system.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// Makes the names in a directory survive: those created, given and removed so far.
    ///
    /// # Errors
    /// `NotFound`; those of the system.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Returns whether there is a file or directory of this name. A link that leads nowhere is none.
    ///
    /// # Errors
    /// Those of the system.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// Returns how many more bytes the files in a directory can take; `None` where that is not known.
    ///
    /// # Errors
    /// Those of the system.
    fn free_bytes(&self, dir: &Path) -> io::Result<Option<u64>> {
        let _ = dir;
        Ok(None)
    }

    /// Returns where a path leads to.
    ///
    /// # Errors
    /// `NotFound`; those of the system.
    fn place(&self, path: &Path) -> io::Result<Place>;

    /// Takes the lock of a directory, for which the file `path` in it stands, and makes the file if it is missing. The lock ends with the
    /// value, and with the process. Where the system can lock a directory, the lock holds although the file is removed or replaced.
    ///
    /// # Errors
    /// `WouldBlock`, with a [`LockHeld`], while another process, or another part of this one, holds it or a share of it; those of the
    /// system.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>>;

    /// Takes a share of the lock of a directory, for which the file `path` in it stands: others can have a share too, but nobody the lock.
    /// Changes nothing, and needs no right to write. The share ends with the value, and with the process. Where the system can lock a
    /// directory, it is shared also if the file is missing.
    ///
    /// # Errors
    /// `NotFound` where there is neither such a file nor a way to lock the directory; `WouldBlock`, with a
    /// [`LockHeld`], while somebody does; those of the system.
    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn Lock>>;

    /// Returns who holds the lock for which the file `path` stands, without taking a share of it. `None` if nobody does, or if it cannot
    /// be found out.
    fn lock_holder(&self, path: &Path) -> Option<LockHeld> {
        let _ = path;
        None
    }
}

/// An open file. Reads and writes name their place; several threads may use it at once.
pub trait File: Send + Sync + fmt::Debug {
    /// Returns the length in bytes.
    ///
    /// # Errors
    /// Those of the system.
    fn len_bytes(&self) -> io::Result<u64>;

    /// Fills `bytes` from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` when the file ends before; those of the system.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// Writes all of `bytes` from `offset` on. After an error nobody knows what was written.
    ///
    /// # Errors
    /// `StorageFull`; those of the system.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes the bytes written so far survive, and the length if it grew. After an error nobody knows which of them do, and a
    /// second call proves nothing.
    ///
    /// # Errors
    /// Those of the system.
    fn sync_data(&self) -> io::Result<()>;

    /// Like [`File::sync_data`], with all that the system knows of the file.
    ///
    /// # Errors
    /// As [`File::sync_data`].
    fn sync_all(&self) -> io::Result<()>;

    /// Makes the file at least so long by zeros, for which the space is reserved where the disk can do that.
    ///
    /// # Errors
    /// `StorageFull`; those of the system. The file is as long as before, or longer.
    fn reserve(&self, len_bytes: u64) -> io::Result<()> {
        if self.len_bytes()? < len_bytes { self.set_len(len_bytes) } else { Ok(()) }
    }

    /// Cuts the file, or makes it longer by zeros.
    ///
    /// # Errors
    /// Those of the system.
    fn set_len(&self, len_bytes: u64) -> io::Result<()>;
}

/// Returns whether this says that the disk, or what the user may have of it, is full.
#[must_use]
pub fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Returns whether this says that the process, or the system, has as many files open as it may.
#[must_use]
pub fn is_out_of_handles(error: &io::Error) -> bool {
    Errno::from_io_error(error).is_some_and(|error| [Errno::MFILE, Errno::NFILE].contains(&error))
}

/// Returns whether this says that the disk, or the file system on it, is damaged where something was to be read. A
/// second attempt may end otherwise.
#[must_use]
pub fn is_unreadable(error: &io::Error) -> bool {
    #[cfg(target_os = "linux")]
    // What the kernel makes of a bad sector, a device that failed, or a structure of the file system that makes no sense.
    let errors = [
        Errno::IO,
        Errno::NODATA,
        Errno::REMOTEIO,
        Errno::ILSEQ,
        Errno::NOLINK,
        Errno::TIMEDOUT,
        Errno::BADMSG,
        Errno::UCLEAN,
    ];
    #[cfg(not(target_os = "linux"))]
    let errors = [Errno::IO];
    Errno::from_io_error(error).is_some_and(|error| errors.contains(&error))
}

/// A lock, or a share of one, that is held until this is dropped.
pub trait Lock: Send + Sync + fmt::Debug {}

/// What an error of kind `WouldBlock` carries when a lock is not to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockHeld {
    /// The process that holds it, as far as it is known. Those that have shares are not.
    pub process: Option<u32>,
}

impl LockHeld {
    /// Held by this process, as far as it is known.
    #[must_use]
    pub fn by(process: Option<u32>) -> LockHeld {
        LockHeld { process }
    }

    /// Returns what an error carries, if it carries this.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<LockHeld> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl fmt::Display for LockHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            Some(process) => write!(f, "held by process {process}"),
            None => f.write_str("held by another process"),
        }
    }
}

impl Error for LockHeld {}

impl From<LockHeld> for io::Error {
    fn from(held: LockHeld) -> io::Error {
        io::Error::new(io::ErrorKind::WouldBlock, held)
    }
}

/// What a path leads to: two paths with the same place lead to the same file or directory, as long as it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Place {
    /// The file system.
    pub device: u64,
    /// The file or directory within it.
    pub inode: u64,
}

impl Place {
    /// Returns the place in a system that has one file system alone.
    #[must_use]
    pub fn of_inode(inode: u64) -> Place {
        Place { device: 0, inode }
    }

    /// Returns the same within this file system.
    #[must_use]
    pub fn on_device(self, device: u64) -> Place {
        Place { device, ..self }
    }
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listed {
    /// The name within the directory.
    pub name: String,
    /// The length in bytes, if it is a file of which that is known; otherwise 0.
    pub len_bytes: u64,
    /// Whether it is a file.
    pub is_file: bool,
    /// Whether it is a directory.
    pub is_dir: bool,
}

impl Listed {
    /// Returns a file of this length.
    #[must_use]
    pub fn file(name: String, len_bytes: u64) -> Listed {
        Listed { name, len_bytes, is_file: true, is_dir: false }
    }

    /// Returns a directory.
    #[must_use]
    pub fn directory(name: String) -> Listed {
        Listed { name, len_bytes: 0, is_file: false, is_dir: true }
    }

    /// Neither: a link that leads nowhere, or something else that holds no bytes.
    #[must_use]
    pub fn other(name: String) -> Listed {
        Listed { name, len_bytes: 0, is_file: false, is_dir: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_open_files_are_told_from_a_full_disk() {
        assert!([Errno::MFILE, Errno::NFILE].iter().all(|&error| is_out_of_handles(&error.into())));
        assert!(!is_out_of_handles(&Errno::NOSPC.into()) && !is_out_of_handles(&io::Error::other("another")));
    }

    #[test]
    fn only_a_damaged_disk_is_called_unreadable() {
        assert!(is_unreadable(&Errno::IO.into()));
        for other in [Errno::NOENT, Errno::ACCESS, Errno::MFILE, Errno::NOMEM, Errno::NOSPC] {
            assert!(!is_unreadable(&other.into()), "{other}");
        }
        assert!(!is_unreadable(&io::Error::other("not of the system")));
    }
}
