//! Numbers that many write at once: one counter, and transfers among ten accounts, by [`Table::update`] and by [`Table::add`], with one thread
//! and with several.
//!
//! ```sh
//! cargo run --release -p ensilo-bench --example counters -- 2 5 500
//! ```
//!
//! The arguments are the number of threads, of rounds, and the milliseconds that each way has in a round. A line for each way: millions of transactions
//! a second by one thread and by all, medians; how much all do beside one; and how many attempts of all were undone for each that committed.
//! Afterwards the numbers must be those that were committed.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ensilo::{Columns, Database, Error, Options, Result, Row, Table, Transaction};
use ensilo_bench::random::Random;

const ACCOUNTS: u64 = 10;

#[derive(Debug, Row)]
#[row(table = "account")]
struct Account {
    #[row(key)]
    id: u64,
    balance: i64,
}

#[derive(Debug, Columns)]
#[columns(of = Account)]
struct Balance {
    balance: i64,
}

/// One transaction.
type Work = fn(&Table<Account>, &mut Transaction<'_>, &mut Random) -> Result<()>;

const WAYS: [(&str, Work); 4] = [
    ("one counter, update", |accounts, tx, _| {
        accounts.update(tx, 0, |counter: &mut Balance| counter.balance += 1)
    }),
    ("one counter, add", |accounts, tx, _| accounts.add(tx, 0, &Balance { balance: 1 })),
    ("ten accounts, update", |accounts, tx, random| {
        let (from, to) = pair(random);
        accounts.update(tx, from, |account: &mut Balance| account.balance -= 1)?;
        accounts.update(tx, to, |account: &mut Balance| account.balance += 1)
    }),
    ("ten accounts, add", |accounts, tx, random| {
        let (from, to) = pair(random);
        accounts.add(tx, from, &Balance { balance: -1 })?;
        accounts.add(tx, to, &Balance { balance: 1 })
    }),
];

fn pair(random: &mut Random) -> (u64, u64) {
    let from = random.below(ACCOUNTS);
    (from, (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS)
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| match arguments.get(at) {
        Some(text) => text.parse().map_err(|_| Error::rollback(format!("{text} is no number"))),
        None => Ok(default),
    };
    let (threads, rounds) = (number(0, 2)?.max(1), number(1, 5)?.max(1));
    let time = Duration::from_millis(number(2, 500)?);
    let mut rates = [(); WAYS.len()].map(|()| [Vec::new(), Vec::new(), Vec::new()]);
    for _ in 0..rounds {
        for ((_, work), [one, all, undone]) in WAYS.iter().zip(&mut rates) {
            one.push(run(1, time, *work)?.0);
            let (rate, undone_each) = run(threads, time, *work)?;
            all.push(rate);
            undone.push(undone_each);
        }
    }
    println!(
        "{:24} {:>10} {:>12} {:>8} {:>8}",
        "",
        "1 thread",
        format!("{threads} threads"),
        "ratio",
        "undone"
    );
    for ((name, _), rates) in WAYS.iter().zip(&mut rates) {
        let [one, all, undone] = rates.each_mut().map(|rates| median(rates));
        println!("{name:24} {:8.2} M {:10.2} M {:8.2} {undone:8.3}", one / 1e6, all / 1e6, all / one);
    }
    Ok(())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns how many transactions a second `threads` do, and how many attempts were undone for each.
fn run(threads: u64, time: Duration, work: Work) -> Result<(f64, f64)> {
    let db = Options::default().retries(u32::MAX).in_memory()?;
    let accounts: Table<Account> = db.create_table()?;
    db.transact(|tx| {
        (0..ACCOUNTS).try_for_each(|id| accounts.insert(tx, &Account { id, balance: 0 }).map(|_| ()))
    })?;
    let (is_over, barrier) = (AtomicBool::new(false), Barrier::new(threads as usize + 1));
    let aborts_before = db.statistics()?.aborts_total();
    let (committed, elapsed) = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|seed| {
                let (db, accounts, is_over, barrier) = (&db, &accounts, &is_over, &barrier);
                scope.spawn(move || work_until(db, accounts, work, seed, is_over, barrier))
            })
            .collect();
        barrier.wait();
        let begin = Instant::now();
        thread::sleep(time);
        is_over.store(true, Ordering::Relaxed);
        let committed = workers.into_iter().map(|worker| worker.join().unwrap_or(Err(Error::Closed)));
        let committed = committed.sum::<Result<i64>>();
        committed.map(|committed| (committed, begin.elapsed()))
    })?;
    let undone = db.statistics()?.aborts_total() - aborts_before;
    let balances = db.read(|tx| accounts.scan().columns::<Balance>().rows(tx))?;
    let sum: i64 = balances.iter().map(|account| account.balance).sum();
    if sum != 0 && sum != committed {
        return Err(Error::rollback(format!("{committed} transactions have made {sum}")));
    }
    Ok((committed as f64 / elapsed.as_secs_f64(), undone as f64 / committed as f64))
}

fn work_until(
    db: &Database,
    accounts: &Table<Account>,
    work: Work,
    seed: u64,
    is_over: &AtomicBool,
    barrier: &Barrier,
) -> Result<i64> {
    let mut random = Random::new(seed);
    let mut committed = 0;
    barrier.wait();
    while !is_over.load(Ordering::Relaxed) {
        db.transact(|tx| work(accounts, tx, &mut random))?;
        committed += 1;
    }
    Ok(committed)
}
