//! Values of every length, and what becomes of them.

use ensilo::{Error, Value};

use super::*;

/// A text that compares badly: it has characters of two bytes, which pieces cut.
fn text(len: usize) -> String {
    let mut text = "é".repeat(len / 2);
    text.extend((text.len() < len).then_some('x'));
    text
}

#[test]
fn values_of_every_length_are_what_was_written() {
    let mut documents: Vec<_> = (0..).zip(LENGTHS).map(|(id, len)| document(id, len)).collect();
    documents.extend((100..).zip(LENGTHS).map(|(id, len)| Document { title: text(len), ..document(id, 3) }));
    documents.extend(
        (200..).zip(LENGTHS).map(|(id, len)| Document { notes: Some(text(len)), ..document(id, len) }),
    );
    documents.push(Document { notes: Some(text(16 << 20)), ..document(300, 15 << 20) });
    let (db, _) = with_documents(&documents);
    assert_rows(&db, &documents);
}

/// Ways to give a row another body.
type Change = fn(&Database, &Table<Document>, Document);

const CHANGES: [Change; 8] = [
    |db, table, row| db.transact(|tx| table.replace(tx, &row)).unwrap(),
    |db, table, row| db.transact(|tx| table.upsert(tx, &row)).unwrap(),
    |db, table, row| {
        db.transact(|tx| table.update(tx, row.id, |old: &mut Body| old.body.clone_from(&row.body))).unwrap()
    },
    |db, table, row| {
        db.transact(|tx| table.update(tx, row.id, |old: &mut Document| old.body.clone_from(&row.body)))
            .unwrap();
    },
    |db, table, row| {
        db.transact(|tx| {
            let found = table.find(tx, row.id)?.unwrap();
            found.set(tx, Body { body: row.body.clone() })
        })
        .unwrap();
    },
    |db, table, row| {
        db.transact(|tx| {
            let found = table.find_to_write(tx, row.id)?.unwrap();
            found.replace(tx, &row)
        })
        .unwrap();
    },
    |db, _, row| {
        let table = db.open_dynamic_table("document").unwrap();
        let body = Value::from(row.body);
        db.transact(|tx| table.update(tx, &[row.id.into()], &[("body", body.clone())])).unwrap();
    },
    |db, table, row| {
        db.transact(|tx| {
            assert!(table.delete(tx, row.id)?);
            table.insert(tx, &row)
        })
        .unwrap();
    },
];

#[test]
fn a_value_grows_and_shrinks_by_every_kind_of_change() {
    let start = Document { title: text(INLINE + 9), ..document(1, 0) };
    let (db, table) = with_documents(&[document(0, INLINE + 1), start.clone()]);
    for (number, change) in CHANGES.into_iter().enumerate() {
        for len in LENGTHS.into_iter().chain(LENGTHS.into_iter().rev()) {
            let row = Document { body: bytes(number as u32, len), ..start.clone() };
            change(&db, &table, row.clone());
            assert_rows(&db, &[document(0, INLINE + 1), row]);
        }
    }
}

#[test]
fn a_value_may_become_null_and_come_back() {
    let (db, table) = with_documents(&[document(1, 10)]);
    for notes in [Some(3 * INLINE), None, Some(2 * INLINE + 1), Some(0), None, Some(5), Some(INLINE + 1)] {
        let notes = notes.map(text);
        db.transact(|tx| table.update(tx, 1, |row: &mut Notes| row.notes.clone_from(&notes))).unwrap();
        assert_rows(&db, &[Document { notes, ..document(1, 10) }]);
    }
}

#[test]
fn several_long_values_of_a_row_change_apart() {
    let mut row =
        Document { title: text(2 * INLINE), notes: Some(text(4 * INLINE)), ..document(1, 3 * INLINE) };
    let (db, table) = with_documents(std::slice::from_ref(&row));
    for step in 0..12usize {
        match step % 3 {
            0 => row.title = text((step % 4) * INLINE + 5),
            1 => row.body = bytes(step as u32, (step % 5) * INLINE + 1),
            _ => row.notes = (!step.is_multiple_of(2)).then(|| text(step * INLINE / 2)),
        }
        let now = row.clone();
        db.transact(|tx| match step % 3 {
            0 => table.update(tx, 1, |old: &mut Title| old.title.clone_from(&now.title)),
            1 => table.update(tx, 1, |old: &mut Body| old.body.clone_from(&now.body)),
            _ => table.replace(tx, &now),
        })
        .unwrap();
        assert_rows(&db, std::slice::from_ref(&row));
    }
}

#[test]
fn what_one_transaction_makes_of_a_value_it_sees_at_once() {
    let (db, table) = with_documents(&[document(1, 3 * INLINE)]);
    db.transact(|tx| {
        for len in [INLINE + 1, 10, 4 * INLINE, 0, 2 * INLINE] {
            table.update(tx, 1, |row: &mut Body| row.body = bytes(7, len))?;
            assert!(table.get_columns::<Body>(tx, 1)?.unwrap().body == bytes(7, len));
        }
        assert!(table.delete(tx, 1)?);
        assert_eq!(table.get(tx, 1)?, None);
        table.insert(tx, &document(1, INLINE + 2))?;
        table.insert(tx, &document(2, 2 * INLINE))?;
        assert!(table.take(tx, 2)?.unwrap() == document(2, 2 * INLINE));
        Ok(())
    })
    .unwrap();
    assert_rows(&db, &[document(1, INLINE + 2)]);
}

#[test]
fn what_is_refused_or_undone_changes_no_piece() {
    let rows = [document(1, 3 * INLINE), document(2, 2 * INLINE)];
    let (db, table) = with_documents(&rows);
    let refused = db.transact(|tx| table.insert(tx, &document(1, 9 * INLINE))).unwrap_err();
    assert!(matches!(refused, Error::DuplicateKey(_)), "{refused}");
    let same_code = Document { code: 1002, ..document(3, 4 * INLINE) };
    db.transact(|tx| {
        let refused = table.insert(tx, &same_code).unwrap_err();
        assert!(matches!(refused, Error::DuplicateKey(_)), "{refused}");
        let refused = table.replace(tx, &Document { id: 1, ..same_code.clone() }).unwrap_err();
        assert!(matches!(refused, Error::DuplicateKey(_)), "{refused}");
        let refused = table.insert_many(tx, &[document(7, 2 * INLINE), same_code.clone()]).unwrap_err();
        assert!(matches!(refused, Error::DuplicateKey(_)), "{refused}");
        Ok(())
    })
    .unwrap();
    assert_rows(&db, &rows);
    let undone = db.transact(|tx| {
        table.insert(tx, &document(4, 3 * INLINE))?;
        table.update(tx, 1, |row: &mut Body| row.body.clear())?;
        table.delete(tx, 2)?;
        Err::<(), _>(Error::rollback("given up"))
    });
    assert!(undone.is_err());
    assert_rows(&db, &rows);
}

#[test]
fn a_row_is_at_most_as_long_as_it_ever_was() {
    let (db, table) = with_documents(&[document(1, 16 << 20)]);
    let longest = |notes: usize| {
        table.update(&mut db.begin().unwrap(), 1, |row: &mut Notes| row.notes = Some(text(notes)))
    };
    let refused = longest(16 << 20).unwrap_err();
    let Error::RowTooLarge(length) = &refused else { panic!("{refused}") };
    let room = (16 << 20) - (length.len_bytes() - ensilo::row::ROW_LEN_MAX);
    assert!(matches!(longest(room + 1), Err(Error::RowTooLarge(_))));
    longest(room).unwrap();
    assert_rows(&db, &[document(1, 16 << 20)]);
}

#[test]
fn a_value_with_a_key_that_is_too_long_for_pieces_stays_in_its_row() {
    #[derive(Clone, Debug, PartialEq, Row)]
    #[row(table = "document")]
    struct Named {
        #[row(key)]
        name: String,
        body: Vec<u8>,
    }
    let db = in_memory();
    let table = db.table::<Named>().unwrap();
    // With its end the key takes a byte more.
    for name_len in [4090, 4091, 4092, 4095] {
        let row = Named { name: "n".repeat(name_len), body: bytes(1, INLINE + 1) };
        db.transact(|tx| table.upsert(tx, &row)).unwrap();
        assert!(db.transact(|tx| table.get(tx, &row.name)).unwrap().as_ref() == Some(&row));
        assert_eq!(pieces(&db), if name_len <= 4091 { 2 } else { 0 }, "{name_len}");
        db.transact(|tx| table.delete(tx, &row.name)).unwrap();
        assert_eq!(pieces(&db), 0);
    }
}
