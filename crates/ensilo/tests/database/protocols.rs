//! Tables over the protocols that Silo is compared with.

use std::cmp::Reverse;

use ensilo::baseline::{GlobalTid, KeyValue, NoSnapshots, Partitioned, Simple};
use ensilo::{Error, Protocol, Silo};

use super::*;

fn account(id: u32) -> Account {
    Account { id, owner: Text::truncated("Anna"), balance: i64::from(id), email: None, visits: 0 }
}

/// Statements of every kind through the table and its indexes, by one thread.
fn tables_work<P: Protocol>() {
    let db: Database<P> = Database::options().in_memory_with().unwrap();
    let accounts = db.create_table::<Account>().unwrap();
    let by_owner = accounts.index::<(Text<16>, Reverse<i64>)>("by_owner").unwrap();
    db.transact(|tx| (0..20).try_for_each(|id| accounts.insert(tx, &account(id)).map(|_| ()))).unwrap();
    db.transact(|tx| {
        accounts.update(tx, 3, |row: &mut Visits| row.visits = 7)?;
        accounts.update(tx, 4, |row: &mut Balance| row.balance = 1_000)?;
        accounts.update(tx, 5, |row: &mut Email| row.email = Some("a@b.example".repeat(20)))?;
        assert!(accounts.delete(tx, 6)?);
        assert!(matches!(accounts.insert(tx, &account(3)), Err(Error::DuplicateKey(_))));
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
    if P::IS_TRANSACTIONAL {
        let undone = db.transact(|tx| {
            accounts.delete(tx, 1)?;
            accounts.update(tx, 2, |row: &mut Balance| row.balance = -1)?;
            accounts.insert(tx, &account(100))?;
            Err::<(), _>(Error::rollback("changed my mind"))
        });
        assert!(matches!(undone, Err(Error::User(_))));
        db.transact(|tx| {
            assert_eq!(accounts.get(tx, 1)?, Some(account(1)));
            assert_eq!(accounts.get(tx, 2)?, Some(account(2)));
            assert_eq!(by_owner.scan().count(tx)?, 19);
            Ok(())
        })
        .unwrap();
    }
    assert_eq!(matches!(db.snapshot(|_| Ok(())), Err(Error::NoSnapshots)), !P::SNAPSHOTS);
    db.close().unwrap();
}

#[test]
fn tables_are_the_same_over_every_protocol() {
    tables_work::<Silo>();
    tables_work::<Silo<GlobalTid>>();
    tables_work::<Silo<NoSnapshots>>();
    tables_work::<Silo<Simple>>();
    tables_work::<Partitioned>();
    tables_work::<KeyValue>();
}

#[test]
fn several_tables_have_rows_of_one_type() {
    let db = Database::in_memory().unwrap();
    let tables = ["account_1", "account_2"].map(|name| db.create_table_named::<Account>(name).unwrap());
    for (table, id) in tables.iter().zip([1, 2]) {
        db.transact(|tx| table.insert(tx, &account(id))).unwrap();
    }
    assert_eq!(db.list_tables().unwrap(), ["account_1", "account_2"]);
    let again = db.open_table_named::<Account>("account_2").unwrap();
    assert_eq!(db.transact(|tx| again.scan().rows(tx)).unwrap(), [account(2)]);
    assert!(matches!(db.open_table::<Account>(), Err(Error::UnknownTable(_))));
    assert!(matches!(db.create_table_named::<Account>("account_1"), Err(Error::TableExists(_))));
    assert!(matches!(db.create_table_named::<Account>(""), Err(Error::InvalidSchema(_))));
}
