//! Tables with long values whose columns are changed.

use ensilo::{ColumnType, Order, Schema, SchemaChange, Value};

use super::*;

/// The document without its body, with its notes under another name, and with a column more.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(
    table = "document",
    index(name = "by_kind", columns(kind)),
    index(name = "by_code", columns(code), unique)
)]
struct Changed {
    #[row(key)]
    id: u32,
    kind: u32,
    title: String,
    visits: u64,
    code: u32,
    remarks: Option<String>,
    added: String,
}

fn change() -> SchemaChange {
    let added = "a".repeat(INLINE + 5);
    SchemaChange::new().drop_column("body").rename("notes", "remarks").add("added", ColumnType::Text, added)
}

fn changed(row: &Document) -> Changed {
    let Document { id, kind, title, visits, code, notes, .. } = row.clone();
    Changed { id, kind, title, visits, code, remarks: notes, added: "a".repeat(INLINE + 5) }
}

fn pieces_of_changed(rows: &[Changed]) -> u64 {
    let lengths =
        |row: &Changed| [row.title.len(), row.added.len(), row.remarks.as_ref().map_or(0, String::len)];
    let long = rows.iter().flat_map(lengths).filter(|len| *len > INLINE);
    long.map(|len| len.div_ceil(INLINE) as u64).sum()
}

fn rows() -> Vec<Document> {
    let with_notes = |row: Document| Document { notes: Some("n".repeat(row.body.len() / 2)), ..row };
    (0..).zip(LENGTHS).map(|(id, len)| with_notes(document(id, len))).collect()
}

#[test]
fn older_rows_keep_their_long_values_and_lose_those_of_dropped_columns_when_they_are_written() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(&disk);
    fill(&db, &rows());
    db.change_table("document", &change()).unwrap();
    let before = pieces(&db);
    let mut expected: Vec<_> = rows().iter().map(changed).collect();
    let table = db.open_table::<Changed>().unwrap();
    let assert_changed = |db: &Database, expected: &[Changed]| {
        let table = db.open_table::<Changed>().unwrap();
        let by_code = table.index::<u32>("by_code").unwrap();
        assert!(db.read(|tx| table.scan().rows(tx)).unwrap() == expected);
        assert!(db.transact(|tx| by_code.scan().rows(tx)).unwrap() == expected);
    };
    assert_changed(&db, &expected);
    assert_eq!(pieces(&db), before);
    assert_changed(&open(&Arc::new(disk.fork().crash(1))), &expected);
    // One is written, by a small column.
    expected[7].visits = 3;
    db.transact(|tx| table.update(tx, 7, |row: &mut Changed| row.visits = 3)).unwrap();
    let body = rows()[7].body.len().div_ceil(INLINE) as u64;
    assert_eq!(pieces(&db), before - body + 2);
    assert_changed(&db, &expected);
    // And one goes.
    db.transact(|tx| table.delete(tx, 6)).unwrap();
    expected.remove(6);
    assert_changed(&db, &expected);
    let rewritten = db.rewrite_older_rows("document").unwrap();
    assert_eq!((rewritten.rewritten, rewritten.postponed), (6, 0));
    assert_changed(&db, &expected);
    assert_eq!(pieces(&db), pieces_of_changed(&expected));
    let crashed = open(&Arc::new(disk.fork().crash(2)));
    assert_changed(&crashed, &expected);
    assert_eq!(pieces(&crashed), pieces_of_changed(&expected));
    db.checkpoint().unwrap();
    db.close().unwrap();
    let db = open(&disk);
    assert_changed(&db, &expected);
    let table = db.open_table::<Changed>().unwrap();
    db.transact(|tx| table.scan().delete(tx)).unwrap();
    assert_eq!(pieces(&db), 0);
}

#[test]
fn a_table_gets_long_values_with_its_first_column_of_any_length() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(&disk);
    let schema = Schema::builder("document")
        .column("id", ColumnType::U32)
        .column("name", ColumnType::FixedText { len_max: 8 })
        .key([("id", Order::Ascending)])
        .build()
        .unwrap();
    let table = db.create_dynamic_table(schema).unwrap();
    db.transact(|tx| table.insert(tx, &[1u32.into(), "one".into()])).unwrap();
    assert!(db.statistics().unwrap().table("document").unwrap().long_values.is_none());
    db.change_table("document", &SchemaChange::new().widen("name", ColumnType::Text)).unwrap();
    let table = db.open_dynamic_table("document").unwrap();
    let long = Value::from("y".repeat(3 * INLINE));
    db.transact(|tx| table.update(tx, &[1u32.into()], &[("name", long.clone())])).unwrap();
    assert_eq!(pieces(&db), 3);
    for seed in 0..2 {
        let db = open(&Arc::new(disk.fork().crash(seed)));
        let table = db.open_dynamic_table("document").unwrap();
        assert!(db.read(|tx| table.get(tx, &[1u32.into()])).unwrap().unwrap()[1] == long);
        // No store takes the place of another one.
        let other = Schema::builder("other").column("text", ColumnType::Text).build().unwrap();
        let other = db.create_dynamic_table(other).unwrap();
        db.transact(|tx| other.insert(tx, &["z".repeat(2 * INLINE).into()])).unwrap();
        assert_eq!(pieces(&db), 3);
    }
}

#[test]
fn columns_change_their_places_and_keep_their_long_values() {
    let db = in_memory();
    fill(&db, &rows());
    let names = ["id", "notes", "body", "code", "visits", "title", "kind"];
    db.change_table("document", &SchemaChange::new().order(names)).unwrap();
    let table = db.open_dynamic_table("document").unwrap();
    for row in rows() {
        let key = [row.id.into()];
        let read =
            |column: &str| db.read(|tx| table.get_columns(tx, &key, &[column])).unwrap().unwrap().remove(0);
        assert!(read("body") == row.body.clone().into());
        // In its new place.
        db.transact(|tx| table.update(tx, &key, &[("visits", 1u64.into())])).unwrap();
        assert!(read("body") == row.body.clone().into());
        assert!(read("notes") == row.notes.clone().unwrap().into());
    }
    assert_eq!(pieces(&db), rows().iter().map(pieces_of).sum::<u64>());
}
