//! Databases in directories: what is acknowledged as stored survives, however the process or the power ends.
#![allow(clippy::unwrap_used, reason = "tests")]

mod backups;
mod broken_indexes;
mod checkpoints;
mod closing;
mod collection;
mod crashes;
mod engines;
mod events;
#[path = "../database/failpoints.rs"]
mod failpoints;
mod failures;
mod full_disk;
mod futures;
mod log_records;
mod memory_limit;
mod openings;
mod read_only;
mod refusals;
mod reopening;
mod salvage;
mod two_disks;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ensilo::disk::Disk;
use ensilo::{Columns, Database, Options, Result, Row, Table};
use ensilo_test_disk::SimulatedDisk;

/// Waits until this holds, as it will soon.
fn until(holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(30), "waited in vain");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A row with an index, fixed and variable columns.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "account", index(name = "by_owner", columns(owner)))]
struct Account {
    #[row(key)]
    id: u32,
    owner: u32,
    balance: i64,
    note: String,
}

/// The column that transfers change.
#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Account)]
struct Balance {
    balance: i64,
}

/// A row whose key the table invents.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "event")]
struct Event {
    what: String,
}

fn account(id: u32) -> Account {
    Account { id, owner: id % 7, balance: 100, note: format!("account {id}") }
}

const DIRECTORY: &str = "/db";

/// Options for a small database that makes checkpoints only when told.
fn options() -> Options {
    Database::options()
        .log_file_bytes(1 << 20)
        .log_buffers(4)
        .checkpoint_interval(Duration::from_secs(3600))
        .recovery_threads(2)
        .pool_threads(1)
}

fn open_with(options: Options, disk: &Arc<SimulatedDisk>) -> Result<Database> {
    options.open_with(Arc::clone(disk) as Arc<dyn Disk>, Path::new(DIRECTORY))
}

fn open(disk: &Arc<SimulatedDisk>) -> Database {
    open_with(options(), disk).unwrap()
}

fn accounts(db: &Database) -> Table<Account> {
    db.open_table().unwrap()
}

/// A new database with accounts 0 to `count`.
fn with_accounts(disk: &Arc<SimulatedDisk>, count: u32) -> (Database, Table<Account>) {
    let db = open(disk);
    let accounts = db.create_table::<Account>().unwrap();
    let rows: Vec<_> = (0..count).map(account).collect();
    db.transact(|tx| accounts.insert_many(tx, &rows)).unwrap();
    (db, accounts)
}

fn all_rows(db: &Database) -> Vec<Account> {
    let accounts = accounts(db);
    db.transact(|tx| accounts.scan().rows(tx)).unwrap()
}
