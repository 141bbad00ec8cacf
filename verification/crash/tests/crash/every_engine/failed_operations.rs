//! A crash right after an operation has failed, and after each one that follows: nothing has to come that heals what the failure left.
//!
//! Every write, sync and change of a name of an opening, a checkpoint, the change to another log file and a close fails once, or from then
//! on for good. Syncs of directories are counted by themselves: they are few, and fail as often as all others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use ensilo::{Error, Result};
use ensilo_crash::environment::{is_long, seed_or};
use ensilo_crash::explore::Acknowledged;
use ensilo_crash::serial::{self, History, Plan, WORKER};
use ensilo_crash::setup::Setup;
use ensilo_crash::watched::{Image, WatchedDisk};
use ensilo_test_disk::{Counts, Faults, Operation, Recorder, SimulatedDisk, Trace};

use super::*;

/// What the database does while an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Opening,
    Checkpoint,
    Rotation,
    Close,
}

/// A database that was closed, with a checkpoint and log after it.
struct Prepared {
    seed: u64,
    setup: Setup,
    disk: SimulatedDisk,
    history: History,
}

/// A run in which an operation failed.
struct Attempted {
    history: History,
    trace: Trace,
    images: Vec<Image>,
    counts: Counts,
}

impl Prepared {
    fn new(seed: u64) -> Prepared {
        let setup = Setup { checkpoint_at_close: false, ..Setup::of(seed) };
        let disk = Arc::new(SimulatedDisk::new());
        let recorder = Arc::new(Recorder::over(Arc::clone(&disk)));
        let mut history = History::default();
        let db: Database = setup.open(Arc::clone(&recorder) as _).unwrap();
        serial::run(&db, &recorder, &mut history, &Plan::new(seed, 20)).unwrap();
        db.checkpoint().unwrap();
        serial::run(&db, &recorder, &mut history, &Plan::new(seed + 1, 10)).unwrap();
        db.close().unwrap();
        drop(db);
        let setup = Setup { checkpoint_at_close: true, ..setup };
        Prepared { seed, setup, disk: disk.kill(), history }
    }

    /// Does the work of a phase on a disk with these faults.
    fn attempt(&self, phase: Phase, faults: &Faults) -> Attempted {
        let disk = Arc::new(self.disk.fork());
        let recorder = Arc::new(Recorder::over(Arc::clone(&disk)));
        let watched = Arc::new(WatchedDisk::new(Arc::clone(&recorder), Arc::clone(&disk)));
        let mut history = self.history.clone();
        let mut counts = None;
        let mut attempt = || -> Result<()> {
            let is_opening = phase == Phase::Opening;
            let plan_faults = || disk.set_faults(faults.clone());
            if is_opening {
                plan_faults();
            }
            let db: Database = self.setup.open(Arc::clone(&watched) as _)?;
            let plan = Plan { survives_failed_checkpoints: true, ..Plan::new(self.seed + 2, 4) };
            let mut work = |plan: &Plan| serial::run(&db, &recorder, &mut history, plan);
            match phase {
                Phase::Opening => {}
                Phase::Checkpoint => {
                    plan_faults();
                    _ = db.checkpoint();
                }
                Phase::Rotation => {
                    plan_faults();
                    work(&Plan { steps: 16, blob_bytes_max: 900_000, ..plan })?;
                }
                Phase::Close => {
                    work(&plan)?;
                    plan_faults();
                    return db.close();
                }
            }
            counts = Some(disk.counts());
            work(&plan)
        };
        match attempt() {
            Ok(()) | Err(Error::LogFailed(_) | Error::CheckpointFailed(_) | Error::Open(_)) => {}
            Err(error) => panic!("{phase:?}, {faults:?}: {error}"),
        }
        let counts = counts.unwrap_or_else(|| disk.counts());
        Attempted { history, trace: recorder.trace(), images: watched.take_images(), counts }
    }

    /// The faults of a phase: all of them in a long run, and otherwise most syncs of directories, and some of the others.
    fn faults(&self, phase: Phase) -> Vec<Faults> {
        let counts = self.attempt(phase, &Faults::default()).counts;
        let some = |count: u64, wanted: u64| {
            let step = if is_long() { 1 } else { count.div_ceil(share(wanted)).max(1) };
            (1..=count).step_by(step as usize)
        };
        let new = |seed| Faults { seed, ..Faults::default() };
        let dirs = some(counts.dir_syncs, 16).map(|at| Faults { dir_sync_error_at: Some(at), ..new(at) });
        let names = some(counts.name_changes, 12).map(|at| Faults { name_error_at: Some(at), ..new(at) });
        let syncs = some(counts.syncs, 8).map(|at| Faults { sync_error_at: Some(at), ..new(at) });
        let writes = some(counts.writes, 5).map(|at| Faults { write_error_at: Some(at), ..new(at) });
        let once: Vec<Faults> = dirs.chain(names).chain(syncs).chain(writes).collect();
        let for_good = once.clone().into_iter().map(|faults| Faults { goes_on_failing: true, ..faults });
        for_good
            .enumerate()
            .filter(|(at, _)| is_long() || at % 3 == 0)
            .map(|(_, faults)| faults)
            .chain(once)
            .collect()
    }

    /// Lets one operation fail, and crashes. Returns how often it was recovered.
    fn check(&self, phase: Phase, faults: &Faults) -> std::result::Result<u64, String> {
        let attempted = self.attempt(phase, faults);
        let images = &attempted.images;
        let step = images.len().div_ceil(if is_long() { 24 } else { 6 }).max(1);
        let mut recoveries = 0;
        for image in images.iter().step_by(step).chain(images.last()) {
            let acknowledged = self.acknowledged(&attempted.trace.operations()[..image.position]);
            for tear in 0..if is_long() { 5 } else { 3 } {
                let disk = match tear {
                    0 => image.disk.fork().kill(),
                    _ => image.disk.fork().crash(faults.seed * 100 + tear),
                };
                self.recover(disk, &attempted.history, &acknowledged).map_err(|what| {
                    let after = &image.after;
                    format!("seed {}, {phase:?}, {faults:?}, after {after}, tear {tear}: {what}", self.seed)
                })?;
                recoveries += 1;
            }
        }
        Ok(recoveries)
    }

    fn acknowledged(&self, operations: &[Operation]) -> Acknowledged {
        let mut acknowledged = Acknowledged::default();
        acknowledged.raise(WORKER, self.history.last());
        for operation in operations {
            if let Operation::Note(mark) = operation {
                acknowledged.take(*mark);
            }
        }
        acknowledged
    }

    fn recover(
        &self,
        disk: SimulatedDisk,
        history: &History,
        acknowledged: &Acknowledged,
    ) -> std::result::Result<(), String> {
        let setup = Setup { checkpoint_at_close: false, ..self.setup };
        recover(&setup, disk, history, acknowledged).map(|_| ())
    }
}

/// Lets each operation of a phase fail, with two threads.
fn explore(phase: Phase) {
    let (mut failures, mut recoveries) = (0, 0);
    for seed in 0..if is_long() { 4 } else { share(2) } {
        let prepared = Prepared::new(seed_or(1) * 100 + seed);
        let faults = prepared.faults(phase);
        let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while let Some(faults) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let recovered = prepared.check(phase, faults).unwrap_or_else(|what| panic!("{what}"));
                        done.fetch_add(recovered, Ordering::Relaxed);
                    }
                });
            }
        });
        failures += faults.len();
        recoveries += done.into_inner();
    }
    println!("{phase:?}: {failures} faults, {recoveries} recoveries");
    assert!(recoveries > failures as u64, "{failures} faults, {recoveries} recoveries");
}

#[test]
fn a_crash_after_any_failure_of_a_checkpoint_loses_nothing() {
    explore(Phase::Checkpoint);
}

#[test]
fn a_crash_after_any_failure_of_an_opening_loses_nothing() {
    explore(Phase::Opening);
}

#[test]
fn a_crash_after_any_failure_of_a_change_of_log_files_loses_nothing() {
    explore(Phase::Rotation);
}

#[test]
fn a_crash_after_any_failure_of_a_close_loses_nothing() {
    explore(Phase::Close);
}
