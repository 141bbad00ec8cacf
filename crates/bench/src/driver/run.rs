//! One measured run: warm up, measure, stop; by workers that share nothing but the word that says the phase.
//!
//! # Memory ordering
//! The phase and the live counters are Relaxed: a worker that sees a phase a transaction late counts that transaction
//! to the other side, and nothing else is published through them. What the workers counted comes back by joining
//! their threads.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::clock::Clock;
use super::failure::Failure;
use super::interrupt::Interrupt;
use super::measurements::{Aborts, Measurements};
use super::pin;
use super::view::{Tick, View};
use super::workload::{Memory, Session, Workload};

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

/// What a run measured.
#[derive(Debug, Clone)]
pub struct RunResult {
    /// Seconds that were counted; fewer than asked for after an interrupt.
    pub seconds: f64,
    /// What all workers counted.
    pub measurements: Measurements,
    /// Committed and aborted by second.
    pub per_second: Vec<SecondCounts>,
    /// Memory of the database when the measured time began.
    pub memory_before: Memory,
    /// Memory of the database when it ended.
    pub memory_after: Memory,
    /// Whether the user ended the run early.
    pub interrupted: bool,
}

/// One second of a run (the last may be a part of one).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SecondCounts {
    /// When it ended, in seconds since the measured time began.
    pub ended_at: f64,
    /// Transactions that committed in it.
    pub committed: u64,
    /// Attempts that aborted in it.
    pub aborted: u64,
}

const PREPARING: u8 = 0;
const WARMUP: u8 = 1;
const MEASURED: u8 = 2;
const STOP: u8 = 3;

/// What a worker lets others see while it runs; each is written by one worker only and alone on its cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct LiveCounts {
    committed: AtomicU64,
    aborted: AtomicU64,
}

/// What the threads of a run share.
struct Shared {
    phase: AtomicU8,
    live: Vec<LiveCounts>,
    /// Held by the coordinator until every worker is ready.
    start: Mutex<()>,
    processors: Vec<usize>,
    clock: Clock,
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
    let shared = Shared {
        phase: AtomicU8::new(PREPARING),
        live: (0..options.workers).map(|_| LiveCounts::default()).collect(),
        start: Mutex::new(()),
        processors: processors_for(options),
        clock: Clock::new(),
    };
    thread::scope(|scope| {
        let shared = &shared;
        let start = shared.start.lock().unwrap_or_else(PoisonError::into_inner);
        let (preparing, all_ready) = channel();
        let start_worker = |worker| {
            let preparing = preparing.clone();
            scope.spawn(move || work(workload, worker, shared, preparing))
        };
        let workers: Vec<_> = (0..options.workers).map(start_worker).collect();
        drop(preparing);
        wait_for_all(&all_ready);
        set_phase(shared, WARMUP);
        drop(start);
        let mut result = coordinate(workload, options, name, shared, view, interrupt);
        for worker in workers {
            let outcome = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result.measurements.add(&outcome?);
        }
        Ok(result)
    })
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
struct StopOnPanic<'a>(&'a Shared);

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
    shared: &Shared,
    preparing: Sender<()>,
) -> Result<Measurements, Failure> {
    let _stop_on_panic = StopOnPanic(shared);
    if let Some(&processor) = shared.processors.get(worker) {
        pin::pin_to(processor);
    }
    let mut session = workload.session(worker);
    let mut measurements = Measurements::new(workload.transaction_types().len());
    drop(preparing);
    // Waits for the coordinator to let go. Not by yielding in a loop: schedulers make who yields often wait for long.
    drop(shared.start.lock());
    let result = run_transactions(&mut session, &mut measurements, &shared.live[worker], shared);
    session.finish();
    result.map(|()| measurements)
}

/// The measured loop. Never inlined, so that a profiler can be told to look at it alone.
#[inline(never)]
fn run_transactions(
    session: &mut impl Session,
    measurements: &mut Measurements,
    live: &LiveCounts,
    shared: &Shared,
) -> Result<(), Failure> {
    let clock = shared.clock.clone();
    let (mut committed, mut aborted) = (0u64, 0u64);
    let mut phase = PREPARING;
    let mut started = clock.stamp();
    loop {
        let current = shared.phase.load(Relaxed);
        if current != phase {
            if current == STOP {
                return Ok(());
            }
            measurements.clear();
            phase = current;
        }
        let mut aborts = Aborts::default();
        let outcome = session.run_one(clock.unix_microseconds(started), &mut aborts).inspect_err(|_| {
            // The others need not go on: the run has no result.
            shared.phase.store(STOP, Relaxed);
        })?;
        let ended = clock.stamp();
        measurements.record(
            outcome.transaction,
            outcome.committed,
            &aborts,
            clock.nanoseconds(started, ended),
        );
        committed += u64::from(outcome.committed);
        live.committed.store(committed, Relaxed);
        if aborts.total() > 0 {
            aborted += aborts.total();
            live.aborted.store(aborted, Relaxed);
        }
        started = ended;
    }
}

/// Takes the workers through the phases and watches them.
fn coordinate<W: Workload>(
    workload: &W,
    options: &RunOptions,
    name: &str,
    shared: &Shared,
    view: &mut View,
    interrupt: &Interrupt,
) -> RunResult {
    let mut ignored = Vec::new();
    watch("warm-up", options.warmup, shared, view, interrupt, &mut ignored);
    let memory_before = workload.memory();
    set_phase(shared, MEASURED);
    let mut per_second = Vec::new();
    let elapsed = watch(name, options.measured, shared, view, interrupt, &mut per_second);
    set_phase(shared, STOP);
    RunResult {
        seconds: elapsed.as_secs_f64(),
        measurements: Measurements::new(workload.transaction_types().len()),
        per_second,
        memory_before,
        memory_after: workload.memory(),
        interrupted: interrupt.is_raised(),
    }
}

/// Goes on to `phase` unless a failed worker has stopped the run.
fn set_phase(shared: &Shared, phase: u8) {
    // Relaxed: see the module's docs; an update that fails leaves STOP in place.
    let _ = shared.phase.fetch_update(Relaxed, Relaxed, |current| (current != STOP).then_some(phase));
}

/// Waits for the end of a phase and tells each second how it goes. Returns the time it took.
fn watch(
    phase: &str,
    planned: Duration,
    shared: &Shared,
    view: &mut View,
    interrupt: &Interrupt,
    per_second: &mut Vec<SecondCounts>,
) -> Duration {
    let start = Instant::now();
    let (mut seen, mut seen_at) = (live_counts(shared), Duration::ZERO);
    while seen_at < planned && !interrupt.is_raised() && shared.phase.load(Relaxed) != STOP {
        interrupt.wait_until(start + Duration::from_secs(seen_at.as_secs() + 1).min(planned));
        let (counts, elapsed) = (live_counts(shared), start.elapsed());
        let second = SecondCounts {
            ended_at: elapsed.as_secs_f64(),
            committed: counts.0 - seen.0,
            aborted: counts.1 - seen.1,
        };
        let length = (elapsed - seen_at).as_secs_f64().max(f64::MIN_POSITIVE);
        view.tick(Tick {
            phase,
            elapsed,
            planned,
            throughput_per_second: second.committed as f64 / length,
            aborts_per_second: second.aborted as f64 / length,
        });
        per_second.push(second);
        (seen, seen_at) = (counts, elapsed);
    }
    start.elapsed()
}

/// Committed and aborted so far, over all workers and phases.
fn live_counts(shared: &Shared) -> (u64, u64) {
    let sum =
        |pick: fn(&LiveCounts) -> &AtomicU64| shared.live.iter().map(|live| pick(live).load(Relaxed)).sum();
    (sum(|live| &live.committed), sum(|live| &live.aborted))
}
