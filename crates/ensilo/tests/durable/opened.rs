//! Databases over one engine, which is that of the module above.

use std::path::PathBuf;

use ensilo::generic;

use super::Engine;
use crate::*;

pub(crate) type Database = generic::Database<Engine>;
pub(crate) type Table<T> = generic::Table<T, Engine>;
pub(crate) type Transaction<'t> = generic::Transaction<'t, Engine>;

pub(crate) fn in_memory() -> Database {
    Options::default().in_memory_with().unwrap()
}

/// An unused directory on the machine's disk.
pub(crate) fn real_place(name: &str) -> PathBuf {
    let of_engine = module_path!().replace("::", "-");
    let place = std::env::temp_dir().join(format!("ensilo-{name}-{of_engine}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&place);
    place
}

pub(crate) fn open_with(options: Options, disk: &Arc<SimulatedDisk>) -> Result<Database> {
    options.open_with(Arc::clone(disk) as Arc<dyn Disk>, Path::new(DIRECTORY))
}

pub(crate) fn open(disk: &Arc<SimulatedDisk>) -> Database {
    open_with(options(), disk).unwrap()
}

pub(crate) fn accounts(db: &Database) -> Table<Account> {
    db.open_table().unwrap()
}

/// A new database with accounts 0 to `count`.
pub(crate) fn with_accounts(disk: &Arc<SimulatedDisk>, count: u32) -> (Database, Table<Account>) {
    let db = open(disk);
    let accounts = db.create_table::<Account>().unwrap();
    let rows: Vec<_> = (0..count).map(account).collect();
    db.transact(|tx| accounts.insert_many(tx, &rows)).unwrap();
    (db, accounts)
}

pub(crate) fn all_rows(db: &Database) -> Vec<Account> {
    let accounts = accounts(db);
    db.transact(|tx| accounts.scan().rows(tx)).unwrap()
}
