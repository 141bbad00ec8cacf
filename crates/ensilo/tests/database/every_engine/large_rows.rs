//! Rows with values of 16 MiB, up to the longest row.

use std::time::{Duration, Instant};

use ensilo::row::ROW_LEN_MAX;
use ensilo::{Columns, Error, Options, Row, Value};

use super::snapshots::wait_for_snapshot;
use super::{Database, Table, quick};

const VALUE_BYTES: usize = 16 << 20;

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "document", index(name = "by_kind", columns(kind)))]
struct Document {
    #[row(key)]
    id: u32,
    kind: u32,
    visits: u64,
    body: Vec<u8>,
    text: String,
}

/// A column that is patched.
#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Document)]
struct Visits {
    visits: u64,
}

/// A column in an index.
#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Document)]
struct Kind {
    kind: u32,
}

/// A column that may be large.
#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Document)]
struct Body {
    body: Vec<u8>,
}

fn bytes(seed: u32, len: usize) -> Vec<u8> {
    (0..len as u32).map(|at| (at.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 13) as u8).collect()
}

fn document(id: u32, body_len: usize) -> Document {
    Document { id, kind: id % 3, visits: 0, body: bytes(id, body_len), text: format!("document {id}") }
}

fn with_documents(documents: &[Document]) -> (Database, Table<Document>) {
    let db = quick();
    let table = db.create_table::<Document>().unwrap();
    for document in documents {
        db.transact(|tx| table.insert(tx, document)).unwrap();
    }
    (db, table)
}

/// Returns how long a body may be in a row of the longest length.
fn body_len_max(db: &Database, table: &Table<Document>) -> usize {
    let refused = db.transact(|tx| table.insert(tx, &document(1, ROW_LEN_MAX))).unwrap_err();
    let Error::RowTooLarge(length) = &refused else { panic!("{refused}") };
    2 * ROW_LEN_MAX - length.len_bytes()
}

fn memory_bytes(db: &Database) -> u64 {
    db.statistics().unwrap().table("document").unwrap().memory_bytes
}

/// Waits until the table has less memory than this.
fn wait_until_below(db: &Database, bytes: usize) {
    let began = Instant::now();
    while memory_bytes(db) >= bytes as u64 {
        assert!(began.elapsed() < Duration::from_secs(60), "large rows do not give their memory back");
        std::thread::yield_now();
    }
}

#[test]
fn large_values_are_read_as_they_were_written() {
    let text = Document { text: "text ".repeat(VALUE_BYTES / 5), ..document(2, 100) };
    let (db, table) = with_documents(&[document(1, VALUE_BYTES), text.clone()]);
    db.transact(|tx| {
        assert!(table.get(tx, 1)? == Some(document(1, VALUE_BYTES)));
        assert!(table.get(tx, 2)? == Some(text.clone()));
        assert_eq!(table.get_columns::<Visits>(tx, 1)?, Some(Visits { visits: 0 }));
        let by_kind = table.index::<u32>("by_kind")?;
        assert_eq!(by_kind.scan().primary_keys(tx)?, [1, 2]);
        assert!(by_kind.equal(2).rows(tx)? == [text.clone()]);
        Ok(())
    })
    .unwrap();
}

#[test]
fn columns_beside_a_large_value_are_changed_without_it() {
    let (db, table) = with_documents(&[document(1, VALUE_BYTES)]);
    db.transact(|tx| {
        table.update(tx, 1, |columns: &mut Visits| columns.visits = 7)?;
        table.update(tx, 1, |columns: &mut Kind| columns.kind = 9)
    })
    .unwrap();
    db.transact(|tx| table.add(tx, 1, &Visits { visits: 3 })).unwrap();
    let by_kind = table.index::<u32>("by_kind").unwrap();
    let changed = Document { visits: 10, kind: 9, ..document(1, VALUE_BYTES) };
    db.transact(|tx| {
        assert_eq!((by_kind.equal(1).count(tx)?, by_kind.equal(9).count(tx)?), (0, 1));
        assert!(table.get(tx, 1)? == Some(changed.clone()));
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_value_grows_and_shrinks_while_a_snapshot_shows_it_as_it_was() {
    let (db, table) = with_documents(&[document(1, 10), document(2, VALUE_BYTES)]);
    wait_for_snapshot(&db);
    db.read_stale(|snapshot| {
        std::thread::scope(|scope| {
            let change = || {
                db.transact(|tx| {
                    table.update(tx, 1, |columns: &mut Body| columns.body = bytes(1, VALUE_BYTES))?;
                    table.update(tx, 2, |columns: &mut Body| columns.body.truncate(10))
                })
            };
            scope.spawn(change).join().unwrap().unwrap();
        });
        assert!(table.scan().rows(snapshot)? == [document(1, 10), document(2, VALUE_BYTES)]);
        Ok(())
    })
    .unwrap();
    // What has shrunk takes little at once.
    wait_until_below(&db, 3 * VALUE_BYTES / 2);
    let shorter = Document { body: bytes(2, 10), ..document(2, 10) };
    db.transact(|tx| {
        assert!(table.scan().rows(tx)? == [document(1, VALUE_BYTES), shorter.clone()]);
        table.delete(tx, 1)?;
        table.delete(tx, 2)?;
        table.insert(tx, &document(3, 10)).map(|_| ())
    })
    .unwrap();
    wait_until_below(&db, VALUE_BYTES / 2);
    assert_eq!(db.transact(|tx| table.scan().rows(tx)).unwrap(), [document(3, 10)]);
}

#[test]
fn the_longest_row_is_taken_and_one_byte_more_changes_nothing() {
    let (db, table) = with_documents(&[]);
    let most = body_len_max(&db, &table);
    assert!(most >= VALUE_BYTES + (64 << 10));
    db.transact(|tx| table.insert(tx, &document(1, most))).unwrap();
    db.transact(|tx| {
        let too_large = |error: Error| match error {
            Error::RowTooLarge(length) => assert_eq!(length.len_bytes(), ROW_LEN_MAX + 1),
            error => panic!("{error}"),
        };
        too_large(table.insert(tx, &document(2, most + 1)).unwrap_err());
        too_large(table.replace(tx, &document(1, most + 1)).unwrap_err());
        too_large(table.update(tx, 1, |columns: &mut Body| columns.body.push(0)).unwrap_err());
        table.insert(tx, &document(4, 10)).map(|_| ())
    })
    .unwrap();
    assert!(
        db.transact(|tx| table.scan().rows(tx)).unwrap() == [document(1, most), document(4, 10)],
        "what was refused has changed nothing"
    );
    let by_kind = table.index::<u32>("by_kind").unwrap();
    assert_eq!(db.transact(|tx| by_kind.scan().primary_keys(tx)).unwrap(), [1, 4]);
}

#[test]
fn the_longest_row_is_the_same_without_a_type() {
    let (db, table) = with_documents(&[]);
    let most = body_len_max(&db, &table);
    let dynamic = db.open_dynamic_table("document").unwrap();
    let row = |id: u32, body_len: usize| {
        let Document { id, kind, visits, body, text } = document(id, body_len);
        [id.into(), kind.into(), visits.into(), Value::from(body), Value::from(text)]
    };
    db.transact(|tx| dynamic.insert(tx, &row(1, most)).map(|_| ())).unwrap();
    db.transact(|tx| {
        assert!(matches!(dynamic.insert(tx, &row(2, most + 1)), Err(Error::RowTooLarge(_))));
        let longer = bytes(1, most + 1);
        let grown = dynamic.update(tx, &[1u32.into()], &[("body", longer.into())]);
        assert!(matches!(grown, Err(Error::RowTooLarge(_))));
        dynamic.update(tx, &[1u32.into()], &[("visits", 5u64.into())])
    })
    .unwrap();
    let changed = Document { visits: 5, ..document(1, most) };
    assert!(db.transact(|tx| table.scan().rows(tx)).unwrap() == [changed]);
}

#[test]
fn a_large_row_at_the_memory_limit_is_refused_and_changes_nothing() {
    let limit = 24 << 20;
    let db: Database = Options::default()
        .epoch_interval(Duration::from_millis(1))
        .epochs_per_snapshot(2)
        .memory_limit_bytes(limit)
        .in_memory_with()
        .unwrap();
    let table = db.create_table::<Document>().unwrap();
    db.transact(|tx| table.insert(tx, &document(1, 100))).unwrap();
    let refused = |outcome: ensilo::Result<()>| {
        assert!(
            matches!(&outcome, Err(Error::OutOfMemory(place)) if place.table().is_none_or(|name| name == "document"))
        );
        assert!(db.statistics().unwrap().memory.mapped_bytes <= limit + limit / 8);
        assert_eq!(db.transact(|tx| table.scan().rows(tx)).unwrap(), [document(1, 100)]);
    };
    refused(db.transact(|tx| table.insert(tx, &document(2, 2 * VALUE_BYTES - (1 << 20))).map(|_| ())));
    let grown = |columns: &mut Body| columns.body = bytes(1, 2 * VALUE_BYTES - (1 << 20));
    refused(db.transact(|tx| table.update(tx, 1, grown)));
    // What the limit leaves room for, once and again.
    for id in 2..6 {
        // What was refused or deleted gives its memory back piece by piece.
        wait_until_below(&db, 1 << 20);
        db.transact(|tx| table.insert(tx, &document(id, VALUE_BYTES / 2))).unwrap();
        assert!(db.transact(|tx| table.get(tx, id)).unwrap() == Some(document(id, VALUE_BYTES / 2)));
        db.transact(|tx| table.delete(tx, id)).unwrap();
    }
}
