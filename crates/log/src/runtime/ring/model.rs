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

const FIRST: u64 = 2;
const IDLE: u64 = u64::MAX;

/// What stands for the epochs.
struct ModelEpochs {
    global: AtomicU64,
    /// By worker.
    commits: [AtomicU64; 2],
}

impl ModelEpochs {
    fn complete_frontier(&self) -> Epoch {
        let global = self.global.load(Ordering::Acquire);
        fence(Ordering::SeqCst);
        let commits = self.commits.iter().map(|commit| commit.load(Ordering::Acquire));
        Epoch::new(commits.fold(global, u64::min))
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

impl Shared {
    /// Commits, or aborts, as worker `number`.
    fn run(&self, number: usize, program: Program) {
        let units = if let Program::Commits(units) = program { units } else { 1 };
        let commit = &self.epochs.commits[number];
        loop {
            commit.store(self.epochs.global.load(Ordering::Acquire), Ordering::Release);
            fence(Ordering::SeqCst);
            let epoch = self.epochs.global.load(Ordering::Acquire);
            let tid = take_place(&self.clock, epoch * UNITS_PER_EPOCH + 1, units, Ordering::AcqRel) << 3;
            let place = Place::new(tid, units);
            let move_commit = |epoch: Epoch| commit.store(epoch.get(), Ordering::Release);
            let is_inside = place.lies_in(Epoch::new(epoch));
            if is_inside && matches!(program, Program::Commits(_)) {
                self.ring.fill(place, &tid.to_le_bytes(), move_commit);
                self.committed.lock().unwrap().push(tid);
            } else if !is_left_out(if is_inside { Step::SkipOfAbort } else { Step::SkipOutside }) {
                self.ring.skip(place, &[], move_commit);
            }
            commit.store(IDLE, ordering_of(Step::OrderOfEnd, Ordering::Release));
            if is_inside {
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
    /// Drains what is complete behind a tick, which is all that has committed before the frontier.
    fn round(&mut self) {
        let frontier = self.shared.epochs.tick();
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

/// Runs two workers beside `rounds` rounds, behind what `before` has done, and then drains what is left.
fn run(programs: [Program; 2], rounds: usize, before: impl FnOnce(&mut Logger)) {
    let epochs = Arc::new(ModelEpochs {
        global: AtomicU64::new(FIRST),
        commits: [AtomicU64::new(IDLE), AtomicU64::new(IDLE)],
    });
    let frontier = Arc::clone(&epochs);
    let ring = Arc::new(Ring::new(1, 1 << 20, move || frontier.complete_frontier(), || ()));
    let reader = RingReader::new(Arc::clone(&ring), 0);
    let shared =
        Arc::new(Shared { ring, clock: AtomicU64::new(0), epochs, committed: Mutex::new(Vec::new()) });
    let mut logger = Logger { shared: Arc::clone(&shared), reader, tids: Vec::new() };
    before(&mut logger);
    let working: Vec<_> = (0..)
        .zip(programs)
        .map(|(number, program)| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.run(number, program))
        })
        .collect();
    (0..rounds).for_each(|_| logger.round());
    working.into_iter().for_each(|working| working.join().unwrap());
    while shared.ring.is_pending() {
        logger.round();
    }
    let mut committed = shared.committed.lock().unwrap().clone();
    committed.sort_unstable();
    logger.tids.sort_unstable();
    assert_eq!(logger.tids, committed, "each once");
}

/// Two race to open a segment, and the epoch goes on meanwhile.
fn race() {
    run([Program::Commits(1), Program::Commits(1)], 1, |_| ());
}

/// One aborts.
fn abort() {
    run([Program::Aborts, Program::Commits(1)], 0, |_| ());
}

/// Two units are left in the epoch.
fn straddle() {
    run([Program::Commits(2), Program::Commits(2)], 0, |logger| {
        logger.shared.run(0, Program::Commits(1));
    });
}

/// No entry is free: both are open for epochs that were not drained.
fn full_table() {
    run([Program::Commits(1), Program::Commits(1)], 1, |logger| {
        for _ in 0..2 {
            logger.shared.run(0, Program::Commits(1));
            logger.shared.epochs.tick();
        }
    });
}

/// The epoch goes on so far while a worker commits that its entry is wanted again.
fn lap() {
    run([Program::Commits(1), Program::Commits(1)], 2, |_| ());
}

const MODELS: [(&str, fn(), usize); 5] = [
    ("race", race, 3),
    ("abort", abort, 3),
    ("straddle", straddle, 3),
    ("full table", full_table, 2),
    ("lap", lap, 2),
];

fn explore(model: fn(), preemptions: usize) {
    let mut builder = Builder::new();
    // LOOM_MAX_PREEMPTIONS explores further.
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.check(model);
}

#[test]
fn every_transaction_is_drained_once() {
    for (name, model, preemptions) in MODELS {
        let began = std::time::Instant::now();
        explore(model, preemptions);
        println!("{name}: {:?}", began.elapsed());
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
        (Step::ClearCheck, lap),
        (Step::MoveCommit, lap),
    ];
    for (step, model) in steps {
        leave_out(Some(step));
        let found = catch_unwind(AssertUnwindSafe(|| explore(model, 2))).is_err();
        leave_out(None);
        assert!(found, "the model does not notice {step:?}");
    }
}
