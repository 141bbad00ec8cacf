//! The tests: compiled for each engine, which is that of the module above.

mod blocks;
mod damage;
mod indexes;
mod life;
mod long_values;
mod model;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ensilo::disk::Disk;
use ensilo::{Columns, LoadStatistics, Options, Result, Row, generic};
use ensilo_test_disk::SimulatedDisk;

use super::Engine;
use crate::held::{self, Hold};

type Database = generic::Database<Engine>;
type Table<T> = generic::Table<T, Engine>;

/// A row of about a kilobyte: some 250 make a block.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "item")]
struct Item {
    #[row(key)]
    id: u32,
    count: i64,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Item)]
struct Count {
    count: i64,
}

/// The same with indexes.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(
    table = "person",
    index(name = "by_group", columns(group)),
    index(name = "by_name", columns(name), unique)
)]
struct Person {
    #[row(key)]
    id: u32,
    group: u32,
    name: String,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Person)]
struct Text {
    text: String,
}

fn item(id: u32) -> Item {
    Item { id, count: 1, text: format!("item {id} {}", "x".repeat(1000)) }
}

fn person(id: u32) -> Person {
    Person { id, group: id % 7, name: format!("name {id}"), text: "y".repeat(1000) }
}

const DIRECTORY: &str = "/db";

/// Options for a small database that makes checkpoints only when told.
fn options() -> Options {
    Options::default()
        .log_file_bytes(4 << 20)
        .log_buffers(8)
        .checkpoint_interval(Duration::from_secs(3600))
        .recovery_threads(2)
        .pool_threads(2)
}

fn loading() -> Options {
    options().answer_while_loading(true)
}

/// A database that lets its background go before it is closed, which waits for it.
struct Opened(Database);

impl std::ops::Deref for Opened {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.0
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        held::set(false);
    }
}

/// Opens the database, and holds what it loads in the background.
fn open(options: Options, disk: &Arc<SimulatedDisk>) -> Result<Opened> {
    held::set(true);
    options.open_with(Arc::clone(disk) as Arc<dyn Disk>, Path::new(DIRECTORY)).map(Opened)
}

fn items(db: &Database) -> Table<Item> {
    db.open_table().unwrap()
}

fn people(db: &Database) -> Table<Person> {
    db.open_table().unwrap()
}

/// Every third number is no key.
fn is_key(id: u32) -> bool {
    !id.is_multiple_of(3)
}

/// Makes tables with the keys below `count`, and a checkpoint of them.
fn filled(db: &Database, count: u32) {
    let items = db.create_table::<Item>().unwrap();
    let people = db.create_table::<Person>().unwrap();
    let ids: Vec<_> = (0..count).filter(|&id| is_key(id)).collect();
    for ids in ids.chunks(500) {
        db.transact(|tx| {
            items.insert_many(tx, &ids.iter().map(|&id| item(id)).collect::<Vec<_>>())?;
            people.insert_many(tx, &ids.iter().map(|&id| person(id)).collect::<Vec<_>>())
        })
        .unwrap();
    }
    db.checkpoint().unwrap();
}

/// A database whose process was killed: a checkpoint with the keys below `count`, by so many threads, and nothing in the log.
fn left_behind(count: u32, threads: u32) -> Arc<SimulatedDisk> {
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(options().checkpoint_threads(threads), &disk).unwrap();
    filled(&db, count);
    Arc::new(disk.kill())
}

fn load(db: &Database) -> LoadStatistics {
    db.statistics().unwrap().durability.unwrap().load
}

fn all_items(db: &Database) -> Vec<Item> {
    let items = items(db);
    db.read(|tx| items.scan().rows(tx)).unwrap()
}

/// What a part of a checkpoint says of a block: where it lies, how long it is, and its payload.
struct Block {
    file: PathBuf,
    offset: u64,
    payload: Vec<u8>,
}

/// Returns the blocks with records in the checkpoint, but for the copies. See `docs/format.md`.
fn blocks(disk: &SimulatedDisk) -> Vec<Block> {
    let parts = disk.files().into_iter().map(|(path, _)| path);
    let is_part = |path: &PathBuf| path.to_string_lossy().contains("/part-");
    let mut blocks = Vec::new();
    for file in parts.filter(is_part) {
        let bytes = disk.contents(&file).unwrap();
        let mut offset = 4096;
        while bytes[offset + 16] >> 1 & 3 == 0 {
            let len = u32::from_le_bytes(bytes[offset + 8..][..4].try_into().unwrap()) as usize;
            let payload = bytes[offset + 64..][..len].to_vec();
            blocks.push(Block { file: file.clone(), offset: offset as u64, payload });
            offset += 64 + len;
        }
    }
    blocks
}

/// Returns the blocks of the table with the items, which is the first one that was made.
fn item_blocks(disk: &SimulatedDisk) -> Vec<Block> {
    let mut blocks = blocks(disk);
    blocks.retain(|block| block.payload[0] == 17);
    assert!(blocks.len() >= 6, "{}", blocks.len());
    blocks
}
