//! Databases that are opened for reading only: nothing on the disk changes, and nothing needs to.

use ensilo::{Durability, Error, OpenError, Order};
use ensilo_test_disk::Faults;

use super::*;

/// A disk with a database of 100 accounts, of which 10 were changed since the checkpoint; its process was killed.
fn left_behind() -> Arc<SimulatedDisk> {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_accounts(&disk, 100);
    db.checkpoint().unwrap();
    db.transact(|tx| (0..10).try_for_each(|id| accounts.update(tx, id, |row: &mut Balance| row.balance = 7)))
        .unwrap();
    Arc::new(disk.kill())
}

fn open_read_only(disk: &Arc<SimulatedDisk>) -> Result<Database> {
    open_with(options().read_only(true), disk)
}

fn contents(disk: &SimulatedDisk) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let files = disk.files().into_iter();
    files
        .map(|(path, _)| {
            let bytes = disk.contents(&path).unwrap();
            (path, bytes)
        })
        .collect()
}

#[test]
fn reads_and_snapshots_find_what_an_opening_finds_and_change_nothing() {
    let disk = left_behind();
    let expected = all_rows(&open(&Arc::new(disk.fork())));
    let before = contents(&disk);
    // No byte is free, and whatever writes fails.
    disk.set_faults(Faults { no_space_after_bytes: Some(0), ..Faults::default() });
    let (db, other) = (open_read_only(&disk).unwrap(), open_read_only(&disk).unwrap());
    assert_eq!(all_rows(&db), expected);
    assert_eq!(all_rows(&other), expected);
    let table = accounts(&db);
    for level in [Durability::Visible, Durability::Stored] {
        let request = db.request().durability(level);
        assert_eq!(request.transact(|tx| table.get(tx, 3)).unwrap().unwrap().balance, 7);
    }
    let by_owner = table.index::<u32>("by_owner").unwrap();
    assert_eq!(db.read_stale(|tx| by_owner.equal(3).collect(tx)).unwrap().len(), 14);
    let (_, ticket) = db.request().transact_with_ticket(|tx| table.get(tx, 3)).unwrap();
    ticket.wait().unwrap();
    let submitted = db.submit({
        let table = table.clone();
        move |tx| table.get(tx, 50)
    });
    assert_eq!(submitted.unwrap().wait().unwrap(), Some(account(50)));
    let statistics = db.statistics().unwrap().durability.unwrap();
    assert!(statistics.is_read_only && statistics.degraded.is_none());
    assert!(statistics.recovery.checkpoint_rows >= 100);
    assert!(db.durable_epoch().is_some());
    db.close().unwrap();
    drop((db, other));
    let counts = disk.counts();
    assert_eq!((counts.writes, counts.syncs, counts.name_changes), (0, 0, 0));
    assert_eq!(contents(&disk), before);
    disk.set_faults(Faults::default());
    assert_eq!(all_rows(&open(&disk)), expected);
}

#[test]
fn whatever_writes_is_refused_and_the_database_goes_on() {
    let disk = left_behind();
    let db = open_read_only(&disk).unwrap();
    let table = accounts(&db);
    let refused = |result: Result<()>| assert!(matches!(result, Err(Error::ReadOnly)), "{result:?}");
    for level in [Durability::Visible, Durability::Stored] {
        let request = || db.request().durability(level);
        refused(request().transact(|tx| table.insert(tx, &account(500)).map(|_| ())));
        refused(request().transact(|tx| table.delete(tx, 1).map(|_| ())));
        refused(request().transact(|tx| table.update(tx, 1, |row: &mut Balance| row.balance = 0)));
    }
    let mut interactive = db.begin().unwrap();
    interactive.with(|tx| table.insert(tx, &account(500)).map(|_| ())).unwrap();
    refused(interactive.commit());
    drop(interactive);
    refused(db.create_table::<Event>().map(|_| ()));
    refused(db.drop_table("account"));
    refused(db.create_index("account", "by_balance", [("balance", Order::Ascending)]));
    refused(db.drop_index("account", "by_owner"));
    refused(db.checkpoint().map(|_| ()));
    refused(db.backup("/backup").map(|_| ()));
    assert_eq!(db.list_tables().unwrap(), ["account"]);
    assert_eq!(db.transact(|tx| table.get(tx, 500)).unwrap(), None);
    assert_eq!(all_rows(&db).len(), 100);
}

#[test]
fn readers_and_a_writer_keep_each_other_out() {
    let disk = left_behind();
    let locked = |result: Result<Database>| match result {
        Err(Error::Open(error)) if matches!(*error, OpenError::Locked { .. }) => {}
        other => panic!("{other:?}"),
    };
    let reader = open_read_only(&disk).unwrap();
    let refused = open_with(options(), &disk);
    assert!(refused.as_ref().is_err_and(|error| !error.to_string().contains("beside")), "{refused:?}");
    locked(refused);
    reader.close().unwrap();
    let writer = open(&disk);
    let refused = open_read_only(&disk);
    let remedy = "read it beside that process, by Options::beside_writer";
    assert!(refused.as_ref().is_err_and(|error| error.to_string().contains(remedy)), "{refused:?}");
    locked(refused);
    drop(open_with(options().read_only(true).beside_writer(true), &disk).unwrap());
    drop(writer);
    drop(open_read_only(&disk).unwrap());
    // Somebody has removed it, or it was not copied.
    disk.remove(&Path::new(DIRECTORY).join("LOCK")).unwrap();
    let reader = open_read_only(&disk).unwrap();
    locked(open_with(options(), &disk));
    drop(reader);
    drop(open(&disk));
}

#[test]
fn there_must_be_something_to_read() {
    let disk = Arc::new(SimulatedDisk::new());
    let nothing = open_read_only(&disk);
    assert!(matches!(nothing, Err(Error::Open(_))), "{nothing:?}");
    assert!(disk.files().is_empty());
    let in_memory = Options::default().read_only(true).in_memory_with::<Engine>();
    assert!(matches!(in_memory, Err(Error::InvalidOption(_))), "{in_memory:?}");
}
