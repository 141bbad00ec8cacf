//! Copies of a running database.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use ensilo::disk::RealDisk;
use ensilo::{Backup, Durability, Error, OpenError};
use ensilo_test_disk::Faults;

use super::*;
use crate::two_disks::TwoDisks;

const ACCOUNTS: u32 = 40;

fn open_at<D: Disk + 'static>(disk: &Arc<D>, directory: impl AsRef<Path>) -> Result<Database> {
    options().open_with(Arc::clone(disk) as Arc<dyn Disk>, directory.as_ref())
}

/// Inserts accounts and waits until each is stored; says how many are.
fn insert_stored(db: &Database, stored: &AtomicU32, is_over: &AtomicBool) {
    let accounts = accounts(db);
    while !is_over.load(Ordering::Relaxed) {
        let id = ACCOUNTS + stored.load(Ordering::Relaxed);
        db.transact(|tx| accounts.insert(tx, &Account { balance: 0, ..account(id) })).unwrap();
        stored.fetch_add(1, Ordering::Release);
    }
}

fn transfer_on(db: &Database, seed: u32, is_over: &AtomicBool) {
    let accounts = accounts(db);
    let mut state = seed;
    let mut draw = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % ACCOUNTS
    };
    while !is_over.load(Ordering::Relaxed) {
        let (from, to) = (draw(), draw());
        let request = db.request().durability(Durability::Visible);
        request
            .transact(|tx| {
                accounts.update(tx, from, |row: &mut Balance| row.balance -= 1)?;
                accounts.update(tx, to, |row: &mut Balance| row.balance += 1)
            })
            .unwrap();
    }
}

/// What a backup made while `stored` accounts had been added must hold; returns how many it has.
fn check_backup(db: &Database, stored: u32) -> u32 {
    let rows = all_rows(db);
    assert_eq!(rows.iter().map(|row| row.balance).sum::<i64>(), 100 * i64::from(ACCOUNTS));
    assert!(rows.iter().map(|row| row.id).eq(0..rows.len() as u32), "a gap");
    assert!(rows.len() as u32 >= ACCOUNTS + stored, "{} rows, {stored} were added and stored", rows.len());
    let by_owner = accounts(db).index::<u32>("by_owner").unwrap();
    assert_eq!(db.transact(|tx| by_owner.scan().collect(tx)).unwrap().len(), rows.len());
    rows.len() as u32
}

/// Makes backups one after the other while `db` is written and checkpoints are made; returns what has to be in each.
fn back_up_under_load(db: &Database, targets: &[PathBuf]) -> Vec<(u32, Backup)> {
    let (is_over, stored) = (AtomicBool::new(false), AtomicU32::new(0));
    let (is_over, stored) = (&is_over, &stored);
    thread::scope(|scope| {
        // Also when a backup fails.
        let end = SetWhenDropped(is_over);
        let checkpoint = || {
            while !is_over.load(Ordering::Relaxed) {
                db.checkpoint().unwrap();
            }
        };
        let load = [
            scope.spawn(|| insert_stored(db, stored, is_over)),
            scope.spawn(|| transfer_on(db, 1, is_over)),
            scope.spawn(checkpoint),
        ];
        let backups = targets.iter().map(|target| {
            let before = stored.load(Ordering::Acquire);
            (before, db.backup(target).unwrap())
        });
        let backups = backups.collect();
        drop(end);
        load.into_iter().for_each(|thread| thread.join().unwrap());
        backups
    })
}

/// Ends the load.
struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn backups_under_transfers_are_whole_and_have_what_was_stored() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, _) = with_accounts(&disk, ACCOUNTS);
    let targets: Vec<_> = (0..4).map(|number| format!("/backups/{number}")).collect();
    let paths: Vec<_> = targets.iter().map(PathBuf::from).collect();
    let backups = back_up_under_load(&db, &paths);
    drop(db);
    // A power failure takes nothing from a backup that was made.
    let disk = Arc::new(disk.crash(1));
    for (target, (stored, backup)) in targets.iter().zip(&backups) {
        assert!(backup.files > 0 && backup.bytes > 0);
        let rows = check_backup(&open_at(&disk, target).unwrap(), *stored);
        println!("{backup:?}: {rows} rows, {stored} stored before");
    }
    check_backup(&open(&disk), backups[3].0);
}

#[test]
fn backups_on_a_real_disk_can_be_opened() {
    let place = real_place("backups");
    std::fs::create_dir_all(&place).unwrap();
    let db = open_at(&Arc::new(RealDisk), place.join("db")).unwrap();
    let table = db.create_table::<Account>().unwrap();
    let rows: Vec<_> = (0..ACCOUNTS).map(account).collect();
    db.transact(|tx| table.insert_many(tx, &rows)).unwrap();
    let targets = [place.join("one"), place.join("two")];
    let backups = back_up_under_load(&db, &targets);
    for (target, (stored, _)) in targets.iter().zip(&backups) {
        check_backup(&open_at(&Arc::new(RealDisk), target).unwrap(), *stored);
    }
    // With a detour through the database it is beside it all the same.
    db.backup(place.join("db/../three")).unwrap();
    assert!(matches!(db.backup(place.join("three/../db/four")), Err(Error::BackupFailed(_))));
    let again = ensilo_log::backup(&(Arc::new(RealDisk) as _), &targets[0], &place.join("five"));
    assert!(again.is_ok(), "{again:?}");
    drop(db);
    std::fs::remove_dir_all(place).unwrap();
}

#[test]
fn a_backup_has_all_transactions_up_to_its_epoch_and_no_others() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_accounts(&disk, 0);
    let mut epochs = Vec::new();
    for number in 0..12 {
        for _ in 0..50 {
            let row = account(epochs.len() as u32);
            epochs.push(db.request().transact_with_epoch(|tx| accounts.insert(tx, &row)).unwrap().1);
        }
        if number % 5 == 3 {
            db.checkpoint().unwrap();
        }
        let target = format!("/backup-{number}");
        let backup = db.backup(&target).unwrap();
        let expected = epochs.iter().filter(|epoch| **epoch <= backup.durable_epoch).count();
        assert_eq!(all_rows(&open_at(&disk, &target).unwrap()).len(), expected, "{backup:?}");
    }
}

#[test]
fn a_backup_of_a_backup_is_a_backup() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, _) = with_accounts(&disk, 10);
    db.backup("/one").unwrap();
    let copy = open_at(&disk, "/one").unwrap();
    let table = accounts(&copy);
    copy.transact(|tx| table.insert(tx, &account(10))).unwrap();
    copy.backup("/two").unwrap();
    // Each goes on by itself.
    db.transact(|tx| accounts(&db).delete(tx, 0)).unwrap();
    copy.checkpoint().unwrap();
    copy.transact(|tx| table.insert(tx, &account(11))).unwrap();
    copy.backup("/three").unwrap();
    drop((copy, table));
    let rows = |directory| all_rows(&open_at(&disk, directory).unwrap());
    let up_to = |count| (0..count).map(account).collect::<Vec<_>>();
    assert_eq!(rows("/one"), up_to(12));
    assert_eq!(rows("/two"), up_to(11));
    assert_eq!(rows("/three"), up_to(12));
    assert_eq!(all_rows(&db), (1..10).map(account).collect::<Vec<_>>());
}

#[test]
fn targets_that_are_none_are_refused_and_left_alone() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, _) = with_accounts(&disk, 10);
    // The next file of the log is made ahead. After that nothing comes by itself.
    super::schema_changes::wait_until_files_are_made(&disk);
    db.backup("/one").unwrap();
    disk.create_dir_all(Path::new("/full")).unwrap();
    disk.create(Path::new("/full/letter"), 0).unwrap();
    let files = || disk.files().into_iter().map(|(path, _)| path);
    let before: Vec<_> = files().collect();
    let refused = ["/db", "/db/", "/db/backup", "/db/log/backup", "/x/../db/y", "/one", "/one/two", "/full"];
    for target in refused {
        let error = db.backup(target).unwrap_err();
        assert!(
            matches!(&error, Error::BackupFailed(why) if matches!(**why, OpenError::Refused(_))),
            "{error}"
        );
        assert!(files().eq(before.iter().cloned()), "{target}");
    }
    assert!(matches!(in_memory().backup("/two"), Err(Error::NotDurable)));
    db.close().unwrap();
    assert!(matches!(db.backup("/two"), Err(Error::Closed)));
}

/// A database on one disk, a backup on another one with these faults; whether it was made.
fn back_up_with(faults: Faults) -> bool {
    let disks = Arc::new(TwoDisks::new("/elsewhere"));
    let db = open_at(&disks, DIRECTORY).unwrap();
    let table = db.create_table::<Account>().unwrap();
    db.transact(|tx| (0..200).try_for_each(|id| table.insert(tx, &account(id)).map(|_| ()))).unwrap();
    db.checkpoint().unwrap();
    db.transact(|tx| table.delete(tx, 199)).unwrap();
    disks.there.set_faults(faults.clone());
    let made = db.backup("/elsewhere/backup");
    disks.there.set_faults(Faults::default());
    // The database feels nothing of it.
    db.transact(|tx| table.insert(tx, &account(199))).unwrap();
    db.checkpoint().unwrap();
    match &made {
        Ok(_) => assert_eq!(all_rows(&open_at(&disks, "/elsewhere/backup").unwrap()).len(), 199),
        Err(error) => {
            let is_full = matches!(error, Error::BackupFailed(_)) && error.to_string().contains("is full");
            assert_eq!(is_full, faults.no_space_after_bytes.is_some(), "{error}");
            assert_eq!(disks.there.files(), [], "{error}");
            db.backup("/elsewhere/backup").unwrap();
            assert_eq!(all_rows(&open_at(&disks, "/elsewhere/backup").unwrap()).len(), 200);
        }
    }
    made.is_ok()
}

#[test]
fn a_full_disk_of_the_target_fails_the_backup_and_nothing_else() {
    let rooms = (0..12).map(|room| room * 4096);
    let made: Vec<_> = rooms
        .map(|room| back_up_with(Faults { no_space_after_bytes: Some(room), ..Faults::default() }))
        .collect();
    assert!(made.starts_with(&[false, false, false]), "{made:?}");
}

#[test]
fn a_failing_disk_of_the_target_fails_the_backup_and_nothing_else() {
    let faults: [fn(u64) -> Faults; 3] = [
        |nth| Faults { write_error_at: Some(nth), ..Faults::default() },
        |nth| Faults { sync_error_at: Some(nth), ..Faults::default() },
        |nth| Faults { name_error_at: Some(nth), ..Faults::default() },
    ];
    for fault in faults {
        let failures = (1..).take_while(|&nth| !back_up_with(fault(nth))).count();
        assert!(failures >= 3, "{failures} operations failed");
    }
    // What cannot be read once is read again.
    let read_error = |nth| Faults { read_error_at: Some(nth), ..Faults::default() };
    assert!((1..20).all(|nth| back_up_with(read_error(nth))));
}

#[test]
fn what_was_stored_before_the_log_failed_can_be_copied() {
    let disks = Arc::new(TwoDisks::new("/elsewhere"));
    let db = open_at(&disks, DIRECTORY).unwrap();
    let table = db.create_table::<Account>().unwrap();
    db.transact(|tx| table.insert(tx, &account(0))).unwrap();
    // The first one may be that of the next file of the log, which is made on another thread.
    let all = Faults { sync_error_at: Some(1), goes_on_failing: true, ..Faults::default() };
    disks.here.set_faults(all);
    assert!(matches!(db.transact(|tx| table.insert(tx, &account(1))), Err(Error::LogFailed(_))));
    disks.here.set_faults(Faults::default());
    db.backup("/elsewhere/backup").unwrap();
    assert_eq!(all_rows(&open_at(&disks, "/elsewhere/backup").unwrap()), [account(0)]);
}

/// A database whose backup would take 20 seconds.
fn with_slow_backups(disk: &Arc<SimulatedDisk>) -> Database {
    let slow = options().checkpoint_bytes_per_second(1 << 20);
    let db = open_with(slow, disk).unwrap();
    let table = db.create_table::<Account>().unwrap();
    let note = "x".repeat(10_000);
    for id in 0..2000 {
        let row = Account { note: note.clone(), ..account(id) };
        db.request().durability(Durability::Visible).transact(|tx| table.insert(tx, &row)).unwrap();
    }
    db
}

fn wait_for_backup(disk: &SimulatedDisk) {
    while !disk.exists(Path::new("/backup/log")).unwrap() {
        thread::yield_now();
    }
}

#[test]
fn closing_ends_a_backup() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = with_slow_backups(&disk);
    thread::scope(|scope| {
        let backup = scope.spawn(|| db.backup("/backup"));
        wait_for_backup(&disk);
        db.close().unwrap();
        assert!(matches!(backup.join().unwrap(), Err(Error::Closed)));
    });
    assert!(!disk.exists(Path::new("/backup")).unwrap());
}

#[test]
fn closing_ends_a_backup_that_a_job_makes() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = with_slow_backups(&disk);
    let backs_up = db.clone();
    let job = db.submit(move |_| Ok(backs_up.backup("/backup").map(drop))).unwrap();
    wait_for_backup(&disk);
    db.close().unwrap();
    assert!(matches!(job.wait().unwrap(), Err(Error::Closed)));
}
