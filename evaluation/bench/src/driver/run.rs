//! One measured run: warm up, measure, stop; by workers that share nothing but the word that says the phase.
//!
//! ```text
//! preparing -> warm-up -> measured -> stop
//!                                  \-> afterwards -> (crash)      the workers go on while their results are taken
//! ```
//! A worker does not wait for the log of its database, if there is one: it looks after every transaction which of the earlier ones are
//! stored by now (`pending`), and waits for the rest at the end.
//!
//! # Memory ordering
//! The phase and the live counters are Relaxed: a worker that sees a phase a transaction late counts that transaction
//! to the other side, and nothing else is published through them. What the workers counted comes back by joining
//! their threads, or through a channel.

use std::fs::File;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use ensilo::Engine;
use serde::{Deserialize, Serialize};

use super::acknowledged::Acknowledged;
use super::clock::{Clock, Stamp};
use super::durability::DurabilityCounts;
use super::failure::Failure;
use super::interrupt::Interrupt;
use super::measurements::{Aborts, Measurements};
use super::pending::Pending;
use super::pin;
use super::processor_time::processor_time;
use super::view::View;
use super::watch::{Interval, LiveCounts, SecondCounts, Watch};
use super::workload::{Memory, Outcome, Session, Workload};
use crate::database;

/// How to run a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunOptions {
    /// Threads that run transactions.
    pub workers: usize,
    /// Time before anything is counted.
    pub warmup: Duration,
    /// Time that is counted.
    pub measured: Duration,
    /// Whether each worker is bound to a processor of its own, as long as there are enough.
    pub pin: bool,
}

impl RunOptions {
    /// Returns how many bytes of memory rows and indexes may take, roughly, where so many are loaded; `adding_share` is how much of what the
    /// workers do adds rows, of 1.
    pub fn memory_bytes(&self, loaded_bytes: u64, adding_share: f64) -> u64 {
        /// What a worker adds in a second if it does nothing else, and what it needs to begin with.
        const ADDED_BYTES: f64 = 128.0 * MIB;
        const WORKER_BYTES: f64 = 8.0 * MIB;
        const MIB: f64 = 1_048_576.0;
        let seconds = (self.warmup + self.measured).as_secs_f64();
        let added = (WORKER_BYTES + ADDED_BYTES * adding_share * seconds) * self.workers as f64;
        loaded_bytes.saturating_add(added as u64)
    }
}

/// What a run measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunResult {
    /// Seconds that were counted; fewer than asked for after an interrupt.
    pub seconds: f64,
    /// Seconds of processors that all threads of the program took in this time together; 0 where the system cannot say.
    pub processor_seconds: f64,
    /// What all workers counted.
    pub measurements: Measurements,
    /// The measured time in tenths of a second.
    pub timeline: Vec<Interval>,
    /// Committed and aborted by second.
    pub per_second: Vec<SecondCounts>,
    /// Memory of the database when the measured time began.
    pub memory_before: Memory,
    /// Memory of the database when it ended.
    pub memory_after: Memory,
    /// What log and checkpoints did in the measured time; `None` for a database in memory.
    pub durability: Option<DurabilityCounts>,
    /// Whether the user ended the run early.
    pub interrupted: bool,
}

/// How a run ends that is to crash while its workers are at work.
pub(crate) struct Crash<'a> {
    /// Where the workers note down what was acknowledged as stored.
    pub(crate) acknowledged: &'a File,
    /// Is given the results, and ends the process.
    pub(crate) end: &'a dyn Fn(&RunResult) -> Failure,
}

const PREPARING: u8 = 0;
const WARMUP: u8 = 1;
const MEASURED: u8 = 2;
const AFTERWARDS: u8 = 3;
const STOP: u8 = 4;

/// What the threads of a run share.
struct SharedRun<'a> {
    phase: AtomicU8,
    live: Vec<LiveCounts>,
    /// Held by the coordinator until every worker is ready.
    start: Mutex<()>,
    processors: Vec<usize>,
    clock: Clock,
    acknowledged: Option<&'a File>,
}

/// Runs `workload` once. `name` is what the view calls the measured phase.
///
/// # Errors
/// The first failure of a session.
///
/// # Panics
/// If a worker panics.
pub fn run<W: Workload>(
    workload: &W,
    options: &RunOptions,
    name: &str,
    view: &mut View,
    interrupt: &Interrupt,
) -> Result<RunResult, Failure> {
    run_to_end(workload, options, name, view, interrupt, None)
}

/// Runs `workload` until `crash` ends the process.
///
/// # Errors
/// The first failure of a session, or why the process could not be ended.
///
/// # Panics
/// If a worker panics.
pub(crate) fn run_until_crash<W: Workload>(
    workload: &W,
    options: &RunOptions,
    view: &mut View,
    interrupt: &Interrupt,
    crash: &Crash<'_>,
) -> Failure {
    match run_to_end(workload, options, "run until the crash", view, interrupt, Some(crash)) {
        Ok(_) => Failure::Broken("a run that was to crash came to its end".to_owned()),
        Err(failure) => failure,
    }
}

fn run_to_end<W: Workload>(
    workload: &W,
    options: &RunOptions,
    name: &str,
    view: &mut View,
    interrupt: &Interrupt,
    crash: Option<&Crash<'_>>,
) -> Result<RunResult, Failure> {
    let shared = SharedRun {
        phase: AtomicU8::new(PREPARING),
        live: (0..options.workers).map(|_| LiveCounts::default()).collect(),
        start: Mutex::new(()),
        processors: processors_for(options),
        clock: Clock::new(),
        acknowledged: crash.map(|crash| crash.acknowledged),
    };
    thread::scope(|scope| {
        let shared = &shared;
        let start = shared.start.lock().unwrap_or_else(PoisonError::into_inner);
        let (preparing, all_ready) = channel();
        let (afterwards, results) = channel();
        let start_worker = |worker| {
            let (preparing, afterwards) = (preparing.clone(), afterwards.clone());
            scope.spawn(move || work(workload, worker, shared, preparing, afterwards))
        };
        let workers: Vec<_> = (0..options.workers).map(start_worker).collect();
        drop((preparing, afterwards));
        wait_for_all(&all_ready);
        set_phase(shared, WARMUP);
        drop(start);
        let mut result = coordinate(workload, options, name, shared, view, interrupt);
        let crashed = crash.and_then(|crash| end_in_crash(crash, shared, &mut result, &results));
        set_phase(shared, STOP);
        for worker in workers {
            let outcome = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result.measurements.add(&outcome?);
        }
        crashed.map_or(Ok(result), Err)
    })
}

/// Collects the results of workers that go on, and crashes. Comes back with a failure if that was impossible; with none if a worker has failed.
fn end_in_crash(
    crash: &Crash<'_>,
    shared: &SharedRun<'_>,
    result: &mut RunResult,
    results: &Receiver<Measurements>,
) -> Option<Failure> {
    set_phase(shared, AFTERWARDS);
    for _ in &shared.live {
        result.measurements.add(&results.recv().ok()?);
    }
    Some((crash.end)(result))
}

/// The processors to bind workers to, none if they are not to be bound or there are too few.
fn processors_for(options: &RunOptions) -> Vec<usize> {
    let processors = if options.pin { pin::allowed_processors() } else { Vec::new() };
    if processors.len() < options.workers { Vec::new() } else { processors }
}

/// Waits until every worker has let go of its sender: its session is made, or it panicked.
fn wait_for_all(all_ready: &Receiver<()>) {
    while all_ready.recv().is_ok() {}
}

/// Ends the run if its thread panics, so that the others do not go on for nothing.
struct StopOnPanic<'a>(&'a SharedRun<'a>);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.phase.store(STOP, Relaxed);
        }
    }
}

/// A worker's life: transactions until the phase says stop, or until one fails.
fn work<W: Workload>(
    workload: &W,
    worker: usize,
    shared: &SharedRun<'_>,
    preparing: Sender<()>,
    afterwards: Sender<Measurements>,
) -> Result<Measurements, Failure> {
    let _stop_on_panic = StopOnPanic(shared);
    if let Some(&processor) = shared.processors.get(worker) {
        pin::pin_to(processor);
    }
    let mut session = workload.session(worker);
    let types = workload.transaction_types().len();
    let acknowledged = shared.acknowledged.map(|file| Acknowledged::new(file, worker, types));
    let mut worker = Worker {
        measurements: Measurements::new(types),
        pending: Pending::new(workload.database(), acknowledged, &shared.live[worker]),
        clock: shared.clock.clone(),
        live: &shared.live[worker],
        committed: 0,
        aborted: 0,
        batch: Vec::new(),
    };
    drop(preparing);
    // Waits for the coordinator to let go. Not by yielding in a loop: schedulers make a thread that yields often wait for long.
    drop(shared.start.lock());
    let ended = worker.run_transactions(&mut session, &shared.phase, &afterwards);
    // The others need not go on after a failure: the run has no result.
    shared.phase.store(STOP, Relaxed);
    session.finish();
    ended.map(|()| worker.measurements)
}

/// What a worker counts.
struct Worker<'a, E: Engine> {
    measurements: Measurements,
    pending: Pending<'a, E>,
    clock: Clock,
    live: &'a LiveCounts,
    committed: u64,
    aborted: u64,
    /// Of the last batch; the memory is used again.
    batch: Vec<(Outcome, Aborts)>,
}

impl<E: Engine> Worker<'_, E> {
    /// The measured loop. Never inlined, so that a profiler can be limited to it.
    #[inline(never)]
    fn run_transactions(
        &mut self,
        session: &mut impl Session,
        shared_phase: &AtomicU8,
        afterwards: &Sender<Measurements>,
    ) -> Result<(), Failure> {
        let mut phase = PREPARING;
        // The epoch that has to be durable before the results are complete that are taken while the worker goes on.
        let mut last_measured = None;
        let mut started = self.clock.stamp();
        let runs_batches = session.runs_batches();
        loop {
            let current = shared_phase.load(Relaxed);
            if current != phase {
                match current {
                    STOP => return self.pending.finish(&self.clock, &mut self.measurements),
                    AFTERWARDS => last_measured = Some(self.pending.last_epoch()),
                    _ => self.measurements.clear(),
                }
                phase = current;
            }
            started = if runs_batches {
                self.run_batch(session, started, phase)?
            } else {
                self.run_one(session, started, phase)?
            };
            if last_measured.is_some_and(|epoch| self.pending.has_stored(epoch)) {
                last_measured = None;
                // The receiver outlives the worker.
                let _ = afterwards.send(self.measurements.clone());
            }
        }
    }

    /// Runs a batch of transactions and returns when it ended: each of them took as long as the batch.
    fn run_batch(&mut self, session: &mut impl Session, started: Stamp, phase: u8) -> Result<Stamp, Failure> {
        let mut batch = std::mem::take(&mut self.batch);
        session.run_batch(self.clock.unix_microseconds(started), &mut batch)?;
        let ended = self.clock.stamp();
        for (outcome, aborts) in batch.drain(..) {
            self.note(&outcome, &aborts, started, ended, phase);
        }
        self.pending.settle(&self.clock, ended, &mut self.measurements)?;
        self.batch = batch;
        Ok(ended)
    }

    /// Runs one transaction and returns when it ended.
    #[inline]
    fn run_one(&mut self, session: &mut impl Session, started: Stamp, phase: u8) -> Result<Stamp, Failure> {
        let mut aborts = Aborts::default();
        let outcome = session.run_one(self.clock.unix_microseconds(started), &mut aborts)?;
        let ended = self.clock.stamp();
        self.note(&outcome, &aborts, started, ended, phase);
        self.pending.settle(&self.clock, ended, &mut self.measurements)?;
        Ok(ended)
    }

    /// Counts a transaction that ran from `started` to `ended`.
    #[inline]
    fn note(&mut self, outcome: &Outcome, aborts: &Aborts, started: Stamp, ended: Stamp, phase: u8) {
        if phase != AFTERWARDS {
            let latency_ns = self.clock.nanoseconds(started, ended);
            self.measurements.record(outcome.transaction, outcome.committed, aborts, latency_ns);
        }
        self.pending.push(outcome, started, phase == MEASURED);
        self.committed += u64::from(outcome.committed);
        self.live.committed.store(self.committed, Relaxed);
        if aborts.total() > 0 {
            self.aborted += aborts.total();
            self.live.aborted.store(self.aborted, Relaxed);
        }
    }
}

/// Takes the workers through the phases and watches them.
fn coordinate<W: Workload>(
    workload: &W,
    options: &RunOptions,
    name: &str,
    shared: &SharedRun<'_>,
    view: &mut View,
    interrupt: &Interrupt,
) -> RunResult {
    let mut watch = Watch { live: &shared.live, database: workload.database(), view, interrupt };
    let is_stopped = || shared.phase.load(Relaxed) == STOP;
    watch.watch("warm-up", options.warmup, is_stopped);
    let memory = || workload.database().map(database::memory).unwrap_or_default();
    let durability = || workload.database().and_then(DurabilityCounts::of::<W::Engine>);
    let (memory_before, durability_before) = (memory(), durability());
    set_phase(shared, MEASURED);
    let processor_time_before = processor_time();
    let watched = watch.watch(name, options.measured, is_stopped);
    let processor_time = processor_time().saturating_sub(processor_time_before);
    let durability =
        durability().zip(durability_before).map(|(after, before)| DurabilityCounts::since(&after, &before));
    RunResult {
        seconds: watched.elapsed.as_secs_f64(),
        processor_seconds: processor_time.as_secs_f64(),
        measurements: Measurements::new(workload.transaction_types().len()),
        timeline: watched.timeline,
        per_second: watched.per_second,
        memory_before,
        memory_after: memory(),
        durability,
        interrupted: interrupt.is_raised(),
    }
}

/// Goes on to `phase` unless a failed worker has stopped the run.
fn set_phase(shared: &SharedRun<'_>, phase: u8) {
    // Relaxed: see the module's docs; an update that fails leaves STOP in place.
    let _ = shared.phase.fetch_update(Relaxed, Relaxed, |current| (current != STOP).then_some(phase));
}
