//! The memory limit of a database whose deletions wait for the log, over Silo's engine alone: over ERMIA's a row can be deleted at the limit, and
//! not overwritten, since the new version takes memory that there is no reserve for. What of these tests holds there all the same is still
//! to be told apart.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ensilo::{Durability, Error, Order};
use ensilo_test_disk::SimulatedDisk;

use super::opened::*;
use crate::*;

/// Visible is enough while the tables fill.
fn insert(db: &Database, accounts: &Table<Account>, id: u32) -> Result<()> {
    let account = Account { note: "x".repeat(1000), ..account(id) };
    db.request().durability(Durability::Visible).transact(|tx| accounts.insert(tx, &account)).map(|_| ())
}

#[test]
fn at_the_limit_rows_with_entries_are_replaced_and_recovered() {
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
    while db.read_stale(|snapshot| accounts.scan().count(snapshot)).unwrap() < count as usize {
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

#[test]
fn at_the_limit_a_durable_database_is_changed_stored_and_copied_as_ever() {
    let disk = Arc::new(SimulatedDisk::new());
    let options = || options().memory_limit_bytes(8 << 20).epochs_per_snapshot(2);
    let db = open_with(options(), &disk).unwrap();
    let accounts = db.create_table::<Account>().unwrap();
    let events = db.create_table::<Event>().unwrap();
    db.transact(|tx| events.insert(tx, &Event { what: "one".repeat(1000) }).map(|_| ())).unwrap();
    db.create_index("account", "by_owner_reversed", [("owner", Order::Descending)]).unwrap();
    // An index over the notes takes about as much as the rows: they differ at their beginnings.
    let long = |id: u32| Account { note: format!("{id:08}{}", "x".repeat(1000)), ..account(id) };
    let insert = |id| {
        db.request().durability(Durability::Visible).transact(|tx| accounts.insert(tx, &long(id)).map(|_| ()))
    };
    let count = (0..).take_while(|&id| insert(id).is_ok()).count() as u32;
    while db.read_stale(|snapshot| accounts.scan().count(snapshot)).unwrap() < count as usize {
        thread::yield_now();
    }
    let mut expected: Vec<_> = (0..count).map(long).collect();
    db.checkpoint().unwrap();
    for id in 0..50 {
        db.transact(|tx| accounts.update(tx, id, |row: &mut Balance| row.balance += 1)).unwrap();
        expected[id as usize].balance += 1;
    }
    db.backup("/copy").unwrap();
    // What needs more memory is refused, and neither this process nor the next one shows anything of it.
    assert!(matches!(
        db.create_index("account", "by_note", [("note", Order::Ascending)]),
        Err(Error::OutOfMemory(_))
    ));
    let grown = db.transact(|tx| {
        for id in 0..20 {
            accounts.update(tx, id, |row: &mut Account| row.note.push_str(&"y".repeat(20_000)))?;
        }
        Ok(())
    });
    assert!(matches!(grown, Err(Error::OutOfMemory(_))), "{grown:?}");
    db.drop_index("account", "by_owner_reversed").unwrap();
    db.drop_table("event").unwrap();
    db.checkpoint().unwrap();
    assert_eq!(all_rows(&db), expected);
    db.close().unwrap();
    let db = open_with(options(), &disk).unwrap();
    assert_eq!(all_rows(&db), expected);
    assert_eq!(db.list_tables().unwrap(), ["account"]);
    let copy = options().open_with(Arc::clone(&disk) as Arc<dyn Disk>, Path::new("/copy")).unwrap();
    assert_eq!(all_rows(&copy), expected);
    let has_index = |db: &Database| {
        db.schema("account").unwrap().indexes().iter().any(|index| index.name() == "by_owner_reversed")
    };
    assert_eq!((has_index(&db), has_index(&copy)), (false, true));
}
