//! Damage is found, never served.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::{Checksum, Disk};
use ensilo_epoch::Epoch;
use ensilo_test_disk::SimulatedDisk;

use super::history::Run;
use super::model::Rows;
use super::writer::{DIR, FILE_BYTES, TestLog, recover, rows_up_to};
use crate::format::{BLOCK_HEADER_BYTES, BlockEnd, FILE_HEADER_BYTES, FORMAT_VERSION};
use crate::recovery::{Corruption, CorruptionKind, DataLoss, OpenError, repair};

/// A small database with everything in it, what it holds and where its blocks lie.
struct Sample {
    disk: SimulatedDisk,
    rows: Rows,
    stored: Epoch,
    /// What came back after a crash before the last round: the last sync looks like one that never was.
    rows_before: Rows,
    stored_before: Epoch,
}

fn sample(is_closed: bool) -> Sample {
    let disk = Arc::new(SimulatedDisk::new());
    let mut run = Run::new(&disk, 2, 8);
    run.round();
    run.checkpoint(2);
    run.rotate(0);
    run.round();
    let stored = run.log.durable_epoch;
    let disk = Arc::new(disk.kill());
    run.reopen(&disk, 2, stored);
    run.round();
    run.rotate(1);
    run.round();
    let stored_before = run.log.durable_epoch;
    let rows_before = rows_up_to(&run.history, stored_before);
    run.round();
    if is_closed {
        run.log.close();
    }
    let stored = run.log.durable_epoch;
    let rows = rows_up_to(&run.history, stored);
    assert_ne!(rows, rows_before);
    drop(run);
    Sample { disk: disk.fork(), rows, stored, rows_before, stored_before }
}

impl Sample {
    /// Fails if damaged files give anything but an error, what was stored, or, where that is allowed, what
    /// was before the last round.
    fn check(&self, damaged: SimulatedDisk, may_lose_last_round: bool, what: &str) -> ReplayOutcome {
        match recover(&Arc::new(damaged), 1) {
            Err(_) => ReplayOutcome::Refused,
            Ok((rows, stored)) if rows == self.rows && stored == Some(self.stored) => ReplayOutcome::Harmless,
            Ok((rows, stored))
                if may_lose_last_round && rows == self.rows_before && stored == Some(self.stored_before) =>
            {
                ReplayOutcome::LastRoundLost
            }
            Ok((_, stored)) => panic!("{what}: served, up to epoch {stored:?} of {}", self.stored),
        }
    }

    fn files(&self) -> Vec<(PathBuf, u64)> {
        let mut files = self.disk.files();
        files.retain(|(path, _)| !path.ends_with("LOCK"));
        files
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ReplayOutcome {
    Refused,
    Harmless,
    LastRoundLost,
}

/// Returns the bits of a file to be turned: all where something is written, few where there are long runs of
/// zeros.
fn bits(contents: &[u8]) -> Vec<u64> {
    let line = |at: usize| &contents[at / 64 * 64..(at / 64 * 64 + 64).min(contents.len())];
    (0..contents.len() * 8)
        .filter(|bit| bit % (8 * 61) == 5 || line(bit / 8).iter().any(|&byte| byte != 0))
        .map(|bit| bit as u64)
        .collect()
}

#[test]
fn every_bit_that_is_turned_is_found_or_harmless() {
    for is_closed in [false, true] {
        let sample = sample(is_closed);
        assert_eq!(sample.check(sample.disk.fork(), false, "no damage"), ReplayOutcome::Harmless);
        let mut outcomes = BTreeMap::new();
        for (path, _) in sample.files() {
            for bit in bits(&sample.disk.contents(&path).unwrap()) {
                let disk = sample.disk.fork();
                disk.flip(&path, bit).unwrap();
                // After an end in order even the last round is known.
                let outcome = sample.check(disk, !is_closed, &format!("bit {bit} of {}", path.display()));
                *outcomes.entry(outcome).or_insert(0) += 1;
            }
        }
        assert!(outcomes[&ReplayOutcome::Refused] > 5_000, "{outcomes:?}");
        assert_eq!(outcomes.contains_key(&ReplayOutcome::LastRoundLost), !is_closed);
    }
}

/// Returns where the blocks of a log file begin.
fn block_starts(contents: &[u8]) -> Vec<u64> {
    let mut starts = Vec::new();
    let mut at = FILE_HEADER_BYTES;
    while contents.len() > at && contents[at..].starts_with(b"ENSB") {
        starts.push(at as u64);
        let payload_bytes = u32::from_le_bytes(contents[at + 8..at + 12].try_into().unwrap());
        at += BLOCK_HEADER_BYTES + payload_bytes as usize;
    }
    starts
}

#[test]
fn damage_of_a_block_is_named_at_the_block() {
    for is_closed in [false, true] {
        let sample = sample(is_closed);
        let mut named = 0;
        for (path, _) in sample.files().into_iter().filter(|(path, _)| path.starts_with("db/log")) {
            let contents = sample.disk.contents(&path).unwrap();
            for start in block_starts(&contents) {
                // Magic, checksum, length, flags, offset, mark, payload or the next block.
                for byte in [0, 5, 8, 11, 16, 25, 50, 66] {
                    let (byte, disk) = (start + byte, sample.disk.fork());
                    let starts = block_starts(&contents);
                    let Some(&start) = starts.iter().rfind(|&&start| start <= byte) else { continue };
                    if byte >= contents.len() as u64 || disk.flip(&path, byte * 8 + 1).is_err() {
                        continue;
                    }
                    let Err(error) = recover(&Arc::new(disk), 1) else { continue };
                    let what = format!("byte {byte} of {}: {error}", path.display());
                    let Corruption { file, offset, kind, .. } = error.corruption().unwrap();
                    assert_eq!((file, *offset), (&path, Some(start)), "{what}");
                    assert!(
                        matches!(kind, CorruptionKind::Block(_) | CorruptionKind::ShortLog { .. }),
                        "{what}"
                    );
                    named += 1;
                }
            }
        }
        assert!(named > 100, "{named}");
    }
}

#[test]
fn every_cut_is_found_or_harmless() {
    for is_closed in [false, true] {
        let sample = sample(is_closed);
        for (path, len) in sample.files() {
            for at in (0..len).step_by(7) {
                let disk = sample.disk.fork();
                disk.truncate(&path, at).unwrap();
                sample.check(disk, false, &format!("{} cut at {at}", path.display()));
            }
        }
    }
}

#[test]
fn a_cut_of_a_file_that_was_made_longer_is_found() {
    let disk = Arc::new(SimulatedDisk::new());
    let mut run = Run::new(&disk, 1, 3);
    while run.log.loggers[0].offset < 3 * FILE_BYTES {
        run.round();
    }
    let (rows, stored) = (rows_up_to(&run.history, run.log.durable_epoch), run.log.durable_epoch);
    drop(run);
    assert_eq!(recover(&Arc::new(disk.fork()), 1).unwrap(), (rows, Some(stored)));
    let path = Path::new(DIR).join("log/log-1-0-1.open");
    let len = disk.contents(&path).unwrap().len() as u64;
    for at in (FILE_BYTES - 200..len).step_by(11) {
        let cut = Arc::new(disk.fork());
        cut.truncate(&path, at).unwrap();
        let error = recover(&cut, 1).unwrap_err();
        let corruption = error.corruption().unwrap();
        assert!(
            matches!(corruption.kind, CorruptionKind::Cut { reserved_bytes } if reserved_bytes > at),
            "{error}"
        );
        assert_eq!((&corruption.file, corruption.offset), (&path, Some(at)));
        // What is left of it can be had.
        let DataLoss::After(kept) = corruption.loss else { panic!("{error}") };
        repair(&(Arc::clone(&cut) as Arc<dyn Disk>), Path::new(DIR), Some(kept)).unwrap();
        assert!(recover(&cut, 1).unwrap().1.unwrap() >= kept);
    }
}

#[test]
fn space_that_an_end_in_order_gave_back_is_not_missed() {
    for is_trimmed in [false, true] {
        let disk = Arc::new(SimulatedDisk::new());
        let mut run = Run::new(&disk, 1, 3);
        run.round();
        let stored = run.log.durable_epoch;
        if is_trimmed {
            run.log.close();
        } else {
            run.log.append(0, &[], None, BlockEnd::Closed);
            run.log.sync(0);
        }
        drop(run);
        assert_eq!(recover(&Arc::new(disk.crash(1)), 1).unwrap().1, Some(stored));
    }
}

#[test]
fn every_file_that_is_missing_is_missed() {
    for is_closed in [false, true] {
        let sample = sample(is_closed);
        for (path, _) in sample.files() {
            let disk = sample.disk.fork();
            disk.delete(&path).unwrap();
            if path.ends_with("OWNER") || path.ends_with("MANIFEST.copy") {
                // Neither names data that nothing else does.
                assert_eq!(sample.check(disk, false, "no data"), ReplayOutcome::Harmless);
                continue;
            }
            let missing = path.clone();
            match recover(&Arc::new(disk), 1) {
                Err(OpenError::Corrupt(corruption)) => {
                    assert_eq!(corruption.kind, CorruptionKind::Missing, "{corruption}")
                }
                other => panic!("{} is missing: {:?}", missing.display(), other.map(|(_, stored)| stored)),
            }
        }
    }
}

#[test]
fn blocks_in_other_places_are_found() {
    let sample = sample(false);
    for (path, len) in sample.files() {
        let contents = sample.disk.contents(&path).unwrap();
        let starts: Vec<u64> = (0..contents.len())
            .filter(|&at| contents[at..].starts_with(b"ENSB"))
            .map(|at| at as u64)
            .collect();
        for pair in starts.windows(3) {
            let (first, second, end) = (pair[0], pair[1], pair[2]);
            let length = (second - first).min(end - second);
            let disk = sample.disk.fork();
            disk.swap(&path, first..first + length, second..second + length).unwrap();
            sample.check(disk, true, &format!("{}: blocks at {first} and {second}", path.display()));
        }
        assert!(len > 0);
    }
}

#[test]
fn files_in_each_others_places_are_found() {
    let sample = sample(true);
    let files = sample.files();
    for (one, _) in &files {
        for (other, _) in &files {
            if one == other {
                continue;
            }
            let disk = sample.disk.fork();
            let temporary = Path::new("aside");
            disk.rename(one, temporary).unwrap();
            disk.rename(other, one).unwrap();
            disk.rename(temporary, other).unwrap();
            let what = format!("{} and {}", one.display(), other.display());
            let is_copy = one.ends_with("MANIFEST") && other.ends_with("MANIFEST.copy")
                || one.ends_with("MANIFEST.copy") && other.ends_with("MANIFEST");
            let expected = if is_copy { ReplayOutcome::Harmless } else { ReplayOutcome::Refused };
            assert_eq!(sample.check(disk, false, &what), expected, "{what}");
        }
    }
}

#[test]
fn files_of_two_databases_do_not_mix() {
    let (one, other) = (sample(true), sample(true));
    for (path, _) in one.files().into_iter().filter(|(path, _)| !path.ends_with("MANIFEST.copy")) {
        let disk = one.disk.fork();
        disk.delete(&path).unwrap();
        let file = disk.create(&path, 0).unwrap();
        file.write_at(0, &other.disk.contents(&path).unwrap()).unwrap();
        file.sync_all().unwrap();
        disk.sync_dir(path.parent().unwrap()).unwrap();
        let error = recover(&Arc::new(disk), 1).unwrap_err();
        let kind = &error.corruption().unwrap().kind;
        assert!(matches!(kind, CorruptionKind::OtherDatabase(_)), "{}: {error}", path.display());
    }
}

#[test]
fn an_older_manifest_is_refused() {
    let disk = Arc::new(SimulatedDisk::new());
    let mut run = Run::new(&disk, 1, 3);
    run.round();
    let manifest = Path::new(DIR).join("MANIFEST");
    let old = disk.contents(&manifest).unwrap();
    let stored = run.log.durable_epoch;
    let disk = Arc::new(disk.kill());
    run.reopen(&disk, 1, stored);
    run.round();
    drop(run);
    disk.truncate(&manifest, 0).unwrap();
    let file = disk.open(&manifest).unwrap();
    file.write_at(0, &old).unwrap();
    file.sync_all().unwrap();
    let error = recover(&disk, 1).unwrap_err();
    let owner = Path::new(DIR).join("log/OWNER");
    assert!(matches!(&error, OpenError::OtherOwner { file, .. } if *file == owner), "{error}");
    // Without that file the log files tell it.
    disk.remove(&owner).unwrap();
    let error = recover(&disk, 1).unwrap_err();
    assert_eq!(error.corruption().unwrap().kind, CorruptionKind::LaterGeneration(2), "{error}");
}

#[test]
fn damage_names_the_place_the_loss_and_the_remedy() {
    let disk = Arc::new(SimulatedDisk::new());
    let mut run = Run::new(&disk, 1, 3);
    run.round();
    let (stored, offset) = (run.log.durable_epoch, run.log.loggers[0].offset);
    (0..3).for_each(|_| run.round());
    drop(run);
    let path = Path::new(DIR).join("log/log-1-0-1.open");
    disk.flip(&path, offset * 8).unwrap();
    let error = recover(&disk, 1).unwrap_err();
    let corruption = error.corruption().unwrap();
    assert_eq!((&corruption.file, corruption.offset), (&path, Some(offset)));
    assert_eq!(corruption.loss, DataLoss::After(stored));
    let text = error.to_string();
    assert!(text.contains(&format!("--accept-loss-after-epoch {stored}")), "{text}");
}

#[test]
fn a_block_that_knows_more_than_the_log_holds_is_evidence() {
    // The other logger's file ends early, at a block's end, as if its last rounds had never been.
    let disk = Arc::new(SimulatedDisk::new());
    let mut run = Run::new(&disk, 2, 3);
    run.round();
    let offset = run.log.loggers[1].offset;
    run.round();
    run.round();
    drop(run);
    let path = Path::new(DIR).join("log/log-1-1-1.open");
    disk.truncate(&path, offset).unwrap();
    disk.open(&path).unwrap().set_len(FILE_BYTES).unwrap();
    let error = recover(&disk, 1).unwrap_err();
    assert!(matches!(error.corruption().unwrap().kind, CorruptionKind::ShortLog { .. }), "{error}");
}

/// Makes a manifest one that a later version wrote.
pub(super) fn make_later_format(disk: &SimulatedDisk, manifest: &Path) {
    let mut bytes = disk.contents(manifest).unwrap();
    bytes[8] = FORMAT_VERSION as u8 + 1;
    let mut digest = Checksum::default();
    digest.update(&bytes[..12]);
    digest.update(&bytes[16..]);
    bytes[12..16].copy_from_slice(&digest.value().to_le_bytes());
    disk.overwrite(manifest, 0, &bytes).unwrap();
}

#[test]
fn a_later_format_is_left_to_a_later_version() {
    let disk = Arc::new(SimulatedDisk::new());
    drop(TestLog::open(&disk, 1));
    let manifest = Path::new(DIR).join("MANIFEST");
    make_later_format(&disk, &manifest);
    assert!(
        matches!(recover(&disk, 1), Err(OpenError::NewerFormat { format, .. }) if format == FORMAT_VERSION + 1)
    );
}

#[test]
fn a_directory_of_something_else_is_left_alone() {
    let disk = Arc::new(SimulatedDisk::new());
    disk.create_dir_all(Path::new(DIR)).unwrap();
    disk.create(&Path::new(DIR).join("letters.txt"), 10).unwrap();
    assert!(matches!(recover(&disk, 1), Err(OpenError::NotADatabase { .. })));
    assert_eq!(disk.list(Path::new(DIR)).unwrap().len(), 1, "no lock file is left");
    // Another program's file of that name is not written over.
    let lock = Path::new(DIR).join("LOCK");
    disk.create(&lock, 0).unwrap().write_at(0, b"theirs").unwrap();
    assert!(matches!(recover(&disk, 1), Err(OpenError::NotADatabase { .. })));
    assert_eq!(disk.contents(&lock).unwrap(), b"theirs");
}

#[test]
fn a_file_with_the_name_of_the_socket_is_somebody_s_own() {
    let disk = Arc::new(SimulatedDisk::new());
    disk.create_dir_all(Path::new(DIR)).unwrap();
    disk.create(&Path::new(DIR).join("STATISTICS"), 10).unwrap();
    let refused = recover(&disk, 1);
    assert!(
        matches!(&refused, Err(OpenError::NotADatabase { holds: Some(name), .. }) if name == "STATISTICS")
    );
}

#[test]
fn an_end_in_order_proves_the_last_round() {
    let disk = Arc::new(SimulatedDisk::new());
    let mut run = Run::new(&disk, 1, 3);
    run.round();
    let offset = run.log.loggers[0].offset;
    run.round();
    let path = Path::new(DIR).join("log/log-1-0-1.open");
    let flipped = Arc::new(disk.fork());
    flipped.flip(&path, offset * 8 + 100).unwrap();
    // Before the end is written, the last round may as well not have been synced.
    recover(&flipped, 1).unwrap();
    run.log.append(0, &[], None, BlockEnd::Closed);
    drop(run);
    disk.flip(&path, offset * 8 + 100).unwrap();
    assert!(recover(&disk, 1).is_err());
}

#[test]
fn a_block_that_knows_that_the_one_before_was_synced_is_evidence() {
    let disk = Arc::new(SimulatedDisk::new());
    let mut run = Run::new(&disk, 2, 3);
    run.round();
    let (mark, offset) = (Epoch::new(run.log.durable_epoch.get() + 5), run.log.loggers[0].offset);
    run.log.append(0, &[], Some(mark), BlockEnd::None);
    run.log.sync(0);
    // The first logger goes on before the other has synced, and does not know yet how much is stored.
    run.log.append(0, &[], None, BlockEnd::None);
    run.log.append(1, &[], Some(mark), BlockEnd::None);
    run.log.sync(1);
    drop(run);
    disk.flip(&Path::new(DIR).join("log/log-1-0-1.open"), offset * 8 + 300).unwrap();
    let error = recover(&disk, 1).unwrap_err();
    assert!(matches!(error.corruption().unwrap().kind, CorruptionKind::Block(_)), "{error}");
}
