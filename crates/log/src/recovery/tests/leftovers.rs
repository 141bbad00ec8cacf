//! Files that nothing needs, and that cannot be removed or looked at: they keep nothing from going on, and go
//! another time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;
use ensilo_test_disk::{Faults, SimulatedDisk};

use super::bad_sectors::{BadDisk, Operation};
use super::checkpoint_failures::before_second_checkpoint;
use super::model::AnyOrder;
use super::taken_back::{open, put, sample};
use super::writer::{DIR, FILE_BYTES};
use crate::recovery::{GenerationOptions, OpenError, Progress, inspect, verify};

fn begin(disk: &Arc<dyn Disk>) -> Result<(), OpenError> {
    let found = inspect(disk, Path::new("/db"))?;
    found.replay(&AnyOrder::default(), 1, &Progress::new())?;
    let first_epoch = Epoch::new(found.largest_epoch().get() + 1);
    let directories = vec!["/db/log".into(), "/out".into()];
    found.next_generation(&GenerationOptions { directories, file_bytes: FILE_BYTES, first_epoch }).map(drop)
}

#[test]
fn what_cannot_be_listed_or_opened_keeps_no_opening_from_succeeding() {
    for (path, operation) in [
        ("/db/checkpoint-99", Operation::List),
        ("/db/log/log-1-9-1.open", Operation::Open),
        ("/db/before-repair-1/UNREAD", Operation::LookFor),
    ] {
        let disk = sample();
        open(&disk, "/db", &["/db/log", "/out"]).unwrap();
        put(&disk, "/db/checkpoint-99/part-0.ckpt", b"part");
        put(&disk, "/db/before-repair-1/UNREAD", b"");
        let log = disk.contents(Path::new("/db/log/log-2-0-1.open")).unwrap();
        put(&disk, "/db/log/log-1-9-1.open", &log);
        let bad: Arc<dyn Disk> = Arc::new(BadDisk::without(&disk, &[(path.into(), operation)]));
        verify(&*bad, Path::new("/db"), &mut |corruption| panic!("{corruption}")).unwrap();
        for _ in 0..2 {
            begin(&bad).unwrap_or_else(|error| panic!("{operation:?} {path}: {error}"));
        }
        assert!(disk.exists(Path::new(path)).unwrap());
        open(&disk, "/db", &["/db/log", "/out"]).unwrap();
        assert!(!disk.exists(Path::new("/db/checkpoint-99")).unwrap(), "{operation:?} {path}");
    }
}

/// Returns the checkpoints and log files that are there.
fn files(disk: &SimulatedDisk) -> Vec<PathBuf> {
    let files = disk.files().into_iter().map(|(path, _)| path);
    files
        .filter(|path| path.extension().is_some_and(|kind| ["ckpt", "log"].contains(&kind.to_str().unwrap())))
        .collect()
}

#[test]
fn a_checkpoint_that_is_in_place_has_not_failed_whatever_is_left() {
    let left = {
        let (disk, mut run) = before_second_checkpoint();
        run.checkpoint(1);
        files(&disk)
    };
    let mut stayed = 0;
    for at in 1..40 {
        let (disk, mut run) = before_second_checkpoint();
        let (begin, rows) = run.begin_checkpoint();
        disk.set_faults(Faults { name_error_at: Some(at), ..Faults::default() });
        let installed = run.log.try_checkpoint(begin, &rows, 1);
        disk.set_faults(Faults::default());
        let is_in_place = run.log.files.manifest().checkpoint.as_ref().unwrap().id == 2;
        assert_eq!(installed.is_ok(), is_in_place, "{at}: {:?}", installed.err());
        if let Ok(installed) = installed {
            assert!(installed.removed.iter().all(|path| !disk.exists(path).unwrap()), "{at}");
            stayed += u64::from(files(&disk).len() > left.len());
        }
        run.round();
        run.checkpoint(1);
        assert!(files(&disk).len() <= left.len(), "{at}: {:?}", files(&disk));
        let names = disk.list(Path::new(DIR)).unwrap().into_iter().map(|entry| entry.name);
        assert_eq!(names.filter(|name| name.starts_with("checkpoint-")).count(), 1, "{at}");
    }
    assert!(stayed > 1, "{stayed}");
}
