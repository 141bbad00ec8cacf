//! Keys of several columns, of which tables give one.

use std::cmp::Reverse;
use std::thread;

use ensilo::{ColumnType, Durability, Error, Order, Schema, Value};

use super::*;

/// Numbers behind the tenant.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "ticket", index(name = "by_text", columns(text), unique))]
struct Ticket {
    #[row(key)]
    tenant: String,
    #[row(key, auto)]
    id: u16,
    text: String,
}

/// Numbers between other columns.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "line")]
struct Line {
    #[row(key, desc)]
    region: Option<i32>,
    #[row(key, auto)]
    number: i64,
    #[row(key)]
    part: u8,
}

/// The table of the tickets, of which another program says that the tenants are given.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "pair")]
struct First {
    #[row(key, auto)]
    one: u32,
    #[row(key)]
    other: u32,
}

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "pair")]
struct Second {
    #[row(key)]
    one: u32,
    #[row(key, auto)]
    other: u32,
}

fn ticket(tenant: &str, id: u16, text: impl std::fmt::Display) -> Ticket {
    Ticket { tenant: tenant.to_owned(), id, text: text.to_string() }
}

fn add(db: &Database, tenant: &str, text: impl std::fmt::Display) -> u16 {
    let tickets = db.table::<Ticket>().unwrap();
    let (of, id) = db.transact(|tx| tickets.insert_auto(tx, &ticket(tenant, 77, &text))).unwrap();
    assert_eq!(of, tenant);
    id
}

fn add_chosen(db: &Database, tenant: &str, id: u16) {
    let tickets = db.table::<Ticket>().unwrap();
    db.transact(|tx| tickets.insert(tx, &ticket(tenant, id, format!("{tenant} {id}")))).unwrap();
}

#[test]
fn all_rows_of_a_table_share_its_numbers() {
    let db = in_memory();
    for expected in 1..=60 {
        let tenant = ["a", "", "zoo\0", "b"][usize::from(expected) % 4];
        assert_eq!(add(&db, tenant, expected), expected);
    }
    let tickets = db.table::<Ticket>().unwrap();
    let of_b = db.transact(|tx| tickets.prefix(("b",)).rows(tx)).unwrap();
    let ids: Vec<u16> = of_b.iter().map(|ticket| ticket.id).collect();
    assert_eq!(ids, (0..15).map(|at| 4 * at + 3).collect::<Vec<_>>());
    let by_text = tickets.index::<String>("by_text").unwrap();
    let found = db.transact(|tx| by_text.get(tx, "42")).unwrap();
    assert_eq!(found, Some(ticket("zoo\0", 42, 42)));
    let dynamic = db.open_dynamic_table("ticket").unwrap();
    assert!(db.transact(|tx| dynamic.check_index(tx, "by_text")).unwrap().is_whole());
}

#[test]
fn numbers_pass_over_those_of_rows_with_the_same_columns_before() {
    let db = in_memory();
    assert_eq!(add(&db, "a", "x"), 1);
    for (tenant, id) in [("b", 2), ("b", 3), ("b", 9), ("c", 1000), ("a", 11)] {
        add_chosen(&db, tenant, id);
    }
    // 2 is no row of "a".
    assert_eq!(add(&db, "a", "y"), 2);
    assert_eq!(add(&db, "b", "z"), 10);
    assert_eq!(add(&db, "a", "v"), 12);
    assert_eq!(add(&db, "c", "w"), 13);
}

#[test]
fn numbers_may_be_any_integer_column_of_the_key() {
    let db = in_memory();
    let lines = db.table::<Line>().unwrap();
    let line = |region, part| Line { region, number: -5, part };
    for (expected, region) in [(1, None), (2, Some(-3)), (3, Some(7)), (4, None)] {
        let key = db.transact(|tx| lines.insert_auto(tx, &line(region, 9))).unwrap();
        assert_eq!(key, (Reverse(region), expected, 9));
    }
    // The same number with another part is another key, and with the same part it is taken.
    let chosen = |number, part| Line { region: Some(7), number, part };
    db.transact(|tx| lines.insert_many(tx, &[chosen(5, 1), chosen(6, 9), chosen(8, 1)])).unwrap();
    let next = || db.transact(|tx| lines.insert_auto(tx, &line(Some(7), 9))).unwrap().1;
    assert_eq!((next(), next(), next()), (5, 9, 10));
}

#[test]
fn a_table_with_rows_begins_behind_the_largest_number_of_all() {
    let disk = new_disk();
    let db = open(&disk);
    let tickets = db.create_dynamic_table(Ticket::schema().clone()).unwrap();
    let row = |tenant: &str, id: u16| {
        [Value::from(tenant), Value::from(id), Value::from(format!("{tenant} {id}").as_str())]
    };
    db.transact(|tx| {
        (0..3000).try_for_each(|at| tickets.insert(tx, &row(&format!("t{}", at % 7), at)).map(drop))
    })
    .unwrap();
    db.transact(|tx| tickets.insert(tx, &row("t3", 5000))).unwrap();
    db.checkpoint().unwrap();
    db.close().unwrap();
    let db = open_with(options().answer_while_loading(true), &disk).unwrap();
    assert_eq!(add(&db, "t6", "new"), 5001);
    // And at the next opening, also where the row with the largest number is gone.
    let tickets = db.table::<Ticket>().unwrap();
    assert!(db.transact(|tx| tickets.delete(tx, ("t6", 5001))).unwrap());
    db.close().unwrap();
    let db = open(&disk);
    assert_eq!(add(&db, "t0", "again"), 5002);
    // After a crash, a truncation and a drop as for keys of one column.
    db.truncate_table("ticket").unwrap();
    let largest = add(&db, "t0", "again");
    assert!(largest > 5002, "{largest}");
    let db = open(&Arc::new(disk.crash(3)));
    let next = add(&db, "t1", "behind");
    assert!(next > largest, "{next} after {largest}");
    db.drop_table("ticket").unwrap();
    assert_eq!(add(&db, "t1", "anew"), 1);
}

#[test]
fn a_table_gives_the_numbers_of_one_column() {
    let disk = new_disk();
    let db = open(&disk);
    let second = db.table::<Second>().unwrap();
    let key = db.transact(|tx| second.insert_auto(tx, &Second { one: 7, other: 0 })).unwrap();
    assert_eq!(key, (7, 1));
    db.close().unwrap();
    for _ in 0..2 {
        let db = open(&disk);
        let refused = db.table::<First>().map(drop).unwrap_err();
        assert!(matches!(refused, Error::InvalidSequence(_)), "{refused:?}");
        assert!(refused.to_string().contains("gives the numbers of the column other"), "{refused}");
        db.give_keys_in("pair", "other").unwrap();
        for refused in [db.give_keys_in("pair", "one"), db.give_keys("pair"), db.give_keys_in("pair", "x")] {
            assert!(matches!(refused, Err(Error::InvalidSequence(_))), "{refused:?}");
        }
        let dynamic = db.open_dynamic_table("pair").unwrap();
        let given = db.transact(|tx| dynamic.insert_auto(tx, &[Value::from(8u32), Value::Null])).unwrap();
        let row = db.transact(|tx| dynamic.get(tx, &[Value::from(8u32), given.clone()])).unwrap();
        assert_eq!(row, Some(vec![Value::from(8u32), given]));
        db.close().unwrap();
    }
}

#[test]
fn dynamic_tables_are_told_which_column_is_given() {
    let db = in_memory();
    let schema = Schema::builder("note")
        .column("text", ColumnType::Text)
        .column("id", ColumnType::U8)
        .column("of", ColumnType::Text)
        .key([("of", Order::Ascending), ("id", Order::Ascending)]);
    let notes = db.create_dynamic_table(schema.build().unwrap()).unwrap();
    for column in ["of", "text", "missing"] {
        assert!(matches!(db.give_keys_in("note", column), Err(Error::InvalidSequence(_))), "{column}");
    }
    db.give_keys_in("note", "id").unwrap();
    let row = |text: &str| [Value::from(text), Value::Null, Value::from("me")];
    assert_eq!(db.transact(|tx| notes.insert_auto(tx, &row("a"))).unwrap(), Value::Unsigned(1));
    let many = db.transact(|tx| notes.insert_many_auto(tx, [row("b"), row("c")])).unwrap();
    assert_eq!(many, [Value::Unsigned(2), Value::Unsigned(3)]);
    let refused = db.transact(|tx| {
        let refused = notes.insert_many_auto(tx, [row("d").to_vec(), vec![Value::Null]]).map(drop);
        Ok((refused, notes.scan().collect(tx)?.len()))
    });
    let (refused, rows) = refused.unwrap();
    assert!(matches!(refused, Err(Error::WrongType(_))) && rows == 3, "{refused:?} {rows}");
    // Neither does a column that the program has to give get lost.
    let no_owner = db.transact(|tx| notes.insert_auto(tx, &[Value::from("a"), Value::Null, Value::Null]));
    assert!(no_owner.is_err());
}

#[test]
fn rows_that_are_inserted_together_get_numbers_in_their_order() {
    let db = in_memory();
    let tickets = db.table::<Ticket>().unwrap();
    let rows = |texts: std::ops::Range<u32>| -> Vec<Ticket> {
        texts.map(|at| ticket(["a", "b"][at as usize % 2], 0, at)).collect()
    };
    let insert = |rows: &[Ticket]| db.transact(|tx| tickets.insert_many_auto(tx, rows));
    let ids = |keys: Vec<(String, u16)>| keys.into_iter().map(|(_, id)| id).collect::<Vec<_>>();
    assert_eq!(ids(insert(&rows(0..100)).unwrap()), (1..=100).collect::<Vec<_>>());
    assert!(insert(&[]).unwrap().is_empty());
    // Those that a program has chosen are passed over, and nothing else.
    for (tenant, id) in [("a", 103), ("b", 104), ("a", 107)] {
        add_chosen(&db, tenant, id);
    }
    let expected = [101, 102, 108, 109, 110, 111];
    assert_eq!(ids(insert(&rows(100..106)).unwrap()), expected);
    let stored = db.transact(|tx| tickets.get(tx, ("b", 111))).unwrap();
    assert_eq!(stored, Some(ticket("b", 111, 105)));
    // All or none.
    let mut duplicates = rows(200..210);
    duplicates.push(ticket("a", 0, 5));
    let refused = db.transact(|tx| {
        let refused = tickets.insert_many_auto(tx, &duplicates).map(drop);
        Ok((refused, tickets.scan().count(tx)?))
    });
    let (refused, rows_left) = refused.unwrap();
    assert!(matches!(refused, Err(Error::DuplicateKey(_))) && rows_left == 109, "{refused:?} {rows_left}");
    let too_many: Vec<Ticket> = (0..65_536).map(|at| ticket("z", 0, format!("z{at}"))).collect();
    let refused = insert(&too_many);
    assert!(matches!(refused, Err(Error::SequenceExhausted(_))), "{refused:?}");
    assert!(add(&db, "a", "still") > 111);
}

#[test]
fn threads_get_different_numbers_for_many_rows() {
    let disk = new_disk();
    let db = open(&disk);
    let tickets = db.table::<Ticket>().unwrap();
    let work = |thread: usize| {
        for round in 0..50 {
            let tenant = ["a", "b", "c"][(thread + round) % 3];
            let rows: Vec<Ticket> =
                (0..7).map(|at| ticket(tenant, 0, format!("{thread}/{round}/{at}"))).collect();
            let level = db.request().durability(Durability::Visible);
            let keys = level.transact(|tx| tickets.insert_many_auto(tx, &rows)).unwrap();
            assert!(keys.is_sorted() && keys.len() == 7, "{keys:?}");
        }
    };
    thread::scope(|scope| {
        let work = &work;
        (0..4).for_each(|thread| drop(scope.spawn(move || work(thread))));
    });
    let rows = db.transact(|tx| tickets.scan().rows(tx)).unwrap();
    let numbers: std::collections::HashSet<u16> = rows.iter().map(|row| row.id).collect();
    assert_eq!((rows.len(), numbers.len()), (1400, 1400));
}
