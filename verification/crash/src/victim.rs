//! A process that works on a real directory until it is killed, and the process that kills it.
//!
//! The victim tells its parent through a pipe what it is about to do and what was acknowledged as stored. The parent kills it at a random
//! time, opens the directory, and compares: for each worker everything that was acknowledged is there, and nothing but what it was about
//! to do. Money moves between the workers' accounts; the sum stays. The database is over any engine, and each process may take another
//! one.
//!
//! # Layout
//! A line on the pipe is one message, written by one call: `begin <worker> <step>`, `stored <worker> <step>`, or `opened`.

mod killer;
mod tables;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::thread;

use ensilo::ermia::{Ermia, SnapshotIsolation};
use ensilo::generic::{Database, Transaction};
use ensilo::two_phase_locking::TwoPhaseLocking;
use ensilo::{Durability, Error, Result, Silo};
use ensilo_disk::RealDisk;

use crate::engines::TestedEngine;
use crate::random::Random;
pub use killer::{Killed, Killer};
use tables::{
    ACCOUNTS, Balance, Counter, JOURNAL_LEN, Journal, Tables, WORKERS, check_rows, journal_text, options,
};

/// Runs the victim: it works until it is killed. With `answers_early` it acknowledges what is only visible as stored.
///
/// # Errors
/// Those of the database.
pub fn work<E: TestedEngine>(directory: &Path, seed: u64, answers_early: bool) -> Result<()> {
    let db: Database<E> = options().open_with(Arc::new(RealDisk), directory)?;
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

fn worker_loop<E: TestedEngine>(
    db: &Database<E>,
    tables: &Tables<E>,
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

fn one_step<E: TestedEngine>(
    tx: &mut Transaction<'_, E>,
    tables: &Tables<E>,
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

/// A victim that works on a database over some engine, as its killer knows it.
#[derive(Clone, Copy, Debug)]
pub struct Victim {
    name: &'static str,
    work: fn(&Path, u64, bool) -> Result<()>,
    recover: fn(&Path) -> Result<Vec<u64>>,
    read_beside: fn(&Path) -> Result<Vec<u64>>,
    answers_early: bool,
}

impl Victim {
    /// Returns the victim over this engine.
    #[must_use]
    pub fn of<E: TestedEngine>() -> Victim {
        Victim {
            name: E::NAME,
            work: work::<E>,
            recover: recover::<E>,
            read_beside: read_beside::<E>,
            answers_early: false,
        }
    }

    /// Returns the same, which acknowledges what is only visible.
    #[must_use]
    pub fn answering_early(self) -> Victim {
        Victim { answers_early: true, ..self }
    }

    /// Returns the name of the engine.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// Opens what a victim has left, checks what must hold at every moment, and returns how far each worker was.
fn recover<E: TestedEngine>(directory: &Path) -> Result<Vec<u64>> {
    let db: Database<E> = options().open_with(Arc::new(RealDisk), directory)?;
    check_rows(&db, &Tables::open(&db)?)
}

/// Reads what a victim writes while it does, checks what must hold at every moment, and returns how far each worker was.
fn read_beside<E: TestedEngine>(directory: &Path) -> Result<Vec<u64>> {
    let options = options().read_only(true).beside_writer(true);
    let db: Database<E> = options.open_with(Arc::new(RealDisk), directory)?;
    check_rows(&db, &Tables::existing(&db)?)
}

/// Runs the main function of the victim: `ENGINE DIRECTORY SEED [--early]`.
#[must_use]
pub fn main() -> ExitCode {
    let victims = [
        Victim::of::<Silo>(),
        Victim::of::<Ermia>(),
        Victim::of::<Ermia<SnapshotIsolation>>(),
        Victim::of::<TwoPhaseLocking>(),
    ];
    let arguments: Vec<_> = std::env::args().collect();
    let [_, engine, directory, seed, rest @ ..] = &arguments[..] else {
        eprintln!("arguments: ENGINE DIRECTORY SEED [--early]");
        return ExitCode::FAILURE;
    };
    let Some(victim) = victims.iter().find(|victim| victim.name == engine) else {
        eprintln!("there is no engine {engine}");
        return ExitCode::FAILURE;
    };
    let seed = seed.parse().unwrap_or(0);
    match (victim.work)(Path::new(directory), seed, rest.iter().any(|argument| argument == "--early")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
