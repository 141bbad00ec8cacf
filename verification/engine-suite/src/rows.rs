//! The table that the tests use, and databases with it.

use std::time::Duration;

use ensilo::generic::{Database, Table};
use ensilo::{Columns, Engine, Row, Text};

/// A row with a key, indexed columns, a nullable and a variable one.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "account", index(name = "by_owner", columns(owner, balance desc)), index(name = "by_email", columns(email), unique))]
pub(crate) struct Account {
    #[row(key)]
    pub(crate) id: u32,
    pub(crate) owner: Text<16>,
    pub(crate) balance: i64,
    pub(crate) email: Option<String>,
    pub(crate) visits: u32,
}

/// Columns in no index, of fixed width.
#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Account)]
pub(crate) struct Visits {
    pub(crate) visits: u32,
}

/// Columns in an index.
#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Account)]
pub(crate) struct Balance {
    pub(crate) balance: i64,
}

/// A column of variable width in a unique index.
#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Account)]
pub(crate) struct Email {
    pub(crate) email: Option<String>,
}

/// Returns a row whose indexed columns follow from its id.
pub(crate) fn account(id: u32) -> Account {
    Account {
        id,
        owner: owner(id % 3),
        balance: i64::from(id) * 10,
        email: Some(format!("{id}@example.org")),
        visits: 0,
    }
}

/// Returns one of three names.
pub(crate) fn owner(number: u32) -> Text<16> {
    Text::new(["anna", "bert", "cleo"][number as usize]).unwrap()
}

/// Opens a database whose epochs and snapshots pass quickly.
pub(crate) fn quick_on<E: Engine>() -> Database<E> {
    let options = Database::options().epoch_interval(Duration::from_millis(1)).epochs_per_snapshot(4);
    options.in_memory_with().unwrap()
}

/// Opens such a database, with the accounts 0 to `count`, exclusive.
pub(crate) fn with_accounts_on<E: Engine>(count: u32) -> (Database<E>, Table<Account, E>) {
    let db = quick_on();
    let accounts = db.create_table::<Account>().unwrap();
    db.transact(|tx| (0..count).try_for_each(|id| accounts.insert(tx, &account(id)).map(|_| ()))).unwrap();
    (db, accounts)
}
