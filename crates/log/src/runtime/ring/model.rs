//! How places are taken, filled and drained, in every order of the steps of two workers and a logger:
//! `RUSTFLAGS="--cfg loom" cargo test -p ensilo-log --lib --profile quick model`.
//!
//! Segments have three units that are used, and there are two of them. The epochs are the model's own: a global one, and what each worker
//! publishes while it commits. The checker sees every access to a byte of a segment.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use ensilo_epoch::Epoch;
use loom::model::Builder;
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::thread;

use super::planted::{Step, is_left_out, leave_out, ordering_of};
use super::{Place, Ring, RingReader, UNITS_PER_EPOCH, take_place};
use crate::runtime::monitor::Monitor;

const FIRST: u64 = 2;
const IDLE: u64 = u64::MAX;

/// What stands for the epochs.
struct ModelEpochs {
    global: AtomicU64,
    /// By worker.
    commits: [AtomicU64; 2],
    /// The logger sleeps until something else has happened.
    events: Monitor<Events>,
    /// Whether workers may have to wait for the logger; otherwise it makes as many rounds as the model says.
    has_waits: bool,
}

/// What a logger makes rounds for.
#[derive(Debug, Clone, Copy, Default)]
struct Events {
    /// How many commits have ended, and how many waits have begun.
    count: u64,
    workers_done: usize,
}

impl ModelEpochs {
    fn complete_frontier(&self) -> Epoch {
        let global = self.global.load(Ordering::Acquire);
        fence(Ordering::SeqCst);
        let commits = self.commits.iter().map(|commit| commit.load(Ordering::Acquire));
        Epoch::new(commits.fold(global, u64::min))
    }

    fn note_event(&self, workers_done: usize) {
        // Without the lock where nobody waits: it would order what the model is about.
        if !self.has_waits {
            return;
        }
        let mut events = self.events.lock();
        events.count += 1;
        events.workers_done += workers_done;
        drop(events);
        self.events.notify_all();
    }

    fn tick(&self) -> Epoch {
        self.global.fetch_add(1, Ordering::AcqRel);
        self.complete_frontier()
    }
}

/// What the threads share.
struct Shared {
    ring: Arc<Ring>,
    clock: AtomicU64,
    epochs: Arc<ModelEpochs>,
    /// The TIDs of those that have committed, or are about to end. Not looked at by the checker.
    committed: Mutex<Vec<u64>>,
}

/// What a worker does: transactions with so many units, or one unit and an abort.
#[derive(Debug, Clone, Copy)]
enum Program {
    Commits(u64),
    Aborts,
}

impl Program {
    fn units(self) -> u64 {
        if let Program::Commits(units) = self { units } else { 1 }
    }
}

impl Shared {
    /// Begins a commit of worker `number`. Returns its epoch.
    fn begin(&self, number: usize) -> u64 {
        let commit = &self.epochs.commits[number];
        commit.store(self.epochs.global.load(Ordering::Acquire), Ordering::Release);
        fence(Ordering::SeqCst);
        self.epochs.global.load(Ordering::Acquire)
    }

    /// Takes a place. Returns the TID.
    fn take(&self, epoch: u64, units: u64) -> u64 {
        take_place(&self.clock, epoch * UNITS_PER_EPOCH + 1, units, Ordering::AcqRel) << 3
    }

    /// Fills a place as the program says, and ends the commit. Returns whether the place lay in the epoch.
    fn finish(&self, number: usize, epoch: u64, tid: u64, program: Program) -> bool {
        let commit = &self.epochs.commits[number];
        let place = Place::new(tid, program.units());
        let move_commit = |epoch: Epoch| commit.store(epoch.get(), Ordering::Release);
        let is_inside = place.lies_in(Epoch::new(epoch));
        if is_inside && matches!(program, Program::Commits(_)) {
            self.ring.fill(place, &tid.to_le_bytes(), move_commit);
            self.committed.lock().unwrap().push(tid);
        } else if !is_left_out(if is_inside { Step::SkipOfAbort } else { Step::SkipOutside }) {
            self.ring.skip(place, &[], move_commit);
        }
        commit.store(IDLE, ordering_of(Step::OrderOfEnd, Ordering::Release));
        self.epochs.note_event(0);
        is_inside
    }

    /// Commits, or aborts, as worker `number`.
    fn run(&self, number: usize, program: Program) {
        loop {
            let epoch = self.begin(number);
            if self.finish(number, epoch, self.take(epoch, program.units()), program) {
                return;
            }
            self.epochs.global.fetch_max(epoch + 1, Ordering::AcqRel);
        }
    }
}

/// The logger, and all that it has taken.
struct Logger {
    shared: Arc<Shared>,
    reader: RingReader,
    tids: Vec<u64>,
}

impl Logger {
    /// Drains what is complete at this frontier, which is all that has committed before it.
    fn round(&mut self, frontier: Epoch) {
        for piece in self.reader.gather(frontier) {
            let tids = piece.payload().chunks(8).map(|tid| u64::from_le_bytes(tid.try_into().unwrap()));
            self.tids.extend(tids);
        }
        self.reader.finish(frontier);
        let committed = self.shared.committed.lock().unwrap();
        let complete = committed.iter().filter(|tid| (**tid >> 3) / UNITS_PER_EPOCH < frontier.get());
        assert!(complete.clone().all(|tid| self.tids.contains(tid)), "{committed:?} {:?}", self.tids);
    }
}

impl Logger {
    /// Returns a logger in the first epoch. The clock is in the one before.
    fn new(has_waits: bool) -> Logger {
        let epochs = Arc::new(ModelEpochs {
            global: AtomicU64::new(FIRST),
            commits: [AtomicU64::new(IDLE), AtomicU64::new(IDLE)],
            events: Monitor::new(Events::default()),
            has_waits,
        });
        let [frontier, waits] = [(); 2].map(|()| Arc::clone(&epochs));
        let wake = move || waits.note_event(0);
        let ring = Arc::new(Ring::new(1, 1 << 20, move || frontier.complete_frontier(), wake));
        let reader = RingReader::new(Arc::clone(&ring), 0);
        let clock = AtomicU64::new((FIRST - 1) * UNITS_PER_EPOCH + 1);
        let shared = Arc::new(Shared { ring, clock, epochs, committed: Mutex::new(Vec::new()) });
        Logger { shared, reader, tids: Vec::new() }
    }

    /// Runs two workers beside `rounds` rounds behind ticks, and further ones without, and then drains what is left.
    fn run(mut self, rounds: usize, workers: [impl FnOnce(&Shared) + 'static; 2]) {
        let working = workers.map(|worker| {
            let shared = Arc::clone(&self.shared);
            thread::spawn(move || {
                worker(&shared);
                shared.epochs.note_event(1);
            })
        });
        for _ in 0..rounds {
            let frontier = self.shared.epochs.tick();
            self.round(frontier);
        }
        let epochs = Arc::clone(&self.shared.epochs);
        let mut events = *epochs.events.lock();
        while epochs.has_waits && events.workers_done < 2 {
            self.round(epochs.complete_frontier());
            let mut now = epochs.events.lock();
            while now.count == events.count {
                now = epochs.events.wait(now);
            }
            events = *now;
        }
        working.into_iter().for_each(|working| working.join().unwrap());
        while self.shared.ring.is_pending() {
            let frontier = self.shared.epochs.tick();
            self.round(frontier);
        }
        let mut committed = self.shared.committed.lock().unwrap().clone();
        committed.sort_unstable();
        self.tids.sort_unstable();
        assert_eq!(self.tids, committed, "each once");
    }
}

/// Returns a worker that runs a program.
fn worker(number: usize, program: Program) -> Box<dyn FnOnce(&Shared)> {
    Box::new(move |shared| shared.run(number, program))
}

/// Returns both workers, which run these programs.
fn workers([one, other]: [Program; 2]) -> [Box<dyn FnOnce(&Shared)>; 2] {
    [worker(0, one), worker(1, other)]
}

/// Two race to open a segment, and the epoch goes on meanwhile.
fn race() {
    Logger::new(false).run(1, workers([Program::Commits(1); 2]));
}

/// One aborts.
fn abort() {
    Logger::new(false).run(0, workers([Program::Aborts, Program::Commits(1)]));
}

/// Two units are left in the epoch.
fn straddle() {
    let logger = Logger::new(false);
    logger.shared.run(0, Program::Commits(1));
    logger.run(0, workers([Program::Commits(2); 2]));
}

/// No entry is free: both are open for epochs that were not drained.
fn full_table() {
    let logger = Logger::new(true);
    for _ in 0..2 {
        logger.shared.run(0, Program::Commits(1));
        logger.shared.epochs.tick();
    }
    let idle: Box<dyn FnOnce(&Shared)> = Box::new(|_| ());
    logger.run(0, [worker(0, Program::Commits(1)), idle]);
}

/// The epochs have gone on so far that an entry is wanted again for which a worker has an earlier place.
fn late_place() {
    let logger = Logger::new(true);
    let epoch = logger.shared.begin(0);
    let tid = logger.shared.take(epoch, 1);
    for _ in 0..2 {
        logger.shared.epochs.tick();
    }
    let late = Box::new(move |shared: &Shared| {
        shared.finish(0, epoch, tid, Program::Commits(1));
    });
    logger.run(0, [late, worker(1, Program::Commits(1))]);
}

/// The same for a worker that has read its epoch and is about to take its place: in the dead zone, if others were faster.
fn late_epoch() {
    let logger = Logger::new(true);
    let epoch = logger.shared.begin(0);
    for _ in 0..2 {
        logger.shared.epochs.tick();
    }
    let late = Box::new(move |shared: &Shared| {
        shared.finish(0, epoch, shared.take(epoch, 1), Program::Commits(1));
    });
    logger.run(0, [late, worker(1, Program::Commits(1))]);
}

const MODELS: [(&str, fn()); 6] = [
    ("race", race),
    ("abort", abort),
    ("straddle", straddle),
    ("full table", full_table),
    ("late place", late_place),
    ("late epoch", late_epoch),
];

fn explore(model: fn()) {
    let mut builder = Builder::new();
    // LOOM_MAX_PREEMPTIONS explores further.
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.max_branches = 5_000;
    builder.check(model);
}

#[test]
fn every_transaction_is_drained_once() {
    for (name, model) in MODELS {
        println!("{name}");
        explore(model);
    }
}

#[test]
fn steps_that_are_left_out_are_missed() {
    let steps = [
        (Step::RaiseBeforeAdd, race as fn()),
        (Step::OrderOfSegment, race),
        (Step::OrderOfEnd, race),
        (Step::SkipOfAbort, abort),
        (Step::SkipOutside, straddle),
        (Step::DrainedCheck, full_table),
        (Step::ClearCheck, late_place),
        (Step::MoveCommit, late_epoch),
    ];
    for (step, model) in steps {
        leave_out(Some(step));
        let found = catch_unwind(AssertUnwindSafe(|| explore(model))).is_err();
        leave_out(None);
        assert!(found, "the model does not notice {step:?}");
    }
}
