//! Keys that tables give.

use std::thread;

use ensilo::{ColumnType, ColumnValue, Durability, Error, Order, Schema, SchemaChange, Value};

use super::*;

#[derive(Clone, Copy, Debug, PartialEq, ColumnValue)]
struct CustomerId(i32);

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "customer", index(name = "by_name", columns(name, id desc), unique))]
struct Customer {
    #[row(key, auto)]
    id: CustomerId,
    name: String,
}

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "small")]
struct Small {
    #[row(key, auto)]
    id: u8,
}

/// The same table as a program sees it that chooses all keys.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "customer")]
struct Chosen {
    #[row(key)]
    id: i32,
    name: String,
}

fn customer(id: i32, name: impl std::fmt::Display) -> Customer {
    Customer { id: CustomerId(id), name: name.to_string() }
}

/// Inserts a customer under the next number.
fn add(db: &Database, name: impl std::fmt::Display) -> i32 {
    let customers = db.table::<Customer>().unwrap();
    db.transact(|tx| customers.insert_auto(tx, &customer(-1, &name))).unwrap().0
}

fn add_chosen(db: &Database, id: i32, name: &str) -> Result<CustomerId> {
    let customers = db.table::<Customer>()?;
    db.transact(|tx| customers.insert(tx, &customer(id, name)))
}

fn all(db: &Database) -> Vec<(i32, String)> {
    let customers = db.table::<Customer>().unwrap();
    let rows = db.transact(|tx| customers.scan().rows(tx)).unwrap();
    rows.into_iter().map(|row| (row.id.0, row.name)).collect()
}

#[test]
fn a_table_gives_one_number_after_the_other() {
    let db = in_memory();
    for expected in 1..=100 {
        assert_eq!(add(&db, expected), expected);
    }
    let customers = db.table::<Customer>().unwrap();
    // Rows and entries of indexes have the number, and not what the program had in its place.
    let by_name = customers.index::<(String, std::cmp::Reverse<CustomerId>)>("by_name").unwrap();
    let found = db.transact(|tx| by_name.prefix(("42",)).rows(tx)).unwrap();
    assert_eq!(found, [customer(42, 42)]);
    let dynamic = db.open_dynamic_table("customer").unwrap();
    assert!(db.transact(|tx| dynamic.check_index(tx, "by_name")).unwrap().is_whole());
    // Neither what is undone nor what is deleted comes again.
    let undone = db.transact(|tx| {
        assert_eq!(customers.insert_auto(tx, &customer(0, "x"))?, CustomerId(101));
        Err::<(), _>(Error::rollback("no"))
    });
    assert!(undone.is_err());
    assert!(db.transact(|tx| customers.delete(tx, CustomerId(100))).unwrap());
    assert_eq!(add(&db, "y"), 102);
    assert_eq!(db.list_sequences().unwrap(), [""; 0]);
}

#[test]
fn numbers_pass_over_those_that_a_program_has_chosen() {
    let db = in_memory();
    assert_eq!(add(&db, "a"), 1);
    for (id, name) in [(2, "b"), (3, "c"), (5, "d"), (-7, "e")] {
        assert_eq!(add_chosen(&db, id, name).unwrap(), CustomerId(id));
    }
    assert!(matches!(add_chosen(&db, 1, "f"), Err(Error::DuplicateKey(_))));
    // Behind the largest one, where it meets the first.
    assert_eq!((add(&db, "g"), add(&db, "h")), (6, 7));
    add_chosen(&db, 1000, "i").unwrap();
    assert_eq!(add(&db, "j"), 8);
    // In one transaction.
    let customers = db.table::<Customer>().unwrap();
    let keys = db.transact(|tx| {
        customers.insert(tx, &customer(9, "k"))?;
        Ok([customers.insert_auto(tx, &customer(0, "l"))?, customers.insert_auto(tx, &customer(0, "m"))?])
    });
    assert_eq!(keys.unwrap(), [CustomerId(1001), CustomerId(1002)]);
    // What is wrong with the row otherwise is no reason to try again.
    let taken = db.transact(|tx| customers.insert_auto(tx, &customer(0, "m")).map(drop));
    assert!(taken.is_ok(), "the name differs by its number: {taken:?}");
}

#[test]
fn the_numbers_of_a_type_may_be_used_up() {
    let db = in_memory();
    let small = db.table::<Small>().unwrap();
    let add = || db.transact(|tx| small.insert_auto(tx, &Small { id: 0 }));
    for expected in 1..=255 {
        assert_eq!(add().unwrap(), expected);
    }
    assert!(matches!(add(), Err(Error::SequenceExhausted(_))));
    // 0 is nothing that the table gives.
    assert_eq!(db.transact(|tx| small.insert(tx, &Small { id: 0 })).unwrap(), 0);
}

#[test]
fn threads_get_different_keys_beside_programs_that_choose_some() {
    let disk = new_disk();
    let db = open(&disk);
    let customers = db.table::<Customer>().unwrap();
    let work = |thread: i32| {
        for round in 0..200 {
            let name = format!("{thread}/{round}");
            let chosen = round % 10 == 9;
            let request = db.request().durability(Durability::Visible).retries(u32::MAX);
            let inserted = request.transact(|tx| match chosen {
                true => customers.insert(tx, &customer(thread * 100_000 + round * 20, &name)),
                false => customers.insert_auto(tx, &customer(0, &name)),
            });
            match inserted {
                Ok(_) => {}
                Err(Error::DuplicateKey(_)) if chosen => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    thread::scope(|scope| {
        let work = &work;
        (0..4).for_each(|thread| drop(scope.spawn(move || work(thread))));
    });
    let rows = all(&db);
    let given = rows.iter().filter(|(_, name)| !name.ends_with('9')).count();
    assert_eq!(given, 4 * 180);
}

#[test]
fn keys_go_on_after_an_opening_and_a_crash() {
    let mut disk = new_disk();
    let mut last = 0;
    for life in 0..8 {
        let db = open(&disk);
        if life == 3 {
            add_chosen(&db, last + 5000, "chosen").unwrap();
        }
        let mut keys = Vec::new();
        for round in 0..life * 10 + 1 {
            let key = add(&db, format!("{life}/{round}"));
            assert!(key > last, "{key} after {last} in life {life}");
            last = key;
            keys.push(key);
        }
        // The rows with the largest keys are gone, and their keys do not come again.
        let customers = db.table::<Customer>().unwrap();
        db.transact(|tx| keys.iter().try_for_each(|key| customers.delete(tx, CustomerId(*key)).map(drop)))
            .unwrap();
        if life % 2 == 0 {
            db.close().unwrap();
            let reopened = open(&disk);
            assert_eq!(add(&reopened, format!("again {life}")), last + 1, "a clean end leaves nothing out");
            last += 1;
        }
        disk = Arc::new(disk.crash(u64::try_from(life).unwrap()));
    }
}

#[test]
fn a_table_that_has_rows_begins_behind_them() {
    let disk = new_disk();
    let db = open(&disk);
    let chosen = db.create_table::<Chosen>().unwrap();
    let rows: Vec<_> = (0..3000).map(|id| Chosen { id: id * 3 - 30, name: id.to_string() }).collect();
    db.transact(|tx| chosen.insert_many(tx, &rows)).unwrap();
    db.checkpoint().unwrap();
    db.close().unwrap();
    // Also while the rows are being loaded.
    let db = open_with(options().answer_while_loading(true), &disk).unwrap();
    db.give_keys("customer").unwrap();
    let customers = db.open_dynamic_table("customer").unwrap();
    let row = [Value::Null, Value::from("new")];
    let key = db.transact(|tx| customers.insert_auto(tx, &row)).unwrap();
    assert_eq!(key, Value::Int(2999 * 3 - 30 + 1));
}

#[test]
fn dynamic_tables_give_keys_too() {
    let db = in_memory();
    let schema = |name: &str, key: ColumnType, order| {
        let schema = Schema::builder(name).column("id", key).nullable("text", ColumnType::Text);
        schema.key([("id", order)]).build().unwrap()
    };
    let table = db.create_dynamic_table(schema("note", ColumnType::U64, Order::Ascending)).unwrap();
    let row = |text: &str| [Value::Null, Value::from(text)];
    let none = db.transact(|tx| table.insert_auto(tx, &row("a")));
    assert!(matches!(none, Err(Error::UnknownSequence(_))), "{none:?}");
    db.give_keys("note").unwrap();
    db.give_keys("note").unwrap();
    for expected in 1..=3u64 {
        assert_eq!(db.transact(|tx| table.insert_auto(tx, &row("a"))).unwrap(), Value::from(expected));
    }
    let too_few = db.transact(|tx| table.insert_auto(tx, &[Value::Null]));
    assert!(matches!(too_few, Err(Error::WrongType(_))), "{too_few:?}");
    let stored = db.transact(|tx| table.get(tx, &[Value::from(2u64)])).unwrap();
    assert_eq!(stored, Some(vec![Value::from(2u64), Value::from("a")]));
    for (name, key, order) in [
        ("text", ColumnType::Text, Order::Ascending),
        ("wide", ColumnType::I128, Order::Ascending),
        ("descending", ColumnType::U32, Order::Descending),
    ] {
        db.create_dynamic_table(schema(name, key, order)).unwrap();
        assert!(matches!(db.give_keys(name), Err(Error::InvalidSequence(_))), "{name}");
    }
    assert!(matches!(db.give_keys("missing"), Err(Error::UnknownTable(_))));
}

#[test]
fn keys_end_with_their_table() {
    let disk = new_disk();
    let db = open(&disk);
    assert_eq!((add(&db, "a"), add(&db, "b")), (1, 2));
    let customers = db.table::<Customer>().unwrap();
    db.drop_table("customer").unwrap();
    let dropped = db.transact(|tx| customers.insert_auto(tx, &customer(0, "c")));
    assert!(matches!(dropped, Err(Error::UnknownTable(_))), "{dropped:?}");
    // The next table of the name begins anew, also after a crash.
    assert_eq!(add(&db, "a"), 1);
    let db = open(&Arc::new(disk.crash(1)));
    assert!(add(&db, "b") > 1);
    assert_eq!(all(&db).len(), 2);
}

#[test]
fn a_changed_table_goes_on_with_its_keys() {
    let db = in_memory();
    assert_eq!(add(&db, "a"), 1);
    db.change_table("customer", &SchemaChange::new().add("level", ColumnType::U8, 1u8)).unwrap();
    let customers = db.open_dynamic_table("customer").unwrap();
    let row = [Value::Null, Value::from("b"), Value::from(2u8)];
    assert_eq!(db.transact(|tx| customers.insert_auto(tx, &row)).unwrap(), Value::Int(2));
}

#[test]
fn a_table_that_is_only_read_gives_no_keys() {
    let disk = new_disk();
    let db = open(&disk);
    assert_eq!(add(&db, "a"), 1);
    let small = db.create_dynamic_table(Small::schema().clone()).unwrap();
    db.close().unwrap();
    assert_eq!(small.name(), "small");
    let db = open_with(options().read_only(true), &disk).unwrap();
    let customers = db.table::<Customer>().unwrap();
    let refused = db.transact(|tx| customers.insert_auto(tx, &customer(0, "b")));
    assert!(matches!(refused, Err(Error::ReadOnly)), "{refused:?}");
    // Nor does one that has never given any.
    let small = db.table::<Small>().unwrap();
    assert!(db.transact(|tx| small.insert_auto(tx, &Small { id: 0 })).is_err());
    assert!(matches!(db.give_keys("small"), Err(Error::ReadOnly)));
}

#[test]
fn a_table_that_gives_keys_is_opened_inside_of_transactions() {
    let db = in_memory();
    assert_eq!(add(&db, "a"), 1);
    let key = db.transact(|tx| db.table::<Customer>()?.insert_auto(tx, &customer(0, "b")));
    assert_eq!(key.unwrap(), CustomerId(2));
}

#[test]
fn the_keys_of_a_table_are_restarted_and_pass_over_rows() {
    let db = in_memory();
    let small = db.table::<Small>().unwrap();
    db.transact(|tx| small.insert(tx, &Small { id: 255 })).unwrap();
    let add = || db.transact(|tx| small.insert_auto(tx, &Small { id: 0 }));
    (1..=254).for_each(|expected| assert_eq!(add().unwrap(), expected));
    assert!(matches!(add(), Err(Error::SequenceExhausted(_))));
    db.transact(|tx| small.range(..255).delete(tx)).unwrap();
    db.restart_keys("small", 7u8).unwrap();
    assert_eq!((add().unwrap(), add().unwrap()), (7, 8));
    assert!(matches!(db.restart_keys("small", 0u8), Err(Error::InvalidSequence(_))));
    assert!(matches!(db.restart_keys("other", 1u8), Err(Error::UnknownTable(_))));
    db.table::<Chosen>().unwrap();
    assert!(matches!(db.restart_keys("customer", 1i32), Err(Error::UnknownSequence(_))));
}

#[test]
fn a_truncated_table_goes_on_with_its_keys() {
    let disk = new_disk();
    let db = open(&disk);
    assert_eq!((add(&db, "a"), add(&db, "b")), (1, 2));
    db.truncate_table("customer").unwrap();
    let largest = add(&db, "c");
    assert!(largest > 2 && all(&db).len() == 1, "{largest}");
    db.truncate_table("customer").unwrap();
    // Nobody has asked for a key of the new table yet.
    let db = open(&Arc::new(disk.crash(1)));
    let next = add(&db, "d");
    assert!(next > largest, "{next} after {largest}");
}
