//! Openings of a new database that come in each other's way.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ensilo_disk::{Disk, Lock, LockHeld, RealDisk};
use ensilo_epoch::Epoch;
use ensilo_test_disk::{SimulatedDisk, forward_disk};

use super::writer::FILE_BYTES;
use crate::recovery::{DatabaseFiles, GenerationOptions, NewGeneration, OpenError, inspect, verify};

/// What another opening does while this one is about to take a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Other {
    /// It removes the directory, which is empty.
    Removes,
    /// It holds the lock, and has not made the lock file yet.
    Holds,
}

/// A disk that another opening uses, too.
#[derive(Debug)]
struct SharedDisk {
    disk: SimulatedDisk,
    /// What it does when the lock of this path is first taken.
    other: Mutex<Option<(PathBuf, Other)>>,
}

impl Disk for SharedDisk {
    forward_disk!(|self, path| self.disk; create, open, open_read, rename, remove, remove_dir, list);
    forward_disk!(|self, path| self.disk; create_dir_all, sync_dir, exists, free_bytes, place, lock_shared);

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        match self.other.lock().unwrap().take_if(|(locked, _)| locked == path) {
            Some((_, Other::Removes)) => self.disk.remove_dir(path.parent().unwrap())?,
            Some((_, Other::Holds)) => return Err(LockHeld::by(None).into()),
            None => {}
        }
        self.disk.lock(path)
    }
}

fn begin(disk: &Arc<dyn Disk>, root: &Path) -> Result<(NewGeneration, DatabaseFiles), OpenError> {
    let dir = root.join("new/db");
    let found = inspect(disk, &dir)?;
    let first_epoch = Epoch::new(found.largest_epoch().get() + 1);
    let directories = vec![dir.join("log"), root.join("out")];
    found.next_generation(&GenerationOptions { directories, file_bytes: FILE_BYTES, first_epoch })
}

fn begin_beside(directory: &str, other: Other) -> (Arc<SharedDisk>, Result<(), OpenError>) {
    let other = Mutex::new(Some((Path::new(directory).join("LOCK"), other)));
    let disk = Arc::new(SharedDisk { disk: SimulatedDisk::new(), other });
    let begun = begin(&(Arc::clone(&disk) as Arc<dyn Disk>), Path::new("/")).map(drop);
    assert_eq!(*disk.other.lock().unwrap(), None);
    (disk, begun)
}

#[test]
fn a_directory_that_another_opening_takes_back_is_made_again() {
    for directory in ["/new/db", "/new/db/log", "/out"] {
        let (_, begun) = begin_beside(directory, Other::Removes);
        begun.unwrap_or_else(|error| panic!("{directory}: {error}"));
    }
}

#[test]
fn a_directory_that_another_opening_has_locked_stays_although_it_is_empty() {
    for directory in ["/new/db", "/new/db/log", "/out"] {
        let (disk, begun) = begin_beside(directory, Other::Holds);
        assert!(matches!(begun, Err(OpenError::Locked { .. })), "{directory}: {begun:?}");
        assert!(disk.exists(Path::new(directory)).unwrap(), "{directory}");
        assert!(disk.list(Path::new(directory)).unwrap().is_empty(), "{directory}");
    }
}

#[test]
fn of_several_openings_of_a_new_database_at_once_one_succeeds_and_the_others_find_it_in_use() {
    let root = std::env::temp_dir().join(format!("ensilo-at-once-{}", std::process::id()));
    let _ = fs::remove_dir_all(&root);
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    for round in 0..40 {
        let root = root.join(round.to_string());
        let begun: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| begin(&disk, &root))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(begun.iter().filter(|begun| begun.is_ok()).count(), 1, "{round}: {begun:?}");
        for error in begun.iter().filter_map(|begun| begun.as_ref().err()) {
            assert!(matches!(error, OpenError::Locked { .. }), "{round}: {error}");
        }
        drop(begun);
        let verified =
            verify(&RealDisk, &root.join("new/db"), &mut |corruption| panic!("{corruption}")).unwrap();
        assert_eq!(verified.corruptions, 0);
    }
    fs::remove_dir_all(&root).unwrap();
}
