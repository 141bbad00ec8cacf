//! What a repair says that it gives up, what it leaves behind, and how it is undone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;
use ensilo_test_disk::{Faults, SimulatedDisk};

use super::history::Run;
use super::writer::{DIR, TestLog, find, recover};
use crate::format::{Manifest, epoch_of};
use crate::recovery::copy::copy_file;
use crate::recovery::{
    Consequence, Dumped, Finding, GenerationOptions, GivenUp, OpenError, Repaired, dump, inspect, repair,
    verify,
};

/// A logger with sealed files that was killed, what was stored, and an epoch that no other on disk comes after.
fn one_logger(seed: u64) -> (SimulatedDisk, Epoch, Epoch) {
    let disk = Arc::new(SimulatedDisk::new());
    let mut run = Run::new(&disk, 1, seed);
    for _ in 0..3 {
        (0..3).for_each(|_| run.round());
        run.rotate(0);
    }
    (0..3).for_each(|_| run.round());
    let stored = run.log.durable_epoch;
    let last = run.history.iter().map(|transaction| epoch_of(transaction.tid)).max().unwrap();
    drop(run);
    // The last mark is the epoch after what was stored.
    (disk.fork(), stored, last.max(Epoch::new(stored.get() + 1)))
}

fn as_disk(disk: &Arc<SimulatedDisk>) -> Arc<dyn Disk> {
    Arc::clone(disk) as Arc<dyn Disk>
}

fn log_files(disk: &SimulatedDisk) -> Vec<PathBuf> {
    disk.files()
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| path.starts_with("db/log") && path.extension().is_some())
        .collect()
}

fn contents(disk: &SimulatedDisk) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = disk.files().into_iter().filter(|(path, _)| !path.ends_with("LOCK"));
    files.map(|(path, _)| (path.clone(), disk.contents(&path).unwrap())).collect()
}

/// Gives up what an opening says is lost; `None` if the opening is not refused.
fn repair_as_told(disk: &Arc<SimulatedDisk>) -> Option<Repaired> {
    let error = recover(disk, 1).err()?;
    let Consequence::After(kept) = error.damage().unwrap().consequence else { panic!("{error}") };
    Some(repair(&as_disk(disk), Path::new(DIR), kept).unwrap())
}

#[test]
fn the_first_epoch_after_a_repair_comes_after_every_epoch_on_disk() {
    let (intact, stored, largest) = one_logger(1);
    let check = |disk: SimulatedDisk, what: &str| {
        let disk = Arc::new(disk);
        let repaired = repair_as_told(&disk).unwrap_or_else(|| panic!("{what}: opened"));
        assert_eq!(repaired.stored_to, stored, "{what}");
        let found = find(&disk).unwrap();
        let first_epoch = found.manifest().unwrap().first_epoch;
        assert!(first_epoch > largest, "{what}: {first_epoch} is not after {largest}");
    };
    let files = log_files(&intact);
    assert_eq!(files.len(), 4);
    for path in &files {
        for byte in [20, 4096 + 4, 4096 + 70] {
            let disk = intact.fork();
            disk.flip(path, byte * 8).unwrap();
            check(disk, &format!("byte {byte} of {}", path.display()));
        }
        if path.extension().is_some_and(|extension| extension == "log") {
            let disk = intact.fork();
            disk.delete(path).unwrap();
            check(disk, &format!("without {}", path.display()));
        }
    }
}

#[test]
fn what_a_repair_gives_up_is_counted() {
    let (intact, ..) = one_logger(2);
    for path in log_files(&intact) {
        // The blocks, each with the transactions in it.
        let mut blocks: Vec<(PathBuf, u64, u64, Vec<u64>)> = Vec::new();
        for path in log_files(&intact) {
            dump(&intact, &path, &mut |dumped| match dumped {
                Dumped::Block(sealed) => {
                    blocks.push((path.clone(), sealed.header.offset, sealed.bytes() as u64, Vec::new()));
                }
                Dumped::Write(write) => blocks.last_mut().unwrap().3.push(write.tid),
                _ => {}
            })
            .unwrap();
        }
        let first = blocks.iter().position(|block| block.0 == path).unwrap();
        let disk = Arc::new(intact.fork());
        disk.flip(&path, (blocks[first].1 + 50) * 8).unwrap();
        let repaired = repair_as_told(&disk).unwrap();
        let (damaged, sound) = (blocks[first].clone(), blocks);
        let given_up = |tid: &&u64| epoch_of(**tid) > repaired.kept_to;
        let mut expected = GivenUp { unreadable_bytes: damaged.2, ..GivenUp::default() };
        let mut files = BTreeSet::from([&damaged.0]);
        for (path, offset, _, tids) in &sound {
            let mut tids: Vec<u64> = tids.iter().filter(given_up).copied().collect();
            if (path, offset) == (&damaged.0, &damaged.1) || tids.is_empty() {
                continue;
            }
            expected.writes += tids.len() as u64;
            tids.dedup();
            expected.transactions += tids.len() as u64;
            files.insert(path);
        }
        expected.files = files.len() as u64;
        assert!(expected.transactions > 0 && expected.writes > expected.transactions);
        assert_eq!(repaired.given_up, expected, "{}", path.display());
    }
}

#[test]
fn verify_says_after_a_repair_what_the_repair_has_kept() {
    let (disk, ..) = one_logger(3);
    let disk = Arc::new(disk);
    disk.flip(&log_files(&disk)[1], (4096 + 70) * 8).unwrap();
    let kept = repair_as_told(&disk).unwrap().kept_to;
    let verified = || verify(&*disk, Path::new(DIR), &mut |damage| panic!("{damage}")).unwrap();
    assert_eq!((verified().durable_epoch, verified().void), (Some(kept), None));
    // Also when it was opened, and nothing stored.
    let log = TestLog::open(&disk, 1);
    let first = log.first_epoch;
    drop(log);
    assert_eq!((verified().durable_epoch, verified().void), (Some(kept), None));
    let mut log = TestLog::open(&disk, 1);
    assert!(log.first_epoch > first);
    let mark = Epoch::new(log.first_epoch.get() + 1);
    log.round(&[vec![]], mark);
    let void = (Epoch::new(kept.get() + 1), Epoch::new(log.first_epoch.get() - 1));
    drop(log);
    assert_eq!((verified().durable_epoch, verified().void), (Some(Epoch::new(mark.get() - 1)), Some(void)));
}

#[test]
fn a_repair_that_fails_leaves_no_copy() {
    let (damaged, ..) = one_logger(4);
    damaged.flip(&log_files(&damaged)[1], (4096 + 70) * 8).unwrap();
    let Err(error) = recover(&Arc::new(damaged.fork()), 1) else { panic!("opened") };
    let Consequence::After(kept) = error.damage().unwrap().consequence else { panic!("{error}") };
    let used: u64 = damaged.files().iter().map(|(_, bytes)| bytes).sum();
    let mut failures = 0;
    let faults = (0..40).flat_map(|at| {
        [
            Faults { seed: at, write_error_at: Some(at), ..Faults::default() },
            Faults { seed: at, sync_error_at: Some(at), ..Faults::default() },
            Faults { seed: at, name_error_at: Some(at), ..Faults::default() },
            Faults { no_space_after_bytes: Some(used + at * 1000), ..Faults::default() },
        ]
    });
    for fault in faults {
        let disk = Arc::new(damaged.fork());
        let before = contents(&disk);
        disk.set_faults(fault.clone());
        if repair(&as_disk(&disk), Path::new(DIR), kept).is_ok() {
            continue;
        }
        failures += 1;
        disk.set_faults(Faults::default());
        let after = contents(&disk);
        let manifest = Path::new(DIR).join("MANIFEST");
        let copies = after.keys().filter(|path| path.starts_with("db/before-repair-1"));
        if after[&manifest] == before[&manifest] {
            assert_eq!(copies.count(), 0, "{fault:?}");
            assert!(!disk.exists(Path::new("db/before-repair-1")).unwrap(), "{fault:?}");
            assert!(before.iter().all(|(path, bytes)| after.get(path) == Some(bytes)), "{fault:?}");
            let repaired = repair(&as_disk(&disk), Path::new(DIR), kept).unwrap();
            assert_eq!(repaired.copy, Path::new("db/before-repair-1"));
        } else {
            assert_eq!(copies.count(), before.len(), "{fault:?}");
        }
    }
    assert!(failures > 50, "{failures}");
}

#[test]
fn a_repair_is_undone_by_putting_the_copy_back() {
    let disk = Arc::new(SimulatedDisk::new());
    let found = find(&disk).unwrap();
    let options = GenerationOptions {
        directories: vec![Path::new(DIR).join("log"), PathBuf::from("/disk-1"), PathBuf::from("/disk-2")],
        file_bytes: 8 << 10,
        first_epoch: Epoch::new(7),
    };
    let (generation, files) = found.next_generation(&options).unwrap();
    let mut log = TestLog::new(Arc::clone(&disk), generation, files);
    for epoch in 8..12 {
        log.round(&[vec![], vec![], vec![]], Epoch::new(epoch));
    }
    log.rotate(1, Epoch::new(12));
    drop(log);
    let damaged = Path::new("/disk-1/log-1-1-1-e0.log");
    disk.flip(damaged, (4096 + 30) * 8).unwrap();
    let before = contents(&disk);
    let repaired = repair_as_told(&disk).unwrap();
    assert_eq!(repaired.elsewhere.len(), 2);
    drop(find(&disk).unwrap());
    // What is there now goes, as far as it belongs to the database, and the copy takes its place.
    for path in contents(&disk).into_keys().filter(|path| !path.starts_with(&repaired.copy)) {
        disk.remove(&path).unwrap();
    }
    let elsewhere: BTreeMap<&PathBuf, &PathBuf> =
        repaired.elsewhere.iter().map(|(directory, copy)| (copy, directory)).collect();
    for path in contents(&disk).into_keys() {
        let place = match elsewhere.get(&path.parent().unwrap().to_path_buf()) {
            Some(directory) => directory.join(path.file_name().unwrap()),
            None => Path::new(DIR).join(path.strip_prefix(&repaired.copy).unwrap()),
        };
        copy_file(&*disk, &path, &place, None, &mut |_| Ok(())).unwrap();
        disk.remove(&path).unwrap();
    }
    let relative = |path: &Path| path.strip_prefix("/").unwrap_or(path).to_path_buf();
    let by_path = |files: BTreeMap<PathBuf, Vec<u8>>| -> BTreeMap<PathBuf, Vec<u8>> {
        files.into_iter().map(|(path, bytes)| (relative(&path), bytes)).collect()
    };
    assert_eq!(by_path(contents(&disk)), by_path(before));
    let error = recover(&disk, 1).unwrap_err();
    assert!(matches!(error.damage().unwrap().finding, Finding::Block(_)), "{error}");
}

#[test]
fn log_that_a_checkpoint_needs_is_named_as_such() {
    let disk = Arc::new(SimulatedDisk::new());
    let mut run = Run::new(&disk, 1, 5);
    run.round();
    run.checkpoint(1);
    let Manifest { checkpoint, .. } = run.log.files.manifest().clone();
    let end = checkpoint.unwrap().end_epoch;
    run.round();
    drop(run);
    disk.flip(&log_files(&disk)[0], (4096 + 4) * 8).unwrap();
    let error = recover(&disk, 1).unwrap_err();
    let OpenError::Damaged(damage) = error else { panic!("{error}") };
    assert_eq!(damage.consequence, Consequence::LogOfCheckpoint(end));
    let text = damage.to_string();
    assert!(
        text.contains(&format!("changes up to epoch {end}")) && !text.contains("did not change"),
        "{text}"
    );
    assert!(repair(&as_disk(&disk), Path::new(DIR), end).is_err());
}

#[test]
fn a_missing_log_file_is_reported_under_both_its_names() {
    let (disk, ..) = one_logger(6);
    disk.delete(&log_files(&disk)[1]).unwrap();
    let mut damages = Vec::new();
    verify(&disk, Path::new(DIR), &mut |damage| damages.push(damage)).unwrap();
    let missing = Path::new("db/log/log-1-0-2{.open,-e*.log}");
    assert!(!damages.is_empty() && damages.iter().all(|damage| damage.file == missing), "{damages:?}");
    assert!(inspect(&as_disk(&Arc::new(disk)), Path::new(DIR)).is_err());
}
