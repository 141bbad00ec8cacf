//! How soon a database answers: opened as ever, and while it is loading
//! ([`Options::answer_while_loading`](ensilo::Options::answer_while_loading)).
//!
//! ```text
//! cargo run --release -p ensilo --example opening -- --gigabytes 2 --directory /var/tmp/opening
//! ```
//! Makes a database of that size for each engine, with a checkpoint and a little log, and opens it both ways.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ensilo::disk::RealDisk;
use ensilo::ermia::Ermia;
use ensilo::generic::Database;
use ensilo::{Columns, Engine, Options, Result, Row, Silo};

const USAGE: &str = "opening [--gigabytes N] [--directory DIR] [--threads N] [--engine silo|ermia]";

/// A row of a hundred bytes, as in a small application.
#[derive(Row)]
#[row(table = "account")]
struct Account {
    #[row(key)]
    id: u64,
    balance: i64,
    owner: String,
}

#[derive(Columns)]
#[columns(of = Account)]
struct Balance {
    balance: i64,
}

/// What a row takes in a checkpoint, about.
const ROW_BYTES: u64 = 118;

/// What is measured.
struct Measure {
    gigabytes: f64,
    directory: PathBuf,
    threads: Option<usize>,
    engine: Option<String>,
}

/// How long it took from the beginning of the opening.
struct Times {
    opened: Duration,
    read: Duration,
    written: Duration,
    loaded: Duration,
}

fn account(id: u64) -> Account {
    Account { id, balance: 100, owner: format!("owner {id:>070}") }
}

fn main() -> Result<()> {
    let Some(measure) = arguments() else {
        println!("{USAGE}");
        return Ok(());
    };
    std::fs::create_dir_all(&measure.directory).map_err(ensilo::Error::user)?;
    let is_asked = |name: &str| measure.engine.as_deref().is_none_or(|asked| asked == name);
    if is_asked("silo") {
        run::<Silo>("silo", &measure)?;
    }
    if is_asked("ermia") {
        run::<Ermia>("ermia", &measure)?;
    }
    Ok(())
}

/// Returns what the command line asks for; nothing if it does not make sense.
fn arguments() -> Option<Measure> {
    let directory = std::env::temp_dir().join("ensilo-opening");
    let mut measure = Measure { gigabytes: 1.0, directory, threads: None, engine: None };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next()?;
        match &*name {
            "--gigabytes" => measure.gigabytes = value.parse().ok()?,
            "--directory" => measure.directory = value.into(),
            "--threads" => measure.threads = Some(value.parse().ok()?),
            "--engine" => measure.engine = Some(value),
            _ => return None,
        }
    }
    Some(measure)
}

fn run<E: Engine>(name: &str, measure: &Measure) -> Result<()> {
    let directory = measure.directory.join(name);
    let rows = (measure.gigabytes * 1e9) as u64 / ROW_BYTES;
    let bytes = make::<E>(measure, &directory, rows)?;
    println!("{name}: {rows} rows, a checkpoint of {:.2} GB", bytes as f64 / 1e9);
    println!("{:>24} {:>10} {:>10} {:>10} {:>10}", "seconds until", "opened", "read", "written", "loaded");
    for (way, answers) in [("answering at once", true), ("as ever", false), ("answering at once", true)] {
        let Times { opened, read, written, loaded } = open::<E>(measure, &directory, rows, answers)?;
        let times = [opened, read, written, loaded].map(|time| time.as_secs_f64());
        println!("{way:>24} {:>10.3} {:>10.3} {:>10.3} {:>10.3}", times[0], times[1], times[2], times[3]);
    }
    if let Err(error) = std::fs::remove_dir_all(&directory) {
        println!("{} is still there: {error}", directory.display());
    }
    Ok(())
}

fn options(measure: &Measure) -> Options {
    let options = Options::default().checkpoint_bytes_per_second(u64::MAX).no_checkpoints();
    measure.threads.map_or(options.clone(), |threads| options.recovery_threads(threads))
}

/// Makes a database with so many rows, all in a checkpoint; returns the bytes of that.
fn make<E: Engine>(measure: &Measure, directory: &Path, rows: u64) -> Result<u64> {
    let db: Database<E> = options(measure).open_with(std::sync::Arc::new(RealDisk), directory)?;
    let accounts = db.create_table::<Account>()?;
    let request = || db.request().durability(ensilo::Durability::Visible);
    for first in (0..rows).step_by(1000) {
        let ids = first..(first + 1000).min(rows);
        request()
            .transact(|tx| ids.clone().try_for_each(|id| accounts.insert(tx, &account(id)).map(drop)))?;
    }
    let checkpoint = db.checkpoint()?;
    // A little log.
    for id in (0..rows).step_by((rows / 10_000).max(1) as usize) {
        request().transact(|tx| accounts.update(tx, id, |row: &mut Balance| row.balance += 1))?;
    }
    db.close()?;
    Ok(checkpoint.bytes)
}

/// Opens the database, reads a row, writes one, and waits until all are there.
fn open<E: Engine>(measure: &Measure, directory: &Path, rows: u64, answers: bool) -> Result<Times> {
    let start = Instant::now();
    let options = options(measure).answer_while_loading(answers);
    let db: Database<E> = options.open_with(std::sync::Arc::new(RealDisk), directory)?;
    let opened = start.elapsed();
    let accounts = db.open_table::<Account>()?;
    let row = db.transact(|tx| accounts.get(tx, rows / 2 + 1))?;
    assert!(row.is_some_and(|row| row.id == rows / 2 + 1), "the row is there");
    let read = start.elapsed();
    db.transact(|tx| accounts.update(tx, rows / 3, |row: &mut Balance| row.balance += 1))?;
    let written = start.elapsed();
    db.wait_until_loaded()?;
    let loaded = start.elapsed();
    let records = db.statistics()?.table("account").map(|table| table.records);
    assert_eq!(records, Some(rows), "every row is there");
    db.close()?;
    Ok(Times { opened, read, written, loaded })
}
