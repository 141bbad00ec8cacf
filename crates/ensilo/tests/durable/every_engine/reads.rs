//! What reads wait for, and what a recovery takes.

use ensilo::{Durability, Error};
use ensilo_test_disk::{Faults, SyncPause};

use super::*;

/// A database with account 1.
fn with_account(options: Options, disk: &Arc<SimulatedDisk>) -> (Database, Table<Account>) {
    let db = open_with(options, disk).unwrap();
    let accounts = db.create_table::<Account>().unwrap();
    db.transact(|tx| accounts.insert(tx, &account(1))).unwrap();
    (db, accounts)
}

/// Whatever a snapshot, a read or a transaction that only reads has shown is on disk when it is answered.
#[test]
fn what_was_read_is_on_disk() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_account(options().epochs_per_snapshot(1), &disk);
    for balance in 0..40 {
        let visible = db.request().durability(Durability::Visible);
        visible.transact(|tx| accounts.update(tx, 1, |row: &mut Balance| row.balance = balance)).unwrap();
        let began = Instant::now();
        let seen = match balance % 3 {
            0 => loop {
                // A snapshot may be older than the row.
                let seen = db.read_stale(|tx| accounts.get(tx, 1)).unwrap();
                let seen = seen.map_or(-1, |account| account.balance);
                if seen == balance || began.elapsed() > Duration::from_millis(20) {
                    break seen;
                }
            },
            1 => db.read(|tx| accounts.get(tx, 1)).unwrap().unwrap().balance,
            _ => db.transact(|tx| accounts.get(tx, 1)).unwrap().unwrap().balance,
        };
        let left = Arc::new(disk.fork().crash(balance as u64));
        let recovered = open_with(options(), &left).unwrap();
        let accounts = recovered.open_table::<Account>().unwrap();
        let there = recovered.transact(|tx| accounts.get(tx, 1)).unwrap().unwrap().balance;
        assert!(there >= seen, "{seen} was read, and {there} is on disk");
    }
}

/// Who reads what has long been stored waits for no disk.
#[test]
fn reads_of_stored_rows_wait_for_no_disk() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_account(options(), &disk);
    let pause = SyncPause::new();
    disk.set_faults(Faults { sync_hangs: Some(Arc::clone(&pause)), ..Faults::default() });
    let found = db.transact(|tx| Ok((accounts.get(tx, 1)?, accounts.get(tx, 2)?)));
    let count = db.read(|tx| accounts.scan().count(tx));
    let stale = db.read_stale(|tx| accounts.get(tx, 2));
    pause.end();
    assert_eq!(found.unwrap(), (Some(account(1)), None));
    assert_eq!((count.unwrap(), stale.unwrap()), (1, None));
    db.close().unwrap();
}

/// After the log has failed, too.
#[test]
fn reads_go_on_after_the_log_has_failed() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_account(options(), &disk);
    disk.set_faults(Faults { sync_error_at: Some(1), goes_on_failing: true, ..Faults::default() });
    let failed = db.transact(|tx| accounts.insert(tx, &account(2)));
    assert!(matches!(failed, Err(Error::LogFailed(_))), "{failed:?}");
    assert_eq!(db.transact(|tx| accounts.get(tx, 1)).unwrap(), Some(account(1)));
    assert_eq!(db.read(|tx| accounts.get(tx, 1)).unwrap(), Some(account(1)));
    assert!(db.transact(|tx| accounts.insert(tx, &account(3))).is_err());
}

/// A recovery needs memory for the rows that there are, however often they were changed.
#[test]
fn many_changes_of_a_row_are_recovered_within_the_limit() {
    let disk = Arc::new(SimulatedDisk::new());
    let options = || options().memory_limit_bytes(8 << 20);
    let (db, accounts) = with_account(options(), &disk);
    let long = |round: u32| Account { note: format!("{round:01000}"), ..account(1) };
    for round in 0..25_000 {
        let visible = db.request().durability(Durability::Visible);
        visible.transact(|tx| accounts.replace(tx, &long(round))).unwrap();
    }
    db.close().unwrap();
    let db = open_with(options(), &disk).unwrap();
    let accounts = db.open_table::<Account>().unwrap();
    // At once, for each way to read.
    assert_eq!(db.read_stale(|tx| accounts.get(tx, 1)).unwrap(), Some(long(24_999)));
    assert_eq!(db.read(|tx| accounts.get(tx, 1)).unwrap(), Some(long(24_999)));
    assert_eq!(db.transact(|tx| accounts.get(tx, 1)).unwrap(), Some(long(24_999)));
    assert!(db.statistics().unwrap().memory.live_bytes < 4 << 20);
}

/// Tables are dropped while checkpoints walk through them, in parts.
#[test]
fn tables_are_dropped_beside_checkpoints() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, _) = with_account(options().checkpoint_threads(2), &disk);
    std::thread::scope(|scope| {
        let checkpoints = scope.spawn(|| (0..20).for_each(|_| _ = db.checkpoint().unwrap()));
        for number in 0.. {
            let name = format!("table-{number}");
            let table = db.create_table_named::<Account>(&name).unwrap();
            let rows: Vec<_> = (0..50).map(account).collect();
            db.transact(|tx| table.insert_many(tx, &rows).map(|_| ())).unwrap();
            db.drop_table(&name).unwrap();
            if checkpoints.is_finished() {
                break;
            }
        }
    });
    db.close().unwrap();
    assert_eq!(open_with(options(), &disk).unwrap().list_tables().unwrap().len(), 1);
}

/// The log names tables that have long been dropped.
#[test]
fn a_log_with_many_dropped_tables_is_recovered() {
    let disk = Arc::new(SimulatedDisk::new());
    let options = || options().durability(Durability::Visible).no_checkpoints();
    let (db, _) = with_account(options(), &disk);
    for id in 0..8500 {
        let table = db.create_table_named::<Event>("passing").unwrap();
        db.transact(|tx| table.insert(tx, &Event { what: format!("event {id}") }).map(|_| ())).unwrap();
        db.drop_table("passing").unwrap();
    }
    db.close().unwrap();
    assert_eq!(open_with(options(), &disk).unwrap().list_tables().unwrap().len(), 1);
}

/// Nothing can be written where a database is opened to read, not even what is gone again at the commit.
#[test]
fn who_has_written_is_refused_where_there_is_only_reading() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, _) = with_account(options(), &disk);
    db.close().unwrap();
    let db = open_with(options().read_only(true), &disk).unwrap();
    let accounts = db.open_table::<Account>().unwrap();
    assert_eq!(db.transact(|tx| accounts.get(tx, 1)).unwrap(), Some(account(1)));
    let refused = db.transact(|tx| accounts.insert(tx, &account(2)));
    assert!(matches!(refused, Err(Error::ReadOnly)), "{refused:?}");
    let refused = db.transact(|tx| {
        accounts.insert(tx, &account(2))?;
        accounts.delete(tx, 2)
    });
    assert!(matches!(refused, Err(Error::ReadOnly)), "{refused:?}");
}
