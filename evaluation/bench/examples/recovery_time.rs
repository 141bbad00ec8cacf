//! How long a recovery takes beside how long the database had said that it would: a process opens a directory, writes for a while,
//! prints its forecast and aborts; the next one does the same with what it finds.
//!
//! ```sh
//! cargo run --release -p ensilo-bench --example recovery_time -- /var/tmp/recovery 6 8 10
//! ```
//!
//! The directory, new or one of an earlier call, is followed by the number of rounds, by the seconds that each writes for, and by the
//! target in seconds. Each line is an opening: what it found, how long that took, and what the process before had said, with the rate that
//! it had measured; the first of a new directory has nobody to ask.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use ensilo::{Database, Durability, Error, Result, Row};
use ensilo_bench::random::Random;

const ACCOUNTS: u64 = 2_000_000;
/// Rows that one transaction of the loader inserts.
const LOADED_AT_ONCE: u64 = 500;
/// Transactions between two looks at the clock.
const TRANSACTIONS: usize = 256;

#[derive(Debug, Row)]
#[row(table = "account", index(name = "by_owner", columns(owner)))]
struct Account {
    #[row(key)]
    id: u64,
    owner: u64,
    balance: i64,
    note: String,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, numbers @ ..] = &arguments[..] else {
        return Err(Error::rollback("which directory?"));
    };
    let number = |at: usize, default: u64| match numbers.get(at) {
        Some(text) => text.parse().map_err(|_| Error::rollback(format!("{text} is no number"))),
        None => Ok(default),
    };
    let (rounds, seconds, target) = (number(0, 5)?, number(1, 5)?, number(2, 10)?);
    let (time, target) = (Duration::from_secs(seconds), Duration::from_secs(target));
    if number(3, 0)? == 1 {
        return write_and_abort(directory.as_ref(), time, target);
    }
    let program = std::env::current_exe().map_err(failed)?;
    for _ in 0..=rounds {
        let mut child = Command::new(&program);
        child.args([directory, "0", &seconds.to_string(), &target.as_secs().to_string(), "1"]);
        child.status().map_err(failed)?;
    }
    Ok(())
}

fn failed(error: std::io::Error) -> Error {
    Error::rollback(error.to_string())
}

/// Opens the database and writes; comes back only with an error.
fn write_and_abort(directory: &Path, time: Duration, target: Duration) -> Result<()> {
    let db =
        Database::options().recovery_time_target(target).durability(Durability::Visible).open(directory)?;
    let accounts = db.table::<Account>()?;
    let durability = || db.statistics()?.durability.ok_or(Error::NotDurable);
    let found = durability()?.recovery;
    print!(
        "opened in {:5.2} s: checkpoint {:5} MB, log {:5} MB",
        found.duration.as_secs_f64(),
        found.checkpoint_bytes >> 20,
        found.log_bytes >> 20
    );
    let account = |id, random: &mut Random| Account {
        id,
        owner: random.below(ACCOUNTS / 10),
        balance: 0,
        note: "n".repeat(80),
    };
    let mut random = Random::new(1);
    if db.read(|tx| accounts.get(tx, 0))?.is_none() {
        for first in (0..ACCOUNTS).step_by(LOADED_AT_ONCE as usize) {
            db.transact(|tx| {
                (first..first + LOADED_AT_ONCE)
                    .try_for_each(|id| accounts.insert(tx, &account(id, &mut random)).map(|_| ()))
            })?;
        }
    }
    let start = Instant::now();
    while start.elapsed() < time {
        for _ in 0..TRANSACTIONS {
            let id = random.below(ACCOUNTS);
            let row = account(id, &mut random);
            db.transact(|tx| accounts.upsert(tx, &row).map(|_| ()))?;
        }
    }
    let now = durability()?;
    println!(
        "; {} checkpoints; the next opening would take {:5.2} s: checkpoint {:5} MB, log {:5} MB{}",
        now.checkpoints.made,
        now.next_recovery.duration.as_secs_f64(),
        now.next_recovery.checkpoint_bytes >> 20,
        now.next_recovery.log_bytes >> 20,
        if now.next_recovery.is_measured { "" } else { " (assumed)" },
    );
    std::process::abort()
}
