//! Two copies of a database that have gone on by themselves: a log file of the other one, in the place of the
//! own file of the same name, is found.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;
use ensilo_test_disk::SimulatedDisk;

use super::model::{OneWrite, Op, Rows, Transaction};
use super::writer::{DIR, TestLog, recover};
use crate::format::{FileHeader, FileRole, LogFileName};
use crate::recovery::{
    Corruption, CorruptionKind, DataLoss, OpenError, SalvageLoss, repair, salvage, verify,
};

const LOGGERS: usize = 2;

fn as_disk(disk: &Arc<SimulatedDisk>) -> Arc<dyn Disk> {
    Arc::clone(disk) as Arc<dyn Disk>
}

/// Every logger stores a row with this value.
fn store(log: &mut TestLog, value: u8) {
    let epoch = log.durable_epoch.get() + 1;
    let rounds = (0..LOGGERS).map(|logger| {
        let key = vec![epoch as u8, logger as u8];
        let writes = vec![OneWrite { table: 5, key, op: Op::Put(vec![value; 8]) }];
        vec![Transaction { tid: epoch << 20 | (logger as u64 + 1) << 3, writes }]
    });
    log.round(&rounds.collect::<Vec<_>>(), Epoch::new(epoch + 1));
}

/// Returns an opening in which each logger seals a file, goes on in another one, and makes a third one ahead;
/// the second one is closed in order or not.
fn opening(disk: &Arc<SimulatedDisk>, value: u8, is_closed: bool) -> Arc<SimulatedDisk> {
    let mut log = TestLog::open(disk, LOGGERS);
    store(&mut log, value);
    for logger in 0..LOGGERS {
        let mark = Epoch::new(log.durable_epoch.get() + 1);
        log.rotate(logger, mark);
    }
    store(&mut log, value);
    (0..LOGGERS).for_each(|logger| log.make_ahead(logger));
    if is_closed {
        log.close();
    }
    drop(log);
    Arc::new(disk.kill())
}

/// Two copies with an opening in common, and so many of their own, in which they have stored other rows in
/// the same epochs.
fn diverged(own_openings: usize, is_closed: bool) -> [Arc<SimulatedDisk>; 2] {
    let common = opening(&Arc::new(SimulatedDisk::new()), 1, is_closed);
    [2, 3].map(|value| {
        (0..own_openings).fold(Arc::new(common.fork()), |disk, _| opening(&disk, value, is_closed))
    })
}

fn log_name(path: &Path) -> Option<LogFileName> {
    LogFileName::parse(path.file_name()?.to_str()?)
}

/// Returns the log files that both copies have.
fn log_files(copies: &[Arc<SimulatedDisk>; 2]) -> Vec<PathBuf> {
    let files = copies[0].files().into_iter().map(|(path, _)| path);
    let files: Vec<PathBuf> = files.filter(|path| log_name(path).is_some()).collect();
    assert!(files.iter().all(|path| copies[1].exists(path).unwrap()), "{files:?}");
    files
}

/// Returns the first copy with this file of the second one.
fn with_file_of_other(copies: &[Arc<SimulatedDisk>; 2], path: &Path) -> Arc<SimulatedDisk> {
    let [own, other] = copies;
    let disk = own.fork();
    disk.delete(path).unwrap();
    disk.create(path, 0).unwrap().write_at(0, &other.contents(path).unwrap()).unwrap();
    Arc::new(disk)
}

fn corruptions(disk: &SimulatedDisk) -> Vec<Corruption> {
    let mut corruptions = Vec::new();
    verify(disk, Path::new(DIR), &mut |corruption| corruptions.push(corruption)).unwrap();
    corruptions
}

#[test]
fn the_log_files_of_two_copies_differ_in_the_opening_alone() {
    let copies = diverged(1, true);
    for path in log_files(&copies) {
        let [own, other] = [0, 1].map(|at| {
            let header = FileHeader::decode(&copies[at].contents(&path).unwrap()).unwrap();
            (header.identity.database, header.identity.file, header.identity.opening)
        });
        let FileRole::Log { generation, .. } = own.1 else { panic!("{own:?}") };
        assert_eq!((own.0, own.1), (other.0, other.1));
        assert_eq!(own.2 == other.2, generation == 1, "{}", path.display());
    }
}

#[test]
fn a_log_file_of_another_copy_is_found_by_opening_verify_repair_and_salvage() {
    for (own_openings, is_closed) in [(1, true), (1, false), (2, true), (3, false)] {
        let copies = diverged(own_openings, is_closed);
        let rows = recover(&copies[0], 1).unwrap().0;
        for path in log_files(&copies) {
            let disk = with_file_of_other(&copies, &path);
            if log_name(&path).unwrap().generation == 1 {
                // It is the same file.
                assert_eq!(recover(&disk, 1).unwrap().0, rows);
                continue;
            }
            let damaged = disk.fork();
            let error = recover(&disk, 1).unwrap_err();
            let corruption = error.corruption().unwrap();
            assert_eq!((&corruption.file, &corruption.kind), (&path, &CorruptionKind::OtherCopy), "{error}");
            assert!(error.to_string().contains("another copy of this database"), "{error}");
            assert_eq!(corruptions(&disk), std::slice::from_ref(corruption));
            let DataLoss::After(kept_to) = corruption.loss else { panic!("{error}") };
            is_salvaged_without(&disk, corruption, &rows, kept_to);
            is_repaired(&disk, corruption, &rows, kept_to);
            // With its own file it is what it was.
            let bytes = copies[0].contents(&path).unwrap();
            damaged.delete(&path).unwrap();
            damaged.create(&path, 0).unwrap().write_at(0, &bytes).unwrap();
            assert_eq!(recover(&Arc::new(damaged), 1).unwrap().0, rows);
        }
    }
}

/// Returns the rows up to an epoch: the key begins with it.
fn rows_to(rows: &Rows, last: Epoch) -> Rows {
    let kept = rows.iter().filter(|((_, key), _)| u64::from(key[0]) <= last.get());
    kept.map(|(key, row)| (key.clone(), row.clone())).collect()
}

fn is_repaired(disk: &Arc<SimulatedDisk>, corruption: &Corruption, rows: &Rows, kept_to: Epoch) {
    let before = rows_to(rows, kept_to);
    let lossless = repair(&as_disk(disk), Path::new(DIR), None);
    assert!(matches!(lossless, Err(OpenError::Refused(_))), "{lossless:?}");
    let repaired = repair(&as_disk(disk), Path::new(DIR), Some(kept_to)).unwrap();
    assert_eq!(repaired.corruptions, std::slice::from_ref(corruption));
    assert_eq!(recover(disk, 1).unwrap().0, before);
    assert_eq!(corruptions(disk), []);
    // It goes on, and no later opening comes upon the file again.
    let disk = opening(&opening(disk, 9, true), 9, true);
    let mut found = recover(&disk, 1).unwrap().0;
    found.retain(|_, row| row[0] != 9);
    assert_eq!(found, before);
}

fn is_salvaged_without(disk: &Arc<SimulatedDisk>, corruption: &Corruption, rows: &Rows, kept_to: Epoch) {
    let disk = Arc::new(disk.fork());
    let salvaged = salvage(&as_disk(&disk), Path::new(DIR), Path::new("saved")).unwrap();
    assert_eq!(
        (&salvaged.corruptions[..], salvaged.loss()),
        (std::slice::from_ref(corruption), SalvageLoss::Rows)
    );
    // Before the first epoch of a generation there are those that are void.
    assert!(salvaged.kept_to <= kept_to);
    let saved: u64 = salvaged.tables.iter().map(|table| table.rows).sum();
    assert_eq!(saved as usize, rows_to(rows, kept_to).len());
}

#[test]
fn several_files_of_another_copy_are_each_named() {
    let copies = diverged(2, true);
    let files = log_files(&copies);
    let foreign: Vec<&PathBuf> = files.iter().filter(|path| log_name(path).unwrap().generation > 1).collect();
    let disk = foreign
        .iter()
        .fold(Arc::clone(&copies[0]), |disk, path| with_file_of_other(&[disk, Arc::clone(&copies[1])], path));
    let mut named: Vec<PathBuf> = corruptions(&disk).into_iter().map(|corruption| corruption.file).collect();
    named.sort();
    assert_eq!(named.iter().collect::<Vec<_>>(), foreign);
    assert!(recover(&disk, 1).is_err());
}
