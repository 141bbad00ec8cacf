//! A backup that was not finished is not taken for a database.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ensilo_disk::Disk;
use ensilo_test_disk::{SimulatedDisk, forward_disk};

use super::history::Run;
use super::writer::{DIR, TestLog};
use crate::recovery::{
    CorruptionKind, OpenError, backup, inspect, inspect_read_only, repair, salvage, verify,
};

/// A disk of which directories cannot be synced from some time on: a backup is not finished, and neither is
/// its removal.
#[derive(Debug)]
struct FailingSyncs {
    disk: Arc<SimulatedDisk>,
    /// So many syncs of directories are right, and none after that.
    good: AtomicU64,
}

impl Disk for FailingSyncs {
    forward_disk!(|self, path| self.disk; create, open, open_read, rename, remove, remove_dir, list);
    forward_disk!(|self, path| self.disk; create_dir_all, exists, free_bytes, place, lock, lock_shared);

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let one_less = |good: u64| good.checked_sub(1);
        match self.good.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less) {
            Ok(_) => self.disk.sync_dir(dir),
            Err(_) => Err(io::Error::other("a sync that fails")),
        }
    }
}

#[test]
fn a_backup_that_cannot_be_removed_is_refused_or_whole() {
    let sound = Arc::new(SimulatedDisk::new());
    let mut run = Run::new(&sound, 1, 12);
    run.round();
    run.log.close();
    drop(run);
    let target = Path::new("backup");
    let mut failures = 0;
    for good in 0.. {
        let disk = Arc::new(sound.fork());
        let failing = FailingSyncs { disk: Arc::clone(&disk), good: good.into() };
        if backup(&(Arc::new(failing) as Arc<dyn Disk>), Path::new(DIR), target).is_ok() {
            break;
        }
        failures += 1;
        assert!(!disk.exists(&target.join("MANIFEST")).unwrap(), "{good}");
        for disk in (0..8).map(|tear| disk.fork().crash(tear)).chain([disk.fork()]) {
            let disk = Arc::new(disk);
            let opened = inspect(&(Arc::clone(&disk) as Arc<dyn Disk>), target);
            match opened {
                Ok(found) if found.is_new() => {}
                Ok(found) => {
                    drop(found);
                    let verified =
                        verify(&*disk, target, &mut |corruption| panic!("{good}: {corruption}")).unwrap();
                    assert_eq!(verified.corruptions, 0);
                }
                Err(error) => {
                    // A crash may leave neither the mark nor the manifest, if the sync after the removal of
                    // the mark has failed.
                    let is_lost = error
                        .corruption()
                        .is_some_and(|corruption| corruption.kind == CorruptionKind::Missing);
                    assert!(is_lost || error.to_string().contains("not finished"), "{good}: {error}");
                }
            }
        }
    }
    assert!(failures > 4, "{failures}");
}

#[test]
fn a_copy_that_was_not_verified_is_refused_also_beside_its_manifest() {
    let disk = Arc::new(SimulatedDisk::new());
    drop(TestLog::open(&disk, 1));
    disk.create(&Path::new(DIR).join("BACKUP.unfinished"), 0).unwrap();
    let as_disk = Arc::clone(&disk) as Arc<dyn Disk>;
    let target = Path::new("backup");
    let refusals = [
        inspect(&as_disk, Path::new(DIR)).map(|_| ()).unwrap_err(),
        verify(&*disk, Path::new(DIR), &mut |_| {}).unwrap_err(),
        backup(&as_disk, Path::new(DIR), target).unwrap_err(),
        salvage(&as_disk, Path::new(DIR), target).unwrap_err(),
        repair(&as_disk, Path::new(DIR), None).unwrap_err(),
        inspect_read_only(&as_disk, Path::new(DIR)).map(|_| ()).unwrap_err(),
    ];
    for refused in refusals {
        assert!(matches!(&refused, OpenError::Refused(why) if why.contains("not finished")), "{refused}");
    }
}
