//! Rows whose long values cannot be loaded.

use ensilo::{Durability, Error};

use super::*;

type Transaction<'t> = generic::Transaction<'t, Engine>;

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "document")]
struct Document {
    #[row(key)]
    id: u32,
    count: i64,
    body: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Document)]
struct Visits {
    count: i64,
}

fn document(id: u32) -> Document {
    Document { id, count: 1, body: vec![id as u8; 4 << 20] }
}

/// A database that was killed, with a block of the long value of the second row that is damaged.
fn damaged() -> Arc<SimulatedDisk> {
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(options().checkpoint_threads(1), &disk).unwrap();
    let documents = db.create_table::<Document>().unwrap();
    db.transact(|tx| documents.insert_many(tx, &[document(1), document(2)]).map(drop)).unwrap();
    db.checkpoint().unwrap();
    let number = db.statistics().unwrap().table("document").unwrap().long_values.as_ref().unwrap().number;
    let disk = Arc::new(disk.kill());
    let is_late = |block: &Block| block.payload[0] == u8::try_from(number).unwrap() && block.payload[5] == 2;
    let late: Vec<_> = blocks(&disk).into_iter().filter(is_late).collect();
    // The block before it is the row's, too: where keys lie follows from the blocks beside one that is damaged.
    let block = &late[late.len() / 4];
    disk.flip(&block.file, (block.offset + block.payload.len() as u64 / 2) * 8).unwrap();
    disk
}

#[test]
fn tables_are_counted_once_with_their_long_values() {
    let hold = Hold::new();
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(options(), &disk).unwrap();
    let documents = db.create_table::<Document>().unwrap();
    db.transact(|tx| documents.insert_many(tx, &[document(1), document(2)]).map(drop)).unwrap();
    db.checkpoint().unwrap();
    db.close().unwrap();
    let db = open(loading(), &disk).unwrap();
    assert_eq!(load(&db).tables_left, 1);
    hold.release();
    db.wait_until_loaded().unwrap();
    assert_eq!(load(&db).tables_left, 0);
}

#[test]
fn a_write_that_cannot_load_a_long_value_changes_nothing() {
    let _hold = Hold::new();
    let disk = damaged();
    let other = Document { body: vec![3; 4 << 20], ..document(2) };
    type Write<'w> = &'w dyn Fn(&mut Transaction<'_>, &Table<Document>) -> Result<()>;
    let writes: [Write<'_>; 6] = [
        &|tx, documents| documents.delete(tx, 2).map(drop),
        &|tx, documents| documents.replace(tx, &other).map(drop),
        &|tx, documents| documents.upsert(tx, &other).map(drop),
        &|tx, documents| documents.scan().delete(tx).map(drop),
        &|tx, documents| documents.range(2..).take_first(tx).map(drop),
        &|tx, documents| documents.update(tx, 2, |row: &mut Document| row.body.truncate(9)),
    ];
    for (number, write) in writes.into_iter().enumerate() {
        let db = open(loading(), &Arc::new(disk.fork())).unwrap();
        let documents: Table<Document> = db.open_table().unwrap();
        // The row, but not its value.
        let visits = db.transact(|tx| documents.get_columns::<Visits>(tx, 2)).unwrap();
        assert_eq!(visits.map(|row| row.count), Some(1));
        let request = db.request().durability(Durability::Visible);
        request
            .transact(|tx| {
                let refused = write(tx, &documents);
                assert!(matches!(refused, Err(Error::LoadFailed(_))), "{number}: {refused:?}");
                Ok(())
            })
            .unwrap();
        assert_eq!(db.transact(|tx| documents.scan().columns::<Visits>().rows(tx)).unwrap().len(), 2);
        // No write to the table is taken any more.
        let refused = db.transact(|tx| documents.update(tx, 1, |row: &mut Visits| row.count = 2));
        assert!(matches!(refused, Err(Error::LoadFailed(_))), "{number}: {refused:?}");
        assert_eq!(db.transact(|tx| documents.get(tx, 1)).unwrap(), Some(document(1)));
    }
}
