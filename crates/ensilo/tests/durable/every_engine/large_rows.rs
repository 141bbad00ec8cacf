//! Rows with values of 16 MiB: through the log, checkpoints, crashes, changes of the schema and backups.

use ensilo::{ColumnType, SchemaChange};

use super::*;

const VALUE_BYTES: usize = 16 << 20;

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "document", index(name = "by_kind", columns(kind)))]
struct Document {
    #[row(key)]
    id: u32,
    kind: u32,
    visits: u64,
    body: Vec<u8>,
}

/// A column that is patched.
#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Document)]
struct Visits {
    visits: u64,
}

/// A column of an index.
#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Document)]
struct Kind {
    kind: u32,
}

/// The document of a later version.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "document", index(name = "by_kind", columns(kind)))]
struct Titled {
    #[row(key)]
    id: u32,
    kind: u32,
    visits: u64,
    body: Vec<u8>,
    title: String,
}

fn document(id: u32) -> Document {
    let word = |at: u32| (at.wrapping_mul(2_654_435_761).wrapping_add(id) >> 13) as u8;
    Document { id, kind: id % 3, visits: 0, body: (0..VALUE_BYTES as u32).map(word).collect() }
}

fn visited(id: u32, visits: u64) -> Document {
    Document { visits, ..document(id) }
}

fn documents(db: &Database) -> Table<Document> {
    db.table().unwrap()
}

/// A database with these rows, in the log alone.
fn with_documents(disk: &Arc<SimulatedDisk>, count: u32) -> Database {
    let db = open(disk);
    let table = documents(&db);
    (0..count).for_each(|id| db.transact(|tx| table.insert(tx, &document(id))).map(drop).unwrap());
    db
}

fn visit(db: &Database, id: u32, visits: u64) {
    let table = documents(db);
    db.transact(|tx| table.update(tx, id, |columns: &mut Visits| columns.visits = visits)).unwrap();
}

#[track_caller]
fn assert_documents(db: &Database, expected: &[Document]) {
    let table = documents(db);
    let by_kind = table.index::<u32>("by_kind").unwrap();
    db.transact(|tx| {
        assert!(table.scan().rows(tx)? == expected);
        assert_eq!(by_kind.scan().count(tx)?, expected.len());
        Ok(())
    })
    .unwrap();
}

fn logged_bytes(db: &Database) -> u64 {
    db.statistics().unwrap().durability.unwrap().log_entry_bytes
}

#[test]
fn large_rows_come_back_from_the_log() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = with_documents(&disk, 2);
    let before = logged_bytes(&db);
    visit(&db, 1, 5);
    assert!(logged_bytes(&db) - before < 1000, "a small column is logged without the large one");
    db.transact(|tx| documents(&db).insert(tx, &document(2))).unwrap();
    db.transact(|tx| documents(&db).delete(tx, 0)).unwrap();
    for seed in 0..2 {
        let crashed = Arc::new(disk.fork().crash(seed));
        assert_documents(&open(&crashed), &[visited(1, 5), document(2)]);
    }
}

#[test]
fn whatever_changes_beside_a_large_value_is_logged_without_it() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = with_documents(&disk, 2);
    let (table, values) = (documents(&db), db.open_dynamic_table("document").unwrap());
    let before = logged_bytes(&db);
    db.transact(|tx| table.update(tx, 1, |kind: &mut Kind| kind.kind = 7)).unwrap();
    db.transact(|tx| values.update(tx, &[1u32.into()], &[("visits", 5u64.into())])).unwrap();
    db.transact(|tx| table.update(tx, 0, |document: &mut Document| document.body[VALUE_BYTES / 2] ^= 1))
        .unwrap();
    db.transact(|tx| {
        let mut row = values.get(tx, &[1u32.into()])?.unwrap();
        row[1] = 8u32.into();
        values.replace(tx, &row)
    })
    .unwrap();
    assert!(logged_bytes(&db) - before < 4000);
    let mut first = document(0);
    first.body[VALUE_BYTES / 2] ^= 1;
    let crashed = Arc::new(disk.fork().crash(3));
    for db in [db, open(&crashed)] {
        assert_documents(&db, &[first.clone(), Document { kind: 8, ..visited(1, 5) }]);
        let by_kind = documents(&db).index::<u32>("by_kind").unwrap();
        let of_kind = |kind: u32| db.transact(|tx| by_kind.prefix((kind,)).count(tx)).unwrap();
        assert_eq!([0, 1, 7, 8].map(of_kind), [1, 0, 0, 1]);
    }
}

#[test]
fn large_rows_come_back_from_a_checkpoint_and_the_log_behind_it() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = with_documents(&disk, 2);
    db.checkpoint().unwrap();
    let before = logged_bytes(&db);
    visit(&db, 1, 5);
    visit(&db, 1, 6);
    assert!(
        logged_bytes(&db) - before < 1000,
        "also the first change behind a checkpoint is logged without the large value"
    );
    let crashed = Arc::new(disk.fork().crash(7));
    assert_documents(&open(&crashed), &[document(0), visited(1, 6)]);
    db.checkpoint().unwrap();
    db.close().unwrap();
    let db = open(&disk);
    assert_documents(&db, &[document(0), visited(1, 6)]);
}

#[test]
fn large_rows_are_loaded_while_the_database_answers() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = with_documents(&disk, 3);
    db.checkpoint().unwrap();
    visit(&db, 1, 5);
    db.close().unwrap();
    let db = open_with(options().answer_while_loading(true), &disk).unwrap();
    let table = documents(&db);
    assert!(db.transact(|tx| table.get(tx, 2)).unwrap() == Some(document(2)));
    assert_documents(&db, &[document(0), visited(1, 5), document(2)]);
}

#[test]
fn large_rows_of_an_older_schema_are_read_and_written_as_of_the_new_one() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = with_documents(&disk, 2);
    let changes = [SchemaChange::new().add("title", ColumnType::Text, "untitled")];
    let titled = |id: u32, title: &str| {
        let Document { id, kind, visits, body } = document(id);
        Titled { id, kind, visits, body, title: title.into() }
    };
    let table: Table<Titled> = db.table_with_changes(&changes).unwrap();
    db.transact(|tx| table.update(tx, 1, |row: &mut Titled| row.title = "a title".into())).unwrap();
    let expected = [titled(0, "untitled"), titled(1, "a title")];
    assert!(db.transact(|tx| table.scan().rows(tx)).unwrap() == expected);
    let crashed = Arc::new(disk.crash(3));
    let db = open(&crashed);
    let table: Table<Titled> = db.table_with_changes(&changes).unwrap();
    assert!(db.transact(|tx| table.scan().rows(tx)).unwrap() == expected);
}

#[test]
fn a_backup_has_the_large_rows() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = with_documents(&disk, 2);
    visit(&db, 0, 3);
    db.backup("/backup").unwrap();
    let copy = options().open_with(Arc::clone(&disk) as Arc<dyn Disk>, Path::new("/backup")).unwrap();
    assert_documents(&copy, &[visited(0, 3), document(1)]);
}
