//! Crashing a recorded run everywhere, and recovering.
//!
//! # Source
//! What is expected of a recovery follows SiloR (OSDI 2014) §3 and §5: what was acknowledged is there, and epochs are whole.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use ensilo::Engine;
use ensilo::generic::Database;
use ensilo_disk::Disk;
use ensilo_test_disk::{Operation, Recorder, SimulatedDisk, Trace};
use indicatif::ProgressBar;

use crate::environment::is_long;
use crate::further_work::FurtherWork;
use crate::progress;
use crate::random::Random;
use crate::setup::{DIRECTORY, Setup};

/// What was acknowledged as stored, by worker: the number of the last transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acknowledged {
    numbers: BTreeMap<u32, u64>,
}

impl Acknowledged {
    /// Returns the mark that stands in a trace for an acknowledgement.
    #[must_use]
    pub fn mark(worker: u32, number: u64) -> u64 {
        u64::from(worker) << 48 | number
    }

    /// Takes a mark.
    pub fn take(&mut self, mark: u64) {
        self.raise((mark >> 48) as u32, mark & ((1 << 48) - 1));
    }

    /// Returns all that a trace says.
    #[must_use]
    pub fn in_trace(trace: &Trace) -> Acknowledged {
        let mut acknowledged = Acknowledged::default();
        for operation in trace.operations() {
            if let Operation::Note(mark) = operation {
                acknowledged.take(*mark);
            }
        }
        acknowledged
    }

    /// Everything of a worker up to `number` was acknowledged.
    pub fn raise(&mut self, worker: u32, number: u64) {
        let last = self.numbers.entry(worker).or_default();
        *last = number.max(*last);
    }

    /// Returns the last number of a worker; 0 before the first.
    #[must_use]
    pub fn of(&self, worker: u32) -> u64 {
        self.numbers.get(&worker).copied().unwrap_or(0)
    }
}

/// Knows what a recovered database may hold.
pub trait Oracle<E: Engine>: Sync {
    /// What was found, to be compared with what a later recovery finds.
    type Seen: PartialEq + Debug + Send;

    /// Compares the database with what is expected.
    ///
    /// # Errors
    /// What is wrong.
    fn check(&self, db: &Database<E>, acknowledged: &Acknowledged) -> Result<Self::Seen, String>;
}

/// How thoroughly a trace is explored.
#[derive(Clone, Copy, Debug)]
pub struct Depth {
    /// Every so many operations there is a crash.
    pub every: usize,
    /// The first of them.
    pub offset: usize,
    /// Power failures at each crash, each with other losses; the end of the process alone comes on top.
    pub tears: u64,
    /// Every so many crashes the recovery is crashed, too.
    pub again_every: usize,
    /// How often it is crashed then.
    pub again: usize,
    /// Threads.
    pub threads: usize,
}

impl Depth {
    /// As many crashes as fit a run in passing, or all of them if the environment variable `ENSILO_CRASH_LONG` is set.
    #[must_use]
    pub fn of(trace: &Trace, crashes: usize, seed: u64) -> Depth {
        if is_long() {
            return Depth { every: 1, offset: 0, tears: 8, again_every: 1, again: 8, threads: 2 };
        }
        let every = (trace.len() / crashes.max(1)).max(1);
        let offset = Random::new(seed).below(every as u64) as usize;
        Depth { every, offset, tears: 2, again_every: 4, again: 4, threads: 2 }
    }
}

/// What an exploration has done.
#[derive(Debug, Default)]
pub struct Explored {
    /// Recoveries from a crash.
    pub recoveries: u64,
    /// Recoveries from a crash of a recovery.
    pub second_recoveries: u64,
    /// How long that took.
    pub elapsed: Duration,
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explored { recoveries, second_recoveries, elapsed } = self;
        let per_minute = (recoveries + second_recoveries) as f64 * 60.0 / elapsed.as_secs_f64();
        write!(f, "{recoveries} recoveries, {second_recoveries} second ones, {per_minute:.0} a minute")
    }
}

/// What the threads of an exploration share.
struct Exploration {
    bar: ProgressBar,
    next: AtomicUsize,
    is_over: AtomicBool,
    recoveries: AtomicU64,
    second_recoveries: AtomicU64,
}

impl Exploration {
    fn new(bar: ProgressBar) -> Exploration {
        let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
        Exploration {
            bar,
            next,
            is_over,
            recoveries: AtomicU64::new(0),
            second_recoveries: AtomicU64::new(0),
        }
    }
}

/// A run that was recorded.
#[derive(Debug)]
pub struct Recorded<'t> {
    /// Where the numbers came from, for the message of a failure.
    pub seed: u64,
    /// What was done to the disk.
    pub trace: &'t Trace,
    /// What was acknowledged before the trace began.
    pub acknowledged: Acknowledged,
    /// How the database is opened.
    pub setup: Setup,
}

impl Recorded<'_> {
    /// Crashes the run everywhere.
    ///
    /// # Errors
    /// The first thing that a recovered database has wrong.
    pub fn explore<E: Engine, O: Oracle<E>>(&self, oracle: &O, depth: &Depth) -> Result<Explored, String> {
        let start = Instant::now();
        let crashes = (self.trace.len() + 1).saturating_sub(depth.offset).div_ceil(depth.every);
        let shared = Exploration::new(progress::bar(&format!("seed {}", self.seed), crashes as u64));
        let walks: Vec<_> = thread::scope(|scope| {
            let walk = || {
                let walked = self.walk(oracle, depth, &shared);
                shared.is_over.fetch_or(walked.is_err(), Ordering::Relaxed);
                walked
            };
            let walks: Vec<_> = (0..depth.threads).map(|_| scope.spawn(walk)).collect();
            walks.into_iter().map(join).collect()
        });
        walks.into_iter().collect::<Result<Vec<()>, String>>()?;
        shared.bar.finish_and_clear();
        Ok(Explored {
            recoveries: shared.recoveries.into_inner(),
            second_recoveries: shared.second_recoveries.into_inner(),
            elapsed: start.elapsed(),
        })
    }

    /// One thread's walk: it crashes at the positions that it draws.
    fn walk<E: Engine, O: Oracle<E>>(
        &self,
        oracle: &O,
        depth: &Depth,
        shared: &Exploration,
    ) -> Result<(), String> {
        let mut cursor = self.trace.cursor();
        let mut acknowledged = self.acknowledged.clone();
        loop {
            let number = shared.next.fetch_add(1, Ordering::Relaxed);
            let position = depth.offset + number * depth.every;
            if position > self.trace.len() || shared.is_over.load(Ordering::Relaxed) {
                return Ok(());
            }
            while cursor.position() < position {
                if let Some(Operation::Note(mark)) = cursor.step() {
                    acknowledged.take(*mark);
                }
            }
            for tear in 0..=depth.tears {
                let seed = self.seed ^ (position as u64) << 20 ^ tear;
                let disk = if tear == 0 { cursor.disk().kill() } else { cursor.disk().crash(seed) };
                let crashed = Crashed { setup: self.setup, acknowledged: &acknowledged, seed };
                let done = match (number as u64 + tear).is_multiple_of(depth.again_every as u64) {
                    true => crashed.recover_and_crash(oracle, disk, depth.again, &shared.second_recoveries),
                    false => crashed.recover(oracle, disk).map(|_| ()),
                };
                shared.recoveries.fetch_add(1, Ordering::Relaxed);
                done.map_err(|what| self.failure(position, tear, seed, &what))?;
            }
            shared.bar.inc(1);
        }
    }

    fn failure(&self, position: usize, tear: u64, seed: u64, what: &str) -> String {
        let how =
            if tear == 0 { "the process ends".to_owned() } else { format!("the power fails, tear {seed}") };
        let (len, before) = (self.trace.len(), self.around(position));
        format!("seed {}: {how} after operation {position} of {len}: {what}\n{before}", self.seed)
    }

    /// Returns the operations before a position, in few words.
    #[must_use]
    pub fn around(&self, position: usize) -> String {
        let start = position.saturating_sub(30);
        let lines = self.trace.operations()[start..position].iter().enumerate();
        let lines = lines.map(|(at, operation)| format!("  {}: {}", start + at, in_short(operation)));
        lines.collect::<Vec<_>>().join("\n")
    }
}

fn in_short(operation: &Operation) -> String {
    match operation {
        Operation::Write { file, offset, bytes } => {
            format!("write {} bytes at {offset} of file {}", bytes.len(), file.0)
        }
        Operation::Note(mark) => format!("acknowledged {} of worker {}", mark & ((1 << 48) - 1), mark >> 48),
        other => format!("{other:?}"),
    }
}

/// One crash of a run.
struct Crashed<'a> {
    setup: Setup,
    acknowledged: &'a Acknowledged,
    seed: u64,
}

impl Crashed<'_> {
    /// Recovers and checks.
    fn recover<E: Engine, O: Oracle<E>>(&self, oracle: &O, disk: SimulatedDisk) -> Result<O::Seen, String> {
        let db = self.setup.open(Arc::new(disk)).map_err(refused)?;
        oracle.check(&db, self.acknowledged)
    }

    /// Recovers, goes on, and crashes what was done so far at some places, to recover again.
    fn recover_and_crash<E: Engine, O: Oracle<E>>(
        &self,
        oracle: &O,
        disk: SimulatedDisk,
        again: usize,
        count: &AtomicU64,
    ) -> Result<(), String> {
        let recorder = Arc::new(Recorder::over(Arc::new(disk)));
        let db = self.setup.open::<E>(Arc::clone(&recorder) as _).map_err(refused)?;
        let opened = recorder.position();
        let seen = oracle.check(&db, self.acknowledged)?;
        let work =
            FurtherWork::run(&db, self.seed).map_err(|error| format!("no work after a recovery: {error}"))?;
        let worked = recorder.position();
        drop(db);
        let trace = recorder.trace();
        verify(&*recorder)?;
        let mut random = Random::new(self.seed);
        for time in 0..again {
            let position = match time {
                0 => opened,
                1 => worked,
                2 => trace.len(),
                _ => random.below(trace.len() as u64 + 1) as usize,
            };
            let tear = random.draw();
            let at = |what: String| {
                format!("crashed again after operation {position} of the recovery, tear {tear}: {what}")
            };
            let disk = match random.percent(20) {
                true => trace.disk_after(position).kill(),
                false => trace.disk_after(position).crash(tear),
            };
            let db = self.setup.open::<E>(Arc::new(disk)).map_err(refused).map_err(at)?;
            let seen_again = oracle.check(&db, self.acknowledged).map_err(at)?;
            count.fetch_add(1, Ordering::Relaxed);
            if position >= opened && seen_again != seen {
                return Err(at(format!("{seen:?} was recovered before, now {seen_again:?}")));
            }
            if position >= worked {
                work.check(&db).map_err(at)?;
            }
        }
        Ok(())
    }
}

/// All files that count are whole.
fn verify(disk: &dyn Disk) -> Result<(), String> {
    let mut found = Vec::new();
    let verified =
        ensilo_log::verify(disk, Path::new(DIRECTORY), &mut |damage| found.push(damage.to_string()));
    match verified {
        Ok(_) if found.is_empty() => Ok(()),
        Ok(_) => Err(format!("damaged: {}", found.join("; "))),
        Err(error) => Err(format!("the files cannot be verified: {error}")),
    }
}

fn refused(error: ensilo::Error) -> String {
    format!("the database cannot be opened: {error}")
}

fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
