//! Where the database of a run lies on disk, and that it goes when it is not needed any more.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::database::Directories;
use crate::driver::{Failure, View, complain};

/// Where a benchmark may put its databases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StorageOptions {
    /// The directory for the database, which stays; by default a new one in [`temporary_root`], which goes.
    pub data_directory: Option<PathBuf>,
    /// Directories for the log; in the database's own if there are none.
    pub log_directories: Vec<PathBuf>,
}

/// The directories of one run; those that nobody asked for are removed when this goes.
#[derive(Debug)]
pub(crate) struct DatabasePlace {
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

impl DatabasePlace {
    /// Directories for the run with this number of `runs`, with room for `bytes`.
    ///
    /// # Errors
    /// [`Failure::Refused`] when there is not enough room, nowhere to put it, or something else lies there; [`Failure::Io`].
    pub(crate) fn new(
        storage: &StorageOptions,
        number: usize,
        runs: usize,
        bytes: u64,
        view: &mut View,
    ) -> Result<Self, Failure> {
        let place = match &storage.data_directory {
            Some(directory) => Self::lasting(directory, &storage.log_directories, number, runs),
            None => Self::temporary(&storage.log_directories),
        }?;
        place.check_room(bytes)?;
        if number == 1 {
            place.directories.all().for_each(|directory| warn_if_in_memory(directory, view));
        }
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

    /// Refuses a run if its files would not fit, as far as that is known in advance.
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
        complain(format_args!("cannot remove {}", path.display()));
    }
}

fn cannot_make(path: &Path, error: std::io::Error) -> Failure {
    Failure::Io(format!("cannot use the directory {}", path.display()), error)
}

/// Where temporary databases go: the directory that `TMPDIR` names; if it names none, the first of the system's (`/tmp`) and
/// `/var/tmp` that does not lie in memory, where nothing is durable.
///
/// # Errors
/// [`Failure::Refused`] if there is none.
pub fn temporary_root() -> Result<PathBuf, Failure> {
    let named = std::env::var_os("TMPDIR").filter(|named| !named.is_empty());
    choose_root(named.map(PathBuf::from), &[std::env::temp_dir(), PathBuf::from("/var/tmp")], is_in_memory)
}

fn choose_root(
    named: Option<PathBuf>,
    usual: &[PathBuf],
    is_in_memory: impl Fn(&Path) -> bool,
) -> Result<PathBuf, Failure> {
    let is_fit = |root: &&PathBuf| root.is_dir() && !is_in_memory(root);
    if let Some(root) = named.as_ref().or_else(|| usual.iter().find(is_fit)) {
        return Ok(root.clone());
    }
    let looked_at: Vec<_> = usual.iter().map(|root| root.display().to_string()).collect();
    Err(Failure::Refused(format!(
        "there is no place for a temporary database: {} are missing or lie in memory \
         (--data-dir or TMPDIR names another place, --memory does without)",
        looked_at.join(" and ")
    )))
}

/// Warns of a directory that lies in memory, by which a run shows nothing of a disk.
pub fn warn_if_in_memory(directory: &Path, view: &mut View) {
    if is_in_memory(directory) {
        view.warn(&format!(
            "{} lies in memory: nothing is durable there, and what is measured says nothing of a disk \
             (--data-dir or TMPDIR names another place)",
            directory.display()
        ));
    }
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
        let new = |number, runs| DatabasePlace::new(&storage, number, runs, 0, &mut View::silent());
        let place = new(1, 1).unwrap();
        assert_eq!(place.directories, Directories { database: named.clone(), logs: logs.clone() });
        drop(place);
        assert!(named.is_dir() && logs[0].is_dir());
        fs::write(named.join("file"), "").unwrap();
        assert!(matches!(new(1, 1), Err(Failure::Refused(_))));
        let of_three = new(2, 3).unwrap();
        assert_eq!(of_three.directories.database, named.join("run-2"));

        let place = DatabasePlace::temporary(&logs).unwrap();
        let paths: Vec<_> = place.directories.all().map(Path::to_path_buf).collect();
        assert!(paths.len() == 2 && paths.iter().all(|path| path.is_dir()));
        drop(place);
        assert!(paths.iter().all(|path| !path.exists()));
    }

    #[test]
    fn a_temporary_database_goes_where_it_was_told_or_on_a_disk() {
        let root = TemporaryDirectory::new(&std::env::temp_dir().join("ensilo-root-test")).unwrap();
        let [memory, disk, missing] = ["memory", "disk", "missing"].map(|name| root.path().join(name));
        fs::create_dir(&memory).unwrap();
        fs::create_dir(&disk).unwrap();
        let choose = |named: Option<&PathBuf>, usual: &[&PathBuf]| {
            let usual: Vec<PathBuf> = usual.iter().map(|path| (*path).clone()).collect();
            choose_root(named.cloned(), &usual, |path| path == memory)
        };
        assert_eq!(choose(Some(&memory), &[&disk]).unwrap(), memory);
        assert_eq!(choose(Some(&missing), &[&disk]).unwrap(), missing);
        assert_eq!(choose(None, &[&memory, &missing, &disk]).unwrap(), disk);
        let Err(Failure::Refused(why)) = choose(None, &[&memory, &missing]) else { panic!("there is none") };
        assert!(why.contains("TMPDIR") && why.contains("missing"), "{why}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_run_that_does_not_fit_is_refused() {
        let storage = StorageOptions::default();
        let place = DatabasePlace::new(&storage, 1, 1, u64::MAX, &mut View::silent());
        let Err(Failure::Refused(why)) = place else { panic!("it fits") };
        assert!(why.contains("free space") && why.contains("--memory"), "{why}");
    }
}
