//! What a queue in a table gives: a million jobs, popped from the front by one thread in the order of a secondary index, or of the key.
//! Prints the rate of each tenth of them, so that a slope shows.
//!
//! `cargo run --release -p ensilo --example queue`

use std::time::Instant;

use ensilo::{Database, Index, Result, Row, Table};

const JOBS: u64 = 1_000_000;
const TENTH: u64 = JOBS / 10;
const BATCH: u64 = 1_000;

#[derive(Clone, Row)]
#[row(table = "job", index(name = "by_due", columns(due)))]
struct Job {
    #[row(key)]
    id: u64,
    due: u64,
    payload: u64,
}

fn main() -> Result<()> {
    measure("pops by key", |db, jobs, _| {
        db.transact(|tx| {
            let Some((job, _)) = jobs.scan().first_found(tx)? else { return Ok(()) };
            job.delete(tx)
        })
    })?;
    measure("pops by index", |db, _, by_due| {
        db.transact(|tx| {
            let Some((job, _)) = by_due.scan().first_found(tx)? else { return Ok(()) };
            job.delete(tx)
        })
    })?;
    measure("pops by index while jobs are pushed", |db, jobs, by_due| {
        db.transact(|tx| {
            if let Some((job, row)) = by_due.scan().first_found(tx)? {
                let Job { id, due, payload } = row;
                job.delete(tx)?;
                jobs.insert(tx, &Job { id: id + JOBS, due: due + JOBS, payload })?;
            }
            Ok(())
        })
    })
}

/// Calls `pop` a million times on a table with as many rows, and prints how often it was called a second.
fn measure(name: &str, pop: impl Fn(&Database, &Table<Job>, &Index<Job, u64>) -> Result<()>) -> Result<()> {
    let db = Database::in_memory()?;
    let jobs: Table<Job> = db.create_table()?;
    let by_due = jobs.index::<u64>("by_due")?;
    for first in (0..JOBS).step_by(BATCH as usize) {
        db.transact(|tx| {
            (first..first + BATCH)
                .try_for_each(|id| jobs.insert(tx, &Job { id, due: id / 2, payload: id }).map(|_| ()))
        })?;
    }
    print!("{name}, thousands a second:");
    for _ in 0..JOBS / TENTH {
        let start = Instant::now();
        (0..TENTH).try_for_each(|_| pop(&db, &jobs, &by_due))?;
        print!(" {:.0}", TENTH as f64 / start.elapsed().as_secs_f64() / 1e3);
    }
    println!();
    Ok(())
}
