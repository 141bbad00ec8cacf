//! What is left of a damaged database is saved whole or not at all, and what is lost is listed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;
use ensilo_test_disk::{Faults, SimulatedDisk};

use super::checkpoint_failures::before_second_checkpoint;
use super::history::Run;
use super::model::{AnyOrder, OneWrite, Op, RowKey, Rows, Transaction, Versions};
use super::writer::{DIR, FILE_BYTES, TestLog, find, options, recover, rows_up_to, words};
use crate::recovery::{
    CheckpointWriterOptions, CorruptionKind, DEFINITION_TABLES, DataLoss, Dumped, FinishedCheckpoint,
    GenerationOptions, OpenError, Progress, RecordKey, SalvageLoss, Salvaged, dump, inspect, repair, salvage,
    verify,
};

pub(super) const TARGET: &str = "saved";
const TABLE: u32 = 5;
pub(super) const PART: &str = "db/checkpoint-1/part-0.ckpt";

fn as_disk(disk: &Arc<SimulatedDisk>) -> Arc<dyn Disk> {
    Arc::clone(disk) as Arc<dyn Disk>
}

fn save(disk: &Arc<SimulatedDisk>) -> Result<Salvaged, OpenError> {
    salvage(&as_disk(disk), Path::new(DIR), Path::new(TARGET))
}

fn contents(disk: &SimulatedDisk) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = disk.files().into_iter().map(|(path, _)| path);
    files
        .filter(|path| path.starts_with(DIR) && !path.ends_with("LOCK"))
        .map(|path| (path.clone(), disk.contents(&path).unwrap()))
        .collect()
}

/// Returns the rows of the new database, which is verified and opened.
pub(super) fn saved_rows(disk: &Arc<SimulatedDisk>) -> Rows {
    let verified = verify(&**disk, Path::new(TARGET), &mut |corruption| panic!("{corruption}")).unwrap();
    assert_eq!(verified.corruptions, 0);
    let found = inspect(&as_disk(disk), Path::new(TARGET)).unwrap();
    let target = AnyOrder::default();
    found.replay(&target, 1, &Progress::new()).unwrap();
    let options = GenerationOptions {
        directories: vec![Path::new(TARGET).join("log")],
        file_bytes: FILE_BYTES,
        first_epoch: Epoch::new(found.largest_epoch().get() + 1),
    };
    found.next_generation(&options).unwrap();
    target.rows()
}

fn key(number: u8) -> Vec<u8> {
    vec![0, number]
}

fn row(number: u8) -> Vec<u8> {
    vec![number; 20_001]
}

fn tid(epoch: u64, sequence: u64) -> u64 {
    epoch << 20 | sequence << 3
}

fn write(tid: u64, number: u8, op: Op) -> Transaction {
    Transaction { tid, writes: vec![OneWrite { table: TABLE, key: key(number), op }] }
}

/// Sixty rows of a checkpoint in several blocks, and changes after it.
pub(super) fn sixty_rows() -> (Arc<SimulatedDisk>, Rows) {
    let disk = Arc::new(SimulatedDisk::new());
    let mut log = TestLog::open(&disk, 1);
    let first = log.first_epoch.get();
    let tids = |number: u8| tid(first, u64::from(number) + 1);
    let puts: Vec<_> = (0..60).map(|number| write(tids(number), number, Op::Put(row(number)))).collect();
    log.round(&[puts], Epoch::new(first + 1));
    let versions: Versions<Vec<u8>> =
        (0..60).map(|number| ((TABLE, key(number)), (tids(number), row(number)))).collect();
    log.checkpoint(Epoch::new(first + 1), &versions, 1);
    let after = [
        write(tid(first + 1, 1), 14, Op::Put(row(140))),
        write(tid(first + 1, 2), 14, Op::Patch(vec![(1, 77)])),
        write(tid(first + 1, 3), 15, Op::Delete),
        write(tid(first + 1, 4), 100, Op::Put(row(100))),
        write(tid(first + 1, 5), 0, Op::Patch(vec![(2500, u64::MAX)])),
    ];
    log.round(&[after.to_vec()], Epoch::new(first + 2));
    drop(log);
    let rows = recover(&disk, 1).unwrap().0;
    assert_eq!(rows.len(), 60);
    (disk, rows)
}

/// Returns the keys of each block of the part with records, and where it begins.
pub(super) fn blocks(disk: &SimulatedDisk) -> Vec<(u64, Vec<Vec<u8>>)> {
    let mut blocks = Vec::new();
    dump(disk, Path::new(PART), &mut |dumped| match dumped {
        Dumped::Block(sealed) => blocks.push((sealed.header.offset, Vec::new())),
        Dumped::Record(record) => blocks.last_mut().unwrap().1.push(record.key.to_vec()),
        _ => {}
    })
    .unwrap();
    blocks.retain(|(_, keys)| !keys.is_empty());
    blocks
}

#[test]
fn a_damaged_block_of_a_checkpoint_costs_its_rows_alone() {
    let (disk, rows) = sixty_rows();
    let blocks = blocks(&disk);
    assert!(blocks.len() > 3);
    let (offset, lost) = blocks[1].clone();
    assert!(lost.contains(&key(14)) && lost.contains(&key(15)));
    disk.flip(Path::new(PART), (offset + 1000) * 8).unwrap();
    let before = contents(&disk);
    // An opening refuses it; a repair finds it too, and says what can be done.
    let refused = recover(&disk, 1).unwrap_err();
    let corruption = refused.corruption().unwrap();
    assert_eq!((corruption.offset, corruption.loss), (Some(offset), DataLoss::Checkpoint));
    let repaired = repair(&as_disk(&disk), Path::new(DIR), Some(Epoch::new(1))).unwrap_err();
    assert_eq!(repaired.corruption(), Some(corruption));
    assert!(repaired.to_string().contains("ensilo salvage"), "{repaired}");
    let salvaged = save(&disk).unwrap();
    // Rows that changed since are in the log.
    let expected: Rows =
        rows.into_iter().filter(|((_, key), _)| !lost.contains(key) || *key == self::key(14)).collect();
    assert_eq!(saved_rows(&disk), expected);
    let record = |key: &Vec<u8>| Some(RecordKey { table: TABLE, key: key.clone() });
    let [place] = &salvaged.unreadable[..] else { panic!("{:?}", salvaged.unreadable) };
    assert_eq!((place.offset, place.end), (offset, blocks[2].0));
    assert_eq!(place.records, Some(lost.len() as u64));
    assert_eq!(
        (&place.after, &place.before),
        (&record(blocks[0].1.last().unwrap()), &record(&blocks[2].1[0]))
    );
    let [table] = &salvaged.tables[..] else { panic!("{:?}", salvaged.tables) };
    assert_eq!((table.table, table.rows), (TABLE, expected.len() as u64));
    assert_eq!((table.lost_records, table.incomplete_rows), (lost.len() as u64, 0));
    assert_eq!(salvaged.mixed_to, None);
    assert_eq!(contents(&disk), before);
}

#[test]
fn a_row_of_which_only_changes_are_left_is_lost_and_counted() {
    let (disk, rows) = sixty_rows();
    let blocks = blocks(&disk);
    // The first row was changed by words alone.
    disk.flip(Path::new(PART), (blocks[0].0 + 70) * 8).unwrap();
    let salvaged = save(&disk).unwrap();
    assert_eq!(salvaged.tables[0].incomplete_rows, 1);
    assert_eq!((&salvaged.unreadable[0].after, salvaged.unreadable.len()), (&None, 1));
    let expected: Rows = rows.into_iter().filter(|((_, key), _)| !blocks[0].1.contains(key)).collect();
    assert_eq!(saved_rows(&disk), expected);
}

#[test]
fn a_checkpoint_that_is_gone_or_cut_leaves_what_can_be_read() {
    let (intact, rows) = sixty_rows();
    let blocks = blocks(&intact);
    let disk = Arc::new(intact.fork());
    disk.delete(Path::new(PART)).unwrap();
    let salvaged = save(&disk).unwrap();
    assert_eq!(salvaged.tables[0].lost_records, 60);
    assert_eq!(salvaged.unreadable[0].records, Some(60));
    assert!(salvaged.corruptions.iter().any(|corruption| corruption.kind == CorruptionKind::Missing));
    let keys: Vec<RowKey> = saved_rows(&disk).into_keys().collect();
    assert_eq!(keys, [(TABLE, key(14)), (TABLE, key(100))]);
    // Cut within its last block but one, and without a header.
    let disk = Arc::new(intact.fork());
    let at = blocks.len() - 2;
    disk.open(Path::new(PART)).unwrap().set_len(blocks[at].0 + 100).unwrap();
    disk.flip(Path::new(PART), 20 * 8).unwrap();
    let salvaged = save(&disk).unwrap();
    let lost: Vec<&Vec<u8>> = blocks[at..].iter().flat_map(|(_, keys)| keys).collect();
    assert_eq!(salvaged.tables[0].lost_records, lost.len() as u64);
    let expected: Rows = rows.into_iter().filter(|((_, key), _)| !lost.contains(&key)).collect();
    assert_eq!(saved_rows(&disk), expected);
}

#[test]
fn of_a_damaged_log_what_counts_is_saved() {
    let disk = Arc::new(SimulatedDisk::new());
    let mut run = Run::new(&disk, 1, 3);
    for _ in 0..4 {
        (0..3).for_each(|_| run.round());
        run.rotate(0);
    }
    run.round();
    let (history, stored) = (run.history.clone(), run.log.durable_epoch);
    drop(run);
    let sealed = disk.files().into_iter().map(|(path, _)| path);
    let sealed = sealed.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
    for path in sealed.collect::<Vec<_>>() {
        let damaged = Arc::new(disk.fork());
        damaged.flip(&path, (4096 + 70) * 8).unwrap();
        let error = recover(&damaged, 1).unwrap_err();
        let DataLoss::After(kept) = error.corruption().unwrap().loss else { panic!("{error}") };
        let salvaged = save(&damaged).unwrap();
        assert_eq!((salvaged.kept_to, salvaged.stored_to, salvaged.mixed_to), (kept, stored, None));
        assert_eq!(salvaged.unreadable, []);
        assert!(salvaged.given_up.transactions > 0);
        assert_eq!(saved_rows(&damaged), rows_up_to(&history, kept), "{}", path.display());
    }
}

#[test]
fn a_log_file_that_is_lost_takes_nothing_of_earlier_openings_with_it() {
    let (sound, rows) = sixty_rows();
    drop(TestLog::open(&sound, 2));
    let of_last_opening = |path: &PathBuf| path.to_string_lossy().contains("/log-2-");
    let files: Vec<_> = contents(&sound).into_keys().filter(of_last_opening).collect();
    assert_eq!(files.len(), 2);
    for path in files {
        let disk = Arc::new(sound.fork());
        disk.remove(&path).unwrap();
        save(&disk).unwrap();
        assert!(saved_rows(&disk) == rows, "without {}", path.display());
        let disk = Arc::new(sound.fork());
        disk.open(&path).unwrap().write_at(0, &[0xff; 64]).unwrap();
        save(&disk).unwrap();
        assert!(saved_rows(&disk) == rows, "with another header of {}", path.display());
    }
}

#[test]
fn whatever_is_damaged_no_row_is_saved_that_never_was() {
    let disk = Arc::new(SimulatedDisk::new());
    let mut run = Run::new(&disk, 2, 21);
    (0..4).for_each(|_| run.round());
    run.checkpoint(3);
    run.rotate(0);
    (0..3).for_each(|_| run.round());
    run.log.close();
    let rows = rows_up_to(&run.history, run.log.durable_epoch);
    drop(run);
    let parts =
        disk.files().into_iter().filter(|(path, _)| path.extension().is_some_and(|ext| ext == "ckpt"));
    let mut lossy = 0;
    for (path, bytes) in parts.collect::<Vec<_>>() {
        for byte in (4096..bytes).step_by(23) {
            let damaged = Arc::new(disk.fork());
            damaged.flip(&path, byte * 8 + byte % 8).unwrap();
            let salvaged = save(&damaged).unwrap();
            let saved = saved_rows(&damaged);
            let what = format!("byte {byte} of {}", path.display());
            assert!(saved.iter().all(|(key, row)| rows.get(key) == Some(row)), "{what}");
            let missing = (rows.len() - saved.len()) as u64;
            let lost: u64 = salvaged.tables.iter().map(|table| table.lost_records).sum();
            assert!(missing <= lost && !salvaged.unreadable.is_empty(), "{what}: {missing} of {lost}");
            lossy += u64::from(missing > 0);
        }
    }
    assert!(lossy > 0);
}

#[test]
fn a_salvage_that_fails_leaves_nothing_and_can_be_made_again() {
    let (intact, _) = sixty_rows();
    intact.flip(Path::new(PART), 5000 * 8).unwrap();
    let before = contents(&intact);
    let mut failures = 0;
    for at in 1..30 {
        for faults in [
            Faults { seed: at, write_error_at: Some(at), ..Faults::default() },
            Faults { seed: at, sync_error_at: Some(at), ..Faults::default() },
            Faults { seed: at, name_error_at: Some(at), ..Faults::default() },
        ] {
            let disk = Arc::new(intact.fork());
            disk.set_faults(faults);
            let failed = save(&disk).is_err();
            disk.set_faults(Faults::default());
            assert_eq!(contents(&disk), before);
            if !failed {
                continue;
            }
            failures += 1;
            for tear in 0..3 {
                let crashed = Arc::new(disk.fork().crash(tear));
                match inspect(&as_disk(&crashed), Path::new(TARGET)) {
                    Ok(found) => assert!(found.is_new() || found.checkpoint().is_some()),
                    Err(error) => assert!(matches!(error, OpenError::Refused(_)), "{error}"),
                }
            }
        }
    }
    assert!(failures > 10, "{failures}");
}

#[test]
fn a_target_within_the_database_or_with_something_in_it_is_refused() {
    let (disk, _) = sixty_rows();
    for target in ["/db", "/db/saved", "/db/log"] {
        let refused = salvage(&as_disk(&disk), Path::new("/db"), Path::new(target)).unwrap_err();
        assert!(matches!(refused, OpenError::Refused(_)), "{refused}");
    }
    // Nothing is damaged: all is saved.
    let salvaged = save(&disk).unwrap();
    assert_eq!((salvaged.unreadable.len(), salvaged.corruptions.len()), (0, 0));
    assert_eq!(saved_rows(&disk), recover(&disk, 1).unwrap().0);
    assert!(matches!(save(&disk), Err(OpenError::Refused(_))));
}

/// Faults of all kinds, one at each of the operations that this disk has counted.
fn faults_at_each(disk: &SimulatedDisk) -> Vec<Faults> {
    let counts = disk.counts();
    let at = |operations: u64, fault: fn(u64) -> Faults| (1..=operations).map(fault);
    at(counts.writes, |at| Faults { seed: at, write_error_at: Some(at), ..Faults::default() })
        .chain(at(counts.syncs, |at| Faults { seed: at, sync_error_at: Some(at), ..Faults::default() }))
        .chain(at(counts.name_changes, |at| Faults {
            seed: at,
            name_error_at: Some(at),
            ..Faults::default()
        }))
        .collect()
}

/// Returns whether all is saved by the copy of the manifest, whatever a crash has left. Otherwise the salvage
/// must say so.
fn is_saved_by_copy(disk: &SimulatedDisk, expected: &Rows, what: &str) -> bool {
    let crashed = (0..4).map(|tear| disk.fork().crash(tear));
    let mut disks = crashed.chain([disk.fork().kill()]);
    disks.all(|disk| {
        let disk = Arc::new(disk);
        disk.flip(&Path::new(DIR).join("MANIFEST"), 300).unwrap();
        let is_whole = save(&disk).is_ok_and(|salvaged| salvaged.loss() == SalvageLoss::Uncertain);
        if is_whole {
            assert_eq!(saved_rows(&disk), *expected, "{what}");
        }
        is_whole
    })
}

#[test]
fn after_a_checkpoint_that_fails_the_copy_of_the_manifest_is_right_or_known_to_be_older() {
    let begun = || {
        let (disk, mut run) = before_second_checkpoint();
        let (begin, rows) = run.begin_checkpoint();
        (disk, run, begin, rows)
    };
    let all_faults = {
        let (disk, mut run, begin, rows) = begun();
        disk.set_faults(Faults::default());
        run.log.try_checkpoint(begin, &rows, 1).unwrap();
        faults_at_each(&disk)
    };
    let (mut whole, all) = (0, all_faults.len());
    for faults in all_faults {
        let what = format!("{faults:?}");
        let (disk, mut run, begin, rows) = begun();
        disk.set_faults(faults);
        let _ = run.log.try_checkpoint(begin, &rows, 1);
        disk.set_faults(Faults::default());
        let expected = rows_up_to(&run.history, run.log.durable_epoch);
        whole += usize::from(is_saved_by_copy(&disk, &expected, &what));
        // The next one brings the copy up to date.
        run.checkpoint(1);
        let expected = rows_up_to(&run.history, run.log.durable_epoch);
        assert!(is_saved_by_copy(&disk, &expected, &what), "{what}");
    }
    // But where the copy itself could not be removed, created, written, synced, or its name synced.
    assert_eq!((whole, all > 20), (all - 5, true));
}

#[test]
fn after_an_opening_that_fails_the_copy_of_the_manifest_is_right_or_known_to_be_older() {
    let (before, run) = before_second_checkpoint();
    let expected = rows_up_to(&run.history, run.log.durable_epoch);
    drop(run);
    let open = |disk: &Arc<SimulatedDisk>| {
        let found = find(disk)?;
        let options = options(&found, 2);
        found.next_generation(&options).map(drop)
    };
    let all_faults = {
        let disk = Arc::new(before.fork().kill());
        disk.set_faults(Faults::default());
        open(&disk).unwrap();
        faults_at_each(&disk)
    };
    let (mut whole, all) = (0, all_faults.len());
    for faults in all_faults {
        let what = format!("{faults:?}");
        let disk = Arc::new(before.fork().kill());
        disk.set_faults(faults);
        let _ = open(&disk);
        disk.set_faults(Faults::default());
        whole += usize::from(is_saved_by_copy(&disk, &expected, &what));
        let _ = open(&disk);
        assert!(is_saved_by_copy(&disk, &expected, &what), "{what}");
    }
    // As after a checkpoint: but where the copy of the new manifest could not be put in the place of the one
    // before.
    assert_eq!((whole, all > 20), (all - 5, true));
}

#[test]
fn changes_of_rows_that_are_nowhere_are_found_by_verify_and_not_repaired() {
    let (disk, _) = sixty_rows();
    let verified = || {
        let mut corruptions = Vec::new();
        verify(&*disk, Path::new(DIR), &mut |corruption| corruptions.push(corruption)).unwrap();
        corruptions
    };
    assert_eq!(verified(), [], "changes of rows that are there");
    let mut log = TestLog::open(&disk, 1);
    let first = log.first_epoch.get();
    let changes = [
        write(tid(first, 1), 200, Op::Patch(vec![(1, 77)])),
        // Within a longer row of before, and outside of this one.
        write(tid(first, 3), 16, Op::Patch(vec![(2000, 77)])),
        write(tid(first, 2), 16, Op::Put(vec![0; 16])),
        // Deleted since.
        write(tid(first, 4), 17, Op::Delete),
        write(tid(first, 5), 17, Op::Patch(vec![(0, 77)])),
        // These are of no effect.
        write(tid(first, 6), 18, Op::Patch(vec![(2000, 77)])),
        write(tid(first, 7), 18, Op::Put(vec![0; 16])),
        write(tid(first, 8), 201, Op::Patch(vec![(0, 77)])),
        write(tid(first, 9), 201, Op::Delete),
    ];
    log.round(&[changes.to_vec()], Epoch::new(first + 1));
    drop(log);
    let corruptions = verified();
    let [corruption] = &corruptions[..] else { panic!("{corruptions:?}") };
    assert_eq!(corruption.kind, CorruptionKind::WithoutRow { table: TABLE, rows: 3 });
    assert!(corruption.to_string().contains("ensilo salvage"), "{corruption}");
    let refused = repair(&as_disk(&disk), Path::new(DIR), Some(Epoch::new(first)));
    assert!(matches!(&refused, Err(OpenError::Corrupt(found)) if **found == *corruption), "{refused:?}");
    let salvaged = salvage(&as_disk(&disk), Path::new(DIR), Path::new(TARGET)).unwrap();
    assert!(salvaged.tables[0].incomplete_rows > 0, "{salvaged:?}");
}

/// Two databases from one, with a checkpoint of the same number each, which was made after different changes.
/// Both have the same number of records, in parts of the same length.
fn diverged() -> [(Arc<SimulatedDisk>, Rows); 2] {
    let disk = Arc::new(SimulatedDisk::new());
    drop(TestLog::open(&disk, 1));
    [1, 2].map(|value: u8| {
        let disk = Arc::new(disk.fork());
        let mut log = TestLog::open(&disk, 1);
        let epoch = Epoch::new(log.first_epoch.get() + u64::from(value));
        let versions: Versions<Vec<u8>> = DEFINITION_TABLES
            .into_iter()
            .chain([TABLE])
            .zip(1..)
            .map(|(table, sequence)| ((table, key(1)), (tid(epoch.get(), sequence), vec![value; 40])))
            .collect();
        let writes = versions.iter().map(|((table, key), (tid, row))| {
            let writes = vec![OneWrite { table: *table, key: key.clone(), op: Op::Put(row.clone()) }];
            Transaction { tid: *tid, writes }
        });
        log.round(&[writes.collect()], Epoch::new(epoch.get() + 1));
        log.rotate(0, Epoch::new(epoch.get() + 1));
        log.round(&[vec![]], Epoch::new(epoch.get() + 2));
        let place = log.files.begin_checkpoint(Epoch::new(epoch.get() + 1)).unwrap();
        let options = CheckpointWriterOptions::default();
        let (mut writer, mut copies) =
            (place.writer(0, options).unwrap(), place.writer_of_copies(options).unwrap());
        for ((table, key), (tid, row)) in &versions {
            writer.record(*table, key, *tid, row.len(), words(row)).unwrap();
            if DEFINITION_TABLES.contains(table) {
                copies.record(*table, key, *tid, row.len(), words(row)).unwrap();
            }
        }
        let written = vec![writer.finish().unwrap(), copies.finish().unwrap()];
        let end_epoch = log.durable_epoch;
        log.files.install_checkpoint(FinishedCheckpoint { place, end_epoch, written }, end_epoch).unwrap();
        drop(log);
        let rows = recover(&disk, 1).unwrap().0;
        assert_eq!(rows.len(), 3);
        (disk, rows)
    })
}

fn put_from(disk: &SimulatedDisk, other: &SimulatedDisk, path: &Path) {
    let bytes = other.contents(path).unwrap();
    assert_ne!(bytes, disk.contents(path).unwrap());
    let file = disk.open(path).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    file.write_at(0, &bytes).unwrap();
}

#[test]
fn parts_of_a_checkpoint_from_a_copy_that_went_on_by_itself_are_told_from_the_own_ones() {
    let diverged = diverged();
    let (part, copies) = (Path::new(PART), Path::new("db/checkpoint-1/copies.ckpt"));
    for (own, other) in [(0, 1), (1, 0)] {
        let (sound, rows) = &diverged[own];
        let (foreign, foreign_rows) = &diverged[other];
        // Copies of another checkpoint count for nothing, whether they are older or newer.
        let disk = Arc::new(sound.fork());
        put_from(&disk, foreign, copies);
        let salvaged = save(&disk).unwrap();
        assert_eq!(saved_rows(&disk), *rows);
        assert_eq!((salvaged.loss(), salvaged.other_parts.len()), (SalvageLoss::Nothing, 0));
        let [corruption] = &salvaged.corruptions[..] else { panic!("{:?}", salvaged.corruptions) };
        assert_eq!((&*corruption.file, &corruption.kind), (copies, &CorruptionKind::NotAsInstalled));
        // Own copies count more than another part.
        let disk = Arc::new(sound.fork());
        put_from(&disk, foreign, part);
        let salvaged = save(&disk).unwrap();
        assert_eq!(
            (salvaged.loss(), &salvaged.other_parts[..]),
            (SalvageLoss::Rows, &[part.to_path_buf()][..])
        );
        let saved = saved_rows(&disk);
        for ((table, key), row) in &saved {
            let from = if DEFINITION_TABLES.contains(table) { rows } else { foreign_rows };
            assert_eq!(from.get(&(*table, key.clone())), Some(row));
        }
        // Where all is of another one, that is said.
        put_from(&disk, foreign, copies);
        let salvaged = salvage(&as_disk(&disk), Path::new(DIR), Path::new("more")).unwrap();
        assert_eq!(salvaged.loss(), SalvageLoss::Rows);
        let files: Vec<&Path> = salvaged.corruptions.iter().map(|corruption| &*corruption.file).collect();
        assert_eq!(files, [part, copies]);
        // Own copies that are damaged are taken for what the parts lack alone.
        let disk = Arc::new(sound.fork());
        put_from(&disk, foreign, part);
        let len = disk.contents(copies).unwrap().len() as u64;
        disk.flip(copies, (len - 10) * 8).unwrap();
        assert_eq!(save(&disk).unwrap().loss(), SalvageLoss::Rows);
        assert_eq!(saved_rows(&disk), *foreign_rows);
    }
}
