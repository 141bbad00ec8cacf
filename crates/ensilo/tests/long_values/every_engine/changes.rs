//! The change feed gives rows with all of their values.

use ensilo::RowChange;

use super::*;

fn next(changes: &mut generic::Changes<Engine>, table: &Table<Document>) -> RowChange<u32, Document> {
    let batch = changes.wait().unwrap();
    assert_eq!(batch.changes().len(), 1);
    batch.changes()[0].of(table).unwrap().unwrap()
}

#[test]
fn changes_have_all_values_also_of_rows_from_before_changes_were_kept() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(&disk);
    let row = Document { notes: Some("n".repeat(2 * INLINE)), ..document(1, 3 * INLINE) };
    fill(&db, &[row.clone(), document(2, 4 * INLINE), document(3, 2 * INLINE)]);
    assert_eq!(pieces(&db), 11);
    db.close().unwrap();
    let db = open_with(options().change_feed(64 << 20), &disk);
    let table = db.open_table::<Document>().unwrap();
    let mut changes = db.changes().begin_now().unwrap();
    db.transact(|tx| table.insert(tx, &document(4, 5 * INLINE))).unwrap();
    assert!(next(&mut changes, &table) == RowChange::Stored(4, document(4, 5 * INLINE)));
    // A column of fixed width, and one in an index.
    db.transact(|tx| table.update(tx, 1, |row: &mut Visits| row.visits = 5)).unwrap();
    let row = Document { visits: 5, ..row };
    assert!(next(&mut changes, &table) == RowChange::Stored(1, row.clone()));
    db.transact(|tx| table.update(tx, 2, |row: &mut Kind| row.kind = 5)).unwrap();
    let second = Document { kind: 5, ..document(2, 4 * INLINE) };
    assert!(next(&mut changes, &table) == RowChange::Stored(2, second.clone()));
    db.transact(|tx| table.add(tx, 3, &Visits { visits: 2 })).unwrap();
    let third = Document { visits: 2, ..document(3, 2 * INLINE) };
    assert!(next(&mut changes, &table) == RowChange::Stored(3, third.clone()));
    db.transact(|tx| table.delete(tx, 3)).unwrap();
    assert!(next(&mut changes, &table) == RowChange::Deleted(3));
    // Their values lie in them.
    let fourth = document(4, 5 * INLINE);
    assert_eq!(pieces(&db), 0);
    assert!(db.read(|tx| table.scan().rows(tx)).unwrap() == [row.clone(), second.clone(), fourth.clone()]);
    db.close().unwrap();
    // And leave them again without a feed.
    let db = open(&disk);
    let table = db.open_table::<Document>().unwrap();
    for id in [1, 2, 4] {
        db.transact(|tx| table.update(tx, id, |row: &mut Title| row.title.push('!'))).unwrap();
    }
    let touched = |row: Document| Document { title: row.title.clone() + "!", ..row };
    assert_rows(&db, &[row, second, fourth].map(touched));
}
