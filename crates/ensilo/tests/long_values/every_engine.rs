//! The tests of every engine: compiled for each of them, which is that of the module above.

mod changes;
mod conflicts;
mod doors;
mod files;
mod schemas;
mod sizes;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ensilo::disk::Disk;
use ensilo::{Columns, Options, Row, generic};
use ensilo_test_disk::SimulatedDisk;

use super::Engine;

type Database = generic::Database<Engine>;
type Table<T> = generic::Table<T, Engine>;

/// The longest value that stays in its row, which is as long as a piece of one that does not.
const INLINE: usize = (16 << 10) - 128;

/// Lengths about the limits between rows and pieces.
const LENGTHS: [usize; 8] =
    [0, 1, INLINE - 1, INLINE, INLINE + 1, 2 * INLINE, 2 * INLINE + 1, 5 * INLINE + 7];

#[derive(Clone, Debug, PartialEq, Row)]
#[row(
    table = "document",
    index(name = "by_kind", columns(kind)),
    index(name = "by_code", columns(code), unique)
)]
struct Document {
    #[row(key)]
    id: u32,
    kind: u32,
    title: String,
    visits: u64,
    body: Vec<u8>,
    code: u32,
    notes: Option<String>,
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

#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Document)]
struct Title {
    title: String,
}

#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Document)]
struct Body {
    body: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Document)]
struct Notes {
    notes: Option<String>,
}

fn bytes(seed: u32, len: usize) -> Vec<u8> {
    (0..len as u32).map(|at| (at.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 13) as u8).collect()
}

fn document(id: u32, body_len: usize) -> Document {
    Document {
        id,
        kind: id % 3,
        title: format!("document {id}"),
        visits: 0,
        body: bytes(id, body_len),
        code: 1000 + id,
        notes: None,
    }
}

/// Returns how many pieces the values of a document have that do not lie in its row.
fn pieces_of(document: &Document) -> u64 {
    let notes = document.notes.as_ref().map_or(0, String::len);
    let lengths = [document.title.len(), document.body.len(), notes];
    lengths.into_iter().filter(|len| *len > INLINE).map(|len| len.div_ceil(INLINE) as u64).sum()
}

/// Returns how many pieces the table has.
fn pieces(db: &Database) -> u64 {
    db.statistics().unwrap().table("document").unwrap().long_values.as_ref().unwrap().pieces
}

fn in_memory() -> Database {
    let options = Options::default().epoch_interval(Duration::from_millis(1)).epochs_per_snapshot(4);
    options.in_memory_with().unwrap()
}

fn with_documents(documents: &[Document]) -> (Database, Table<Document>) {
    let db = in_memory();
    let table = fill(&db, documents);
    (db, table)
}

fn fill(db: &Database, documents: &[Document]) -> Table<Document> {
    let table = db.table::<Document>().unwrap();
    documents.iter().for_each(|document| _ = db.transact(|tx| table.insert(tx, document)).unwrap());
    table
}

/// Checks that these are all rows, by the primary key and by indexes, and that there are the pieces that they need.
#[track_caller]
fn assert_rows(db: &Database, expected: &[Document]) {
    let table = db.open_table::<Document>().unwrap();
    let by_code = table.index::<u32>("by_code").unwrap();
    db.transact(|tx| {
        assert!(table.scan().rows(tx)? == expected, "by the primary key");
        let mut rows = by_code.scan().rows(tx)?;
        rows.sort_by_key(|row| row.id);
        assert!(rows == expected, "by an index");
        Ok(())
    })
    .unwrap();
    assert_eq!(pieces(db), expected.iter().map(pieces_of).sum::<u64>());
}

fn options() -> Options {
    Options::default()
        .log_file_bytes(1 << 20)
        .log_buffers(4)
        .checkpoint_interval(Duration::from_secs(3600))
        .recovery_threads(2)
        .pool_threads(1)
}

fn open_with(options: Options, disk: &Arc<SimulatedDisk>) -> Database {
    options.open_with(Arc::clone(disk) as Arc<dyn Disk>, Path::new("/db")).unwrap()
}

fn open(disk: &Arc<SimulatedDisk>) -> Database {
    open_with(options(), disk)
}
