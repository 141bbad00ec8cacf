//! Unique values that meet while a unique index is built: what each interleaving of the builder and a writer leaves.

use std::sync::mpsc;
use std::thread;

use ensilo::generic::{Database, Table};
use ensilo::variants::Failpoint;
use ensilo::{Engine, Error, Options, Order, Result};

use super::{Account, HookedEngine, LOCKS, Visits, account};
use crate::failpoints::hook_once;

/// Old rows have even ids below this. A transaction of the builder takes 128 of them at most.
const END: u32 = 600;
/// The last old row: the builder comes to it in its last transaction but one.
const OLD: u32 = END - 2;
/// A new row, at a place that the builder's first transaction has passed.
const NEW: u32 = 1;
/// What both have in common.
const VALUE: u32 = 7_777;

fn with_visits(id: u32, visits: u32) -> Account {
    Account { visits, ..account(id) }
}

fn with_old_rows<E: Engine>() -> (Database<E>, Table<Account, E>) {
    let db: Database<E> = Options::default().retries(u32::MAX).in_memory_with().unwrap();
    let accounts = db.create_table::<Account>().unwrap();
    let rows: Vec<_> =
        (0..END).step_by(2).map(|id| with_visits(id, if id == OLD { VALUE } else { id })).collect();
    db.transact(|tx| accounts.insert_many(tx, &rows)).unwrap();
    (db, accounts)
}

fn build<E: Engine>(db: &Database<E>) -> Result<()> {
    db.create_unique_index("account", "by_visits", [("visits", Order::Ascending)])
}

/// Builds a unique index, and lets `meanwhile` run when the builder comes to `place` for the `times`-th time.
fn build_and_meanwhile<E: Engine>(
    (db, accounts): &(Database<E>, Table<Account, E>),
    (place, times): (Failpoint, u32),
    meanwhile: impl Fn(&Database<E>, &Table<Account, E>) + 'static,
) -> Result<()> {
    let (for_hook, accounts) = (db.clone(), accounts.clone());
    hook_once(place, times, move || meanwhile(&for_hook, &accounts));
    build(db)
}

/// Builds a unique index, and lets `write` run on another thread when the builder has read the old row and has not added its entry. The builder
/// goes on when that is done, or where it has locked what it has read, meanwhile.
fn build_and_write<E: Engine>(
    database: &(Database<E>, Table<Account, E>),
    write: fn(&Database<E>, &Table<Account, E>),
) -> Result<()> {
    let (hand_over, writers) = mpsc::channel();
    let built = build_and_meanwhile(database, (Failpoint::IndexRowsRead, 3), move |db, accounts| {
        let (db, accounts) = (db.clone(), accounts.clone());
        let writer = thread::spawn(move || write(&db, &accounts));
        if LOCKS { hand_over.send(writer).unwrap() } else { writer.join().unwrap() }
    });
    if LOCKS {
        writers.recv().unwrap().join().unwrap();
    }
    built
}

fn insert<E: Engine>(db: &Database<E>, accounts: &Table<Account, E>, id: u32, visits: u32) -> Result<()> {
    db.transact(|tx| accounts.insert(tx, &with_visits(id, visits)).map(|_| ()))
}

fn delete<E: Engine>(db: &Database<E>, accounts: &Table<Account, E>, id: u32) {
    assert!(db.transact(|tx| accounts.delete(tx, id)).unwrap());
}

fn set_visits<E: Engine>(db: &Database<E>, accounts: &Table<Account, E>, id: u32, visits: u32) -> Result<()> {
    db.transact(|tx| accounts.update(tx, id, |row: &mut Visits| row.visits = visits))
}

/// Every row has one entry, and every entry a row; the index refuses what is taken; each row can be changed and deleted.
fn check<E: Engine>((db, accounts): &(Database<E>, Table<Account, E>)) {
    let index = accounts.index::<u32>("by_visits").unwrap();
    let (mut rows, by_index) =
        db.transact(|tx| Ok((accounts.scan().rows(tx)?, index.scan().rows(tx)?))).unwrap();
    rows.sort_by_key(|row| row.visits);
    assert_eq!(by_index, rows);
    for row in &rows {
        let found = db.transact(|tx| index.get(tx, row.visits)).unwrap();
        assert_eq!(found.as_ref(), Some(row));
        let taken = insert(db, accounts, 100_001, row.visits);
        assert!(matches!(taken, Err(Error::DuplicateKey(_))), "{taken:?}");
        set_visits(db, accounts, row.id, row.visits + 1_000_000).unwrap();
        assert_eq!(db.transact(|tx| index.get(tx, row.visits)).unwrap(), None);
    }
    for row in rows {
        delete(db, accounts, row.id);
    }
    assert_eq!(db.transact(|tx| index.scan().count(tx)).unwrap(), 0);
}

/// The new row gets the entry first, the old one leaves its value before the builder comes to it.
pub(crate) fn the_old_row_goes<E: Engine>() {
    let database = with_old_rows::<E>();
    build_and_meanwhile(&database, (Failpoint::IndexRowsDone, 1), |db, accounts| {
        insert(db, accounts, NEW, VALUE).unwrap();
        delete(db, accounts, OLD);
    })
    .unwrap();
    check(&database);
}

#[test]
fn an_old_row_that_is_deleted_leaves_the_entry_of_a_new_one() {
    the_old_row_goes::<HookedEngine>();
}

#[test]
fn an_old_row_that_is_changed_leaves_the_entry_of_a_new_one() {
    let database = with_old_rows::<HookedEngine>();
    build_and_meanwhile(&database, (Failpoint::IndexRowsDone, 1), |db, accounts| {
        insert(db, accounts, NEW, VALUE).unwrap();
        set_visits(db, accounts, OLD, VALUE + 1).unwrap();
    })
    .unwrap();
    check(&database);
}

#[test]
fn an_old_row_that_comes_back_to_its_value_finds_it_taken() {
    let database = with_old_rows::<HookedEngine>();
    build_and_meanwhile(&database, (Failpoint::IndexRowsDone, 1), |db, accounts| {
        insert(db, accounts, NEW, VALUE).unwrap();
        let back = db.transact(|tx| {
            accounts.update(tx, OLD, |row: &mut Visits| row.visits = VALUE + 1)?;
            accounts.update(tx, OLD, |row: &mut Visits| row.visits = VALUE)
        });
        assert!(matches!(back, Err(Error::DuplicateKey(_))), "{back:?}");
        set_visits(db, accounts, OLD, VALUE + 1).unwrap();
        assert!(matches!(set_visits(db, accounts, OLD, VALUE), Err(Error::DuplicateKey(_))));
    })
    .unwrap();
    check(&database);
}

#[test]
fn a_deleted_new_row_leaves_the_value_to_the_old_one() {
    let database = with_old_rows::<HookedEngine>();
    build_and_meanwhile(&database, (Failpoint::IndexRowsDone, 1), |db, accounts| {
        insert(db, accounts, NEW, VALUE).unwrap();
        delete(db, accounts, NEW);
        // The value is free, and a third row takes it and goes on to another one.
        insert(db, accounts, NEW + 2, VALUE).unwrap();
        set_visits(db, accounts, NEW + 2, VALUE + 2).unwrap();
    })
    .unwrap();
    check(&database);
}

#[test]
fn a_refused_statement_leaves_the_entries_of_others() {
    let database = with_old_rows::<HookedEngine>();
    build_and_meanwhile(&database, (Failpoint::IndexRowsDone, 1), |db, accounts| {
        insert(db, accounts, NEW, VALUE).unwrap();
        // One statement is refused for the email, which another index has, the other for the value.
        let refused = db.transact(|tx| {
            let first =
                accounts.insert(tx, &Account { email: account(4).email, ..with_visits(NEW + 2, VALUE + 2) });
            assert!(matches!(first, Err(Error::DuplicateKey(_))), "{first:?}");
            let second = accounts.replace(tx, &with_visits(0, VALUE));
            assert!(matches!(second, Err(Error::DuplicateKey(_))), "{second:?}");
            accounts.delete(tx, OLD)
        });
        assert!(refused.unwrap());
    })
    .unwrap();
    check(&database);
}

#[test]
fn an_old_row_and_a_new_one_with_one_value_fail_the_build() {
    let database = with_old_rows::<HookedEngine>();
    let built = build_and_meanwhile(&database, (Failpoint::IndexRowsDone, 1), |db, accounts| {
        insert(db, accounts, NEW, VALUE).unwrap();
    });
    assert!(matches!(built, Err(Error::DuplicateKey(_))), "{built:?}");
    let (db, accounts) = &database;
    assert!(matches!(accounts.index::<u32>("by_visits"), Err(Error::UnknownIndex(_))));
    // Nothing of it is left: the value may be there any number of times, and the name is free.
    insert(db, accounts, NEW + 2, VALUE).unwrap();
    assert!(matches!(build(db), Err(Error::DuplicateKey(_))));
    for id in [NEW, NEW + 2] {
        delete(db, accounts, id);
    }
    build(db).unwrap();
    check(&database);
}

#[test]
fn a_change_between_the_builders_read_and_commit_is_kept() {
    // The builder's transaction meets the writers, is undone and runs again; or the writers wait for it.
    let database = with_old_rows::<HookedEngine>();
    build_and_write(&database, |db, accounts| {
        if LOCKS {
            // The old row stays until the builder has committed: a new one with its value before that would be a duplicate.
            delete(db, accounts, OLD);
        }
        insert(db, accounts, NEW, VALUE).unwrap();
        if !LOCKS {
            delete(db, accounts, OLD);
        }
    })
    .unwrap();
    check(&database);
}

/// The builder has read the old row, and has not added its entry.
pub(crate) fn the_old_row_changes_between_read_and_entry<E: Engine>() {
    let database = with_old_rows::<E>();
    build_and_write(&database, |db, accounts| set_visits(db, accounts, OLD, VALUE + 1).unwrap()).unwrap();
    check(&database);
}

#[test]
fn an_old_row_that_changes_while_the_builder_adds_its_entry_has_one() {
    the_old_row_changes_between_read_and_entry::<HookedEngine>();
}

#[test]
fn two_indexes_are_built_at_once() {
    let database = with_old_rows::<HookedEngine>();
    build_and_meanwhile(&database, (Failpoint::IndexRowsDone, 2), |db, accounts| {
        insert(db, accounts, NEW, VALUE).unwrap();
        db.create_index("account", "by_visits_too", [("visits", Order::Ascending)]).unwrap();
        let second = db.create_unique_index("account", "second", [("visits", Order::Ascending)]);
        assert!(matches!(second, Err(Error::DuplicateKey(_))), "{second:?}");
        delete(db, accounts, OLD);
    })
    .unwrap();
    let (db, accounts) = &database;
    let other = accounts.index::<u32>("by_visits_too").unwrap();
    assert_eq!(db.transact(|tx| other.get(tx, VALUE)).unwrap(), Some(with_visits(NEW, VALUE)));
    check(&database);
    assert_eq!(db.transact(|tx| other.scan().count(tx)).unwrap(), 0);
}

#[test]
fn a_build_ends_with_its_table_and_with_its_database() {
    for place in [Failpoint::IndexIntroduced, Failpoint::IndexRowsDone, Failpoint::IndexFilled] {
        let database = with_old_rows::<HookedEngine>();
        let built = build_and_meanwhile(&database, (place, 1), |db, _| db.drop_table("account").unwrap());
        assert!(matches!(built, Err(Error::UnknownTable(_))), "{place:?}: {built:?}");
        assert_eq!(database.0.list_tables().unwrap(), [""; 0]);
        let database = with_old_rows::<HookedEngine>();
        let built = build_and_meanwhile(&database, (place, 1), |db, _| db.close().unwrap());
        assert!(matches!(built, Err(Error::Closed)), "{place:?}: {built:?}");
    }
}
