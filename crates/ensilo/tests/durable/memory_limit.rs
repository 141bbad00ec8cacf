//! The memory limit of a database whose deletions wait for the log.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ensilo::{Durability, Error};
use ensilo_test_disk::SimulatedDisk;

use super::*;

/// Visible is enough while the tables fill.
fn insert(db: &Database, accounts: &Table<Account>, id: u32) -> Result<()> {
    let account = Account { note: "x".repeat(1000), ..account(id) };
    db.request().durability(Durability::Visible).transact(|tx| accounts.insert(tx, &account)).map(|_| ())
}

#[test]
fn at_the_limit_rows_with_index_entries_are_deleted_and_others_inserted_and_recovered() {
    let disk = Arc::new(SimulatedDisk::new());
    let options = || options().memory_limit_bytes(16 << 20).epochs_per_snapshot(2);
    let db = open_with(options(), &disk).unwrap();
    let accounts = db.create_table::<Account>().unwrap();
    let mut count = 0;
    let refused = loop {
        match insert(&db, &accounts, count) {
            Ok(()) => count += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::OutOfMemory(_)), "{refused}");
    // From now on an overwrite would have to keep the row for snapshots.
    while db.snapshot(|snapshot| accounts.scan().count(snapshot)).unwrap() < count as usize {
        thread::yield_now();
    }
    db.checkpoint().unwrap();
    let ids: Vec<u32> = (0..count).collect();
    for part in ids.chunks(1000) {
        db.transact(|tx| part.iter().try_for_each(|id| accounts.delete(tx, id).map(|_| ()))).unwrap();
    }
    let began = Instant::now();
    for id in count..count + 100 {
        while let Err(error) = insert(&db, &accounts, id) {
            assert!(matches!(error, Error::OutOfMemory(_)), "{error}");
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "the memory of deleted rows does not come back"
            );
            thread::yield_now();
        }
    }
    db.close().unwrap();
    // Under the same limit, although a recovery has the rows of the checkpoint and what the log says of them at once.
    let db = open_with(options(), &disk).unwrap();
    let ids: Vec<u32> = all_rows(&db).iter().map(|row| row.id).collect();
    assert_eq!(ids, (count..count + 100).collect::<Vec<_>>());
}
