//! Numbers that go on in another database.

use ensilo::numbers::{SequenceOf, SequencePosition};
use ensilo::row::RowId;
use ensilo::{ColumnType, Error, Order, Schema, SequenceOptions, Value};

use super::*;

fn tickets() -> Schema {
    let columns = Schema::builder("ticket").column("of", ColumnType::Text).column("id", ColumnType::U16);
    columns.key([("of", Order::Ascending), ("id", Order::Ascending)]).build().unwrap()
}

#[test]
fn sequences_go_on_in_another_database() {
    let disk = new_disk();
    let db = open(&disk);
    let orders: Sequence<u32> =
        db.sequence_with("order", SequenceOptions::new().increment(5).block_len(3)).unwrap();
    let _: Sequence<i64> = db.sequence("none given").unwrap();
    let _: Sequence<i64> = db.sequence_with("back", SequenceOptions::new().min(-9)).unwrap();
    db.restart_sequence("back", -9i64).unwrap();
    let given = db.create_dynamic_table(tickets()).unwrap();
    db.give_keys_in("ticket", "id").unwrap();
    let row = [Value::from("a"), Value::Null];
    db.transact(|tx| {
        assert_eq!((orders.next(tx)?, orders.next(tx)?), (1, 6));
        given.insert_many_auto(tx, vec![row.clone(); 3])
    })
    .unwrap();
    let events = db.table::<Event>().unwrap();
    let id = db.transact(|tx| events.insert(tx, &Event { what: 1 })).unwrap();
    db.close().unwrap();

    let db = open_with(options().read_only(true), &disk).unwrap();
    let carried = db.carried_sequences().unwrap();
    let largest = db.largest_row_id();
    assert!(largest >= id, "{largest:?} and {id:?}");
    let position = |name: &str| {
        let is_it = |of: &SequenceOf| matches!(of, SequenceOf::Program(program) if program == name);
        carried.iter().find(|sequence| is_it(&sequence.of)).unwrap().position
    };
    assert_eq!(position("order"), SequencePosition::Behind(6));
    assert_eq!(position("none given"), SequencePosition::Start);
    assert_eq!(position("back"), SequencePosition::At(-9));
    db.close().unwrap();

    let disk = new_disk();
    let late = RowId(largest.0 + (1 << 40));
    let db = open_with(options().row_ids_behind(late), &disk).unwrap();
    let given = db.create_dynamic_table(tickets()).unwrap();
    carried.iter().for_each(|sequence| db.take_sequence(sequence).unwrap());
    for sequence in &carried {
        assert!(matches!(db.take_sequence(sequence), Err(Error::InvalidSequence(_))), "{sequence:?}");
    }
    db.close().unwrap();
    let db = open(&disk);
    let orders: Sequence<u32> = db.sequence("order").unwrap();
    let [none, back] = ["none given", "back"].map(|name| db.sequence::<i64>(name).unwrap());
    drop(given);
    let given = db.open_dynamic_table("ticket").unwrap();
    let events = db.table::<Event>().unwrap();
    let next = db.transact(|tx| {
        assert_eq!((orders.next(tx)?, none.next(tx)?, back.next(tx)?), (11, 1, -9));
        assert_eq!(given.insert_auto(tx, &row)?, Value::Unsigned(4));
        events.insert(tx, &Event { what: 2 })
    });
    assert!(next.clone().unwrap() > late, "{next:?}");
    let refused = open_with(options().row_ids_behind(RowId(1 << 59)), &new_disk()).map(drop);
    assert!(matches!(refused, Err(Error::InvalidOption(_))), "{refused:?}");
}
