//! Databases that are opened often and never for long: what each opening leaves does not pile up.

use super::*;

/// How many files the database has.
fn files(disk: &SimulatedDisk) -> usize {
    disk.files().len()
}

#[test]
fn openings_that_write_a_little_leave_a_bounded_number_of_files() {
    let disk = Arc::new(SimulatedDisk::new());
    drop(with_accounts(&disk, 10));
    for round in 10..60 {
        let db = open(&disk);
        db.transact(|tx| accounts(&db).insert(tx, &account(round))).unwrap();
        db.close().unwrap();
        // Lock and manifest, the log files of this and eight earlier openings, and a checkpoint.
        assert!(files(&disk) < 20, "{:?}", disk.files());
    }
    assert_eq!(all_rows(&open(&disk)).len(), 60);
}

#[test]
fn openings_that_write_nothing_leave_nothing() {
    let disk = Arc::new(SimulatedDisk::new());
    drop(with_accounts(&disk, 10));
    drop(open(&disk));
    let before = files(&disk);
    for _ in 0..50 {
        let db = open(&disk);
        assert_eq!(all_rows(&db).len(), 10);
        db.close().unwrap();
        assert!(files(&disk) <= before, "{:?}", disk.files());
    }
}

#[test]
fn who_makes_checkpoints_only_when_asked_keeps_the_log() {
    let disk = Arc::new(SimulatedDisk::new());
    drop(with_accounts(&disk, 10));
    for round in 10..25 {
        let db = open_with(options().no_checkpoints(), &disk).unwrap();
        db.transact(|tx| accounts(&db).insert(tx, &account(round))).unwrap();
        db.close().unwrap();
    }
    assert!(files(&disk) > 15, "{:?}", disk.files());
    assert_eq!(all_rows(&open(&disk)).len(), 25);
}
