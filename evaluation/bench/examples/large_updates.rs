//! Large updates beside small writers of the same rows, over each engine: who waits for whom, and for how long.
//!
//! ```sh
//! cargo run --release -p ensilo-bench --example large_updates -- all 1000,10000,100000 10 1 10
//! ```
//!
//! The arguments are the engine (`silo`, `ermia`, `2pl` or `all`), the numbers of rows, how many large updates follow one another at least, how many
//! threads write small ones meanwhile, and after how many seconds a measurement gives up. A large update reads and updates all rows in one transaction: each by
//! its key, or by a cursor over the table; or it reads all rows by one scan and updates one. A small one updates a row that is drawn uniformly. Both retry without a limit.
//!
//! A line for each way: how many large updates have committed, the milliseconds of one without small writers, and beside them the median and the
//! longest, with the attempts of each; then thousands of small updates a second alone and beside, and the longest wait for one in milliseconds,
//! beside with the most attempts of one. Afterwards the numbers in the rows must be those that were committed.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ensilo::ermia::Ermia;
use ensilo::generic::{Database, Table, Transaction};
use ensilo::two_phase_locking::TwoPhaseLocking;
use ensilo::{Columns, Engine, Error, Options, Result, Row, Silo};
use ensilo_bench::random::Random;

/// Rows that one transaction of the loader inserts.
const LOADED_AT_ONCE: u64 = 500;
/// Small writers are measured for so long without large ones, and at least for so long beside them.
const TIME_MIN: Duration = Duration::from_millis(300);

#[derive(Debug, Row)]
#[row(table = "counter")]
struct Counter {
    #[row(key)]
    id: u64,
    count: u64,
}

#[derive(Debug, Columns)]
#[columns(of = Counter)]
struct Count {
    count: u64,
}

/// How a large update goes through the rows.
#[derive(Debug, Clone, Copy)]
enum Way {
    Keys,
    Cursor,
    Scan,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Way::Keys => "keys",
            Way::Cursor => "cursor",
            Way::Scan => "scan",
        })
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let text = |at: usize, default: &'static str| arguments.get(at).map_or(default, String::as_str);
    let all_rows = text(1, "1000,10000,100000").split(',').map(number).collect::<Result<Vec<_>>>()?;
    let plan = Plan {
        large: number(text(2, "10"))?.max(1) as usize,
        writers: number(text(3, "1"))?,
        time_max: Duration::from_secs(number(text(4, "10"))?),
    };
    println!(
        "{:8} {:>8} {:7} {:>7} {:>9} {:>22} {:>12} {:>16} {:>22}",
        "", "rows", "by", "large", "alone ms", "beside ms", "attempts", "small k/s", "longest ms (attempts)"
    );
    let engine = text(0, "all");
    for rows in all_rows {
        for way in [Way::Keys, Way::Cursor, Way::Scan] {
            let is_asked = |name| engine == name || engine == "all";
            let known = [
                is_asked("silo").then(|| measure::<Silo>("silo", rows, way, &plan)),
                is_asked("ermia").then(|| measure::<Ermia>("ermia", rows, way, &plan)),
                is_asked("2pl").then(|| measure::<TwoPhaseLocking>("2pl", rows, way, &plan)),
            ];
            if known.iter().all(Option::is_none) {
                return Err(Error::rollback(format!("there is no engine {engine}")));
            }
            known.into_iter().flatten().collect::<Result<()>>()?;
        }
    }
    Ok(())
}

fn number(text: &str) -> Result<u64> {
    text.parse().map_err(|_| Error::rollback(format!("{text} is no number")))
}

/// What is run in each measurement.
struct Plan {
    large: usize,
    writers: u64,
    time_max: Duration,
}

fn measure<E: Engine>(name: &str, rows: u64, way: Way, plan: &Plan) -> Result<()> {
    let bench = Bench::<E>::load(rows, way)?;
    let alone = bench.update_all(1, Duration::ZERO, plan.time_max)?;
    let small_alone = bench.beside_small(plan.writers, || {
        thread::sleep(TIME_MIN);
        Ok(())
    })?;
    let mut large = Requests::default();
    let small = bench.beside_small(plan.writers, || {
        large = bench.update_all(plan.large, TIME_MIN, plan.time_max)?;
        Ok(())
    })?;
    bench.check(alone.count() + large.count(), small_alone.count + small.count)?;
    println!(
        "{name:8} {rows:8} {way:7} {:>7} {:9.2} {:>22} {:>12} {:>16} {:>22}",
        large.count(),
        alone.median_ms(),
        format!("{:.2} to {:.2}", large.median_ms(), large.longest_ms()),
        format!("{} to {}", large.median_attempts(), large.most_attempts()),
        format!("{:.0} / {:.0}", small_alone.thousands_a_second(), small.thousands_a_second()),
        format!(
            "{:.2} / {:.2} ({})",
            1e3 * small_alone.longest.as_secs_f64(),
            1e3 * small.longest.as_secs_f64(),
            small.attempts_most
        ),
    );
    Ok(())
}

/// The large requests that have committed: how long each took, and its attempts.
#[derive(Default)]
struct Requests(Vec<(Duration, u64)>);

impl Requests {
    fn count(&self) -> u64 {
        self.0.len() as u64
    }

    fn median_ms(&self) -> f64 {
        let mut times: Vec<_> = self.0.iter().map(|&(time, _)| time).collect();
        times.sort();
        times.get(times.len() / 2).map_or(f64::NAN, |time| 1e3 * time.as_secs_f64())
    }

    fn longest_ms(&self) -> f64 {
        self.0.iter().map(|(time, _)| 1e3 * time.as_secs_f64()).fold(f64::NAN, f64::max)
    }

    fn median_attempts(&self) -> u64 {
        let mut attempts: Vec<_> = self.0.iter().map(|&(_, attempts)| attempts).collect();
        attempts.sort_unstable();
        attempts.get(attempts.len() / 2).copied().unwrap_or(0)
    }

    fn most_attempts(&self) -> u64 {
        self.0.iter().map(|&(_, attempts)| attempts).max().unwrap_or(0)
    }
}

/// The small requests of all writers.
#[derive(Default)]
struct Small {
    count: u64,
    longest: Duration,
    attempts_most: u64,
    /// Over all writers, who write at the same time.
    elapsed: Duration,
}

impl Small {
    fn thousands_a_second(&self) -> f64 {
        self.count as f64 / self.elapsed.as_secs_f64() / 1e3
    }

    fn and(self, other: Small) -> Small {
        Small {
            count: self.count + other.count,
            longest: self.longest.max(other.longest),
            attempts_most: self.attempts_most.max(other.attempts_most),
            elapsed: self.elapsed.max(other.elapsed),
        }
    }
}

struct Bench<E: Engine> {
    db: Database<E>,
    table: Table<Counter, E>,
    rows: u64,
    way: Way,
}

impl<E: Engine> Bench<E> {
    fn load(rows: u64, way: Way) -> Result<Self> {
        let db = Options::default().retries(u32::MAX).in_memory_with::<E>()?;
        let table: Table<Counter, E> = db.create_table()?;
        for first in (0..rows).step_by(LOADED_AT_ONCE as usize) {
            db.transact(|tx| {
                (first..rows.min(first + LOADED_AT_ONCE))
                    .try_for_each(|id| table.insert(tx, &Counter { id, count: 0 }).map(|_| ()))
            })?;
        }
        Ok(Bench { db, table, rows, way })
    }

    /// Runs large updates one after the other until there are `count` and some time has gone by, or the time is over.
    fn update_all(&self, count: usize, time_min: Duration, time_max: Duration) -> Result<Requests> {
        let begin = Instant::now();
        let mut done = Requests::default();
        while done.0.len() < count || begin.elapsed() < time_min {
            let (asked, mut attempts, mut is_late) = (Instant::now(), 0, false);
            let outcome = self.db.transact(|tx| {
                attempts += 1;
                is_late = begin.elapsed() > time_max;
                if is_late { Err(Error::rollback("the time is over")) } else { self.update_once(tx) }
            });
            if is_late {
                break;
            }
            outcome?;
            done.0.push((asked.elapsed(), attempts));
        }
        Ok(done)
    }

    fn update_once(&self, tx: &mut Transaction<'_, E>) -> Result<()> {
        match self.way {
            Way::Keys => (0..self.rows).try_for_each(|id| self.count_up(tx, id)),
            Way::Cursor => {
                let mut cursor = self.table.scan().columns::<Count>().cursor();
                while let Some((id, _)) = cursor.next(tx)? {
                    self.count_up(tx, id)?;
                }
                Ok(())
            }
            Way::Scan => {
                let mut id_max = 0;
                self.table.scan().columns::<Count>().for_each(tx, |id, _| id_max = id)?;
                self.count_up(tx, id_max)
            }
        }
    }

    fn count_up(&self, tx: &mut Transaction<'_, E>, id: u64) -> Result<()> {
        self.table.update(tx, id, |counter: &mut Count| counter.count += 1)
    }

    /// Runs `body` while so many writers update single rows.
    fn beside_small(&self, writers: u64, body: impl FnOnce() -> Result<()>) -> Result<Small> {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let writers: Vec<_> = (0..writers)
                .map(|seed| {
                    scope.spawn({
                        let is_over = &is_over;
                        move || self.write_small(seed, is_over)
                    })
                })
                .collect();
            let outcome = body();
            is_over.store(true, Ordering::Relaxed);
            let small = writers.into_iter().try_fold(Small::default(), |all, writer| {
                Ok(all.and(writer.join().unwrap_or(Err(Error::Closed))?))
            });
            outcome.and(small)
        })
    }

    fn write_small(&self, seed: u64, is_over: &AtomicBool) -> Result<Small> {
        let (begin, mut random, mut small) = (Instant::now(), Random::new(seed), Small::default());
        while !is_over.load(Ordering::Relaxed) {
            let (asked, mut attempts, id) = (Instant::now(), 0, random.below(self.rows));
            self.db.transact(|tx| {
                attempts += 1;
                self.count_up(tx, id)
            })?;
            small.count += 1;
            small.longest = small.longest.max(asked.elapsed());
            small.attempts_most = small.attempts_most.max(attempts);
        }
        small.elapsed = begin.elapsed();
        Ok(small)
    }

    /// Sees to it that the rows have what so many large and small updates have made of them.
    fn check(&self, large: u64, small: u64) -> Result<()> {
        let rows = self.db.read(|tx| self.table.scan().columns::<Count>().rows(tx))?;
        let updated = if matches!(self.way, Way::Scan) { 1 } else { self.rows };
        let (sum, expected) = (rows.iter().map(|row| row.count).sum::<u64>(), large * updated + small);
        if sum == expected {
            return Ok(());
        }
        Err(Error::rollback(format!(
            "{large} large and {small} small updates have made {sum}, not {expected}"
        )))
    }
}
