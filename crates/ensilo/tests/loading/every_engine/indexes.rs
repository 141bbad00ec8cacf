//! Tables with secondary indexes, and changes of tables and indexes, while rows are loaded.

use std::thread;

use ensilo::{Error, IndexState, Order};

use super::*;

fn check_indexes(db: &Database) {
    let people = db.open_dynamic_table("person").unwrap();
    for index in ["by_group", "by_name"] {
        let check = db.read(|tx| people.check_index(tx, index)).unwrap();
        assert!(check.is_whole() && check.matches > 0, "{index}: {check:?}");
    }
}

#[test]
fn rows_are_read_by_key_before_their_indexes_are_there() {
    let hold = Hold::new();
    let disk = left_behind(3000, 2);
    let db = open(loading(), &disk).unwrap();
    let people = people(&db);
    let states = |db: &Database| {
        let table = db.statistics().unwrap().table("person").unwrap().clone();
        table.indexes.into_iter().map(|index| index.state).collect::<Vec<_>>()
    };
    assert_eq!(db.transact(|tx| people.get(tx, 1000)).unwrap(), Some(person(1000)));
    assert_eq!(db.transact(|tx| people.scan().first(tx)).unwrap(), Some((1, person(1))));
    assert!(load(&db).blocks_done < 10);
    assert_eq!(states(&db), [IndexState::Building; 2]);
    // The first use loads the table, though nothing is loaded in the background.
    let by_group = people.index::<u32>("by_group").unwrap();
    let group: Vec<_> = (0..3000).filter(|&id| is_key(id) && id % 7 == 3).map(person).collect();
    assert_eq!(db.transact(|tx| by_group.equal(3).rows(tx)).unwrap(), group);
    assert_eq!(states(&db), [IndexState::Ready; 2]);
    assert_eq!(load(&db).tables_left, 1);
    assert_eq!(db.read_stale(|tx| by_group.equal(3).count(tx)).unwrap(), group.len());
    check_indexes(&db);
    hold.release();
    db.wait_until_loaded().unwrap();
}

#[test]
fn a_write_waits_for_the_whole_table_and_keeps_its_indexes() {
    let _hold = Hold::new();
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(options(), &disk).unwrap();
    filled(&db, 2000);
    let table = people(&db);
    db.transact(|tx| table.delete(tx, 4)).unwrap();
    db.transact(|tx| table.insert(tx, &Person { name: "name 4".into(), ..person(3) })).unwrap();
    type Write = fn(&Database, &Table<Person>) -> Result<()>;
    let writes: [Write; 6] = [
        |db, table| db.transact(|tx| table.insert(tx, &person(6)).map(drop)),
        |db, table| db.transact(|tx| table.delete(tx, 5).map(drop)),
        |db, table| db.transact(|tx| table.update(tx, 5, |row: &mut Text| row.text = "z".into())),
        |db, table| db.transact(|tx| table.replace(tx, &Person { group: 99, ..person(5) })),
        |db, table| db.transact(|tx| table.scan().take_first(tx).map(drop)),
        |db, table| {
            let mut session = db.begin()?;
            let found = table.find(&mut session, 5)?.unwrap();
            found.set(&mut session, Text { text: "w".into() })?;
            session.commit().map(drop)
        },
    ];
    for write in writes {
        let db = open(loading(), &disk.kill().into()).unwrap();
        let table = people(&db);
        write(&db, &table).unwrap();
        assert_eq!(load(&db).tables_left, 1);
        check_indexes(&db);
        let taken = db.transact(|tx| table.insert(tx, &Person { id: 2001, ..person(1000) }));
        assert!(matches!(taken, Err(Error::DuplicateKey(_))), "{taken:?}");
    }
}

#[test]
fn a_broken_index_is_found_when_its_table_is_loaded() {
    let _hold = Hold::new();
    let disk = left_behind(2000, 1);
    let db = open(options(), &disk).unwrap();
    db.drop_index("person", "by_name").unwrap();
    let people_before = people_without_names(&db);
    db.transact(|tx| {
        let mut row = people_before.get(tx, &[1u32.into()])?.unwrap();
        row[0] = 2001u32.into();
        people_before.insert(tx, &row)
    })
    .unwrap();
    // What an earlier program may have left: rows with one name, and an index of names.
    assert!(matches!(
        db.create_unique_index("person", "by_name", [("name", Order::Ascending)]),
        Err(Error::DuplicateKey(_))
    ));
    db.close().unwrap();
    drop(db);
    let db = open(loading(), &disk).unwrap();
    assert!(matches!(
        db.create_unique_index("person", "by_name", [("name", Order::Ascending)]),
        Err(Error::DuplicateKey(_))
    ));
    assert_eq!(load(&db).tables_left, 1);
    let people = people_without_names(&db);
    db.transact(|tx| people.delete(tx, &[2001u32.into()])).unwrap();
    db.create_unique_index("person", "by_name", [("name", Order::Ascending)]).unwrap();
    check_indexes(&db);
}

fn people_without_names(db: &Database) -> generic::DynamicTable<Engine> {
    db.open_dynamic_table("person").unwrap()
}

#[test]
fn indexes_are_made_and_dropped_on_tables_that_are_loading() {
    let _hold = Hold::new();
    let disk = left_behind(2000, 2);
    let db = open(loading(), &disk).unwrap();
    db.create_index("item", "by_count", [("count", Order::Ascending)]).unwrap();
    db.drop_index("person", "by_group").unwrap();
    assert_eq!(load(&db).tables_left, 0);
    db.wait_until_loaded().unwrap();
    let db = open(options(), &disk.kill().into()).unwrap();
    let items = db.open_dynamic_table("item").unwrap();
    assert!(db.read(|tx| items.check_index(tx, "by_count")).unwrap().matches > 1000);
    let people = db.open_dynamic_table("person").unwrap();
    assert!(matches!(db.read(|tx| people.check_index(tx, "by_group")), Err(Error::UnknownIndex(_))));
}

#[test]
fn a_table_is_dropped_while_it_loads() {
    let hold = Hold::new();
    let disk = left_behind(3000, 2);
    let db = open(loading(), &disk).unwrap();
    let table = items(&db);
    assert_eq!(db.transact(|tx| table.get(tx, 1000)).unwrap(), Some(item(1000)));
    db.drop_table("item").unwrap();
    assert!(matches!(db.transact(|tx| table.get(tx, 1001)), Err(Error::UnknownTable(_))));
    let (left, total) = (load(&db).tables_left, load(&db).blocks_total);
    assert_eq!(left, 1);
    hold.release();
    db.wait_until_loaded().unwrap();
    assert_eq!(load(&db).blocks_done, total);
    // Another one of the same name is another one.
    let table = db.create_table::<Item>().unwrap();
    db.transact(|tx| table.insert(tx, &item(0))).unwrap();
    for options in [options(), loading()] {
        let db = open(options, &disk.kill().into()).unwrap();
        assert_eq!(all_items(&db), [item(0)]);
    }
}

#[test]
fn tables_are_truncated_while_they_load_and_keep_their_indexes() {
    let hold = Hold::new();
    let disk = left_behind(3000, 2);
    let db = open(loading(), &disk).unwrap();
    let tables = (items(&db), people(&db));
    assert_eq!(db.transact(|tx| tables.0.get(tx, 1000)).unwrap(), Some(item(1000)));
    assert_eq!(db.transact(|tx| tables.1.get(tx, 1000)).unwrap(), Some(person(1000)));
    for name in ["item", "person"] {
        db.truncate_table(name).unwrap();
    }
    assert!(matches!(db.transact(|tx| tables.0.get(tx, 1001)), Err(Error::TableChanged(_))));
    assert!(matches!(db.transact(|tx| tables.1.get(tx, 1000)), Err(Error::TableChanged(_))));
    assert_eq!(load(&db).tables_left, 0);
    assert!(all_items(&db).is_empty());
    let table = people(&db);
    db.transact(|tx| table.insert(tx, &person(7))).unwrap();
    check_indexes(&db);
    hold.release();
    db.wait_until_loaded().unwrap();
    assert_eq!(load(&db).blocks_done, load(&db).blocks_total);
    for options in [options(), loading()] {
        let db = open(options, &disk.kill().into()).unwrap();
        assert!(all_items(&db).is_empty());
        let table = people(&db);
        assert_eq!(db.transact(|tx| table.scan().rows(tx)).unwrap(), [person(7)]);
        check_indexes(&db);
    }
}

#[test]
fn the_number_of_a_table_that_only_the_checkpoint_knows_is_not_used_again() {
    let _hold = Hold::new();
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(options(), &disk).unwrap();
    filled(&db, 300);
    db.drop_table("person").unwrap();
    db.drop_table("item").unwrap();
    let disk = Arc::new(disk.kill());
    let db = open(loading(), &disk).unwrap();
    let table = db.create_table::<Item>().unwrap();
    db.transact(|tx| table.insert(tx, &item(0))).unwrap();
    for options in [options(), loading()] {
        let db = open(options, &disk.kill().into()).unwrap();
        assert_eq!(all_items(&db), [item(0)]);
        assert_eq!(db.list_tables().unwrap(), ["item"]);
    }
}

#[test]
fn writers_that_wait_for_a_table_go_on_when_it_is_dropped_or_the_database_closed() {
    let hold = Hold::new();
    let disk = left_behind(3000, 1);
    let db = open(loading(), &disk).unwrap();
    let table = people(&db);
    hold.release();
    thread::scope(|scope| {
        let writer = scope.spawn(|| db.transact(|tx| table.delete(tx, 1)));
        let reader = scope.spawn(|| db.transact(|tx| table.get(tx, 2999)));
        db.drop_table("person").unwrap();
        for outcome in [writer.join().unwrap().map(drop), reader.join().unwrap().map(drop)] {
            assert!(matches!(outcome, Ok(()) | Err(Error::UnknownTable(_))), "{outcome:?}");
        }
    });
    db.wait_until_loaded().unwrap();
}
