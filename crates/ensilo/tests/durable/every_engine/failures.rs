//! Disks that fail under a running database.

use ensilo::{Error, LogError};
use ensilo_test_disk::{Faults, SyncPause};

use super::*;

/// Inserts until the log fails; returns how many were acknowledged.
fn insert_until_failure(db: &Database, accounts: &Table<Account>) -> (u32, Error) {
    for id in 100.. {
        if let Err(error) = db.transact(|tx| accounts.insert(tx, &account(id))) {
            return (id, error);
        }
    }
    unreachable!("the log fails some day")
}

/// What has to hold after this failure, which `is_expected` recognizes. It may come upon the next log file instead, which is made ahead at a
/// time of its own: then everything is done once more.
fn after_failure(faults: Faults, is_expected: impl Fn(&LogError) -> bool) {
    assert!((0..20).any(|_| is_after_failure(faults.clone(), &is_expected)), "the log itself never failed");
}

/// Whether it came upon the log file that was written.
fn is_after_failure(faults: Faults, is_expected: impl Fn(&LogError) -> bool) -> bool {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_accounts(&disk, 100);
    disk.set_faults(faults);
    let (acknowledged, error) = insert_until_failure(&db, &accounts);
    let Error::LogFailed(failure) = &error else { panic!("{error}") };
    let is_made_ahead = matches!(&**failure, LogError::File { path, .. } if path.extension().is_some_and(|end| end == "open"));
    assert!(is_expected(failure) || is_made_ahead, "{error}");
    // Writes are refused from now on, reads go on.
    let refused = db.request().durability(ensilo::Durability::Visible);
    let refused = refused.transact(|tx| accounts.delete(tx, 1));
    assert!(matches!(refused, Err(Error::LogFailed(_))), "{refused:?}");
    assert_eq!(db.transact(|tx| accounts.get(tx, 1)).unwrap(), Some(account(1)));
    assert!(matches!(db.checkpoint(), Err(Error::LogFailed(_))));
    assert!(db.close().is_err());
    let rows = all_rows(&open(&Arc::new(disk.crash(7))));
    assert!(rows.len() as u32 >= acknowledged, "{} of {acknowledged}", rows.len());
    assert_eq!(rows, (0..rows.len() as u32).map(account).collect::<Vec<_>>());
    is_expected(failure)
}

#[test]
fn a_sync_error_is_final() {
    for nth in [1, 2, 5] {
        after_failure(Faults { sync_error_at: Some(nth), ..Faults::default() }, |error| {
            matches!(error, LogError::Sync { .. })
        });
    }
}

#[test]
fn a_write_error_is_final() {
    for nth in [1, 3] {
        after_failure(Faults { write_error_at: Some(nth), seed: nth, ..Faults::default() }, |error| {
            matches!(error, LogError::Write { .. })
        });
    }
}

#[test]
fn a_full_disk_is_named() {
    let faults = Faults { no_space_after_bytes: Some(2_200_000), ..Faults::default() };
    after_failure(faults, |error| matches!(error, LogError::NoSpace { .. }));
}

/// A database with snapshots every few milliseconds whose log has failed under this transaction, which every snapshot shows from now on.
fn with_lost_transaction(
    disk: &Arc<SimulatedDisk>,
    body: impl Fn(&mut Transaction<'_>, &Table<Account>) -> Result<()>,
) -> (Database, Table<Account>) {
    let options = options().epoch_interval(Duration::from_millis(1)).epochs_per_snapshot(2);
    let db = open_with(options, disk).unwrap();
    let accounts = db.create_table::<Account>().unwrap();
    let rows: Vec<_> = (0..100).map(account).collect();
    db.transact(|tx| accounts.insert_many(tx, &rows)).unwrap();
    // The next log file is made ahead, so that the sync that fails is that of the transaction.
    let log = Path::new(DIRECTORY).join("log");
    let has_two = || {
        let files = disk.list(&log).unwrap();
        files.iter().filter(|file| file.name.ends_with(".open")).count() == 2
    };
    until(|| has_two() && disk.is_synced());
    // It is visible before that fails, even if that is the sync of a round that stores nothing of it.
    let pause = SyncPause::new();
    let sync_hangs = Some(Arc::clone(&pause));
    disk.set_faults(Faults { sync_error_at: Some(1), sync_hangs, ..Faults::default() });
    let visible = db.request().transact_with_ticket(|tx| body(tx, &accounts));
    pause.end();
    let lost = visible.unwrap().1.wait();
    assert!(matches!(lost, Err(Error::LogFailed(_))), "{lost:?}");
    let committed = db.statistics().unwrap().epochs.global_epoch;
    until(|| db.statistics().unwrap().epochs.snapshot_epoch > committed);
    (db, accounts)
}

/// Waits until this holds, as it will.
fn until(holds: impl Fn() -> bool) {
    while !holds() {
        std::thread::yield_now();
    }
}

#[test]
fn what_is_stored_is_read_for_ever_after_a_failure() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_lost_transaction(&disk, |tx, accounts| {
        accounts.insert(tx, &account(100))?;
        accounts.delete(tx, 5)?;
        accounts.update(tx, 6, |balance: &mut Balance| balance.balance += 1)
    });
    let lost = |result: Result<Option<Account>>| {
        assert!(matches!(result, Err(Error::LogFailed(_))), "{result:?}");
    };
    for _ in 0..5 {
        // Requests answer for what they have read, and a snapshot of a later point does not read more.
        let shown = db.statistics().unwrap().epochs.snapshot_epoch;
        for id in [1, 99] {
            assert_eq!(db.read_stale(|tx| accounts.get(tx, id)).unwrap(), Some(account(id)));
            assert_eq!(db.transact(|tx| accounts.get(tx, id)).unwrap(), Some(account(id)));
            let submitted = db.submit_read_stale({
                let accounts = accounts.clone();
                move |tx| accounts.get(tx, id)
            });
            assert_eq!(submitted.unwrap().wait().unwrap(), Some(account(id)));
        }
        assert_eq!(db.read_stale(|tx| accounts.get(tx, 101)).unwrap(), None);
        for id in [100, 5, 6] {
            lost(db.read_stale(|tx| accounts.get(tx, id)));
            lost(db.transact(|tx| accounts.get(tx, id)));
        }
        lost(db.read_stale(|tx| Ok(accounts.scan().rows(tx)?.pop())));
        lost(db.read_stale(|tx| match accounts.get(tx, 5)? {
            None => Err(Error::rollback("there is no such account")),
            found => Ok(found),
        }));
        let visible = db.request().durability(ensilo::Durability::Visible);
        assert_eq!(visible.transact(|tx| accounts.get(tx, 100)).unwrap(), Some(account(100)));
        until(|| db.statistics().unwrap().epochs.snapshot_epoch > shown);
    }
    assert!(db.close().is_err());
    let rows = all_rows(&open(&Arc::new(disk.crash(7))));
    assert!(rows.len() >= 99 && rows.contains(&account(1)), "{} rows", rows.len());
}

#[test]
fn a_checkpoint_that_finds_another_opening_in_the_directory_ends_the_log() {
    let [(disk, db, accounts), (other, ..)] = [1, 2].map(|rows| {
        let disk = Arc::new(SimulatedDisk::new());
        let (db, accounts) = with_accounts(&disk, rows);
        (disk, db, accounts)
    });
    let manifest = Path::new(DIRECTORY).join("MANIFEST");
    let of_other = other.contents(&manifest).unwrap();
    disk.remove(&manifest).unwrap();
    disk.create(&manifest, 0).unwrap().write_at(0, &of_other).unwrap();
    let refused = db.checkpoint();
    assert!(matches!(refused, Err(Error::CheckpointFailed(_))), "{refused:?}");
    let ended = db.transact(|tx| accounts.update(tx, 0, |row: &mut Balance| row.balance = 7));
    let is_taken_over = |error: &LogError| matches!(error, LogError::TakenOver { path } if *path == manifest);
    assert!(matches!(&ended, Err(Error::LogFailed(error)) if is_taken_over(error)), "{ended:?}");
    assert!(matches!(db.close(), Err(Error::LogFailed(error)) if is_taken_over(&error)));
    assert_eq!(disk.contents(&manifest).unwrap(), of_other);
}
