//! A sector that the system cannot read is damage like any other: an opening and a verification name it, and
//! what they advise helps.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;
use ensilo_test_disk::SimulatedDisk;

use super::bad_sectors::{BadDisk, EIO, Operation, SECTOR_BYTES};
use super::history::Run;
use super::model::{AnyOrder, Rows, Transaction};
use super::repair::with_copies;
use super::salvage::{PART, TARGET, blocks, saved_rows, sixty_rows};
use super::writer::{DIR, options, recover, rows_up_to};
use crate::recovery::copy::copy_file;
use crate::recovery::{
    Corruption, CorruptionKind, DataLoss, Dumped, GenerationOptions, OpenError, Progress, Repaired,
    check_file, dump, inspect, inspect_read_only, repair, salvage, verify,
};

/// Returns a database of two loggers with a checkpoint, log after it, and a generation before the last,
/// closed in order or not.
fn two_generations(seed: u64, is_closed: bool) -> (Arc<SimulatedDisk>, Vec<Transaction>) {
    let disk = Arc::new(SimulatedDisk::new());
    let mut run = Run::new(&disk, 2, seed);
    (0..2).for_each(|_| run.round());
    run.checkpoint(2);
    (0..2).for_each(|_| run.round());
    run.rotate(0);
    (0..2).for_each(|_| run.round());
    run.log.close();
    let durable_epoch = run.log.durable_epoch;
    let disk = Arc::new(disk.fork());
    run.reopen(&disk, 2, durable_epoch);
    (0..2).for_each(|_| run.round());
    run.rotate(1);
    (0..2).for_each(|_| run.round());
    if is_closed {
        run.log.close();
    }
    let history = run.history.clone();
    drop(run);
    (Arc::new(disk.fork()), history)
}

/// Returns all sectors of all files of the database.
fn sectors(disk: &SimulatedDisk) -> Vec<(PathBuf, u64)> {
    let files = disk.files().into_iter();
    let files = files.filter(|(path, _)| path.starts_with(DIR) && !path.ends_with("LOCK"));
    files
        .flat_map(|(path, bytes)| (0..bytes.div_ceil(SECTOR_BYTES)).map(move |at| (path.clone(), at)))
        .collect()
}

fn with_bad_sector(disk: &Arc<SimulatedDisk>, path: &Path, sector: u64) -> Arc<dyn Disk> {
    Arc::new(BadDisk::with_bad_sector(disk, path, sector, 0))
}

/// Opens the database, replays it, and begins a generation.
fn open(disk: &Arc<dyn Disk>) -> Result<(Rows, Epoch), OpenError> {
    let found = inspect(disk, Path::new(DIR))?;
    let target = AnyOrder::default();
    found.replay(&target, 2, &Progress::new())?;
    let durable_epoch = found.durable_epoch().unwrap();
    let directories = found.manifest().unwrap().log_directories();
    let directories = directories.into_iter().map(|spelled| Path::new(DIR).join(spelled)).collect();
    let options = GenerationOptions { directories, ..options(&found, 0) };
    found.next_generation(&options)?;
    Ok((target.rows(), durable_epoch))
}

fn open_to_read(disk: &Arc<dyn Disk>) -> Result<(), OpenError> {
    let files = inspect_read_only(disk, Path::new(DIR))?;
    files.found().replay(&AnyOrder::default(), 2, &Progress::new()).map(|_| ())
}

fn corruptions(disk: &Arc<dyn Disk>) -> Vec<Corruption> {
    let mut corruptions = Vec::new();
    let verified = verify(&**disk, Path::new(DIR), &mut |corruption| corruptions.push(corruption)).unwrap();
    assert_eq!(verified.corruptions, corruptions.len() as u64);
    assert_eq!(verified.durable_epoch.is_none(), !corruptions.is_empty());
    corruptions
}

fn named(path: &Path, sector: u64) -> impl Fn(&Corruption) -> bool {
    move |corruption| {
        let is_here = corruption.file == path && corruption.offset == Some(sector * SECTOR_BYTES);
        is_here && matches!(corruption.kind, CorruptionKind::Unreadable { .. })
    }
}

/// Does what the damage advises, and returns the rows that are there then.
fn helped(
    disk: &Arc<SimulatedDisk>,
    bad: &Arc<dyn Disk>,
    corruption: &Corruption,
    history: &[Transaction],
) -> Rows {
    let dir = Path::new(DIR);
    let accept = |epoch| repair(bad, dir, epoch);
    let advised = corruption.to_string();
    assert!(advised.contains("cannot be read") && advised.contains("try again"), "{advised}");
    let says = |remedy: &str| assert!(advised.contains(remedy), "{advised}");
    match corruption.loss {
        DataLoss::After(epoch) => {
            says(&format!("--accept-loss-after-epoch {epoch}"));
            check_repaired(&accept(Some(epoch)).unwrap(), corruption);
            let rows = open(bad).unwrap().0;
            assert!(rows == rows_up_to(history, epoch), "{advised}");
            rows
        }
        DataLoss::Copies => {
            says("ensilo repair");
            check_repaired(&accept(None).unwrap(), corruption);
            open(bad).unwrap().0
        }
        DataLoss::Checkpoint | DataLoss::LogOfCheckpoint(_) => {
            says("ensilo salvage");
            let refused = accept(None).unwrap_err();
            assert!(refused.corruption().is_some_and(|refused| refused == corruption), "{refused}");
            salvage(bad, dir, Path::new(TARGET)).unwrap();
            saved_rows(disk)
        }
        DataLoss::Manifest => {
            says("copy MANIFEST.copy to MANIFEST");
            disk.remove(&dir.join("MANIFEST")).unwrap();
            copy_file(&**disk, &dir.join("MANIFEST.copy"), &dir.join("MANIFEST"), None, &mut |_| Ok(()))
                .unwrap();
            open(bad).unwrap().0
        }
        DataLoss::Leftover => panic!("an opening that was not interrupted: {advised}"),
        DataLoss::Everything => {
            says("remove the file");
            assert!(corruption.file.ends_with("OWNER"), "{advised}");
            disk.remove(&corruption.file).unwrap();
            open(bad).unwrap().0
        }
    }
}

/// A repair names what could not be read, and its copy has that nowhere else.
fn check_repaired(repaired: &Repaired, corruption: &Corruption) {
    assert!(repaired.corruptions.contains(corruption), "{:?}", repaired.corruptions);
    let CorruptionKind::Unreadable { bytes, .. } = corruption.kind else { panic!("{corruption}") };
    assert_eq!(repaired.unread, [(corruption.file.clone(), bytes)]);
    assert_eq!(repaired.unopened, []);
}

#[test]
fn each_sector_of_each_file_that_cannot_be_read_is_named_and_the_remedy_works() {
    for (seed, is_closed) in [(1, false), (2, true)] {
        let (sound, history) = two_generations(seed, is_closed);
        let (rows, durable_epoch) = open(&(Arc::new(sound.fork()) as Arc<dyn Disk>)).unwrap();
        assert_eq!(rows, rows_up_to(&history, durable_epoch));
        let (mut harmless, mut losses) = (BTreeSet::new(), BTreeSet::new());
        for (path, sector) in sectors(&sound) {
            let what = format!("sector {sector} of {}", path.display());
            let disk = Arc::new(sound.fork());
            let bad = with_bad_sector(&disk, &path, sector);
            let found = corruptions(&bad);
            let opened = open(&with_bad_sector(&Arc::new(sound.fork()), &path, sector));
            if let Ok((opened, _)) = opened {
                assert!(found.is_empty(), "{what}: {found:?}");
                assert_eq!(opened, rows, "{what}");
                harmless.insert(path);
                continue;
            }
            let of_here: Vec<&Corruption> =
                found.iter().filter(|corruption| named(&path, sector)(corruption)).collect();
            assert_eq!((of_here.len(), found.len()), (1, 1), "{what}: {found:?}");
            for error in [opened.unwrap_err(), open_to_read(&bad).unwrap_err()] {
                assert_eq!(error.corruption(), Some(of_here[0]), "{what}: {error}");
            }
            let loss = format!("{:?}", of_here[0].loss);
            losses.insert(loss.split('(').next().unwrap().to_owned());
            let left = helped(&disk, &bad, of_here[0], &history);
            assert!(!left.is_empty(), "{what}");
        }
        assert_eq!(harmless, BTreeSet::from([Path::new(DIR).join("MANIFEST.copy")]));
        assert_eq!(losses.len(), 5, "{losses:?}");
    }
}

#[test]
fn copies_of_records_that_cannot_be_read_are_left_out_and_nothing_is_lost() {
    let (sound, rows) = with_copies();
    let copies = Path::new("db/checkpoint-1/copies.ckpt");
    let of_copies: Vec<_> = sectors(&sound).into_iter().filter(|(path, _)| path == copies).collect();
    assert!(of_copies.len() > 1);
    for (path, sector) in of_copies {
        let disk = Arc::new(sound.fork());
        let bad = with_bad_sector(&disk, &path, sector);
        let found = corruptions(&bad);
        assert!(found.len() == 1 && named(&path, sector)(&found[0]), "{found:?}");
        assert_eq!(found[0].loss, DataLoss::Copies);
        assert_eq!(open(&bad).unwrap_err().corruption(), Some(&found[0]));
        assert_eq!(helped(&disk, &bad, &found[0], &[]), rows);
    }
}

#[test]
fn what_is_wrong_beside_a_sector_that_cannot_be_read_is_reported_too() {
    let (disk, _) = sixty_rows();
    let part = Path::new(PART);
    let offsets: Vec<u64> = blocks(&disk).into_iter().map(|(offset, _)| offset).collect();
    let log = Path::new("db/log/log-1-0-1.open");
    disk.flip(part, (offsets[0] + 100) * 8).unwrap();
    let last = offsets[offsets.len() - 1];
    assert!(offsets.len() > 4);
    disk.flip(part, (last + 100) * 8).unwrap();
    disk.flip(log, (4096 + 100) * 8).unwrap();
    let sector = (offsets[2] + 20_000) / SECTOR_BYTES;
    let found = corruptions(&with_bad_sector(&disk, part, sector));
    let of_part: Vec<_> = found.iter().filter(|corruption| corruption.file == part).collect();
    let places: Vec<_> = of_part.iter().map(|corruption| corruption.offset.unwrap()).collect();
    assert_eq!(places, [offsets[0], sector * SECTOR_BYTES, last]);
    assert!(named(part, sector)(of_part[1]), "{found:?}");
    assert!(found.iter().any(|corruption| corruption.file == log), "{found:?}");
    // In the header it hides nothing of the rest.
    let found = corruptions(&with_bad_sector(&disk, part, 0));
    let places: Vec<_> = found
        .iter()
        .filter(|corruption| corruption.file == part)
        .map(|corruption| corruption.offset)
        .collect();
    assert_eq!(places, [Some(0), Some(offsets[0]), Some(last)]);
}

#[test]
fn a_file_by_itself_is_checked_behind_what_cannot_be_read() {
    let (disk, _) = sixty_rows();
    let part = Path::new(PART);
    let offsets: Vec<u64> = blocks(&disk).into_iter().map(|(offset, _)| offset).collect();
    let sound = check_file(&*disk, part, None).unwrap();
    let sector = (offsets[1] + 20_000) / SECTOR_BYTES;
    let bad = with_bad_sector(&disk, part, sector);
    let checked = check_file(&*bad, part, None).unwrap();
    assert_eq!(checked.blocks, sound.blocks - 1);
    let [(offset, CorruptionKind::Unreadable { bytes, error })] = &checked.corruptions[..] else {
        panic!("{checked:?}")
    };
    assert_eq!((*offset, *bytes), (sector * SECTOR_BYTES, SECTOR_BYTES));
    assert!(error.contains("os error 5"), "{error}");
    let mut shown = Vec::new();
    dump(&*bad, part, &mut |dumped| {
        if let Dumped::Corruption { offset, kind } = dumped {
            shown.push((offset, kind));
        }
    })
    .unwrap();
    assert_eq!(shown, checked.corruptions);
    let bad = with_bad_sector(&disk, part, 0);
    for error in [check_file(&*bad, part, None).map(|_| ()), dump(&*bad, part, &mut |_| {})] {
        assert!(named(part, 0)(error.unwrap_err().corruption().unwrap()));
    }
}

#[test]
fn the_text_in_the_copy_of_a_repair_stands_where_nothing_could_be_read() {
    let (sound, _) = two_generations(3, false);
    let log = Path::new("db/log/log-2-0-1.open");
    let bad = with_bad_sector(&sound, log, 1);
    let found = corruptions(&bad);
    let DataLoss::After(epoch) = found[0].loss else { panic!("{found:?}") };
    let before = sound.contents(log).unwrap();
    let repaired = repair(&bad, Path::new(DIR), Some(epoch)).unwrap();
    let copied = sound.contents(&repaired.copy.join("log/log-2-0-1.open")).unwrap();
    let sector = SECTOR_BYTES as usize;
    assert!(copied[sector..2 * sector].chunks(16).all(|piece| piece == b"cannot be read! "));
    assert_eq!((&copied[..sector], &copied[2 * sector..]), (&before[..sector], &before[2 * sector..]));
    assert!(corruptions(&bad).is_empty());
}

/// Not only reading: a system that has no memory, or no descriptors left, says nothing of the disk.
#[test]
fn other_errors_of_the_system_are_no_damage() {
    let (disk, _) = sixty_rows();
    for path in ["db/MANIFEST", "db/log/OWNER", "db/log/log-1-0-1.open", PART] {
        for (error, is_corruption) in [(EIO, true), (12, false), (24, false)] {
            let mut bad = BadDisk::with_bad_sector(&disk, Path::new(path), 0, 0);
            bad.error = error;
            let bad = Arc::new(bad) as Arc<dyn Disk>;
            let failed = open(&bad).unwrap_err();
            assert_eq!(failed.corruption().is_some(), is_corruption, "{path}: {failed}");
            let verified = verify(&*bad, Path::new(DIR), &mut |_| {});
            assert_eq!(verified.is_ok(), is_corruption, "{path}: {verified:?}");
            assert!(is_corruption || matches!(failed, OpenError::Io { .. }), "{path}: {failed}");
        }
    }
}

#[test]
fn what_cannot_be_opened_or_listed_is_damage_too() {
    let (sound, history) = two_generations(4, false);
    let mut repaired = 0;
    let files = sound.files().into_iter().map(|(path, _)| path);
    let files = files.filter(|path| path.starts_with("db/log") || path.starts_with("db/checkpoint-1"));
    let cases = files.map(|path| (path, Operation::Open)).chain([("db/log".into(), Operation::List)]);
    for (path, operation) in cases.filter(|(path, _)| !path.ends_with("LOCK")) {
        let disk = Arc::new(sound.fork());
        let bad = BadDisk::without(&disk, &[(path.clone(), operation)]);
        let bad = Arc::new(bad) as Arc<dyn Disk>;
        let found = corruptions(&bad);
        let is_named = |corruption: &Corruption| {
            corruption.file == path && matches!(corruption.kind, CorruptionKind::Unopened { .. })
        };
        assert!(found.len() == 1 && is_named(&found[0]), "{}: {found:?}", path.display());
        assert!(open(&bad).is_err());
        if let (DataLoss::After(epoch), Operation::Open) = (found[0].loss, operation) {
            let done = repair(&bad, Path::new(DIR), Some(epoch)).unwrap();
            assert_eq!(done.unopened.len(), 1);
            assert_eq!(open(&bad).unwrap().0, rows_up_to(&history, epoch));
            repaired += 1;
        }
    }
    assert!(repaired > 1, "{repaired}");
}

#[test]
fn a_sector_that_is_read_the_second_time_opens_then() {
    let (disk, rows) = sixty_rows();
    let text = |path: &Path| {
        let found = open(&with_bad_sector(&disk, path, 1)).unwrap_err();
        found.to_string()
    };
    for path in [Path::new(PART), Path::new("db/log/log-1-0-1.open")] {
        assert!(text(path).contains("try again, what failed once may be read then"), "{}", text(path));
    }
    // Nothing was changed by the attempts.
    assert_eq!(recover(&disk, 1).unwrap().0, rows);
}

#[test]
fn an_old_checkpoint_that_cannot_be_listed_keeps_nobody_from_opening() {
    let (sound, _) = two_generations(1, true);
    let rows = recover(&Arc::new(sound.fork()), 1).unwrap().0;
    let left = Path::new(DIR).join("checkpoint-99");
    sound.create_dir_all(&left).unwrap();
    let bad: Arc<dyn Disk> = Arc::new(BadDisk::without(&sound, &[(left.clone(), Operation::List)]));
    assert_eq!(open(&bad).unwrap().0, rows);
    assert!(sound.exists(&left).unwrap());
    let sound: Arc<dyn Disk> = sound;
    assert_eq!(open(&sound).unwrap().0, rows);
    assert!(!sound.exists(&left).unwrap(), "it goes when it can be listed");
}
