//! What many sessions cost: 5,000 of them, of which 50 have a transaction open. Prints the memory of one, and the throughput of two threads
//! beside all of them as a share of the throughput without.
//!
//! `cargo run --release -p ensilo --example sessions`

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ensilo::{Columns, Database, Result, Row, Session, Table};

const SESSIONS: usize = 5_000;
const OPEN: usize = 50;
const ROWS: u64 = 100_000;
const THREADS: u64 = 2;
const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_secs(2);

#[derive(Clone, Row)]
#[row(table = "account")]
struct Account {
    #[row(key)]
    id: u64,
    balance: i64,
}

#[derive(Columns)]
#[columns(of = Account)]
struct Balance {
    balance: i64,
}

fn main() -> Result<()> {
    let db = Database::in_memory()?;
    let accounts: Table<Account> = db.create_table()?;
    for first in (0..ROWS).step_by(1000) {
        db.transact(|tx| {
            (first..first + 1000)
                .try_for_each(|id| accounts.insert(tx, &Account { id, balance: 0 }).map(drop))
        })?;
    }
    throughput(&db, &accounts)?;
    let mut ratios = Vec::new();
    for round in 1..=ROUNDS {
        let alone = throughput(&db, &accounts)?;
        let resident_before = resident_bytes();
        let sessions = open_sessions(&db, &accounts)?;
        let bytes = resident_bytes().saturating_sub(resident_before) / SESSIONS as u64;
        let beside = throughput(&db, &accounts)?;
        drop(sessions);
        ratios.push(beside / alone);
        println!(
            "round {round}: {:.0} thousand transactions a second alone, {:.0} beside {SESSIONS} sessions ({:.3}); \
             {bytes} bytes a session",
            alone / 1e3,
            beside / 1e3,
            beside / alone,
        );
    }
    ratios.sort_by(f64::total_cmp);
    println!("median ratio {:.3} of {ROUNDS} rounds", ratios[ROUNDS / 2]);
    Ok(())
}

/// Sessions that have all worked once, of which some have a transaction open.
fn open_sessions(db: &Database, accounts: &Table<Account>) -> Result<Vec<Session>> {
    let mut sessions = Vec::with_capacity(SESSIONS);
    for number in 0..SESSIONS {
        let mut session = db.begin()?;
        // Beyond the rows of the other threads: an open transaction is to cost them nothing by conflicts.
        accounts.upsert(&mut session, &Account { id: ROWS + number as u64, balance: 1 })?;
        if number >= OPEN {
            session.commit()?;
        }
        sessions.push(session);
    }
    Ok(sessions)
}

/// Updates a second, by all threads together.
fn throughput(db: &Database, accounts: &Table<Account>) -> Result<f64> {
    let (is_over, total) = (AtomicBool::new(false), AtomicU64::new(0));
    let began = Instant::now();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn({
                    let (is_over, total) = (&is_over, &total);
                    move || -> Result<()> {
                        let (mut id, mut count) = (thread, 0);
                        while !is_over.load(Ordering::Relaxed) {
                            id = (id + 7_919) % ROWS;
                            db.transact(|tx| {
                                accounts.update(tx, id, |account: &mut Balance| account.balance += 1)
                            })?;
                            count += 1;
                        }
                        total.fetch_add(count, Ordering::Relaxed);
                        Ok(())
                    }
                })
            })
            .collect();
        thread::sleep(ROUND);
        is_over.store(true, Ordering::Relaxed);
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    Ok(total.into_inner() as f64 / began.elapsed().as_secs_f64())
}

/// The memory that the process has, as Linux says.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}
