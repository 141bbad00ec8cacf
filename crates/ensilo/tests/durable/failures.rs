//! Disks that fail under a running database.

use ensilo::disk::Faults;
use ensilo::{Error, LogError};

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
