//! What a repair says that it gives up, what it leaves behind, and how it is undone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;
use ensilo_test_disk::{Faults, SimulatedDisk};

use super::history::Run;
use super::model::{OneWrite, Op, Rows, Transaction};
use super::writer::{DIR, TestLog, find, recover, rows_up_to, words};
use crate::format::{Manifest, epoch_of};
use crate::recovery::copy::copy_file;
use crate::recovery::named_files::NamedFiles;
use crate::recovery::{
    CheckpointWriterOptions, CorruptionKind, DEFINITION_TABLES, DataLoss, Dumped, FinishedCheckpoint,
    GenerationOptions, GivenUp, OpenError, Repaired, SalvageLoss, dump, inspect, repair, salvage, verify,
};

/// Returns a logger with sealed files that was killed, what was stored, and an epoch that no other on disk
/// comes after.
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
    let DataLoss::After(kept) = error.corruption().unwrap().loss else { panic!("{error}") };
    Some(repair(&as_disk(disk), Path::new(DIR), Some(kept)).unwrap())
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
    let verified = || verify(&*disk, Path::new(DIR), &mut |corruption| panic!("{corruption}")).unwrap();
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
    let DataLoss::After(kept) = error.corruption().unwrap().loss else { panic!("{error}") };
    let used: u64 = damaged.files().iter().map(|(_, bytes)| bytes).sum();
    let (mut failures, mut unclaimed) = (0, 0);
    let faults = (0..60).flat_map(|at| {
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
        let repaired = repair(&as_disk(&disk), Path::new(DIR), Some(kept));
        disk.set_faults(Faults::default());
        let error = match repaired {
            Ok(repaired) => {
                unclaimed += u64::from(repaired.unclaimed.is_some());
                recover(&disk, 1).unwrap();
                drop(TestLog::open(&disk, 1));
                continue;
            }
            Err(error) => error,
        };
        failures += 1;
        let after = contents(&disk);
        let manifest = Path::new(DIR).join("MANIFEST");
        let copies = after.keys().filter(|path| path.starts_with("db/before-repair-1"));
        if after[&manifest] == before[&manifest] {
            assert_eq!(copies.count(), 0, "{fault:?}");
            assert!(!disk.exists(Path::new("db/before-repair-1")).unwrap(), "{fault:?}");
            assert!(before.iter().all(|(path, bytes)| after.get(path) == Some(bytes)), "{fault:?}");
            let repaired = repair(&as_disk(&disk), Path::new(DIR), Some(kept)).unwrap();
            assert_eq!(repaired.copy, Path::new("db/before-repair-1"));
        } else {
            assert_eq!(copies.count(), before.len(), "{fault:?}");
            // Nothing but the sync of the new manifest's name leaves it open whether it is there.
            assert!(
                matches!(&error, OpenError::Io { doing: "sync", path, .. } if path == Path::new(DIR)),
                "{error}"
            );
        }
    }
    assert!(failures > 50 && unclaimed > 1, "{failures}, {unclaimed}");
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
    assert!(matches!(error.corruption().unwrap().kind, CorruptionKind::Block(_)), "{error}");
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
    let OpenError::Corrupt(corruption) = error else { panic!("{error}") };
    assert_eq!(corruption.loss, DataLoss::LogOfCheckpoint(end));
    let text = corruption.to_string();
    assert!(
        text.contains(&format!("changes up to epoch {end}")) && !text.contains("did not change"),
        "{text}"
    );
    assert!(repair(&as_disk(&disk), Path::new(DIR), Some(end)).is_err());
}

/// Returns a database with a checkpoint, and log after it in two files, of which the second one is damaged;
/// the end of the checkpoint, and how far the log can be read.
fn damaged_after_checkpoint(seed: u64) -> (SimulatedDisk, Vec<Transaction>, Epoch, Epoch) {
    let disk = Arc::new(SimulatedDisk::new());
    let mut run = Run::new(&disk, 1, seed);
    (0..3).for_each(|_| run.round());
    run.rotate(0);
    run.checkpoint(1);
    let end = run.log.files.manifest().checkpoint_end().unwrap();
    (0..4).for_each(|_| run.round());
    run.rotate(0);
    (0..4).for_each(|_| run.round());
    let history = run.history.clone();
    drop(run);
    let files = log_files(&disk);
    disk.flip(files.iter().find(|path| path.extension().unwrap() == "open").unwrap(), (4096 + 70) * 8)
        .unwrap();
    let error = recover(&disk, 1).unwrap_err();
    let DataLoss::After(reachable) = error.corruption().unwrap().loss else { panic!("{error}") };
    assert!(reachable.get() > end.get() + 1, "{reachable}, {end}");
    (disk.fork(), history, end, reachable)
}

#[test]
fn no_repair_gives_up_what_the_checkpoint_needs() {
    let (damaged, history, end, reachable) = damaged_after_checkpoint(7);
    let before = contents(&damaged);
    for kept in 0..=reachable.get() + 1 {
        let (disk, kept) = (Arc::new(damaged.fork()), Epoch::new(kept));
        match repair(&as_disk(&disk), Path::new(DIR), Some(kept)) {
            Ok(_) => {
                assert!((end..=reachable).contains(&kept), "{kept}");
                assert_eq!(recover(&disk, 1).unwrap().0, rows_up_to(&history, kept), "{kept}");
            }
            Err(refused) => {
                assert!(!(end..=reachable).contains(&kept), "{kept}: {refused}");
                let named = format!("after epoch {reachable}, or after an earlier one down to epoch {end}");
                assert!(refused.to_string().contains(&named), "{refused}");
                assert_eq!(contents(&disk), before);
            }
        }
    }
}

#[test]
fn a_manifest_that_ends_before_its_checkpoint_is_refused() {
    let (disk, _, end, reachable) = damaged_after_checkpoint(8);
    let disk = Arc::new(disk);
    repair(&as_disk(&disk), Path::new(DIR), Some(reachable)).unwrap();
    let found = find(&disk).unwrap();
    let durable = Epoch::new(end.get() - 1);
    let wrong = Manifest { durable_epoch: durable, ..found.manifest().unwrap().clone() };
    drop(found);
    NamedFiles { disk: &*disk, dir: Path::new(DIR), manifest: &wrong }.install_manifest().unwrap();
    let refused = recover(&disk, 1).unwrap_err();
    let expected = CorruptionKind::BeforeCheckpoint { durable, end };
    let corruption = refused.corruption().unwrap();
    assert_eq!((&corruption.kind, corruption.loss), (&expected, DataLoss::LogOfCheckpoint(end)));
    let mut reported = Vec::new();
    verify(&*disk, Path::new(DIR), &mut |corruption| reported.push(corruption.kind)).unwrap();
    assert!(reported.contains(&expected), "{reported:?}");
    assert!(repair(&as_disk(&disk), Path::new(DIR), None).is_err());
    let salvaged = salvage(&as_disk(&disk), Path::new(DIR), Path::new("saved")).unwrap();
    assert_eq!((salvaged.mixed_to, salvaged.loss()), (Some(end), SalvageLoss::Rows));
}

#[test]
fn a_missing_log_file_is_reported_under_both_its_names() {
    let (disk, ..) = one_logger(6);
    disk.delete(&log_files(&disk)[1]).unwrap();
    let mut corruptions = Vec::new();
    verify(&disk, Path::new(DIR), &mut |corruption| corruptions.push(corruption)).unwrap();
    let missing = Path::new("db/log/log-1-0-2{.open,-e*.log}");
    assert!(
        !corruptions.is_empty() && corruptions.iter().all(|corruption| corruption.file == missing),
        "{corruptions:?}"
    );
    assert!(inspect(&as_disk(&Arc::new(disk)), Path::new(DIR)).is_err());
}

/// Returns a database with a checkpoint that has its rows twice, and log after it in two files.
pub(super) fn with_copies() -> (Arc<SimulatedDisk>, Rows) {
    let disk = Arc::new(SimulatedDisk::new());
    let mut log = TestLog::open(&disk, 1);
    let tables = DEFINITION_TABLES;
    let put = |epoch: Epoch, sequence: u64, table: u32, key: u8| Transaction {
        tid: epoch.get() << 20 | sequence << 3,
        writes: vec![OneWrite { table, key: vec![key], op: Op::Put(vec![key; 40]) }],
    };
    let first = log.first_epoch;
    let next = |epoch: Epoch| Epoch::new(epoch.get() + 1);
    let written = [put(first, 1, tables[0], 1), put(first, 2, tables[1], 2)];
    log.round(&[written.to_vec()], next(first));
    let place = log.files.begin_checkpoint(next(first)).unwrap();
    let options = CheckpointWriterOptions::default();
    let (mut writer, mut copies) =
        (place.writer(0, options).unwrap(), place.writer_of_copies(options).unwrap());
    for (transaction, (table, key)) in written.iter().zip([(tables[0], 1), (tables[1], 2)]) {
        let row = words(&[key; 40]);
        writer.record(table, &[key], transaction.tid, 40, row.iter().copied()).unwrap();
        copies.record(table, &[key], transaction.tid, 40, row.iter().copied()).unwrap();
    }
    let written = vec![writer.finish().unwrap(), copies.finish().unwrap()];
    let end_epoch = log.durable_epoch;
    log.files.install_checkpoint(FinishedCheckpoint { place, end_epoch, written }, end_epoch).unwrap();
    for key in 3..7 {
        let epoch = next(log.durable_epoch);
        log.round(&[vec![put(epoch, 1, 5, key)]], next(epoch));
        if key == 4 {
            log.rotate(0, next(epoch));
        }
    }
    drop(log);
    let rows = recover(&disk, 1).unwrap().0;
    assert_eq!(rows.len(), 6);
    (disk, rows)
}

#[test]
fn copies_of_records_that_are_damaged_are_left_out_and_nothing_is_lost() {
    let (sound, rows) = with_copies();
    let copies = Path::new("db/checkpoint-1/copies.ckpt");
    let repaired = |disk: &Arc<SimulatedDisk>, accept| repair(&as_disk(disk), Path::new(DIR), accept);
    // A block, the header, the length, all of it.
    let corruptions: [fn(&SimulatedDisk, &Path); 4] = [
        |disk, copies| disk.flip(copies, (4096 + 70) * 8).unwrap(),
        |disk, copies| disk.flip(copies, 100).unwrap(),
        |disk, copies| disk.truncate(copies, 4096).unwrap(),
        |disk, copies| disk.delete(copies).unwrap(),
    ];
    for (number, corruption) in corruptions.into_iter().enumerate() {
        let disk = Arc::new(sound.fork());
        corruption(&disk, copies);
        let error = recover(&disk, 1).unwrap_err();
        assert_eq!(error.corruption().unwrap().loss, DataLoss::Copies, "{number}");
        assert!(error.to_string().contains("by ensilo repair"), "{error}");
        let refused = repaired(&disk, Some(Epoch::new(1))).unwrap_err();
        assert!(refused.to_string().contains("nothing of the log is lost"), "{refused}");
        let done = repaired(&disk, None).unwrap();
        assert!(
            done.corruptions.iter().all(|corruption| corruption.file == copies),
            "{:?}",
            done.corruptions
        );
        assert!(!done.corruptions.is_empty() && done.given_up == GivenUp::default());
        let parts = find(&disk).unwrap().checkpoint().unwrap().parts.clone();
        assert_eq!(parts.len(), 1, "{parts:?}");
        assert_eq!(recover(&disk, 1).unwrap().0, rows);
        let refused = repaired(&disk, None).unwrap_err();
        assert!(refused.to_string().contains("nothing is damaged"), "{refused}");
        // The next checkpoint has copies again, and what is left of this one goes.
        drop(TestLog::open(&disk, 1));
        assert_eq!(recover(&disk, 1).unwrap().0, rows);
    }
}

#[test]
fn a_repair_mends_the_log_where_copies_of_records_are_damaged_too() {
    let (disk, rows) = with_copies();
    let copies = Path::new("db/checkpoint-1/copies.ckpt");
    disk.flip(copies, (4096 + 70) * 8).unwrap();
    let sealed = log_files(&disk).into_iter().find(|path| path.extension().unwrap() == "log").unwrap();
    let len = disk.contents(&sealed).unwrap().len() as u64;
    // Its end: all that was logged later is lost.
    disk.flip(&sealed, (len - 30) * 8).unwrap();
    let mut worst = DataLoss::Copies;
    verify(&*disk, Path::new(DIR), &mut |corruption| worst = worst.max(corruption.loss)).unwrap();
    let DataLoss::After(kept) = worst else { panic!("{worst:?}") };
    let before = contents(&disk);
    // An opening names the worst that it has seen, not the first.
    let seen = Arc::new(disk.fork());
    seen.truncate(copies, 4096).unwrap();
    seen.truncate(&sealed, len - 1).unwrap();
    let error = recover(&seen, 1).unwrap_err();
    assert!(error.corruption().is_some_and(|corruption| corruption.loss == worst), "{error}");
    let refused = repair(&as_disk(&disk), Path::new(DIR), None).unwrap_err();
    assert!(refused.to_string().contains(&format!("after epoch {kept} are lost")), "{refused}");
    let without_part = Arc::new(disk.fork());
    let repaired = repair(&as_disk(&disk), Path::new(DIR), Some(kept)).unwrap();
    let damaged: BTreeSet<&Path> = repaired.corruptions.iter().map(|corruption| &*corruption.file).collect();
    assert_eq!(damaged, BTreeSet::from([copies, &*sealed]));
    let left = recover(&disk, 1).unwrap().0;
    assert!(left.len() > 2 && left.len() < rows.len(), "{}", left.len());
    assert!(left.iter().all(|(key, row)| rows.get(key) == Some(row)));
    // Where the first place is damaged too, a repair mends nothing.
    without_part.flip(Path::new("db/checkpoint-1/part-0.ckpt"), (4096 + 70) * 8).unwrap();
    let refused = repair(&as_disk(&without_part), Path::new(DIR), Some(kept)).unwrap_err();
    assert_eq!(refused.corruption().unwrap().loss, DataLoss::Checkpoint, "{refused}");
    let changed = |(path, bytes): (&PathBuf, &Vec<u8>)| {
        before.get(path) != Some(bytes) && !path.ends_with("part-0.ckpt")
    };
    assert!(!contents(&without_part).iter().any(changed));
}

#[test]
fn a_directory_within_a_checkpoint_is_no_part_of_it_and_goes_with_it() {
    let (disk, rows) = with_copies();
    for directory in ["db/checkpoint-1/more/inner", "db/checkpoint-2/more"] {
        disk.create_dir_all(Path::new(directory)).unwrap();
        disk.create(&Path::new(directory).join("file"), 10).unwrap();
    }
    let copies = Path::new("db/checkpoint-1/copies.ckpt");
    disk.flip(copies, (4096 + 70) * 8).unwrap();
    repair(&as_disk(&disk), Path::new(DIR), None).unwrap();
    assert!(!disk.exists(Path::new("db/checkpoint-2")).unwrap());
    let mut log = TestLog::open(&disk, 1);
    let mark = Epoch::new(log.first_epoch.get() + 1);
    log.round(&[vec![]], mark);
    disk.create_dir_all(Path::new("db/checkpoint-2/more")).unwrap();
    let versions = rows.iter().map(|(key, row)| (key.clone(), (log.first_epoch.get() << 20, row.clone())));
    log.checkpoint(mark, &versions.collect(), 1);
    drop(log);
    assert!(!disk.exists(Path::new("db/checkpoint-1")).unwrap());
    assert_eq!(recover(&disk, 1).unwrap().0, rows);
}
