//! Databases over one engine, which is that of the module above.

use std::time::Duration;

use ensilo::{Options, generic};

use super::Engine;
use crate::*;

pub(crate) type Database = generic::Database<Engine>;
pub(crate) type DynamicTable = generic::DynamicTable<Engine>;
pub(crate) type Index<T, K> = generic::Index<T, K, Engine>;
pub(crate) type Table<T> = generic::Table<T, Engine>;

pub(crate) fn in_memory(options: Options) -> Database {
    options.in_memory_with().unwrap()
}

/// A database whose epochs and snapshots pass quickly. Its requests do not give up: a thread that holds a row may be without a processor for
/// longer than a thousand retries take.
pub(crate) fn quick() -> Database {
    let options = Options::default().epoch_interval(Duration::from_millis(1)).epochs_per_snapshot(4);
    in_memory(options.retries(u32::MAX))
}

pub(crate) fn with_accounts(count: u32) -> (Database, Table<Account>) {
    let db = quick();
    let accounts = db.create_table::<Account>().unwrap();
    db.transact(|tx| (0..count).try_for_each(|id| accounts.insert(tx, &account(id)).map(|_| ()))).unwrap();
    (db, accounts)
}
