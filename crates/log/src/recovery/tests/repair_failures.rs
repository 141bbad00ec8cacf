//! A repair that fails leaves what it has found, and a second one is as good as the first.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;
use ensilo_test_disk::{Faults, SimulatedDisk};

use super::model::{AnyOrder, Rows};
use super::taken_back::{Tree, faults_at, flip, open, put, same, sample, whole};
use crate::recovery::{DataLoss, OpenError, Progress, Repaired, inspect, repair};

fn as_disk(disk: &Arc<SimulatedDisk>) -> Arc<dyn Disk> {
    Arc::clone(disk) as Arc<dyn Disk>
}

/// `/db` with a damaged log, and the epoch up to which it can be repaired.
fn damaged() -> (Arc<SimulatedDisk>, Epoch) {
    let disk = sample();
    flip(&disk, "/db/log/log-1-0-1.open", 4096 + 70);
    let error = inspect(&as_disk(&disk), Path::new("/db")).unwrap_err();
    let DataLoss::After(kept) = error.corruption().unwrap().loss else { panic!("{error}") };
    (disk, kept)
}

fn repaired(disk: &Arc<SimulatedDisk>, kept: Epoch) -> Result<Repaired, OpenError> {
    repair(&as_disk(disk), Path::new("/db"), Some(kept))
}

fn names(tree: Tree) -> Vec<PathBuf> {
    tree.into_keys().collect()
}

fn rows(disk: &Arc<SimulatedDisk>) -> Rows {
    let target = AnyOrder::default();
    inspect(&as_disk(disk), Path::new("/db")).unwrap().replay(&target, 1, &Progress::new()).unwrap();
    target.rows()
}

#[test]
fn a_repair_that_fails_at_any_operation_leaves_nothing_that_was_not_there() {
    for with_lock_files in [true, false] {
        let (sound, kept) = damaged();
        let locks = whole(&sound).into_keys().filter(|path| path.ends_with("LOCK") && !with_lock_files);
        locks.for_each(|path| sound.remove(&path).unwrap());
        let before = whole(&sound);
        let manifest = Path::new("/db/MANIFEST");
        let first = Arc::new(sound.fork());
        let expected = repaired(&first, kept).unwrap();
        let used: u64 = sound.files().iter().map(|(_, bytes)| bytes).sum();
        let mut failures = 0;
        for fault in (1..80).flat_map(|at| faults_at(at, used)) {
            let disk = Arc::new(sound.fork());
            disk.set_faults(fault.clone());
            let failed = repaired(&disk, kept).err();
            disk.set_faults(Faults::default());
            let after = whole(&disk);
            if after[manifest] == before[manifest] {
                failures += 1;
                same(&before, &after, &format!("{fault:?}"));
                assert_eq!(repaired(&disk, kept).unwrap(), expected, "{fault:?}");
                assert_eq!(names(whole(&disk)), names(whole(&first)), "{fault:?}");
            } else if let Some(error) = failed {
                assert!(matches!(error, OpenError::Io { doing: "sync", .. }), "{fault:?}: {error}");
            }
            assert_eq!(rows(&disk), rows(&first), "{fault:?}");
            open(&disk, "/db", &["/db/log", "/out"]).unwrap();
        }
        assert!(failures > 60, "{failures}");
    }
}

#[test]
fn what_is_left_over_from_before_keeps_no_repair_from_succeeding() {
    let (sound, kept) = damaged();
    let clean = Arc::new(sound.fork());
    let expected = repaired(&clean, kept).unwrap();
    // As a repair and a checkpoint have left them that were killed.
    for path in ["/db/MANIFEST.new", "/db/log/OWNER.new", "/db/log/log-2-0-1.open", "/out/log-2-1-1.open"] {
        put(&sound, path, b"");
    }
    put(&sound, "/db/checkpoint-9/part-0.ckpt", b"part");
    put(&sound, "/db/before-repair-1/MANIFEST", b"");
    let expected = Repaired { copy: "/db/before-repair-2".into(), ..expected };
    let mut failures = 0;
    for at in 1..80 {
        let disk = Arc::new(sound.fork());
        disk.set_faults(Faults { name_error_at: Some(at), ..Faults::default() });
        let failed = repaired(&disk, kept);
        disk.set_faults(Faults::default());
        match failed {
            Ok(repaired) => assert_eq!(Repaired { unclaimed: None, ..repaired }.kept_to, kept),
            Err(OpenError::Io { path, .. }) => {
                failures += 1;
                assert!(!path.starts_with("/db/checkpoint-9"), "nothing needs {}", path.display());
                let again = repaired_elsewhere(repaired(&disk, kept).unwrap());
                assert_eq!(again, repaired_elsewhere(expected.clone()), "{at}");
            }
            Err(error) => panic!("{error}"),
        }
        assert_eq!(rows(&disk), rows(&clean), "{at}");
        open(&disk, "/db", &["/db/log", "/out"]).unwrap();
        assert!(!disk.exists(Path::new("/db/checkpoint-9")).unwrap(), "{at}");
    }
    assert!(failures > 10, "{failures}");
}

/// Returns the same but for the names within its copy.
fn repaired_elsewhere(repaired: Repaired) -> Repaired {
    Repaired { elsewhere: Vec::new(), ..repaired }
}
