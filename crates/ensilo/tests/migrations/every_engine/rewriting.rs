//! Older rows that are written anew: each once, with what it has, beside others that use them.

use std::thread;

use ensilo_test_disk::Faults;

use super::crashes::{open, open_with, options};
use super::*;

const ROWS: u32 = 500;

/// A table with an index, with rows of three versions.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "item", index(name = "by_name", columns(name)))]
struct Item1 {
    #[row(key)]
    id: u32,
    name: String,
    count: u16,
}

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "item", index(name = "by_name", columns(name)))]
struct Item {
    #[row(key)]
    id: u32,
    name: String,
    count: u64,
    note: Option<String>,
}

fn item(id: u32) -> Item {
    Item { id, name: format!("item {id}"), count: 7, note: Some("an old one".to_owned()) }
}

/// Leaves `ROWS` rows of which half are of each of the two older versions, and five of the newest.
fn make_older_rows(db: &Database) -> generic::Table<Item, Engine> {
    let items = db.table::<Item1>().unwrap();
    let item1 = |id: u32| Item1 { id, name: format!("item {id}"), count: 7 };
    db.transact(|tx| (0..ROWS / 2).try_for_each(|id| items.insert(tx, &item1(id)).map(drop))).unwrap();
    db.change_table("item", &SchemaChange::new().widen("count", ColumnType::U64)).unwrap();
    let items = db.open_dynamic_table("item").unwrap();
    let row = |id: u32| [id.into(), format!("item {id}").into(), 7u64.into()];
    db.transact(|tx| (ROWS / 2..ROWS).try_for_each(|id| items.insert(tx, &row(id)).map(drop))).unwrap();
    let notes = SchemaChange::new().add_nullable("note", ColumnType::Text, "an old one");
    db.change_table("item", &notes).unwrap();
    let items = db.table::<Item>().unwrap();
    db.transact(|tx| (0..5).try_for_each(|id| items.replace(tx, &item(id)))).unwrap();
    items
}

/// The table has these rows, and its index theirs.
fn check_items(db: &Database, expected: &[Item]) {
    let (items, dynamic) = (db.table::<Item>().unwrap(), db.open_dynamic_table("item").unwrap());
    db.read(|tx| {
        assert_eq!(items.scan().rows(tx)?, expected);
        Ok(())
    })
    .unwrap();
    assert!(db.transact(|tx| dynamic.check_index(tx, "by_name")).unwrap().is_whole());
}

#[test]
fn each_older_row_is_rewritten_once() {
    let db = in_memory();
    let items = make_older_rows(&db);
    let rows = db.rewrite_older_rows("item").unwrap();
    assert_eq!((rows.looked_at, rows.rewritten, rows.postponed), (ROWS.into(), (ROWS - 5).into(), 0));
    let all: Vec<_> = (0..ROWS).map(item).collect();
    check_items(&db, &all);
    let again = db.rewrite_older_rows("item").unwrap();
    assert_eq!((again.looked_at, again.rewritten, again.postponed), (ROWS.into(), 0, 0));
    // They are rows of the table as it is, also of one that is changed once more.
    db.change_table("item", &SchemaChange::new().drop_column("note")).unwrap();
    assert!(matches!(db.transact(|tx| items.get(tx, 1)), Err(Error::TableChanged(_))));
    assert_eq!(db.rewrite_older_rows("item").unwrap().rewritten, u64::from(ROWS));
    let dynamic = db.open_dynamic_table("item").unwrap();
    let row = db.transact(|tx| dynamic.get(tx, &[9u32.into()])).unwrap().unwrap();
    assert_eq!(row, [9u32.into(), "item 9".into(), 7u64.into()]);
}

#[test]
fn a_table_that_was_never_changed_has_no_older_rows() {
    let db = of_version_1();
    assert_eq!(db.rewrite_older_rows("customer").unwrap(), ensilo::RewrittenRows::default());
    assert!(matches!(db.rewrite_older_rows("nobody"), Err(Error::UnknownTable(_))));
    let inside = db.transact(|_| {
        db.change_table("customer", &SchemaChange::new()).map(drop).unwrap_err();
        db.rewrite_older_rows("customer")
    });
    assert_eq!(inside.unwrap().looked_at, 0);
}

#[test]
fn a_rewrite_can_be_ended_and_goes_on_later() {
    let db = in_memory();
    make_older_rows(&db);
    let mut calls = 0;
    let first = db.rewrite_older_rows_while("item", |rows| {
        calls += 1;
        assert!(rows.looked_at <= 128 * calls && rows.rewritten <= rows.looked_at);
        calls < 2
    });
    let first = first.unwrap();
    assert!(calls == 2 && first.rewritten > 0 && first.looked_at < ROWS.into(), "{first:?}");
    let rest = db.rewrite_older_rows("item").unwrap();
    assert_eq!(first.rewritten + rest.rewritten, u64::from(ROWS - 5));
    check_items(&db, &(0..ROWS).map(item).collect::<Vec<_>>());
}

#[test]
fn a_row_that_another_transaction_has_written_is_left_to_it() {
    let db = in_memory();
    let items = make_older_rows(&db);
    let mut session = db.begin().unwrap();
    items.update(&mut session, 400, |item: &mut Item| item.count = 1).unwrap();
    // Where writes are not seen before the commit it is rewritten beneath the session.
    let rows = db.rewrite_older_rows("item").unwrap();
    assert!(rows.postponed <= 1, "{rows:?}");
    assert_eq!(rows.rewritten + rows.postponed, u64::from(ROWS - 5));
    session.rollback().unwrap();
    assert_eq!(db.rewrite_older_rows("item").unwrap().rewritten, rows.postponed);
    check_items(&db, &(0..ROWS).map(item).collect::<Vec<_>>());
}

#[test]
fn nothing_is_lost_that_others_write_meanwhile() {
    let db = in_memory();
    let items = make_older_rows(&db);
    let is_over = AtomicBool::new(false);
    let (updates, rewritten) = thread::scope(|scope| {
        let writers: Vec<_> = (0..2u32)
            .map(|writer| {
                let (db, items, is_over) = (&db, &items, &is_over);
                scope.spawn(move || {
                    let mut updates = 0u64;
                    let mut id = writer;
                    while !is_over.load(Ordering::Relaxed) || updates < 100 {
                        let add = |item: &mut Item| item.count += 1;
                        db.request().retries(u32::MAX).transact(|tx| items.update(tx, id, add)).unwrap();
                        updates += 1;
                        id = (id + 7) % ROWS;
                    }
                    updates
                })
            })
            .collect();
        let rewritten = db.rewrite_older_rows("item");
        is_over.store(true, Ordering::Relaxed);
        let rewritten = rewritten.unwrap();
        (writers.into_iter().map(|writer| writer.join().unwrap()).sum::<u64>(), rewritten)
    });
    let found = db.read(|tx| items.scan().rows(tx)).unwrap();
    let counted: u64 = found.iter().map(|item| item.count - 7).sum();
    assert_eq!(counted, updates);
    // Where a transaction reads as of its begin, rows that were written since are passed over: they are of the newest version.
    assert!(rewritten.looked_at <= ROWS.into(), "{rewritten:?}");
    assert!(db.rewrite_older_rows("item").unwrap().rewritten <= rewritten.postponed);
    check_items(&db, &found);
}

#[test]
fn a_power_failure_leaves_every_row_of_one_version_or_the_other() {
    let mut interrupted = 0;
    for life in 0..30u64 {
        let disk = Arc::new(SimulatedDisk::new());
        let db = open(&disk);
        make_older_rows(&db);
        if life % 2 == 0 {
            db.checkpoint().unwrap();
        }
        let number = life / 3 % 8;
        disk.set_faults(Faults {
            seed: life,
            write_error_at: life.is_multiple_of(3).then_some(number),
            sync_error_at: (life % 3 == 1).then_some(number),
            ..Default::default()
        });
        let rewritten = db.rewrite_older_rows("item");
        let crashed = Arc::new(disk.crash(life));
        drop(db);
        let db = open(&crashed);
        let all: Vec<_> = (0..ROWS).map(item).collect();
        check_items(&db, &all);
        let rest = db.rewrite_older_rows("item").unwrap().rewritten;
        match rewritten {
            Ok(_) => assert_eq!(rest, 0, "life {life}"),
            Err(_) => interrupted += 1,
        }
        assert_eq!(db.rewrite_older_rows("item").unwrap().rewritten, 0);
        db.checkpoint().unwrap();
        db.close().unwrap();
        check_items(&open(&crashed), &all);
    }
    assert!(interrupted > 0);
}

#[test]
fn a_database_that_is_only_read_rewrites_nothing() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(&disk);
    make_older_rows(&db);
    db.close().unwrap();
    assert!(matches!(db.rewrite_older_rows("item"), Err(Error::Closed)));
    let db = open_with(options().read_only(true), &disk).unwrap();
    assert!(matches!(db.rewrite_older_rows("item"), Err(Error::ReadOnly)));
    check_items(&db, &(0..ROWS).map(item).collect::<Vec<_>>());
}
