//! What a small database costs: the time to open and to close an empty one, its room on the disk, and the memory of a thread, of a
//! session and of a row.
//!
//! ```text
//! cargo run --release -p ensilo --example small -- /var/tmp 1000000
//! ```
//! The directory is one on the disk that is to be measured; by default it is that for temporary files. The number is how many rows a table has
//! of which the memory is shown, a million by default, and a multiple of a thousand. Times are medians of 20; the first
//! opening of the process stands beside them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use ensilo::{Database, Durability, Result, Row, Session, Table};

const OPENINGS: usize = 20;
const THREADS: usize = 100;
/// So many rows are inserted by one transaction.
const BATCH: u64 = 1000;

/// A row of which the columns take `16 + text.len()` bytes.
#[derive(Row)]
#[row(table = "plain")]
struct Plain {
    #[row(key)]
    id: u64,
    owner: u64,
    text: String,
}

/// The same with an index.
#[derive(Row)]
#[row(table = "indexed", index(name = "by_owner", columns(owner)))]
struct Indexed {
    #[row(key)]
    id: u64,
    owner: u64,
    text: String,
}

fn main() -> Result<()> {
    let place = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let batches = match std::env::args().nth(2).map(|rows| rows.parse::<u64>()) {
        None => 1000,
        Some(Ok(rows)) if rows > 0 && rows.is_multiple_of(BATCH) => rows / BATCH,
        Some(_) => {
            println!("small [DIRECTORY] [ROWS, a multiple of {BATCH}]");
            return Ok(());
        }
    };
    let directory = place.join(format!("ensilo-small-{}", std::process::id()));
    fs::create_dir_all(&directory).map_err(ensilo::Error::user)?;
    measure_times("in memory", |_| Database::in_memory())?;
    measure_times("in a new directory", |number| Database::open(directory.join(number.to_string())))?;
    measure_times("in an old directory", |number| Database::open(directory.join(number.to_string())))?;
    measure_disk(&directory.join("disk"))?;
    fs::remove_dir_all(&directory).map_err(ensilo::Error::user)?;
    measure_threads()?;
    measure_sessions()?;
    for text_bytes in [16, 100, 1000] {
        measure_rows(text_bytes, batches)?;
    }
    Ok(())
}

/// Opens and closes databases, and prints how long that took.
fn measure_times(what: &str, open: impl Fn(usize) -> Result<Database>) -> Result<()> {
    let (mut opened, mut closed) = (Vec::new(), Vec::new());
    for number in 0..OPENINGS {
        let start = Instant::now();
        let db = open(number)?;
        opened.push(start.elapsed());
        // An opening goes on in the background for some time: what is measured is a database that has been open for longer.
        thread::sleep(Duration::from_millis(50));
        let start = Instant::now();
        db.close()?;
        closed.push(start.elapsed());
    }
    let first = opened[0];
    println!(
        "{what}: opened in {:?} (the first in {first:?}), closed in {:?}",
        median(opened),
        median(closed)
    );
    Ok(())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Prints what an empty database takes on the disk while it is open, and when it is closed.
fn measure_disk(directory: &Path) -> Result<()> {
    let db = Database::open(directory)?;
    thread::sleep(Duration::from_millis(200));
    let open = allocated_bytes(directory);
    db.close()?;
    let closed = allocated_bytes(directory);
    println!("on the disk: {} KiB open, {} KiB closed", open >> 10, closed >> 10);
    Ok(())
}

/// Returns the bytes of all blocks that a directory takes.
fn allocated_bytes(path: &Path) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else { return 0 };
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    metadata.blocks() * 512 + entries.map(|entry| allocated_bytes(&entry.path())).sum::<u64>()
}

/// Prints what a thread costs that has made one request.
fn measure_threads() -> Result<()> {
    for (what, is_request_made) in [("without a request", false), ("with one request", true)] {
        let db = Database::in_memory()?;
        let rows: Table<Plain> = db.create_table()?;
        let (have_begun, are_measured) = (Barrier::new(THREADS + 1), Barrier::new(THREADS + 1));
        let before = Memory::of(&db)?;
        let after = thread::scope(|scope| {
            for id in 0..THREADS as u64 {
                let (db, rows, have_begun, are_measured) = (&db, &rows, &have_begun, &are_measured);
                scope.spawn(move || {
                    if is_request_made {
                        let row = Plain { id, owner: id, text: String::new() };
                        if let Err(error) = db.transact(|tx| rows.insert(tx, &row)) {
                            println!("thread {id}: {error}");
                        }
                    }
                    have_begun.wait();
                    are_measured.wait();
                });
            }
            have_begun.wait();
            let after = Memory::of(&db);
            are_measured.wait();
            after
        })?;
        after.print_since(&before, &format!("a thread {what}"));
        db.close()?;
    }
    Ok(())
}

/// Prints what a session costs that has a transaction open, and what one costs that has none.
fn measure_sessions() -> Result<()> {
    let db = Database::in_memory()?;
    let rows: Table<Plain> = db.create_table()?;
    let before = Memory::of(&db)?;
    let idle = (0..THREADS).map(|_| db.session()).collect::<Result<Vec<Session>>>()?;
    Memory::of(&db)?.print_since(&before, "a session without a transaction");
    let before = Memory::of(&db)?;
    let mut open = (0..THREADS).map(|_| db.begin()).collect::<Result<Vec<Session>>>()?;
    for (id, session) in (0..).zip(&mut open) {
        rows.insert(session, &Plain { id, owner: id, text: String::new() })?;
    }
    Memory::of(&db)?.print_since(&before, "a session with a transaction of one insert");
    drop((idle, open));
    db.close()
}

/// Memory of the process and of the database.
struct Memory {
    resident_bytes: u64,
    live_bytes: u64,
}

impl Memory {
    fn of(db: &Database) -> Result<Memory> {
        let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
        Ok(Memory { resident_bytes: pages * 4096, live_bytes: db.statistics()?.memory.live_bytes })
    }

    fn print_since(&self, before: &Memory, what: &str) {
        let each = |now: u64, before: u64| now.saturating_sub(before) as f64 / 1024.0 / THREADS as f64;
        println!(
            "{what}: {:.1} KiB of the process, {:.1} KiB of them in use by the database's heaps",
            each(self.resident_bytes, before.resident_bytes),
            each(self.live_bytes, before.live_bytes),
        );
    }
}

/// Prints what each of many rows costs, with keys that rise and with keys in no order.
fn measure_rows(text_bytes: usize, batches: u64) -> Result<()> {
    let text = "x".repeat(text_bytes);
    let columns_bytes = 16 + text_bytes;
    for (order, mixer) in [("rising keys", 1), ("keys in no order", 0x9e37_79b9_7f4a_7c15_u64)] {
        let db = Database::options().durability(Durability::Visible).in_memory()?;
        let plain: Table<Plain> = db.create_table()?;
        let indexed: Table<Indexed> = db.create_table()?;
        for batch in 0..batches {
            let ids = || (batch * BATCH..(batch + 1) * BATCH).map(|number| number.wrapping_mul(mixer));
            db.transact(|tx| {
                ids().try_for_each(|id| {
                    plain.insert(tx, &Plain { id, owner: id, text: text.clone() }).map(drop)
                })
            })?;
            db.transact(|tx| {
                ids().try_for_each(|id| {
                    indexed.insert(tx, &Indexed { id, owner: id, text: text.clone() }).map(drop)
                })
            })?;
        }
        let statistics = db.statistics()?;
        let bytes = |name| {
            statistics.table(name).map_or((0, 0), |table| {
                let indexes: u64 = table.indexes.iter().map(|index| index.memory_bytes).sum();
                (table.memory_bytes / (batches * BATCH), indexes / (batches * BATCH))
            })
        };
        let ((row, _), (_, entry)) = (bytes("plain"), bytes("indexed"));
        println!("a row of {columns_bytes} bytes, {order}: {row} bytes, and {entry} for an index");
        db.close()?;
    }
    Ok(())
}
