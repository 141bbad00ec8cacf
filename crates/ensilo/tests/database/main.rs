//! The database as its users see it.
#![allow(clippy::unwrap_used, reason = "tests")]

mod at_the_limit;
mod catalog;
mod collection;
mod dynamic;
mod engines;
mod errors;
mod failpoints;
mod live_changes;
mod memory;
mod names;
mod queues;
mod requests;
mod sessions;
mod snapshots;
mod statements;
mod submit;
mod transfers;
mod unique_builds;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ensilo::{Columns, Database, Row, Table, Text};

/// A row with a key, indexed columns, a nullable and a variable one.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "account", index(name = "by_owner", columns(owner, balance desc)), index(name = "by_email", columns(email), unique))]
struct Account {
    #[row(key)]
    id: u32,
    owner: Text<16>,
    balance: i64,
    email: Option<String>,
    visits: u32,
}

/// Columns in no index, of fixed width.
#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Account)]
struct Visits {
    visits: u32,
}

/// Columns in an index.
#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Account)]
struct Balance {
    balance: i64,
}

/// A column of variable width in a unique index.
#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Account)]
struct Email {
    email: Option<String>,
}

/// Columns with the key among them.
#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Account)]
struct IdAndVisits {
    id: u32,
    visits: u32,
}

/// A row without a key.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "event")]
struct Event {
    kind: u8,
    text: String,
}

fn account(id: u32) -> Account {
    Account {
        id,
        owner: owner(id % 3),
        balance: i64::from(id) * 10,
        email: Some(format!("{id}@example.org")),
        visits: 0,
    }
}

fn owner(number: u32) -> Text<16> {
    Text::new(["anna", "bert", "cleo"][number as usize]).unwrap()
}

/// A database whose epochs and snapshots pass quickly.
fn quick() -> Database {
    let options = Database::options().epoch_interval(Duration::from_millis(1)).epochs_per_snapshot(4);
    options.in_memory().unwrap()
}

fn with_accounts(count: u32) -> (Database, Table<Account>) {
    let db = quick();
    let accounts = db.create_table::<Account>().unwrap();
    db.transact(|tx| (0..count).try_for_each(|id| accounts.insert(tx, &account(id)).map(|_| ()))).unwrap();
    (db, accounts)
}

/// Sets a flag when it goes, also by a panic: threads that wait for the flag end, and the panic is seen.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
