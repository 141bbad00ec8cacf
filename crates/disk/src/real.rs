//! The disk of the machine.

mod direct;
mod removed;

use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rustix::io::Errno;

use self::direct::{Access, Direct};
use self::removed::{FREED_AT_ONCE_BYTES, free, keep};
use crate::disk::{Disk, File, Listed, Lock, LockHeld, Place, is_disk_full};
use crate::read_only::ReadOnly;

/// The files of the machine, through the operating system.
///
/// Whole pages of memory and file are read and written past the page cache, where system and file system allow that: they will not be
/// needed again soon. A sync is `fdatasync` or `fsync` on Linux and `F_FULLFSYNC` on macOS. Errors come as the system gives them, so that
/// [`io::Error::raw_os_error`] still names them.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create(&self, path: &Path, preallocate_bytes: u64) -> io::Result<Box<dyn File>> {
        let file = fs::OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        if let Err(error) = preallocate(&file, preallocate_bytes) {
            // What was not made whole is not left behind; the error that counts is the first one.
            let _ = fs::remove_file(path);
            return Err(error);
        }
        Ok(Box::new(RealFile { file, direct: Direct::open(path, Access::ReadWrite) }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        refuse_special(path)?;
        let file = fs::OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Box::new(RealFile { file, direct: Direct::open(path, Access::ReadWrite) }))
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let file = open_to_read(path)?;
        let direct = Direct::open(path, Access::Read);
        Ok(Box::new(ReadOnly::new(Box::new(RealFile { file, direct }))))
    }

    fn create_cached(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let file = fs::OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        Ok(Box::new(RealFile { file, direct: None }))
    }

    fn open_cached(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let file = open_to_read(path)?;
        Ok(Box::new(ReadOnly::new(Box::new(RealFile { file, direct: None }))))
    }

    fn open_kept(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let file = open_to_read(path)?;
        keep(&file, path)?;
        let direct = Some(Direct::when_read());
        Ok(Box::new(ReadOnly::new(Box::new(RealFile { file, direct }))))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let large = fs::symlink_metadata(path)
            .is_ok_and(|metadata| metadata.is_file() && metadata.len() > FREED_AT_ONCE_BYTES);
        let file = large.then(|| fs::OpenOptions::new().write(true).open(path));
        fs::remove_file(path).map_err(|error| match Errno::from_io_error(&error) {
            // So POSIX has it, and macOS; Linux says the other.
            Some(Errno::PERM) if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir()) => {
                Errno::ISDIR.into()
            }
            _ => error,
        })?;
        // Best effort: what is left goes when the file is closed.
        let _ = file.map(|file| file.and_then(|file| free(&file)));
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Listed>> {
        let mut listed = Vec::new();
        for entry in fs::read_dir(or_current(dir))? {
            listed.extend(listed_as(&entry?)?);
        }
        listed.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(listed)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(or_current(dir))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        fs::File::open(or_current(dir))?.sync_all()
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        match or_current(path).try_exists() {
            Err(error) if leads_nowhere(&error) => Ok(false),
            found => found,
        }
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<Option<u64>> {
        let found = rustix::fs::statvfs(or_current(dir))?;
        Ok(Some(found.f_bavail.saturating_mul(found.f_frsize)))
    }

    fn place(&self, path: &Path) -> io::Result<Place> {
        Ok(place_of(&fs::metadata(or_current(path))?))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let directory = lock_directory(path, Share::All)?;
        loop {
            refuse_special(path)?;
            let mut file = open_or_create(path)?;
            try_lock(&mut file, path, Share::All)?;
            // Somebody may have removed the file after it was opened here.
            if self.place(path).ok() == Some(place_of(&file.metadata()?)) {
                return match file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())) {
                    // The lock is held all the same; who holds it is only for messages.
                    Err(error) if !is_disk_full(&error) => Err(error),
                    _ => Ok(Box::new(RealLock { file: Some(file), directory })),
                };
            }
        }
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let directory = lock_directory(path, Share::Part)?;
        let mut file = match refuse_special(path).and_then(|()| fs::File::open(path)) {
            // Who would take the lock locks the directory first.
            Err(error) if error.kind() == io::ErrorKind::NotFound && directory.is_some() => None,
            file => Some(file?),
        };
        file.as_mut().map_or(Ok(()), |file| try_lock(file, path, Share::Part))?;
        Ok(Box::new(RealLock { file, directory }))
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn lock_holder(&self, path: &Path) -> Option<LockHeld> {
        let metadata = fs::metadata(path).ok()?;
        let locks = fs::read_to_string("/proc/locks").ok()?;
        // The file names its last holder, also when that has ended.
        whole_lock(&locks, place_of(&metadata), process_in(path)).map(LockHeld::by)
    }
}

fn open_to_read(path: &Path) -> io::Result<fs::File> {
    refuse_special(path)?;
    let file = fs::File::open(path)?;
    if file.metadata()?.is_dir() {
        // Some systems open it, and say so when it is read.
        return Err(Errno::ISDIR.into());
    }
    Ok(file)
}

struct RealFile {
    file: fs::File,
    direct: Option<Direct>,
}

impl fmt::Debug for RealFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // On Linux, the system's description names the path.
        self.file.fmt(f)
    }
}

impl File for RealFile {
    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        match &self.direct {
            Some(direct) if direct.takes(offset, bytes) => direct.read_at(&self.file, offset, bytes),
            _ => self.file.read_exact_at(bytes, offset),
        }
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        match &self.direct {
            Some(direct) if direct.takes(offset, bytes) => direct.write_at(&self.file, offset, bytes),
            _ => self.file.write_all_at(bytes, offset),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn reserve(&self, len_bytes: u64) -> io::Result<()> {
        let before = self.len_bytes()?;
        match reserve(&self.file, len_bytes) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                write_zeros(&self.file, before..len_bytes).inspect_err(|_| _ = self.set_len(before))
            }
            Err(error) => {
                // A part may have been taken; the error that counts is the first one.
                let _ = self.set_len(before);
                Err(error)
            }
            Ok(()) => Ok(()),
        }
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        self.file.set_len(len_bytes)
    }
}

/// How much of a lock is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    All,
    Part,
}

/// `flock` belongs to the open file description: it ends when the description is closed, by us or by the end of the process, and a
/// second description of the same process does not share it. The directory of the file is locked, too: its lock holds although somebody
/// removes the file.
#[derive(Debug)]
struct RealLock {
    /// `None` for a share of a directory without the file.
    file: Option<fs::File>,
    /// `None` where directories cannot be locked.
    directory: Option<fs::File>,
}

impl Lock for RealLock {}

impl Drop for RealLock {
    fn drop(&mut self) {
        // Closing does not suffice: a child that some other thread is just starting has the description, too, until
        // it executes its program. If it fails, the lock ends a little later.
        for locked in self.file.iter().chain(&self.directory) {
            let _ = locked.unlock();
        }
    }
}

/// Locks the directory of a lock file, if the system can: not every file system locks directories.
fn lock_directory(path: &Path, share: Share) -> io::Result<Option<fs::File>> {
    // To open a pipe in its place would wait without end.
    let parent = path.parent().map(or_current).filter(|parent| parent.is_dir());
    let Some(Ok(mut directory)) = parent.map(fs::File::open) else {
        return Ok(None);
    };
    match try_lock(&mut directory, path, share) {
        Ok(()) => Ok(Some(directory)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
        Err(_) => Ok(None),
    }
}

/// Locks a file or directory; `path` is the lock file, which names another process that may hold it.
fn try_lock(file: &mut fs::File, path: &Path, share: Share) -> io::Result<()> {
    let locked = match share {
        Share::All => file.try_lock(),
        Share::Part => file.try_lock_shared(),
    };
    match locked {
        Ok(()) => Ok(()),
        // Those who share it write nothing, so that what the file says is then of an earlier time.
        Err(fs::TryLockError::WouldBlock) if share == Share::All && file.try_lock_shared().is_ok() => {
            Err(LockHeld::by(None).into())
        }
        Err(fs::TryLockError::WouldBlock) => Err(LockHeld::by(process_in(path)).into()),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

fn place_of(metadata: &fs::Metadata) -> Place {
    Place::of_inode(metadata.ino()).on_device(metadata.dev())
}

/// The empty path, which `Path::parent` gives for a bare name, means the current directory.
fn or_current(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// Returns an entry as what it leads to; `None` if it was removed since the directory was read. One that cannot be
/// looked at does not hide the others: it is a file, unless the directory says otherwise, and opening it says why.
fn listed_as(entry: &fs::DirEntry) -> io::Result<Option<Listed>> {
    let name = entry.file_name().to_string_lossy().into_owned();
    Ok(Some(match fs::metadata(entry.path()) {
        Ok(metadata) if metadata.is_dir() => Listed::directory(name),
        Ok(metadata) if metadata.is_file() => Listed::file(name, metadata.len()),
        Ok(_) => Listed::other(name),
        Err(error) if leads_nowhere(&error) => match fs::symlink_metadata(entry.path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            _ => Listed::other(name),
        },
        Err(_) if entry.file_type()?.is_dir() => Listed::directory(name),
        Err(_) => Listed::file(name, 0),
    }))
}

/// Returns whether there is nothing where a path leads to: a name on the way is missing, is no directory, or is a
/// link that leads back to itself.
fn leads_nowhere(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || Errno::from_io_error(error) == Some(Errno::LOOP)
}

/// Opens a file, or makes it, but none where a link leads.
fn open_or_create(path: &Path) -> io::Result<fs::File> {
    let options = || fs::OpenOptions::new().read(true).write(true).to_owned();
    match options().open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match options().create_new(true).open(path) {
                // Another one was faster, or it is a link that leads nowhere.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => options().open(path),
                created => created,
            }
        }
        opened => opened,
    }
}

/// Refuses a pipe, a socket or a device, also where a link leads to one: to open or read it may wait without end, or do something to it.
fn refuse_special(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => {
            let why = "it is a pipe, a socket or a device, and no file";
            Err(io::Error::new(io::ErrorKind::InvalidInput, why))
        }
        // What keeps it from being looked at, opening it says.
        _ => Ok(()),
    }
}

/// Returns the process that has written its number into a lock file. It only makes messages better: what cannot be
/// read is left out.
fn process_in(path: &Path) -> Option<u32> {
    let mut holder = String::new();
    fs::File::open(path).ok()?.take(32).read_to_string(&mut holder).ok()?;
    holder.trim().parse().ok()
}

/// Returns the process that has all of the lock of a file, by what `/proc/locks` says, if one has it; the number is missing where the holder
/// lives among processes that are not seen here. A line is `1: FLOCK  ADVISORY  WRITE 4711 fd:01:1234 0 EOF`.
///
/// Not every file system shows its files on the device that its locks are on: on another one it is the lock of the process that the file
/// names.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn whole_lock(locks: &str, place: Place, named: Option<u32>) -> Option<Option<u32>> {
    let device = format!("{:02x}:{:02x}", rustix::fs::major(place.device), rustix::fs::minor(place.device));
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", "ADVISORY", "WRITE", holder, found, ..] = words[..] else { return None };
        let holder = holder.parse().ok().filter(|&process: &u32| process > 0);
        let (on, inode) = found.rsplit_once(':')?;
        let is_here = on == device || holder.is_some() && holder == named;
        (is_here && inode.parse() == Ok(place.inode)).then_some(holder)
    })
}

/// Reserves the space and makes the file that long.
fn preallocate(file: &fs::File, len_bytes: u64) -> io::Result<()> {
    if len_bytes == 0 {
        return Ok(());
    }
    match reserve(file, len_bytes) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => write_zeros(file, 0..len_bytes),
        reserved => reserved,
    }
}

#[cfg(not(any(target_os = "netbsd", target_os = "openbsd", target_os = "dragonfly")))]
fn reserve(file: &fs::File, len_bytes: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::retry_on_intr;
    match retry_on_intr(|| fallocate(file, FallocateFlags::empty(), 0, len_bytes)) {
        // Which one comes depends on the file system; some say "invalid" for what they do not know.
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Err(io::ErrorKind::Unsupported.into()),
        reserved => Ok(reserved?),
    }
}

#[cfg(any(target_os = "netbsd", target_os = "openbsd", target_os = "dragonfly"))]
fn reserve(_file: &fs::File, _len_bytes: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Zeros written take the space that a longer length alone would not.
fn write_zeros(file: &fs::File, range: Range<u64>) -> io::Result<()> {
    static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
    let mut offset = range.start;
    while offset < range.end {
        let step = usize::try_from(range.end - offset).map_or(ZEROS.len(), |left| left.min(ZEROS.len()));
        file.write_all_at(&ZEROS[..step], offset)?;
        offset += step as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
