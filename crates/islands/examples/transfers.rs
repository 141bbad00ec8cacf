//! A bank over several instances: clients move money between accounts, wherever these are.
//!
//! ```sh
//! cargo run --release -p ensilo-islands --example transfers -- --processes
//! ```
//! `--processes` gives each instance a process of its own, `--directory D` stores them, and `--instances N` and `--clients N` say how many there are.

use std::error::Error;
use std::ffi::OsString;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ensilo::{Database, Row};
use ensilo_islands::{
    Instances, IslandDatabase, IslandError, IslandTable, IslandsOptions, Partitioning, Placement, Plan,
    TableProgram, Topology, run_if_instance,
};

const ACCOUNTS: u32 = 10_000;
const BALANCE: i64 = 100;
const TIME: Duration = Duration::from_secs(2);

#[derive(Row)]
#[row(table = "account")]
struct Account {
    #[row(key)]
    id: u32,
    balance: i64,
}

fn main() -> ExitCode {
    // A process that was started for an instance is that instance.
    if let Some(ended) = run_if_instance::<TableProgram>(Database::options) {
        return ended;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)
    };
    let number = |name: &str| value(name).and_then(|text| text.to_str()?.parse().ok());
    let plan = Plan::new(
        &Topology::of_this_machine()?,
        Instances::Count(number("--instances").unwrap_or(2)),
        Placement::Spread,
    );
    let mut options = IslandsOptions::new(plan);
    if let Some(directory) = value("--directory") {
        options = options.directory(directory);
    }
    if arguments.iter().any(|argument| argument == "--processes") {
        let program = std::env::current_exe()?;
        options = options.processes(move || Command::new(&program));
    }
    let db = options.open_database()?;
    let accounts = db.table::<Account>(Partitioning::hash())?;
    open_accounts(&db, &accounts)?;
    let moved = move_money(&db, &accounts, number("--clients").unwrap_or(4))?;
    let all = db.transact(|tx| accounts.scan().collect(tx))?;
    let sum: i64 = all.iter().map(|account| account.balance).sum();
    println!("{:.0} transfers a second; {} accounts have {sum} in all", moved, all.len());
    assert_eq!(sum, i64::from(ACCOUNTS) * BALANCE, "no transfer makes or loses money");
    Ok(())
}

fn open_accounts(db: &IslandDatabase, accounts: &IslandTable<Account>) -> Result<(), IslandError> {
    let all: Vec<Account> = (0..ACCOUNTS).map(|id| Account { id, balance: BALANCE }).collect();
    db.transact(|tx| if accounts.get(tx, 0)?.is_some() { Ok(()) } else { accounts.insert_many(tx, &all) })
}

/// Returns how many transfers are made in a second.
fn move_money(
    db: &IslandDatabase,
    accounts: &IslandTable<Account>,
    clients: usize,
) -> Result<f64, IslandError> {
    let (moved, begin) = (AtomicU64::new(0), Instant::now());
    let client = |seed: usize| {
        let mut random = fastrand::Rng::with_seed(seed as u64);
        while begin.elapsed() < TIME {
            let (from, to) = (random.u32(..ACCOUNTS), random.u32(..ACCOUNTS));
            db.transact(|tx| {
                accounts.update(tx, from, |account| account.balance -= 1)?;
                accounts.update(tx, to, |account| account.balance += 1)
            })?;
            moved.fetch_add(1, Ordering::Relaxed);
        }
        Ok::<(), IslandError>(())
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..clients).map(|seed| scope.spawn(move || client(seed))).collect();
        clients
            .into_iter()
            .try_for_each(|client| client.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    Ok(moved.into_inner() as f64 / begin.elapsed().as_secs_f64())
}
