//! Statements of one client, through tables and their indexes.

use std::cmp::Reverse;
use std::time::Duration;

use ensilo::generic::{Database, Table};
use ensilo::{ColumnType, Engine, Error, IndexState, Order, Schema, Text, Value};

use crate::rows::{Account, Balance, Email, Visits, account, quick_on, with_accounts_on};

/// Returns a row without an email address; all such rows have one owner.
fn annas(id: u32) -> Account {
    Account { id, owner: Text::truncated("Anna"), balance: i64::from(id), email: None, visits: 0 }
}

/// Statements of every kind change a table and its indexes, and nothing of a request that is rolled back stays.
pub fn statements_change_tables_and_their_indexes<E: Engine>() {
    let db: Database<E> = Database::options().in_memory_with().unwrap();
    let accounts = db.create_table::<Account>().unwrap();
    let by_owner = accounts.index::<(Text<16>, Reverse<i64>)>("by_owner").unwrap();
    db.transact(|tx| (0..20).try_for_each(|id| accounts.insert(tx, &annas(id)).map(|_| ()))).unwrap();
    db.transact(|tx| {
        accounts.update(tx, 3, |row: &mut Visits| row.visits = 7)?;
        accounts.update(tx, 4, |row: &mut Balance| row.balance = 1_000)?;
        accounts.update(tx, 5, |row: &mut Email| row.email = Some("a@b.example".repeat(20)))?;
        assert!(accounts.delete(tx, 6)?);
        assert!(matches!(accounts.insert(tx, &annas(3)), Err(Error::DuplicateKey(_))));
        Ok(())
    })
    .unwrap();
    db.transact(|tx| {
        assert_eq!(accounts.get(tx, 3)?.unwrap().visits, 7);
        assert_eq!(accounts.get(tx, 5)?.unwrap().email.unwrap().len(), 11 * 20);
        assert_eq!(accounts.get(tx, 6)?, None);
        let first = by_owner.prefix((Text::truncated("Anna"),)).rows(tx)?;
        assert_eq!((first.len(), first[0].id), (19, 4), "the richest comes first");
        assert_eq!(accounts.scan().count(tx)?, 19);
        Ok(())
    })
    .unwrap();
    assert_eq!(db.statistics().unwrap().table("account").unwrap().records, 19);
    if E::IS_TRANSACTIONAL {
        let undone = db.transact(|tx| {
            accounts.delete(tx, 1)?;
            accounts.update(tx, 2, |row: &mut Balance| row.balance = -1)?;
            accounts.insert(tx, &annas(100))?;
            Err::<(), _>(Error::rollback("changed my mind"))
        });
        assert!(matches!(undone, Err(Error::User(_))));
        db.transact(|tx| {
            assert_eq!(accounts.get(tx, 1)?, Some(annas(1)));
            assert_eq!(accounts.get(tx, 2)?, Some(annas(2)));
            assert_eq!(by_owner.scan().count(tx)?, 19);
            Ok(())
        })
        .unwrap();
    }
    assert_eq!(matches!(db.read_stale(|_| Ok(())), Err(Error::NoSnapshots)), !E::SNAPSHOTS);
    let read = db.read(|tx| Ok((accounts.get(tx, 3)?, by_owner.scan().count(tx)?)));
    assert_eq!(read.unwrap(), (Some(Account { visits: 7, ..annas(3) }), 19));
    db.close().unwrap();
}

/// Tables and indexes are made, refused and dropped, also with rows in them.
pub fn tables_and_indexes_are_made_refused_and_dropped<E: Engine>() {
    let (db, accounts) = with_accounts_on::<E>(50);
    db.create_index("account", "by_visits", [("visits", Order::Ascending)]).unwrap();
    let refused = db.create_unique_index("account", "one_each", [("owner", Order::Ascending)]);
    assert!(matches!(refused, Err(Error::DuplicateKey(_))), "{refused:?}");
    let statistics = db.statistics().unwrap();
    let indexes = &statistics.table("account").unwrap().indexes;
    assert_eq!(indexes.iter().map(|index| index.records).collect::<Vec<_>>(), [50; 3]);
    assert!(indexes.iter().all(|index| index.state == IndexState::Ready));
    db.drop_index("account", "by_email").unwrap();
    let twice = Account { email: account(1).email, ..account(100) };
    db.transact(|tx| accounts.insert(tx, &twice)).unwrap();
    db.drop_table("account").unwrap();
    assert!(matches!(db.transact(|tx| accounts.get(tx, 1)), Err(Error::UnknownTable(_))));
    let again = db.create_table::<Account>().unwrap();
    assert_eq!(db.transact(|tx| again.scan().count(tx)).unwrap(), 0);
}

/// Rows without a Rust type are written, and found by an index.
pub fn dynamic_tables_have_rows_without_a_rust_type<E: Engine>() {
    let db = quick_on::<E>();
    let schema = Schema::builder("item")
        .column("id", ColumnType::U32)
        .column("name", ColumnType::Text)
        .key([("id", Order::Ascending)])
        .index("by_name", [("name", Order::Descending)])
        .build()
        .unwrap();
    let items = db.create_dynamic_table(schema).unwrap();
    let row = |id: u32| [id.into(), Value::from(format!("name {}", id % 10))];
    db.transact(|tx| (0..30).try_for_each(|id| items.insert(tx, &row(id)).map(|_| ()))).unwrap();
    db.transact(|tx| items.update(tx, &[7u32.into()], &[("name", "other".into())])).unwrap();
    let found = db.transact(|tx| items.scan().by_index("by_name")?.limit(4).collect(tx)).unwrap();
    let ids: Vec<_> = found.iter().map(|row| row[0].clone()).collect();
    assert_eq!(ids, [7u32, 9, 19, 29].map(Value::from));
}

/// Rows are taken in the order of a key or an index, from either end, and what inserts or changes rows of a table
/// ends a wait for them.
pub fn rows_are_taken_in_order_and_their_commits_end_waits<E: Engine>() {
    let (db, accounts) = with_accounts_on::<E>(8);
    let by_owner = accounts.index::<(Text<16>, Reverse<i64>)>("by_owner").unwrap();
    let mut arrivals = accounts.watch().unwrap();
    let ids = db.transact(|tx| {
        let first = accounts.scan().take_first(tx)?.map(|(id, _)| id);
        let last = accounts.scan().reverse().take_first(tx)?.map(|(id, _)| id);
        // Of anna, the richest.
        let anna = by_owner.prefix((Text::truncated("anna"),)).take_first(tx)?.map(|(id, _)| id);
        let none = accounts.range(100..).take_first(tx)?;
        assert_eq!(none, None);
        Ok([first, last, anna])
    });
    assert_eq!(ids.unwrap(), [Some(0), Some(7), Some(6)]);
    assert_eq!(by_ids(&db, &accounts), [1, 2, 3, 4, 5]);
    let mut has_come = || arrivals.wait_timeout(Duration::ZERO).unwrap();
    // The commit that has taken first may be among those that everybody is told of.
    has_come();
    db.transact(|tx| accounts.scan().take_first(tx)).unwrap();
    assert!(!has_come());
    db.transact(|tx| accounts.insert(tx, &account(0))).unwrap();
    assert!(has_come() && !has_come());
    db.transact(|tx| accounts.update(tx, 4, |row: &mut Visits| row.visits = 7)).unwrap();
    assert!(has_come());
    let taken: Vec<_> =
        std::iter::from_fn(|| db.transact(|tx| accounts.scan().take_first(tx)).unwrap()).collect();
    assert!(taken.iter().map(|(id, _)| *id).eq([0, 2, 3, 4, 5]));
    assert_eq!(db.transact(|tx| by_owner.scan().count(tx)).unwrap(), 0);
    db.drop_table("account").unwrap();
    assert!(matches!(arrivals.wait(), Err(Error::UnknownTable(_))));
}

/// Returns the keys of all rows.
fn by_ids<E: Engine>(db: &Database<E>, accounts: &Table<Account, E>) -> Vec<u32> {
    let rows = db.transact(|tx| accounts.scan().collect(tx)).unwrap();
    rows.into_iter().map(|(id, _)| id).collect()
}
