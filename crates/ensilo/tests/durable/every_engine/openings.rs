//! Databases that are opened often and never for long: what each opening leaves does not pile up.

use ensilo::{Error, OpenError};

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

#[test]
fn closing_makes_the_checkpoint_once_the_log_is_too_long() {
    const ROWS: u32 = 80;
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(&disk);
    let events = db.create_table::<Event>().unwrap();
    let text = "x".repeat((1 << 20) - 100);
    for _ in 0..ROWS {
        db.transact(|tx| events.insert(tx, &Event { what: text.clone() })).unwrap();
    }
    db.close().unwrap();
    let replayed = |options: Options| {
        let db = open_with(options, &disk).unwrap();
        let recovery = db.statistics().unwrap().durability.unwrap().recovery;
        assert!(db.statistics().unwrap().memory.live_bytes > 64 << 20);
        db.close().unwrap();
        recovery.log_bytes
    };
    // So little is soon too long.
    assert!(replayed(options().checkpoint_log_bytes(1 << 20)) > u64::from(ROWS) << 19);
    assert!(replayed(options()) < 1 << 20);
}

#[test]
fn a_database_that_must_exist_is_not_made() {
    let disk = Arc::new(SimulatedDisk::new());
    let refused = open_with(options().must_exist(true), &disk).unwrap_err();
    assert!(matches!(&refused, Error::Open(error) if matches!(**error, OpenError::NotADatabase { .. })));
    assert!(disk.files().is_empty(), "{:?}", disk.files());
    drop(with_accounts(&disk, 3));
    let db = open_with(options().must_exist(true), &disk).unwrap();
    assert_eq!(all_rows(&db).len(), 3);
    assert_eq!(db.transact(|tx| db.table::<Account>()?.scan().count(tx)).unwrap(), 3);
    db.close().unwrap();
    let db = open_with(options().read_only(true), &disk).unwrap();
    assert!(db.table::<Account>().is_ok());
    assert!(matches!(db.table::<Event>(), Err(Error::UnknownTable(_))), "nothing is made for a reader");
}

#[test]
fn a_path_that_is_mistyped_makes_no_directories() {
    let disk = Arc::new(SimulatedDisk::new());
    let refused = |options: Options, directory: &str| {
        let opened = options.open_with::<Engine>(Arc::clone(&disk) as Arc<dyn Disk>, Path::new(directory));
        let error = opened.unwrap_err();
        assert!(
            matches!(&error, Error::Open(why) if matches!(**why, OpenError::MissingParent { .. })),
            "{error}"
        );
        assert!(!disk.exists(Path::new("/dtaa")).unwrap() && !disk.exists(Path::new("/accounts")).unwrap());
        error.to_string()
    };
    assert_eq!(
        refused(options(), "/dtaa/accounts"),
        "/dtaa/accounts cannot be made, because /dtaa is missing: check the path, or make that directory first"
    );
    drop(options().open_with::<Engine>(Arc::clone(&disk) as Arc<dyn Disk>, Path::new("/accounts")).unwrap());
}
