//! Statements of one client, through tables and their indexes.

use std::cmp::Reverse;

use ensilo::generic::Database;
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
        let first = by_owner.prefix((Text::truncated("Anna"),)).collect(tx)?;
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
    assert_eq!(matches!(db.snapshot(|_| Ok(())), Err(Error::NoSnapshots)), !E::SNAPSHOTS);
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
