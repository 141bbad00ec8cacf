//! What every engine passes: tables, indexes and requests mean the same whatever runs the transactions.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ensilo::variants::{GlobalTid, NoSnapshots, Silo, Simple};
use ensilo::{ColumnType, Engine, Error, IndexState, Order, Schema, Value};
use ensilo_baselines::{KeyValue, PartitionedStore};
use ensilo_engine::{EngineOptions, Read, Session, TableId, Write};
use ensilo_map_engine::MapEngine;

use super::*;

fn account(id: u32) -> Account {
    Account { id, owner: Text::truncated("Anna"), balance: i64::from(id), email: None, visits: 0 }
}

/// Statements of every kind through the table and its indexes, by one thread.
fn tables_work<E: Engine>() {
    let db: Database<E> = Database::options().in_memory_with().unwrap();
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
    if E::IS_TRANSACTIONAL {
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
    assert_eq!(matches!(db.snapshot(|_| Ok(())), Err(Error::NoSnapshots)), !E::SNAPSHOTS);
    db.close().unwrap();
}

#[test]
fn tables_are_the_same_on_every_engine() {
    tables_work::<Silo>();
    tables_work::<Silo<GlobalTid>>();
    tables_work::<Silo<NoSnapshots>>();
    tables_work::<Silo<Simple>>();
    tables_work::<PartitionedStore>();
    tables_work::<KeyValue>();
    tables_work::<MapEngine>();
}

/// Tables and indexes are made, refused and dropped, also with rows in them.
fn the_catalog_works<E: Engine>() {
    let (db, accounts) = crate::with_accounts_on::<E>(50);
    db.create_index("account", "by_visits", [("visits", Order::Ascending)]).unwrap();
    let refused = db.create_unique_index("account", "one_each", [("owner", Order::Ascending)]);
    assert!(matches!(refused, Err(Error::DuplicateKey(_))), "{refused:?}");
    let statistics = db.statistics().unwrap();
    let indexes = &statistics.table("account").unwrap().indexes;
    assert_eq!(indexes.iter().map(|index| index.records).collect::<Vec<_>>(), [50; 3]);
    assert!(indexes.iter().all(|index| index.state == IndexState::Ready));
    db.drop_index("account", "by_email").unwrap();
    let twice = Account { email: crate::account(1).email, ..crate::account(100) };
    db.transact(|tx| accounts.insert(tx, &twice)).unwrap();
    db.drop_table("account").unwrap();
    assert!(matches!(db.transact(|tx| accounts.get(tx, 1)), Err(Error::UnknownTable(_))));
    let again = db.create_table::<Account>().unwrap();
    assert_eq!(db.transact(|tx| again.scan().count(tx)).unwrap(), 0);
}

/// Rows without a Rust type, and a scan by an index of theirs.
fn dynamic_tables_work<E: Engine>() {
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

/// Requests on several threads, in the pool and statement by statement, none of which loses an update.
fn requests_meet<E: Engine>() {
    const TIMES: u32 = 200;
    let (db, accounts) = crate::with_accounts_on::<E>(2);
    let visit = |tx: &mut ensilo::Transaction<'_, E>| {
        accounts.update(tx, 0, |row: &mut Visits| row.visits += 1)?;
        accounts.update(tx, 1, |row: &mut Visits| row.visits += 1)
    };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..TIMES).for_each(|_| db.transact(visit).unwrap()));
        }
    });
    let visits = |id| db.transact(|tx| accounts.get_columns::<Visits>(tx, id)).unwrap().unwrap().visits;
    assert_eq!([visits(0), visits(1)], [3 * TIMES; 2]);
    let mut open = db.begin().unwrap();
    open.with(visit).unwrap();
    db.transact(visit).unwrap();
    assert!(matches!(open.commit(), Err(Error::Aborted(_))), "the other one came first");
    let mut open = db.begin().unwrap();
    open.with(visit).unwrap();
    open.commit().unwrap();
    assert_eq!(visits(0), 3 * TIMES + 2);
    let counting = accounts.clone();
    let job = db.submit(move |tx| counting.scan().count(tx)).unwrap();
    assert_eq!(job.wait().unwrap(), 2);
}

#[test]
fn the_catalog_is_the_same_on_every_engine() {
    the_catalog_works::<Silo>();
    the_catalog_works::<Silo<NoSnapshots>>();
    the_catalog_works::<MapEngine>();
}

#[test]
fn dynamic_tables_are_the_same_on_every_engine() {
    dynamic_tables_work::<Silo>();
    dynamic_tables_work::<PartitionedStore>();
    dynamic_tables_work::<MapEngine>();
}

#[test]
fn requests_are_serializable_on_every_engine_that_says_so() {
    requests_meet::<Silo>();
    requests_meet::<Silo<Simple>>();
    requests_meet::<MapEngine>();
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

fn sessions_work<E: Engine>() {
    sessions::statements_of_several_calls_commit_together::<E>();
    sessions::two_of_one_thread_are_serializable::<E>();
    sessions::a_session_goes_on_in_another_thread::<E>();
}

#[test]
fn sessions_are_the_same_on_every_engine_that_validates() {
    sessions_work::<Silo>();
    sessions_work::<Silo<GlobalTid>>();
    sessions_work::<Silo<NoSnapshots>>();
    sessions_work::<Silo<Simple>>();
    sessions_work::<MapEngine>();
}

/// What each use of a handle does by a transaction that has not found it.
fn handles_are_refused<E: Engine>() {
    let engine = E::start(EngineOptions::default());
    let store = engine.new_store(TableId(1)).unwrap();
    let (mut session, mut other) = (engine.session(), engine.session());
    let mut tx = session.begin();
    assert!(tx.insert(&store, b"key", &[1], 8).unwrap());
    let inserted = tx.find(&store, b"key").unwrap().unwrap();
    tx.commit().unwrap();
    let mut finder = other.begin();
    let found = finder.find(&store, b"key").unwrap().unwrap();
    assert!(finder.has_found(found) && !finder.has_found(inserted));
    drop(finder);
    let refuses = |use_it: &dyn Fn()| assert!(catch_unwind(AssertUnwindSafe(use_it)).is_err());
    for foreign in [inserted, found] {
        let tx = RefCell::new(session.begin());
        // It has read the same record at the same place.
        assert!(tx.borrow_mut().find(&store, b"key").unwrap().is_some() && !tx.borrow().has_found(foreign));
        refuses(&|| _ = tx.borrow_mut().read(foreign, |_| ()));
        refuses(&|| _ = tx.borrow_mut().put(foreign, &[2], 8));
        refuses(&|| _ = tx.borrow_mut().patch(foreign, &[(0, 2)]));
        refuses(&|| _ = tx.borrow_mut().delete(foreign));
        assert_eq!(tx.borrow_mut().get(&store, b"key", |row| row.word(0)).unwrap(), Some(1));
        tx.into_inner().commit().unwrap();
        if E::SNAPSHOTS {
            let snapshot = RefCell::new(session.begin_snapshot());
            refuses(&|| _ = snapshot.borrow_mut().read(foreign, |_| ()));
        }
    }
}

#[test]
fn a_handle_is_good_in_the_transaction_that_has_found_it_alone() {
    handles_are_refused::<Silo>();
    handles_are_refused::<Silo<Simple>>();
    handles_are_refused::<PartitionedStore>();
    handles_are_refused::<KeyValue>();
    handles_are_refused::<MapEngine>();
}
