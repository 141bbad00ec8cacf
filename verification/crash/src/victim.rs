//! A process that works on a real directory until it is killed, and the process that kills it.
//!
//! The victim tells its parent through a pipe what it is about to do and what was acknowledged as stored. The parent kills it at a random
//! time, opens the directory, and compares: for each worker everything that was acknowledged is there, and nothing but what it was about
//! to do. Money moves between the workers' accounts; the sum stays.
//!
//! # Layout
//! A line on the pipe is one message, written by one call: `begin <worker> <step>`, `stored <worker> <step>`, or `opened`.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use ensilo::{Columns, Database, Durability, Error, Options, Result, Row, Table, Transaction};

use crate::progress;
use crate::random::Random;

/// Workers of the victim.
pub const WORKERS: u32 = 3;

const ACCOUNTS: u32 = 50;
const BALANCE: i64 = 1000;

/// How far a worker is, and how much it has moved.
#[derive(Clone, Debug, PartialEq, Eq, Row)]
#[row(table = "counter")]
struct Counter {
    #[row(key)]
    worker: u32,
    step: u64,
    /// The sum of all steps, so that a step that is left out shows.
    sum: u64,
}

/// An account.
#[derive(Clone, Debug, PartialEq, Eq, Row)]
#[row(table = "account", index(name = "by_balance", columns(balance)))]
struct Account {
    #[row(key)]
    id: u32,
    balance: i64,
    filler: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Columns)]
#[columns(of = Account)]
struct Balance {
    balance: i64,
}

/// A row for each step; old ones are deleted.
#[derive(Clone, Debug, PartialEq, Eq, Row)]
#[row(table = "journal")]
struct Journal {
    #[row(key)]
    worker: u32,
    #[row(key)]
    step: u64,
    text: String,
}

/// So many rows of the journal a worker keeps.
const JOURNAL_LEN: u64 = 30;

fn journal_text(worker: u32, step: u64) -> String {
    format!("{worker} {step} ").repeat(1 + (step % 90) as usize)
}

fn options() -> Options {
    Database::options()
        .log_file_bytes(1 << 20)
        .checkpoint_log_bytes(2 << 20)
        .checkpoint_interval(Duration::from_millis(300))
        .recovery_threads(2)
        .pool_threads(1)
}

struct Tables {
    counters: Table<Counter>,
    accounts: Table<Account>,
    journal: Table<Journal>,
}

impl Tables {
    /// Opens them, and creates what is missing.
    fn open(db: &Database) -> Result<Tables> {
        let tables = Tables {
            counters: open_or_create(db)?,
            accounts: open_or_create(db)?,
            journal: open_or_create(db)?,
        };
        db.transact(|tx| {
            if tables.accounts.get(tx, 0)?.is_some() {
                return Ok(());
            }
            for id in 0..ACCOUNTS {
                let filler = "f".repeat(id as usize);
                tables.accounts.insert(tx, &Account { id, balance: BALANCE, filler })?;
            }
            (0..WORKERS).try_for_each(|worker| {
                tables.counters.insert(tx, &Counter { worker, step: 0, sum: 0 }).map(|_| ())
            })
        })?;
        Ok(tables)
    }
}

fn open_or_create<T: Row>(db: &Database) -> Result<Table<T>> {
    match db.create_table() {
        Err(Error::TableExists(_)) => db.open_table(),
        created => created,
    }
}

/// Runs the victim: it works until it is killed. With `answers_early` it acknowledges what is only visible as stored.
///
/// # Errors
/// Those of the database.
pub fn work(directory: &Path, seed: u64, answers_early: bool) -> Result<()> {
    let db = options().open(directory)?;
    let tables = Tables::open(&db)?;
    let pipe = Mutex::new(io::stdout());
    say(&pipe, "opened");
    thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let (db, tables, pipe) = (&db, &tables, &pipe);
                scope.spawn(move || worker_loop(db, tables, pipe, worker, seed, answers_early))
            })
            .collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Sends one message. A process that cannot send it any more ends.
fn say(pipe: &Mutex<io::Stdout>, message: &str) {
    let mut pipe = pipe.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if writeln!(pipe, "{message}").and_then(|()| pipe.flush()).is_err() {
        std::process::exit(0);
    }
}

fn worker_loop(
    db: &Database,
    tables: &Tables,
    pipe: &Mutex<io::Stdout>,
    worker: u32,
    seed: u64,
    answers_early: bool,
) -> Result<()> {
    let mut random = Random::new(seed ^ u64::from(worker) << 40);
    let counter = db.transact(|tx| tables.counters.get(tx, worker))?;
    let mut step = counter.map_or(0, |counter| counter.step);
    loop {
        step += 1;
        say(pipe, &format!("begin {worker} {step}"));
        let level = if answers_early { Durability::Visible } else { Durability::Stored };
        let transfer = (random.small(ACCOUNTS), random.small(ACCOUNTS), random.below(100) as i64);
        db.request().durability(level).transact(|tx| one_step(tx, tables, worker, step, transfer))?;
        say(pipe, &format!("stored {worker} {step}"));
    }
}

fn one_step(
    tx: &mut Transaction<'_>,
    tables: &Tables,
    worker: u32,
    step: u64,
    (from, to, amount): (u32, u32, i64),
) -> Result<()> {
    let Some(counter) = tables.counters.get(tx, worker)? else { return Err(Error::rollback("no counter")) };
    tables.counters.replace(tx, &Counter { worker, step, sum: counter.sum + step })?;
    tables.accounts.update(tx, from, |row: &mut Balance| row.balance -= amount)?;
    tables.accounts.update(tx, to, |row: &mut Balance| row.balance += amount)?;
    tables.journal.insert(tx, &Journal { worker, step, text: journal_text(worker, step) })?;
    if let Some(old) = step.checked_sub(JOURNAL_LEN) {
        tables.journal.delete(tx, (worker, old))?;
    }
    Ok(())
}

/// What a victim has said.
#[derive(Clone, Debug, Default)]
struct Said {
    is_opened: bool,
    begun: [u64; WORKERS as usize],
    stored: [u64; WORKERS as usize],
}

impl Said {
    fn hear(&mut self, message: &str) {
        let mut words = message.split(' ');
        let kind = words.next();
        let worker = words
            .next()
            .and_then(|word| word.parse::<usize>().ok())
            .filter(|&worker| worker < WORKERS as usize);
        let step = words.next().and_then(|word| word.parse::<u64>().ok());
        match (kind, worker, step) {
            (Some("begin"), Some(worker), Some(step)) => self.begun[worker] = step,
            (Some("stored"), Some(worker), Some(step)) => self.stored[worker] = step,
            (Some("opened"), ..) => self.is_opened = true,
            // The last line may be cut short.
            _ => {}
        }
    }
}

/// The parent.
#[derive(Debug)]
pub struct Killer {
    program: PathBuf,
    directory: PathBuf,
    random: Random,
    answers_early: bool,
    said: Said,
}

/// What the cycles have come to.
#[derive(Debug, Default, Clone, Copy)]
pub struct Killed {
    /// Victims killed.
    pub cycles: u64,
    /// Of these, while they were opening the database.
    pub while_opening: u64,
    /// Transactions that were acknowledged, and were there.
    pub acknowledged: u64,
    /// Transactions that were there although the victim was killed before it saw their acknowledgement.
    pub unacknowledged: u64,
}

impl Killer {
    /// Kills `program`, which calls [`work`], on a database in `directory`.
    #[must_use]
    pub fn new(program: &Path, directory: &Path, seed: u64, answers_early: bool) -> Killer {
        let (program, directory) = (program.to_path_buf(), directory.to_path_buf());
        Killer { program, directory, random: Random::new(seed), answers_early, said: Said::default() }
    }

    /// Lets victims work and kills them, so many times.
    ///
    /// # Errors
    /// What is wrong with a recovered database.
    pub fn run(&mut self, cycles: u64) -> Result<Killed, String> {
        let mut killed = Killed::default();
        let bar = progress::bar("killed processes", cycles);
        for cycle in 0..cycles {
            self.cycle(&mut killed).map_err(|what| format!("cycle {cycle}: {what}"))?;
            bar.inc(1);
        }
        Ok(killed)
    }

    fn cycle(&mut self, killed: &mut Killed) -> Result<(), String> {
        let mut victim = self.start().map_err(|error| format!("cannot start: {error}"))?;
        // Some die while they open the database, most while they work.
        let is_early = self.random.percent(25);
        let wait = Duration::from_micros(self.random.below(if is_early { 15_000 } else { 250_000 }));
        let said = self.listen(&mut victim, is_early, wait)?;
        killed.cycles += 1;
        killed.while_opening += u64::from(!said.is_opened);
        self.said = said;
        self.check(killed)
    }

    fn start(&mut self) -> io::Result<Child> {
        let mut command = Command::new(&self.program);
        command.arg(&self.directory).arg(self.random.draw().to_string());
        if self.answers_early {
            command.arg("--early");
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()
    }

    /// Hears what the victim says, kills it when it is time, and hears the rest.
    fn listen(&self, victim: &mut Child, is_early: bool, wait: Duration) -> Result<Said, String> {
        let pipe = victim.stdout.take().ok_or("no pipe")?;
        let said = Mutex::new(Said { is_opened: false, ..self.said.clone() });
        let is_opened = || said.lock().is_ok_and(|said| said.is_opened);
        thread::scope(|scope| {
            let listener = scope.spawn(|| {
                for line in BufReader::new(pipe).lines().map_while(io::Result::ok) {
                    said.lock().map(|mut said| said.hear(&line)).unwrap_or_default();
                }
            });
            let started = Instant::now();
            while !is_early && !is_opened() && !listener.is_finished() && started.elapsed().as_secs() < 60 {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(wait);
            let ended = victim.try_wait();
            let killed = victim.kill().and_then(|()| victim.wait());
            match (ended, killed) {
                (Ok(None), Ok(_)) => Ok(()),
                (ended, killed) => Err(format!("the victim ended by itself: {ended:?}, {killed:?}")),
            }
        })?;
        said.into_inner().map_err(|error| error.to_string())
    }

    /// Opens the database and compares it with what the victim has said.
    fn check(&mut self, killed: &mut Killed) -> Result<(), String> {
        let db = options().open(&self.directory).map_err(|error| format!("cannot be opened: {error}"))?;
        let tables = Tables::open(&db).map_err(|error| error.to_string())?;
        let steps = check_rows(&db, &tables).map_err(|error| error.to_string())?;
        for (worker, &step) in steps.iter().enumerate() {
            let (stored, begun) = (self.said.stored[worker], self.said.begun[worker]);
            if step < stored || step > begun.max(stored) {
                return Err(format!(
                    "worker {worker} is at step {step}; {stored} was acknowledged, {begun} begun"
                ));
            }
            killed.unacknowledged += step - stored;
            // From here on it counts as acknowledged: it was read.
            self.said.stored[worker] = step;
        }
        killed.acknowledged = self.said.stored.iter().sum();
        Ok(())
    }
}

/// Checks what must hold at every moment; returns the workers' steps.
fn check_rows(db: &Database, tables: &Tables) -> Result<Vec<u64>> {
    let wrong = |what: String| Err(Error::rollback(what));
    let (counters, accounts, journal) = db.transact(|tx| {
        Ok((
            tables.counters.scan().rows(tx)?,
            tables.accounts.scan().rows(tx)?,
            tables.journal.scan().rows(tx)?,
        ))
    })?;
    let (counters, accounts, journal): (Vec<Counter>, Vec<Account>, Vec<Journal>) =
        (counters, accounts, journal);
    let sum: i64 = accounts.iter().map(|account| account.balance).sum();
    if accounts.len() != ACCOUNTS as usize || sum != BALANCE * i64::from(ACCOUNTS) {
        return wrong(format!("{} accounts with {sum} together", accounts.len()));
    }
    if let Some(account) = accounts.iter().find(|account| account.filler != "f".repeat(account.id as usize)) {
        return wrong(format!("a wrong account: {account:?}"));
    }
    let by_balance = tables.accounts.index::<i64>("by_balance")?;
    let keys = db.transact(|tx| by_balance.scan().primary_keys(tx))?;
    let mut expected: Vec<_> = accounts.iter().map(|account| (account.balance, account.id)).collect();
    expected.sort_unstable();
    if keys != expected.iter().map(|&(_, id)| id).collect::<Vec<_>>() {
        return wrong("the index disagrees with its table".to_owned());
    }
    if counters.len() != WORKERS as usize {
        return wrong(format!("{} counters", counters.len()));
    }
    for counter in &counters {
        let (step, worker) = (counter.step, counter.worker);
        if counter.sum != step * (step + 1) / 2 {
            return wrong(format!("steps are missing: {counter:?}"));
        }
        let rows: Vec<_> = journal.iter().filter(|row| row.worker == worker).collect();
        let first = (step + 1).saturating_sub(JOURNAL_LEN).max(1);
        let is_right = rows.iter().map(|row| row.step).eq(first..=step)
            && rows.iter().all(|row| row.text == journal_text(worker, row.step));
        if !is_right {
            let steps: Vec<_> = rows.iter().map(|row| row.step).collect();
            return wrong(format!("journal of worker {worker} at step {step}: {steps:?}"));
        }
    }
    Ok(counters.into_iter().map(|counter| counter.step).collect())
}

/// Runs the main function of the victim: `DIRECTORY SEED [--early]`.
#[must_use]
pub fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().collect();
    let [_, directory, seed, rest @ ..] = &arguments[..] else {
        eprintln!("arguments: DIRECTORY SEED [--early]");
        return ExitCode::FAILURE;
    };
    let seed = seed.parse().unwrap_or(0);
    match work(Path::new(directory), seed, rest.iter().any(|argument| argument == "--early")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
