//! Every way to read and to delete rows.

use std::ops::ControlFlow;

use ensilo::{SchemaChange, Value};

use super::*;

fn rows() -> Vec<Document> {
    let with_notes = |row: Document| Document { notes: Some("n".repeat(row.body.len() / 2 + 1)), ..row };
    (0..).zip(LENGTHS).map(|(id, len)| with_notes(document(id, len))).collect()
}

fn values(row: &Document) -> Vec<Value> {
    let notes = row.notes.clone().map_or(Value::Null, Value::from);
    let Document { id, kind, title, visits, body, code, .. } = row.clone();
    vec![id.into(), kind.into(), title.into(), visits.into(), body.into(), code.into(), notes]
}

#[test]
fn every_read_gives_whole_values() {
    let rows = rows();
    let (db, table) = with_documents(&rows);
    let ids: Vec<u32> = (0..rows.len() as u32).collect();
    let by_kind = table.index::<u32>("by_kind").unwrap();
    let dynamic = db.open_dynamic_table("document").unwrap();
    let reversed: Vec<_> = rows.iter().rev().cloned().collect();
    db.transact(|tx| {
        let many = table.get_many(tx, &ids)?;
        assert!(many.into_iter().flatten().eq(rows.iter().cloned()));
        assert!(table.scan().reverse().rows(tx)? == reversed);
        assert!(table.range(2..6).limit(3).rows(tx)? == rows[2..5]);
        assert!(table.range(..).last(tx)?.unwrap().1 == rows[7]);
        let mut cursor = table.scan().cursor();
        let mut of_kind = Vec::new();
        for row in &rows {
            let found = table.find(tx, row.id)?.unwrap();
            assert!(found.row(tx)? == *row && found.columns::<Body>(tx)?.body == row.body);
            assert!(cursor.next(tx)?.unwrap() == (row.id, row.clone()));
            assert!(table.insert_or_get(tx, row)?.as_ref() == Some(row));
            assert!(dynamic.get(tx, &[row.id.into()])?.unwrap() == values(row));
            let body = dynamic.get_columns(tx, &[row.id.into()], &["body", "kind"])?.unwrap();
            assert!(body == [row.body.clone().into(), row.kind.into()]);
            of_kind.push(by_kind.equal(row.kind).rows(tx)?.contains(row));
        }
        assert!(of_kind.iter().all(|is_there| *is_there));
        assert!(table.scan().iter(tx).map(|row| row.unwrap().1).eq(rows.iter().cloned()));
        let mut found = Vec::new();
        by_kind.scan().for_each_found(tx, |_, row: Document| found.push(row.id))?;
        table.scan().for_each_found(tx, |_, row: Document| found.push(row.id))?;
        assert_eq!(found.len(), 2 * rows.len());
        let all = dynamic.scan().collect(tx)?;
        assert!(all.into_iter().eq(rows.iter().map(values)));
        let bodies = dynamic.scan().by_index("by_code")?.columns(&["body"])?.collect(tx)?;
        assert!(bodies.into_iter().eq(rows.iter().map(|row| vec![row.body.clone().into()])));
        let mut encoded = 0;
        dynamic.encoded().scan(
            tx,
            ensilo::encoded::EncodedScan {
                index: None,
                low: std::ops::Bound::Unbounded,
                high: std::ops::Bound::Unbounded,
                of_prefixes: false,
                is_reverse: false,
                limit: usize::MAX,
            },
            |key, row| {
                encoded += 1;
                assert!(row.len() >= rows[key[3] as usize].body.len());
                ControlFlow::Continue(())
            },
        )?;
        assert_eq!(encoded, rows.len());
        Ok(())
    })
    .unwrap();
    assert!(db.read(|tx| table.scan().rows(tx)).unwrap() == rows);
    db.request()
        .max_staleness(Duration::ZERO)
        .read_stale(|tx| {
            assert!(table.scan().rows(tx)? == rows);
            assert!(table.get(tx, 7)?.as_ref() == Some(&rows[7]));
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_scan_that_stops_at_a_long_value_stops_there() {
    let rows = rows();
    let (db, table) = with_documents(&rows);
    for stop in 0..rows.len() as u32 {
        let mut seen = Vec::new();
        db.transact(|tx| {
            seen.clear();
            table.scan().for_each(tx, |id, _: Document| {
                seen.push(id);
                if id == stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
        })
        .unwrap();
        assert!(seen.into_iter().eq(0..=stop));
    }
}

#[test]
fn every_deletion_takes_the_pieces_along() {
    let rows = rows();
    let (db, table) = with_documents(&rows);
    let dynamic = db.open_dynamic_table("document").unwrap();
    let by_kind = table.index::<u32>("by_kind").unwrap();
    let left = |gone: &[usize]| {
        let left: Vec<_> =
            (0..rows.len()).filter(|at| !gone.contains(at)).map(|at| rows[at].clone()).collect();
        assert_rows(&db, &left);
    };
    assert!(db.transact(|tx| table.delete(tx, 7)).unwrap());
    left(&[7]);
    assert!(db.transact(|tx| table.take(tx, 6)).unwrap().unwrap() == rows[6]);
    left(&[6, 7]);
    db.transact(|tx| table.find(tx, 5)?.unwrap().delete(tx)).unwrap();
    left(&[5, 6, 7]);
    assert!(
        db.transact(|tx| table.scan().reverse().take_first(tx)).unwrap().unwrap() == (4, rows[4].clone())
    );
    left(&[4, 5, 6, 7]);
    for at in [5, 6, 7] {
        db.transact(|tx| dynamic.insert(tx, &values(&rows[at]))).unwrap();
    }
    left(&[4]);
    let taken = db.transact(|tx| by_kind.equal(1).reverse().take_first(tx)).unwrap().unwrap();
    assert!(taken.1 == rows[7]);
    left(&[4, 7]);
    assert!(db.transact(|tx| dynamic.delete(tx, &[6u32.into()])).unwrap());
    left(&[4, 6, 7]);
    assert_eq!(db.transact(|tx| by_kind.equal(2).delete(tx)).unwrap(), 2);
    left(&[2, 4, 5, 6, 7]);
    assert_eq!(db.transact(|tx| table.scan().delete(tx)).unwrap(), 3);
    assert_rows(&db, &[]);
}

#[test]
fn rows_that_expire_take_their_pieces_along() {
    #[derive(Clone, Debug, PartialEq, Row)]
    #[row(table = "document", index(name = "by_end", columns(end)))]
    struct Passing {
        #[row(key)]
        id: u32,
        end: ensilo::Timestamp,
        body: String,
    }
    let db = in_memory();
    let table = db.table::<Passing>().unwrap();
    let row = |id: u32| Passing {
        id,
        end: ensilo::Timestamp::from_micros(i64::from(id)),
        body: "x".repeat(2 * INLINE),
    };
    db.transact(|tx| (0..20).try_for_each(|id| table.insert(tx, &row(id)).map(drop))).unwrap();
    assert_eq!(pieces(&db), 40);
    let expiry = db
        .expire_rows("document", ensilo::ExpiryOptions::new("end").check_interval(Duration::from_secs(3600)))
        .unwrap();
    expiry.remove_now().unwrap();
    assert_eq!((db.read(|tx| table.scan().count(tx)).unwrap(), pieces(&db)), (0, 0));
}

#[test]
fn truncated_and_dropped_tables_have_no_pieces() {
    let (db, _) = with_documents(&rows());
    db.truncate_table("document").unwrap();
    assert_rows(&db, &[]);
    fill(&db, &rows()[5..]);
    assert_rows(&db, &rows()[5..]);
    db.drop_table("document").unwrap();
    fill(&db, &rows()[3..]);
    assert_rows(&db, &rows()[3..]);
}

#[test]
fn an_index_is_built_beside_long_values_and_of_none() {
    let rows = rows();
    let (db, table) = with_documents(&rows);
    db.create_index("document", "by_visits", [("visits", ensilo::Order::Descending)]).unwrap();
    let by_visits = table.index::<std::cmp::Reverse<u64>>("by_visits").unwrap();
    assert_eq!(db.read(|tx| by_visits.scan().count(tx)).unwrap(), rows.len());
    let refused = db.create_index("document", "by_body", [("body", ensilo::Order::Ascending)]).unwrap_err();
    assert!(matches!(refused, ensilo::Error::KeyTooLong(_)), "{refused}");
    assert_rows(&db, &rows);
    // Nor can a row come into one that has it.
    let (db, table) = with_documents(&[document(1, 4)]);
    db.create_index("document", "by_body", [("body", ensilo::Order::Ascending)]).unwrap();
    for len in [5000, INLINE + 1] {
        let refused =
            db.transact(|tx| table.update(tx, 1, |row: &mut Body| row.body = bytes(1, len))).unwrap_err();
        assert!(matches!(refused, ensilo::Error::KeyTooLong(_)), "{refused}");
    }
    assert_rows(&db, &[document(1, 4)]);
    let change = SchemaChange::new().drop_column("body");
    assert!(db.change_table("document", &change).is_err());
}
