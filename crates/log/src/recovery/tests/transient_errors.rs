//! Errors of the disk that come and go: a repair gives up nothing that can be read again, and nothing is
//! removed that it could not copy.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;
use ensilo_test_disk::SimulatedDisk;

use super::bad_sectors::{BadDisk, Operation};
use super::history::Run;
use super::taken_back::{same, whole};
use super::writer::{DIR, TestLog, recover};
use crate::recovery::{DataLoss, OpenError, inspect, repair};

const LOG: &str = "db/log/log-1-1-1.open";

/// Returns a database of two loggers that was closed.
fn closed() -> Arc<SimulatedDisk> {
    let disk = Arc::new(SimulatedDisk::new());
    let mut run = Run::new(&disk, 2, 3);
    (0..5).for_each(|_| run.round());
    run.log.close();
    drop(run);
    Arc::new(disk.kill())
}

/// Returns a disk on which a file cannot be opened, or a sector of it not read, for so many times after so
/// many good ones.
fn bad_disk(disk: &Arc<SimulatedDisk>, sector: Option<u64>, good: u64, bad: u64) -> BadDisk {
    match sector {
        Some(sector) => BadDisk::with_bad_sector(disk, Path::new(LOG), sector, good).for_reads(bad),
        None => BadDisk::with_failing_opens(disk, Path::new(LOG), good, bad),
    }
}

/// Returns what an opening says can be kept.
fn kept_to(disk: &Arc<SimulatedDisk>, sector: Option<u64>) -> Epoch {
    let bad = Arc::new(bad_disk(disk, sector, 0, u64::MAX)) as Arc<dyn Disk>;
    let error = inspect(&bad, Path::new(DIR)).unwrap_err();
    let DataLoss::After(epoch) = error.corruption().unwrap().loss else { panic!("{error}") };
    epoch
}

#[test]
fn what_can_be_read_again_is_not_given_up() {
    let sound = closed();
    let rows = recover(&Arc::new(sound.fork()), 1).unwrap();
    for sector in [None, Some(0), Some(1)] {
        let kept = kept_to(&Arc::new(sound.fork()), sector);
        let disk = Arc::new(sound.fork());
        let before = whole(&disk);
        // A sector that fails is read twice: as a part of more, and by itself.
        let bad = bad_disk(&disk, sector, 0, if sector.is_some() { 2 } else { 1 });
        let refused = repair(&(Arc::new(bad) as Arc<dyn Disk>), Path::new(DIR), Some(kept)).unwrap_err();
        assert!(matches!(refused, OpenError::Refused(_)), "{sector:?}: {refused}");
        assert!(refused.to_string().ends_with("can be read now; try again"), "{sector:?}: {refused}");
        same(&before, &whole(&disk), &format!("{sector:?}"));
        assert_eq!(recover(&disk, 1).unwrap(), rows, "{sector:?}");
    }
}

#[test]
fn whenever_an_error_comes_and_goes_what_was_not_copied_stays() {
    let sound = closed();
    let log = PathBuf::from(LOG);
    let bytes = sound.contents(&log).unwrap();
    let (mut lacking, mut refused) = (0, 0);
    for sector in [None, Some(0), Some(1)] {
        let kept = kept_to(&Arc::new(sound.fork()), sector);
        for (good, bad) in (0..4).flat_map(|good| (1..9).map(move |bad| (good, bad))) {
            let disk = Arc::new(sound.fork());
            let failing = Arc::new(bad_disk(&disk, sector, good, bad)) as Arc<dyn Disk>;
            let what = format!("{sector:?}, {bad} failures after {good}");
            let Ok(repaired) = repair(&failing, Path::new(DIR), Some(kept)) else {
                refused += 1;
                assert_eq!(disk.contents(&log).unwrap(), bytes, "{what}");
                continue;
            };
            let copied = disk.contents(&repaired.copy.join("log/log-1-1-1.open")).unwrap();
            lacking += u64::from(copied != bytes);
            // Also after openings that can read it.
            for _ in 0..2 {
                drop(TestLog::open(&disk, 1));
                let is_there = disk.exists(&log).unwrap();
                assert!(copied == bytes || is_there && disk.contents(&log).unwrap() == bytes, "{what}");
            }
        }
    }
    assert!(lacking > 5 && refused > 5, "{lacking} {refused}");
}

#[test]
fn what_was_not_copied_goes_when_the_copy_has_gone() {
    let disk = closed();
    let bad = BadDisk::without(&disk, &[(LOG.into(), Operation::Open)]);
    let repaired =
        repair(&(Arc::new(bad) as Arc<dyn Disk>), Path::new(DIR), Some(kept_to(&disk, None))).unwrap();
    assert_eq!(disk.contents(&repaired.copy.join("UNREAD")).unwrap(), b"log/log-1-1-1.open\0\n");
    drop(TestLog::open(&disk, 1));
    assert!(disk.exists(Path::new(LOG)).unwrap());
    disk.remove(&repaired.copy.join("UNREAD")).unwrap();
    drop(TestLog::open(&disk, 1));
    assert!(!disk.exists(Path::new(LOG)).unwrap());
}
