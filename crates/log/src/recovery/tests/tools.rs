//! Verify, dump, repair and backup.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ensilo_disk::{Disk, File};
use ensilo_epoch::Epoch;
use ensilo_test_disk::{Faults, Recorder, SimulatedDisk, forward_file};

use super::history::Run;
use super::model::{AnyOrder, Rows};
use super::writer::{DIR, FILE_BYTES, recover, rows_up_to};
use crate::format::{BlockCodec, BlockError, HeaderError, LogFileName, Manifest, epoch_of};
use crate::recovery::BackedUp;
use crate::recovery::scan::{Needed, needed_up_to};
use crate::recovery::{
    Corruption, CorruptionKind, DataLoss, Dumped, Found, GenerationOptions, OpenError, Progress, Verified,
    backup, check_file, dump, inspect, log_identity, manifest_of, repair, verify,
};

/// Two generations, a checkpoint in the first, files of two loggers.
fn two_generations(seed: u64) -> (Arc<SimulatedDisk>, Run) {
    let mut disk = Arc::new(SimulatedDisk::new());
    let mut run = Run::new(&disk, 2, seed);
    run.round();
    run.checkpoint(2);
    for _ in 0..4 {
        run.round();
        run.rotate(0);
    }
    let stored = run.log.durable_epoch;
    disk = Arc::new(disk.kill());
    run.reopen(&disk, 2, stored);
    for _ in 0..3 {
        run.round();
        run.rotate(1);
    }
    run.round();
    (disk, run)
}

fn contents(disk: &SimulatedDisk) -> Vec<(PathBuf, Vec<u8>)> {
    let files = disk.files().into_iter().filter(|(path, _)| !path.ends_with("LOCK"));
    files.map(|(path, _)| (path.clone(), disk.contents(&path).unwrap())).collect()
}

fn verified(disk: &dyn Disk) -> (Result<Verified, OpenError>, Vec<Corruption>) {
    let mut corruptions = Vec::new();
    let verified = verify(disk, Path::new(DIR), &mut |corruption| corruptions.push(corruption));
    (verified, corruptions)
}

fn as_disk(disk: &Arc<SimulatedDisk>) -> Arc<dyn Disk> {
    Arc::clone(disk) as Arc<dyn Disk>
}

#[test]
fn verify_reads_everything_and_changes_nothing() {
    let (disk, run) = two_generations(1);
    let stored = run.log.durable_epoch;
    drop(run);
    let recorder = Recorder::over(Arc::clone(&disk));
    let (result, corruptions) = verified(&recorder);
    let result = result.unwrap();
    assert!(corruptions.is_empty(), "{corruptions:?}");
    assert_eq!(result.durable_epoch, Some(stored));
    assert!(result.replayed.writes > 0 && result.replayed.records > 0);
    assert_eq!(recorder.trace().operations(), []);
}

#[test]
fn what_only_reads_needs_no_lock_file_and_shares_the_lock() {
    let (disk, run) = two_generations(1);
    drop(run);
    let lock = Path::new(DIR).join("LOCK");
    let share = disk.lock_shared(&lock).unwrap();
    verified(&*disk).0.unwrap();
    backup(&as_disk(&disk), Path::new(DIR), Path::new("copies/one")).unwrap();
    assert!(matches!(inspect(&as_disk(&disk), Path::new(DIR)), Err(OpenError::Locked { process: None, .. })));
    drop(share);
    disk.remove(&lock).unwrap();
    verified(&*disk).0.unwrap();
    assert!(!disk.exists(&lock).unwrap());
}

#[test]
fn verify_reports_each_damaged_file() {
    let (disk, run) = two_generations(2);
    drop(run);
    let mut expected = BTreeSet::new();
    for (path, _) in disk.files() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // What has blocks that are known to have been synced.
        if name.ends_with(".log") || name.ends_with(".ckpt") {
            disk.flip(&path, (4096 + 70) * 8).unwrap();
            expected.insert(path);
        }
    }
    assert!(expected.len() > 6);
    let (result, corruptions) = verified(&*disk);
    let result = result.unwrap();
    assert_eq!(
        corruptions.iter().map(|corruption| corruption.file.clone()).collect::<BTreeSet<_>>(),
        expected
    );
    assert_eq!((result.corruptions, result.durable_epoch), (expected.len() as u64, None));
}

/// Returns where the blocks of a file lie.
fn blocks(disk: &SimulatedDisk, path: &Path) -> Vec<u64> {
    let mut offsets = Vec::new();
    dump(disk, path, &mut |dumped| {
        if let Dumped::Block(block) = dumped {
            offsets.push(block.header.offset);
        }
    })
    .unwrap();
    offsets
}

#[test]
fn verify_reports_what_is_damaged_behind_damage_too() {
    let (disk, mut run) = two_generations(2);
    for _ in 0..4 {
        (0..3).for_each(|_| run.round());
        run.rotate(0);
    }
    // A block for each table.
    let row = |table| ((table, vec![1]), (1 << 20, vec![2; 40]));
    run.log.checkpoint(Epoch::new(1), &(1..20).map(row).collect(), 2);
    run.round();
    drop(run);
    let sound = verified(&*disk).0.unwrap().files;
    let mut expected = BTreeSet::new();
    let mut files = BTreeSet::new();
    for (path, _) in disk.files() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.ends_with(".log") && !name.ends_with(".ckpt") {
            continue;
        }
        let blocks = blocks(&disk, &path);
        // Two gaps with a valid block between them, of which the second is the end of the file.
        if let [first, _, .., last] = blocks[..] {
            for offset in [first, last] {
                disk.flip(&path, (offset + 50) * 8).unwrap();
                expected.insert((path.clone(), Some(offset)));
            }
            files.insert(path);
        }
    }
    assert!(files.iter().any(|path| path.extension().unwrap() == "ckpt"));
    assert!(files.iter().filter(|path| path.extension().unwrap() == "log").count() > 3);
    let (result, corruptions) = verified(&*disk);
    let found: BTreeSet<_> =
        corruptions.iter().map(|corruption| (corruption.file.clone(), corruption.offset)).collect();
    assert_eq!(found, expected);
    assert_eq!(corruptions.len(), expected.len(), "each once: {corruptions:?}");
    let result = result.unwrap();
    assert_eq!(result.corruptions, expected.len() as u64);
    assert_eq!(result.files, sound - files.len() as u64, "those behind damage are read too");
}

#[test]
fn what_is_missing_is_reported_once() {
    let (disk, run) = two_generations(2);
    drop(run);
    for (path, _) in disk.files() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if LogFileName::parse(&name).is_none() && !name.ends_with(".ckpt") {
            continue;
        }
        let disk = Arc::new(disk.fork());
        disk.delete(&path).unwrap();
        let (result, corruptions) = verified(&*disk);
        let reported: Vec<_> =
            corruptions.iter().filter(|corruption| corruption.kind == CorruptionKind::Missing).collect();
        assert!(reported.len() <= 1, "{reported:?}");
        assert_eq!(result.unwrap().corruptions, corruptions.len() as u64);
    }
}

#[test]
fn a_log_file_is_checked_by_itself() {
    let (disk, mut run) = two_generations(6);
    run.unsynced_round();
    drop(run);
    let disk = disk.fork();
    let path = |name: &str| Path::new(DIR).join("log").join(name);
    let open = path("log-2-0-1.open");
    let check = |disk: &SimulatedDisk, path: &Path| check_file(disk, path, None).unwrap();
    let sound = check(&disk, &open);
    let offsets = blocks(&disk, &open);
    assert_eq!((sound.blocks, sound.corruptions.len(), sound.torn), (offsets.len() as u64, 0, None));
    assert!(offsets.len() > 3 && sound.writes > 0);
    // The last block was never synced: a crash may tear it.
    let last = *offsets.last().unwrap();
    let torn = disk.fork();
    torn.flip(&open, (last + 50) * 8).unwrap();
    let found = check(&torn, &open);
    assert_eq!((found.corruptions.len(), found.torn), (0, Some((last, BlockError::Checksum))));
    // What lies in front of it was synced, as it says itself.
    for offset in [offsets[0], offsets[1]] {
        let damaged = disk.fork();
        damaged.open(&open).unwrap().write_at(offset, &[0; 64]).unwrap();
        let found = check(&damaged, &open);
        assert_eq!(found.corruptions, [(offset, CorruptionKind::Block(BlockError::Empty))]);
        assert_eq!((found.blocks, found.bytes), (sound.blocks - 1, sound.bytes));
        // Unless a manifest says that only what comes before it counts.
        let counted = check_file(&damaged, &open, Some(offset)).unwrap();
        assert_eq!((counted.corruptions.len(), counted.bytes), (0, offset));
        assert_eq!(check_file(&damaged, &open, Some(offset + 1)).unwrap().corruptions.len(), 1);
    }
    let damaged = disk.fork();
    for offset in [offsets[0], offsets[2]] {
        damaged.flip(&open, (offset + 50) * 8).unwrap();
    }
    let places: Vec<u64> = check(&damaged, &open).corruptions.iter().map(|corruption| corruption.0).collect();
    assert_eq!(places, [offsets[0], offsets[2]]);
    let cut = disk.fork();
    cut.truncate(&open, sound.bytes + 1).unwrap();
    assert!(
        matches!(check(&cut, &open).corruptions[..], [(at, CorruptionKind::Cut { .. })] if at == sound.bytes + 1)
    );
    // One that is sealed has no end that a crash could tear.
    let sealed =
        disk.files().into_iter().find(|(path, _)| path.to_string_lossy().ends_with(".log")).unwrap().0;
    assert!(check(&disk, &sealed).corruptions.is_empty());
    let last = *blocks(&disk, &sealed).last().unwrap();
    disk.flip(&sealed, (last + 50) * 8).unwrap();
    assert_eq!(check(&disk, &sealed).corruptions, [(last, CorruptionKind::Block(BlockError::Checksum))]);
    disk.truncate(&sealed, last).unwrap();
    assert_eq!(check(&disk, &sealed).corruptions, [(last, CorruptionKind::NoEnd)]);
    let other = path("log-9-0-1.open");
    disk.rename(&open, &other).unwrap();
    assert!(
        matches!(check_file(&disk, &other, None), Err(OpenError::Corrupt(corruption)) if corruption.kind == CorruptionKind::OtherFile)
    );
    assert!(matches!(check_file(&disk, &open, None), Err(OpenError::Io { .. })));
}

#[test]
fn a_file_that_was_made_ahead_and_has_no_header_yet_is_in_order() {
    let disk = SimulatedDisk::new();
    for name in ["log-1-0-2.open", "log-1-0-2-e7.log"] {
        drop(disk.create(Path::new(name), FILE_BYTES).unwrap());
    }
    assert!(check_file(&disk, Path::new("log-1-0-2.open"), None).unwrap().corruptions.is_empty());
    assert!(check_file(&disk, Path::new("log-1-0-2-e7.log"), None).is_err());
}

#[test]
fn a_manifest_whose_first_bytes_are_destroyed_is_shown_as_what_it_was() {
    let (disk, run) = two_generations(3);
    drop(run);
    let manifest = Path::new(DIR).join("MANIFEST");
    disk.flip(&manifest, 3).unwrap();
    let of_file = dump(&*disk, &manifest, &mut |_| {}).unwrap_err();
    let of_database = manifest_of(&*disk, Path::new(DIR)).unwrap_err();
    for error in [of_file, of_database] {
        let corruption = error.corruption().unwrap();
        assert_eq!(
            (corruption.offset, &corruption.kind),
            (Some(0), &CorruptionKind::Header(HeaderError::Magic))
        );
    }
}

#[test]
fn a_backup_of_damaged_files_names_those_and_leaves_nothing() {
    let (disk, run) = two_generations(2);
    drop(run);
    let mut named = 0;
    for (path, _) in disk.files() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.ends_with(".log") && !name.ends_with(".ckpt") {
            continue;
        }
        let disk = Arc::new(disk.fork());
        let offset = blocks(&disk, &path)[0];
        disk.flip(&path, (offset + 50) * 8).unwrap();
        let Err(error) = backup(&as_disk(&disk), Path::new(DIR), Path::new("copy")) else {
            // All in it is in the checkpoint.
            assert!(!disk.exists(&Path::new("copy/log").join(&name)).unwrap(), "{name}");
            continue;
        };
        named += 1;
        let corruption = error.corruption().unwrap_or_else(|| panic!("{error}"));
        assert_eq!((&corruption.file, corruption.offset), (&path, Some(offset)));
        assert!(!disk.exists(Path::new("copy")).unwrap());
    }
    assert!(named > 6);
}

#[test]
fn a_backup_into_a_log_directory_is_refused() {
    let disk = Arc::new(SimulatedDisk::new());
    let options = GenerationOptions {
        directories: vec!["/logs/a".into()],
        file_bytes: FILE_BYTES,
        first_epoch: Epoch::new(1),
    };
    let found = inspect(&as_disk(&disk), Path::new(DIR)).unwrap();
    drop(found.next_generation(&options).unwrap());
    for target in ["/logs/a", "/logs/a/in", "/logs/b/../a/in"] {
        let refused = backup(&as_disk(&disk), Path::new(DIR), Path::new(target));
        assert!(matches!(&refused, Err(OpenError::Refused(why)) if why.contains("its log")), "{refused:?}");
    }
    backup(&as_disk(&disk), Path::new(DIR), Path::new("/logs/b")).unwrap();
}

#[test]
fn verify_needs_a_database() {
    let disk = SimulatedDisk::new();
    assert!(matches!(verified(&disk).0, Err(OpenError::NotADatabase { .. })));
    disk.create_dir_all(Path::new(DIR)).unwrap();
    drop(disk.create(&Path::new(DIR).join("passwd"), 7).unwrap());
    let disk = Arc::new(disk);
    for refused in [
        verified(&*disk).0.map(drop),
        repair(&as_disk(&disk), Path::new(DIR), Some(Epoch::new(1))).map(drop),
        backup(&as_disk(&disk), Path::new(DIR), Path::new("copy")).map(drop),
    ] {
        assert!(matches!(refused, Err(OpenError::NotADatabase { holds: None, .. })), "{refused:?}");
    }
    assert_eq!(disk.list(Path::new(DIR)).unwrap().len(), 1, "nothing was made");
    let (disk, run) = two_generations(3);
    let process = Some(std::process::id());
    assert!(matches!(verified(&*disk).0, Err(OpenError::Locked { process: by, .. }) if by == process));
    drop(run);
    disk.flip(&Path::new(DIR).join("MANIFEST"), 300).unwrap();
    let (result, corruptions) = verified(&*disk);
    assert_eq!((result.unwrap().corruptions, corruptions.len()), (1, 1));
    assert_eq!(corruptions[0].loss, DataLoss::Manifest);
}

#[test]
fn dump_shows_all_entries_and_where_they_end() {
    let (disk, run) = two_generations(4);
    let (mut tids, mut records, mut ends) = (BTreeSet::new(), 0, 0);
    for (path, _) in disk.files() {
        if path.ends_with("LOCK") || path.ends_with("OWNER") {
            continue;
        }
        dump(&*disk, &path, &mut |dumped| match dumped {
            Dumped::Write(write) => _ = tids.insert(write.tid),
            Dumped::Record(_) => records += 1,
            Dumped::End { .. } => ends += 1,
            Dumped::Corruption { offset, kind } => panic!("{kind} at {offset} of {}", path.display()),
            Dumped::Manifest(manifest) => assert_eq!(manifest, run.log.files.manifest()),
            Dumped::Header(_) | Dumped::Block(_) => {}
        })
        .unwrap();
    }
    let checkpoint = run.log.files.manifest().checkpoint.clone().unwrap();
    assert_eq!(records, checkpoint.parts.iter().map(|part| part.records).sum::<u64>());
    let logged = run.history.iter().filter(|transaction| epoch_of(transaction.tid) >= checkpoint.end_epoch);
    assert!(logged.clone().count() > 0);
    logged.for_each(|transaction| assert!(tids.contains(&transaction.tid)));
    // The manifest and its copy, two locks and an owner.
    assert_eq!(ends + 5, disk.files().len());
    let log = disk.files().into_iter().find(|(path, _)| path.to_string_lossy().ends_with(".log")).unwrap().0;
    disk.flip(&log, (4096 + 70) * 8).unwrap();
    let mut damaged = 0;
    dump(&*disk, &log, &mut |dumped| damaged += u32::from(matches!(dumped, Dumped::Corruption { .. })))
        .unwrap();
    assert_eq!(damaged, 1);
    assert!(dump(&*disk, &Path::new(DIR).join("LOCK"), &mut |_| {}).is_err());
}

#[test]
fn repair_gives_up_what_it_says_and_nothing_else() {
    let (disk, run) = two_generations(5);
    let (history, stored) = (run.history.clone(), run.log.durable_epoch);
    let checkpoint_end = run.log.files.manifest().checkpoint.as_ref().unwrap().end_epoch;
    drop(run);
    let mut repaired_some = BTreeSet::new();
    for (path, bytes) in contents(&disk) {
        let written = bytes.iter().rposition(|&byte| byte != 0).unwrap() as u64;
        for byte in [20, 4100, 4170, 4500, written / 2, written] {
            if byte >= bytes.len() as u64 {
                continue;
            }
            let disk = Arc::new(disk.fork());
            disk.flip(&path, byte * 8 + 3).unwrap();
            let what = format!("byte {byte} of {}", path.display());
            let Err(OpenError::Corrupt(corruption)) = recover(&disk, 1) else { continue };
            let before = contents(&disk);
            let DataLoss::After(kept) = corruption.loss else {
                repair(&as_disk(&disk), Path::new(DIR), Some(checkpoint_end)).unwrap_err();
                assert_eq!(contents(&disk), before, "{what}");
                continue;
            };
            let refused = repair(&as_disk(&disk), Path::new(DIR), Some(Epoch::new(kept.get() + 1)));
            assert!(matches!(refused, Err(OpenError::Refused(_))), "{what}: {refused:?}");
            assert_eq!(contents(&disk), before, "{what}");
            let repaired = repair(&as_disk(&disk), Path::new(DIR), Some(kept)).unwrap();
            assert_eq!((repaired.kept_to, repaired.stored_to), (kept, stored), "{what}");
            assert_eq!(repaired.copy, Path::new(DIR).join("before-repair-1"));
            let copied: usize =
                contents(&disk).iter().filter(|(path, _)| path.starts_with(&repaired.copy)).count();
            assert_eq!(copied, before.len(), "{what}");
            let (rows, _) = recover(&disk, 1).unwrap();
            assert_eq!(rows, rows_up_to(&history, kept), "{what}");
            // It stays so after a power failure, and there is nothing more to repair.
            let disk = Arc::new(disk.crash(byte));
            assert_eq!(recover(&disk, 1).unwrap().0, rows, "{what}");
            assert!(matches!(
                repair(&as_disk(&disk), Path::new(DIR), Some(kept)),
                Err(OpenError::Refused(_))
            ));
            repaired_some.insert(path.clone());
        }
    }
    assert!(repaired_some.len() > 5, "{repaired_some:?}");
}

#[test]
fn repair_gets_over_a_missing_file_and_a_missing_directory() {
    let (disk, run) = two_generations(6);
    let history = run.history.clone();
    drop(run);
    for (path, _) in disk.files() {
        if !path.to_string_lossy().contains("log-") {
            continue;
        }
        let disk = Arc::new(disk.fork());
        disk.delete(&path).unwrap();
        let Err(error) = recover(&disk, 1) else { panic!("{} is missing", path.display()) };
        let DataLoss::After(kept) = error.corruption().unwrap().loss else { continue };
        repair(&as_disk(&disk), Path::new(DIR), Some(kept)).unwrap();
        assert_eq!(recover(&disk, 1).unwrap().0, rows_up_to(&history, kept), "{}", path.display());
    }
}

fn found_in(disk: &Arc<SimulatedDisk>, dir: &str) -> (Rows, Found) {
    let found = inspect(&as_disk(disk), Path::new(dir)).unwrap();
    let target = AnyOrder::default();
    found.replay(&target, 2, &Progress::new()).unwrap();
    (target.rows(), found)
}

#[test]
fn a_backup_of_files_at_rest_opens_as_the_database_did() {
    for seed in 0..10 {
        let (disk, mut run) = two_generations(seed);
        let (rows, stored) = (rows_up_to(&run.history, run.log.durable_epoch), run.log.durable_epoch);
        run.unsynced_round();
        drop(run);
        let disk = Arc::new(disk.crash(seed));
        let (found_rows, durable_epoch) = recover(&disk, 1).unwrap();
        let before = contents(&disk);
        let BackedUp { durable_epoch: backed_up, .. } =
            backup(&as_disk(&disk), Path::new(DIR), Path::new("copies/one")).unwrap();
        assert_eq!(Some(backed_up), durable_epoch);
        assert!(backed_up > stored || found_rows == rows);
        let after = contents(&disk);
        assert!(before.iter().all(|file| after.contains(file)));
        let disk = Arc::new(disk.crash(seed));
        let (copied, found) = found_in(&disk, "copies/one");
        assert_eq!(copied, found_rows);
        assert!(found.largest_epoch() > backed_up);
        assert!(matches!(
            backup(&as_disk(&disk), Path::new(DIR), Path::new("copies/one")),
            Err(OpenError::Refused(_))
        ));
    }
}

#[test]
fn a_backup_of_a_running_database_has_what_was_stored() {
    for seed in 0..20 {
        let (disk, mut run) = two_generations(seed);
        (0..seed % 4).for_each(|_| run.anything());
        let stored = run.log.durable_epoch;
        let rows = rows_up_to(&run.history, stored);
        // Loggers have gone on, each to where it liked.
        run.unsynced_round();
        if seed % 2 == 0 {
            run.log.sync(0);
            run.rotate(0);
        }
        let target = Path::new("copies/two");
        assert_eq!(run.log.files.backup(target, stored, &mut |_| Ok(())).unwrap().durable_epoch, stored);
        run.log.sync(1);
        drop(run);
        assert_eq!(found_in(&disk, "copies/two").0, rows, "seed {seed}");
        let disk = Arc::new(disk.crash(seed));
        assert_eq!(found_in(&disk, "copies/two").0, rows, "seed {seed}");
    }
}

/// A log file that its logger is done with, and cuts off behind its last block, just after somebody has asked
/// for its length.
#[derive(Debug)]
struct CutMeanwhile {
    file: Box<dyn File>,
    was_asked: AtomicBool,
}

impl File for CutMeanwhile {
    forward_file!(|self| self.file; read_at, write_at, sync_data, sync_all, set_len);

    fn len_bytes(&self) -> io::Result<u64> {
        let reserved = if self.was_asked.swap(true, Ordering::Relaxed) { 0 } else { 1 << 20 };
        Ok(self.file.len_bytes()? + reserved)
    }
}

#[test]
fn a_log_file_that_is_cut_off_while_a_backup_looks_at_it_is_looked_at_again() {
    let (disk, run) = two_generations(1);
    let Manifest { database, opening, .. } = *run.log.files.manifest();
    let name = LogFileName { generation: 2, logger: 0, sequence: 1, epoch_number: None };
    let file = || disk.open(&Path::new(DIR).join("log").join(name.to_string())).unwrap();
    let codec = BlockCodec::new(&log_identity(database, opening, name));
    let stored = run.log.durable_epoch;
    let expected = needed_up_to(&*file(), &codec, stored).unwrap();
    assert!(matches!(expected.0, Needed::To(_)), "{expected:?}");
    let cut = CutMeanwhile { file: file(), was_asked: AtomicBool::new(false) };
    assert_eq!(needed_up_to(&cut, &codec, stored).unwrap(), expected);
}

#[test]
fn what_a_failed_sync_left_in_the_cache_is_written_before_it_is_believed() {
    for seed in 0..50 {
        let disk = Arc::new(SimulatedDisk::new());
        let mut run = Run::new(&disk, 1, seed);
        run.round();
        let stored = run.log.durable_epoch;
        run.unsynced_round();
        disk.set_faults(Faults { seed, sync_error_at: Some(1), ..Faults::default() });
        disk.open(&Path::new(DIR).join("log/log-1-0-1.open")).unwrap().sync_data().unwrap_err();
        // The process ends, and the next one reads what the system shows.
        let history = run.history.clone();
        let disk = Arc::new(disk.kill());
        drop(run);
        let (rows, believed) = recover(&disk, 1).unwrap();
        assert!(believed.unwrap() > stored);
        assert_eq!(rows, rows_up_to(&history, believed.unwrap()));
        // What it believed, and may have told to others, outlives a power failure.
        let disk = Arc::new(disk.crash(seed));
        assert_eq!(recover(&disk, 1).unwrap(), (rows, believed), "seed {seed}");
    }
}
