//! What holds over every engine: compiled for each of those that `main.rs` names, which is the module above.

pub(super) mod at_the_limit;
mod catalog;
mod collection;
mod dynamic;
mod errors;
mod live_changes;
mod memory;
pub(super) mod queues;
mod requests;
mod sessions;
pub(super) mod snapshots;
mod statements;
mod submit;
mod transfers;
pub(super) mod unique_builds;

use std::time::Duration;

use ensilo::{Options, generic};

use super::{Engine, HookedEngine, SEES_LATER_COMMITS};
use crate::*;

pub(super) type Database = generic::Database<Engine>;
type DynamicTable = generic::DynamicTable<Engine>;
type Index<T, K> = generic::Index<T, K, Engine>;
type Session = generic::Session<Engine>;
pub(super) type Table<T> = generic::Table<T, Engine>;
type Transaction<'t> = generic::Transaction<'t, Engine>;

pub(super) fn in_memory(options: Options) -> Database {
    options.in_memory_with().unwrap()
}

/// A database whose epochs and snapshots pass quickly.
fn quick() -> Database {
    in_memory(Options::default().epoch_interval(Duration::from_millis(1)).epochs_per_snapshot(4))
}

pub(super) fn with_accounts(count: u32) -> (Database, Table<Account>) {
    let db = quick();
    let accounts = db.create_table::<Account>().unwrap();
    db.transact(|tx| (0..count).try_for_each(|id| accounts.insert(tx, &account(id)).map(|_| ()))).unwrap();
    (db, accounts)
}
