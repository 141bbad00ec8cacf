//! Where the database of a run lies on disk, and that it goes when it is not needed any more.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::database::Directories;
use crate::driver::Failure;

/// Where a benchmark may put its databases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StorageOptions {
    /// The directory for the database, which stays; unless told a new one among the system's temporary files, which goes.
    pub data_directory: Option<PathBuf>,
    /// Directories for the log; in the database's own if there are none.
    pub log_directories: Vec<PathBuf>,
}

/// The directories of one run; those that nobody asked for are removed when this goes.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) directories: Directories,
    _temporary: Vec<TemporaryDirectory>,
}

/// A directory of this process that is removed with all that is in it.
#[derive(Debug)]
pub struct TemporaryDirectory(PathBuf);

/// Those that there are, for an end that drops nothing.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// How often the removal is tried while others still write to what is removed.
const REMOVAL_ATTEMPTS: u32 = 20;

impl Place {
    /// Directories for the run with this number of `runs`, with room for `bytes`.
    ///
    /// # Errors
    /// [`Failure::Refused`] when there is not enough room or something else lies there, [`Failure::Io`].
    pub(crate) fn new(
        storage: &StorageOptions,
        number: usize,
        runs: usize,
        bytes: u64,
    ) -> Result<Self, Failure> {
        let place = match &storage.data_directory {
            Some(directory) => Self::lasting(directory, &storage.log_directories, number, runs),
            None => Self::temporary(&storage.log_directories),
        }?;
        place.check_room(bytes)?;
        Ok(place)
    }

    fn lasting(directory: &Path, logs: &[PathBuf], number: usize, runs: usize) -> Result<Self, Failure> {
        let of_run = |directory: &Path| match runs {
            1 => directory.to_path_buf(),
            _ => directory.join(format!("run-{number}")),
        };
        let directories =
            Directories { database: of_run(directory), logs: logs.iter().map(|log| of_run(log)).collect() };
        for directory in directories.all() {
            fs::create_dir_all(directory).map_err(|error| cannot_make(directory, error))?;
            let mut entries = fs::read_dir(directory).map_err(|error| cannot_make(directory, error))?;
            if entries.next().is_some() {
                let named = directory.display();
                return Err(Failure::Refused(format!(
                    "{named} is not empty: a benchmark loads a new database"
                )));
            }
        }
        Ok(Self { directories, _temporary: Vec::new() })
    }

    fn temporary(logs: &[PathBuf]) -> Result<Self, Failure> {
        let root = TemporaryDirectory::new(&temporary_root()?)?;
        let logs = logs.iter().map(|log| TemporaryDirectory::new(log)).collect::<Result<Vec<_>, _>>()?;
        let directories =
            Directories { database: root.0.clone(), logs: logs.iter().map(|log| log.0.clone()).collect() };
        let mut temporary = logs;
        temporary.push(root);
        Ok(Self { directories, _temporary: temporary })
    }

    /// Refuses a run whose files would not fit, as far as that can be told in advance.
    fn check_room(&self, bytes: u64) -> Result<(), Failure> {
        for directory in self.directories.all() {
            let Some(free) = free_bytes(directory) else { continue };
            if free < bytes {
                let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
                return Err(Failure::Refused(format!(
                    "{} has {:.1} GiB of free space; log and checkpoints of this run may take {:.1} GiB \
                     (--data-dir names another place, --memory does without)",
                    directory.display(),
                    gib(free),
                    gib(bytes)
                )));
            }
        }
        Ok(())
    }
}

impl Directories {
    /// Where the log is written, or the first part of it.
    pub(crate) fn log(&self) -> &Path {
        self.logs.first().unwrap_or(&self.database)
    }

    fn all(&self) -> impl Iterator<Item = &Path> {
        self.logs.iter().chain([&self.database]).map(PathBuf::as_path)
    }
}

impl TemporaryDirectory {
    /// A new directory in `root`, which is made if it is missing.
    ///
    /// # Errors
    /// [`Failure::Io`].
    pub fn new(root: &Path) -> Result<Self, Failure> {
        /// How many there were in this process.
        static MADE: AtomicU64 = AtomicU64::new(0);
        let (process, number) = (std::process::id(), MADE.fetch_add(1, Relaxed));
        let path = root.join(format!("ensilo-bench-{process}-{number}"));
        fs::create_dir_all(root).map_err(|error| cannot_make(root, error))?;
        if path.exists() {
            // Left behind by a process of this number, which is no more.
            fs::remove_dir_all(&path).map_err(|error| cannot_make(&path, error))?;
        }
        fs::create_dir(&path).map_err(|error| cannot_make(&path, error))?;
        lock_temporary().push(path.clone());
        Ok(Self(path))
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        remove(&self.0);
        lock_temporary().retain(|path| *path != self.0);
    }
}

/// Removes what benchmarks of this process have put on disk and nobody asked to keep. For a program that ends at once.
pub fn remove_temporary_files() {
    let paths = std::mem::take(&mut *lock_temporary());
    paths.iter().for_each(|path| remove(path));
}

fn lock_temporary() -> MutexGuard<'static, Vec<PathBuf>> {
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner)
}

fn remove(path: &Path) {
    let is_gone = |path: &Path| fs::remove_dir_all(path).is_ok() || !path.exists();
    if !(0..REMOVAL_ATTEMPTS).any(|_| is_gone(path)) {
        eprintln!("cannot remove {}", path.display());
    }
}

fn cannot_make(path: &Path, error: std::io::Error) -> Failure {
    Failure::Io(format!("cannot use the directory {}", path.display()), error)
}

/// The system's temporary files, unless they lie in memory: nothing is durable there. Then the current directory.
///
/// # Errors
/// [`Failure::Io`].
pub fn temporary_root() -> Result<PathBuf, Failure> {
    let temporary = std::env::temp_dir();
    if !is_in_memory(&temporary) {
        return Ok(temporary);
    }
    std::env::current_dir().map_err(|error| Failure::Io("there is no current directory".to_owned(), error))
}

#[cfg(target_os = "linux")]
fn is_in_memory(path: &Path) -> bool {
    /// What the kernel calls tmpfs and ramfs.
    const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
    rustix::fs::statfs(path).is_ok_and(|system| IN_MEMORY.contains(&(system.f_type as u64)))
}

#[cfg(not(target_os = "linux"))]
fn is_in_memory(_path: &Path) -> bool {
    false
}

/// Bytes that may be written there; `None` where the system cannot say.
#[cfg(target_os = "linux")]
fn free_bytes(path: &Path) -> Option<u64> {
    rustix::fs::statvfs(path).ok().map(|system| system.f_bavail.saturating_mul(system.f_frsize))
}

#[cfg(not(target_os = "linux"))]
fn free_bytes(_path: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_directories_go_and_others_stay() {
        let root = TemporaryDirectory::new(&std::env::temp_dir().join("ensilo-place-test")).unwrap();
        let named = root.path().join("data");
        let logs = vec![root.path().join("log")];
        let storage = StorageOptions { data_directory: Some(named.clone()), log_directories: logs.clone() };
        let place = Place::new(&storage, 1, 1, 0).unwrap();
        assert_eq!(place.directories, Directories { database: named.clone(), logs: logs.clone() });
        drop(place);
        assert!(named.is_dir() && logs[0].is_dir());
        fs::write(named.join("file"), "").unwrap();
        assert!(matches!(Place::new(&storage, 1, 1, 0), Err(Failure::Refused(_))));
        let of_three = Place::new(&storage, 2, 3, 0).unwrap();
        assert_eq!(of_three.directories.database, named.join("run-2"));

        let place = Place::temporary(&logs).unwrap();
        let paths: Vec<_> = place.directories.all().map(Path::to_path_buf).collect();
        assert!(paths.len() == 2 && paths.iter().all(|path| path.is_dir()));
        drop(place);
        assert!(paths.iter().all(|path| !path.exists()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_run_that_does_not_fit_is_refused() {
        let storage = StorageOptions::default();
        let Err(Failure::Refused(why)) = Place::new(&storage, 1, 1, u64::MAX) else { panic!("it fits") };
        assert!(why.contains("free space") && why.contains("--memory"), "{why}");
    }
}
