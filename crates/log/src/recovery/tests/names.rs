//! Names are hints: what a file holds counts, and a name that says something else is found.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;
use ensilo_test_disk::SimulatedDisk;

use super::history::Run;
use super::model::Rows;
use super::writer::{DIR, TestLog, find, options, recover, rows_up_to};
use crate::format::LogFileName;
use crate::recovery::{CorruptionKind, DataLoss, GenerationOptions, OpenError, repair, verify};

/// Returns a database with a checkpoint and several sealed files behind it, at rest, and what it holds.
fn sample() -> (SimulatedDisk, Rows) {
    let disk = Arc::new(SimulatedDisk::new());
    let mut run = Run::new(&disk, 2, 21);
    run.round();
    run.checkpoint(1);
    for _ in 0..2 {
        run.rotate(0);
        run.round();
        run.rotate(1);
        run.round();
    }
    run.log.close();
    let rows = rows_up_to(&run.history, run.log.durable_epoch);
    drop(run);
    (disk.kill(), rows)
}

fn log_files(disk: &SimulatedDisk) -> Vec<PathBuf> {
    let files = disk.files().into_iter().map(|(path, _)| path);
    files.filter(|path| LogFileName::parse(path.file_name().unwrap().to_str().unwrap()).is_some()).collect()
}

/// Returns the rows of two openings one after the other, the first of which begins a generation; or why it is
/// refused.
fn open_twice(disk: SimulatedDisk) -> Result<(Rows, Rows), OpenError> {
    let disk = Arc::new(disk);
    let (first, _) = recover(&disk, 1)?;
    drop(TestLog::open(&disk, 2));
    Ok((first, recover(&disk, 1).expect("what was opened once").0))
}

/// Returns all names that differ from this one in a single digit.
fn other_names(name: &str) -> Vec<String> {
    let digits = name.char_indices().filter(|(_, letter)| letter.is_ascii_digit());
    let others = digits.flat_map(|(at, letter)| {
        ('0'..='9').filter(move |&digit| digit != letter).map(move |digit| {
            let mut other = name.to_owned();
            other.replace_range(at..=at, &digit.to_string());
            other
        })
    });
    others.collect()
}

#[test]
fn every_digit_of_a_name_that_is_changed_is_found_or_harmless() {
    let (disk, rows) = sample();
    let mut refused = 0;
    for path in log_files(&disk) {
        let name = path.file_name().unwrap().to_str().unwrap();
        for other in other_names(name) {
            let changed = disk.fork();
            let to = path.with_file_name(&other);
            if changed.exists(&to).unwrap() {
                continue;
            }
            changed.rename(&path, &to).unwrap();
            match open_twice(changed) {
                Ok(found) => assert_eq!(found, (rows.clone(), rows.clone()), "{name} as {other}"),
                Err(error) => {
                    // What is missing is named without its epoch.
                    let without_epoch =
                        |name: &str| name.split_at(name.find(['.', 'e']).unwrap()).0.to_owned();
                    let names = [name, &other].map(without_epoch);
                    let error = error.to_string();
                    let is_named = |name: &String| error.contains(name.trim_end_matches('-'));
                    assert!(names.iter().any(is_named), "{name} as {other}: {error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 200, "{refused}");
}

/// The file that is made before the one in front of it ends, and has no header yet.
#[test]
fn a_file_that_was_made_ahead_is_no_stranger_where_the_one_before_is_missing() {
    let (disk, _) = sample();
    let names = |disk: &SimulatedDisk| {
        let parse = |path: PathBuf| Some((LogFileName::of(&path)?, path));
        log_files(disk).into_iter().filter_map(parse).collect::<Vec<_>>()
    };
    let last = |logger: u32| {
        let mine = names(&disk).into_iter().filter(move |(name, _)| name.logger == logger);
        mine.max_by_key(|(name, _)| (name.generation, name.sequence)).unwrap()
    };
    let mut repaired = 0;
    for logger in 0..2 {
        let (name, path) = last(logger);
        for ahead in 1..=2 {
            let disk = disk.fork();
            let next = LogFileName::open(name.generation, logger, name.sequence + ahead);
            let next = path.with_file_name(next.to_string());
            disk.create(&next, 4096).unwrap();
            disk.remove(&path).unwrap();
            let mut reported = Vec::new();
            verify(&disk, Path::new(DIR), &mut |corruption| reported.push(corruption)).unwrap();
            let is_of = |path: &Path, kind: &CorruptionKind| {
                reported.iter().any(|corruption| corruption.file == path && corruption.kind == *kind)
            };
            assert!(
                is_of(&path.with_file_name(name.either_name()), &CorruptionKind::Missing),
                "{reported:?}"
            );
            let is_stranger = ahead == 2;
            assert_eq!(is_of(&next, &CorruptionKind::NotALogFile), is_stranger, "{reported:?}");
            let disk = Arc::new(disk);
            let error = find(&disk).unwrap_err();
            let corruption = error.corruption().unwrap();
            assert_eq!(corruption.kind == CorruptionKind::NotALogFile, is_stranger, "{error}");
            if let (false, DataLoss::After(kept)) = (is_stranger, corruption.loss) {
                // Nor is it in the way of a repair, or of what is opened then.
                repair(&(Arc::clone(&disk) as Arc<dyn Disk>), Path::new(DIR), Some(kept)).unwrap();
                open_twice(disk.kill()).unwrap();
                repaired += 1;
            }
        }
    }
    assert!(repaired > 0);
}

/// Returns the sealed file that the checkpoint does not cover, under the name of another epoch.
fn misnamed(disk: &SimulatedDisk, epoch: impl FnOnce(u64) -> u64) -> (PathBuf, PathBuf) {
    let is_sealed = |path: &&PathBuf| path.display().to_string().contains("-0-2-e");
    let path = log_files(disk).iter().find(is_sealed).unwrap().clone();
    let name = LogFileName::parse(path.file_name().unwrap().to_str().unwrap()).unwrap();
    let changed = LogFileName { epoch_number: name.epoch_number.map(epoch), ..name };
    let to = path.with_file_name(changed.to_string());
    disk.rename(&path, &to).unwrap();
    (path, to)
}

#[test]
fn opening_verify_and_repair_see_a_name_that_says_another_epoch() {
    let changes: [fn(u64) -> u64; 4] = [|_| 0, |epoch| epoch - 1, |epoch| epoch + 1, |_| (1 << 44) - 1];
    for change in changes {
        let (disk, rows) = sample();
        let (path, to) = misnamed(&disk, change);
        let disk = Arc::new(disk);
        let error = recover(&disk, 1).unwrap_err();
        let corruption = error.corruption().unwrap();
        assert!(matches!(corruption.kind, CorruptionKind::Misnamed { .. }), "{error}");
        assert_eq!(corruption.file, to);
        assert!(error.to_string().ends_with(&format!("give the file its name back: {}", path.display())));
        let mut reported = Vec::new();
        let verified = verify(&*disk, Path::new(DIR), &mut |corruption| reported.push(corruption)).unwrap();
        assert_eq!((verified.corruptions, &reported[..]), (1, std::slice::from_ref(corruption)));
        // A repair has nothing to give up.
        let DataLoss::After(reachable) = corruption.loss else { panic!("{error}") };
        let as_disk: Arc<dyn Disk> = Arc::clone(&disk) as _;
        let repaired = repair(&as_disk, Path::new(DIR), Some(reachable)).unwrap();
        assert_eq!(repaired.stored_to, repaired.kept_to);
        assert_eq!(open_twice(disk.kill()).unwrap(), (rows.clone(), rows));
    }
}

#[test]
fn a_file_that_nobody_asked_for_does_not_move_the_epochs() {
    let (disk, rows) = sample();
    let before = find(&Arc::new(disk.fork())).unwrap().largest_epoch();
    for name in [
        "log-0-0-1-e17592186044415.log",
        "log-0-0-1-e18446744073709551615.log",
        "log-1-0-1-e17592186044415.log",
        "log-1-0-1-e18446744073709551615.log",
        "log-1-0-17592186044415-e17592186044415.log",
        "log-18446744073709551615-0-1.open",
        "log-17592186044415-0-1.open",
        "log-9-0-1-e7.log",
        "log-1-9-1.open",
    ] {
        let disk = Arc::new(disk.fork());
        let path = Path::new(DIR).join("log").join(name);
        disk.create(&path, 0).unwrap();
        match find(&disk) {
            Ok(found) => {
                assert_eq!(found.largest_epoch(), before, "{name}");
                drop(found);
                assert_eq!(open_twice(disk.fork()).unwrap(), (rows.clone(), rows.clone()), "{name}");
            }
            Err(error) => {
                let place = name.rsplit_once('-').unwrap().0;
                assert!(error.to_string().contains(place), "{name}: {error}");
            }
        }
    }
}

#[test]
fn a_file_that_is_not_what_its_name_says_is_not_removed() {
    let (disk, rows) = sample();
    let disk = Arc::new(disk);
    drop(TestLog::open(&disk, 2));
    // A file of an earlier generation that is not needed, by its name.
    let kept = Path::new(DIR).join("log/log-1-0-9-e1.log");
    let source = log_files(&disk).into_iter().find(|path| path.to_str().unwrap().contains("-0-2-e")).unwrap();
    let bytes = disk.contents(&source).unwrap();
    disk.create(&kept, 0).unwrap().write_at(0, &bytes).unwrap();
    drop(TestLog::open(&disk, 2));
    assert_eq!(disk.contents(&kept).unwrap(), bytes);
    assert_eq!(recover(&disk, 1).unwrap().0, rows);
}

#[test]
fn an_opening_without_an_epoch_left_changes_nothing() {
    let (disk, _) = sample();
    let disk = Arc::new(disk);
    let contents = |disk: &SimulatedDisk| {
        let files = disk.files().into_iter().filter(|(path, _)| !path.ends_with("LOCK"));
        files.map(|(path, _)| (disk.contents(&path).unwrap(), path)).collect::<Vec<_>>()
    };
    let before = contents(&disk);
    let found = find(&disk).unwrap();
    let options = GenerationOptions { first_epoch: Epoch::new(1 << 44), ..options(&found, 2) };
    assert!(matches!(found.next_generation(&options), Err(OpenError::Refused(_))));
    assert_eq!(contents(&disk), before);
}

#[test]
fn a_file_that_was_made_ahead_is_no_stranger_where_one_further_before_is_missing() {
    let (disk, _) = sample();
    for logger in 0..2 {
        let mut own: Vec<(LogFileName, PathBuf)> = log_files(&disk)
            .into_iter()
            .filter_map(|path| Some((LogFileName::of(&path)?, path)))
            .filter(|(name, _)| name.logger == logger)
            .collect();
        own.sort_unstable();
        let [.., (_, missed), (last, path)] = &own[..] else { panic!("{own:?}") };
        let disk = disk.fork();
        let next = LogFileName::open(last.generation, logger, last.sequence + 1);
        disk.create(&path.with_file_name(next.to_string()), 4096).unwrap();
        disk.remove(missed).unwrap();
        let mut reported = Vec::new();
        verify(&disk, Path::new(DIR), &mut |corruption| reported.push(corruption.kind)).unwrap();
        assert!(reported.contains(&CorruptionKind::Missing), "{reported:?}");
        assert!(!reported.contains(&CorruptionKind::NotALogFile), "{reported:?}");
    }
}

#[test]
fn a_log_file_of_which_only_a_part_of_the_header_was_written_is_passed_over() {
    let (disk, rows) = sample();
    let later = Arc::new(disk.fork());
    drop(TestLog::open(&later, 2));
    let path = log_files(&later).into_iter().find(|path| !disk.exists(path).unwrap()).unwrap();
    let whole = later.contents(&path).unwrap();
    let with_file = |bytes: &[u8]| {
        let disk = disk.fork();
        disk.create(&path, whole.len() as u64).unwrap().write_at(0, bytes).unwrap();
        open_twice(disk)
    };
    for len in 0..=88 {
        assert_eq!(with_file(&whole[..len]).unwrap(), (rows.clone(), rows.clone()), "{len}");
    }
    // What is not the beginning of its header was not left by an opening.
    for (len, changed) in [(1, 0), (30, 9), (60, 20), (200, 100)] {
        let mut bytes = whole[..len].to_vec();
        bytes[changed] ^= 1;
        let error = with_file(&bytes).unwrap_err();
        assert_eq!(error.corruption().unwrap().kind, CorruptionKind::NotALogFile, "{error}");
    }
}
