//! YCSB's single operations (80 % reads, 20 % read-modify-writes) by one thread: one request at a time, and in batches of several lengths
//! with the keys loaded in advance (`Database::transact_many`), in turn.
//!
//! ```sh
//! cargo run --release -p ensilo-bench --example batches -- silo 10000000 5 400
//! ```
//!
//! The engine is `silo`, `ermia` or `2pl`; then come the number of records, of rounds, and the milliseconds that each way has in a round.
//! Each line is a round: millions of transactions a second one at a time, and how many times that each length of batches gives. The last
//! line has the medians.

use std::hint::black_box;
use std::time::{Duration, Instant};

use ensilo::ermia::Ermia;
use ensilo::generic::{Database, Table, Transaction};
use ensilo::two_phase_locking::TwoPhaseLocking;
use ensilo::{Columns, Engine, Error, Options, Result, Row, Silo};
use ensilo_bench::random::Random;

/// The lengths of batches.
const LENGTHS: [usize; 7] = [2, 4, 8, 16, 32, 64, 256];
/// Records that one transaction of the loader inserts.
const LOADED_AT_ONCE: u64 = 500;
/// Requests between two looks at the clock.
const REQUESTS: usize = 256;

#[derive(Debug, Row)]
#[row(table = "usertable")]
struct Record {
    #[row(key)]
    key: u64,
    value: [u8; 100],
}

#[derive(Debug, Columns)]
#[columns(of = Record)]
struct Value {
    value: [u8; 100],
}

#[derive(Debug, Clone, Copy)]
struct Operation {
    key: u64,
    writes: bool,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| match arguments.get(at) {
        Some(text) => text.parse().map_err(|_| Error::rollback(format!("{text} is no number"))),
        None => Ok(default),
    };
    let (records, rounds) = (number(1, 10_000_000)?.max(1), number(2, 5)?.max(1));
    let time = Duration::from_millis(number(3, 400)?);
    match arguments.first().map_or("silo", String::as_str) {
        "silo" => measure::<Silo>(records, rounds, time),
        "ermia" => measure::<Ermia>(records, rounds, time),
        "2pl" => measure::<TwoPhaseLocking>(records, rounds, time),
        other => Err(Error::rollback(format!("there is no engine {other}"))),
    }
}

fn measure<E: Engine>(records: u64, rounds: u64, time: Duration) -> Result<()> {
    let bench = Bench::<E>::load(records, time)?;
    let mut random = Random::new(1);
    let (mut alone, mut ratios) = (Vec::new(), vec![Vec::new(); LENGTHS.len()]);
    println!("  M/s alone  batches of {LENGTHS:?}");
    for _ in 0..rounds {
        let per_second = bench.run(&mut random, |operations| bench.one_at_a_time(operations))?;
        alone.push(per_second);
        for (length, ratios) in LENGTHS.into_iter().zip(&mut ratios) {
            let in_batches =
                bench.run(&mut random, |operations| bench.in_batches(operations.chunks(length)))?;
            ratios.push(in_batches / per_second);
        }
        print_line(per_second, ratios.iter().filter_map(|ratios| ratios.last().copied()));
    }
    print_line(median(&mut alone), ratios.iter_mut().map(|ratios| median(ratios)));
    Ok(())
}

fn print_line(per_second: f64, ratios: impl Iterator<Item = f64>) {
    print!("  {:9.3}", per_second / 1e6);
    ratios.for_each(|ratio| print!("  {ratio:5.2}"));
    println!();
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

struct Bench<E: Engine> {
    db: Database<E>,
    table: Table<Record, E>,
    records: u64,
    time: Duration,
}

impl<E: Engine> Bench<E> {
    fn load(records: u64, time: Duration) -> Result<Self> {
        let db = Options::default().in_memory_with::<E>()?;
        let table: Table<Record, E> = db.create_table()?;
        for first in (0..records).step_by(LOADED_AT_ONCE as usize) {
            db.transact(|tx| {
                (first..records.min(first + LOADED_AT_ONCE))
                    .try_for_each(|key| table.insert(tx, &Record { key, value: [7; 100] }).map(|_| ()))
            })?;
        }
        Ok(Bench { db, table, records, time })
    }

    /// Returns how many operations a second `run` does.
    fn run(&self, random: &mut Random, mut run: impl FnMut(&[Operation]) -> Result<()>) -> Result<f64> {
        let (start, mut done) = (Instant::now(), 0);
        while start.elapsed() < self.time {
            let operations: [Operation; REQUESTS] = std::array::from_fn(|_| Operation {
                key: random.below(self.records),
                writes: random.percent(20),
            });
            run(&operations)?;
            done += REQUESTS;
        }
        Ok(done as f64 / start.elapsed().as_secs_f64())
    }

    fn one_at_a_time(&self, operations: &[Operation]) -> Result<()> {
        operations.iter().try_for_each(|operation| self.db.transact(|tx| self.operate(tx, operation)))
    }

    fn in_batches<'o>(&self, mut batches: impl Iterator<Item = &'o [Operation]>) -> Result<()> {
        batches.try_for_each(|batch| {
            let results = self.db.transact_many(
                batch,
                |operation, prefetch| prefetch.row(&self.table, operation.key),
                |tx, operation| self.operate(tx, operation),
            )?;
            results.into_iter().collect()
        })
    }

    fn operate(&self, tx: &mut Transaction<'_, E>, operation: &Operation) -> Result<()> {
        if operation.writes {
            let count_up = |record: &mut Value| record.value[0] = record.value[0].wrapping_add(1);
            return self.table.update(tx, operation.key, count_up);
        }
        black_box(self.table.get_columns::<Value>(tx, operation.key)?);
        Ok(())
    }
}
