//! Mistakes that are made on purpose: every check finds the one that it is there for, or it proves nothing.

use std::sync::Arc;

use ensilo_crash::explore::{Acknowledged, Depth, Explored, Recorded};
use ensilo_crash::omitted_syncs::{OmittedSync, OmittingDisk};
use ensilo_crash::parallel::{self, Transfers};
use ensilo_crash::serial::{self, History, Plan, WORKER};
use ensilo_crash::setup::Setup;
use ensilo_test_disk::{Recorder, SimulatedDisk, Trace};

use super::*;

/// A thorough look at few places from `offset` on.
fn depth(trace: &Trace, offset: usize) -> Depth {
    let every = ((trace.len() - offset) / 60).max(1);
    Depth { every, offset, tears: 6, again_every: usize::MAX, again: 0, threads: 2 }
}

/// A run of one thread on a disk that may omit syncs, recovered from by `R`.
pub(crate) fn serial_run<R: ensilo::Engine>(
    seed: u64,
    omitted: Option<OmittedSync>,
) -> Result<Explored, String> {
    let recorder = Arc::new(Recorder::over(Arc::new(SimulatedDisk::new())));
    let disk = Arc::new(OmittingDisk::new(Arc::clone(&recorder) as _, omitted.unwrap_or(OmittedSync::Log)));
    let setup = Setup { loggers: 1, ..Setup::of(seed) };
    let db: Database = setup.open(Arc::clone(&disk) as _).unwrap();
    let mut history = History::default();
    serial::run(&db, &recorder, &mut history, &Plan::new(seed, 50)).unwrap();
    if omitted.is_some() {
        disk.begin_to_omit();
    }
    let offset = recorder.position();
    serial::run(&db, &recorder, &mut history, &Plan::new(seed + 1000, 100)).unwrap();
    let trace = recorder.trace();
    let mut acknowledged = Acknowledged::default();
    acknowledged.raise(WORKER, 0);
    Recorded { seed, trace: &trace, acknowledged, setup }.explore::<R, _>(&history, &depth(&trace, offset))
}

/// A run of several threads and loggers, recovered from by `R`.
pub(crate) fn parallel_run<R: ensilo::Engine>(seed: u64) -> Result<Explored, String> {
    let plan =
        parallel::Plan { seed, workers: 3, steps: 80, accounts: 8, stored_percent: 10, checkpoints: false };
    let setup = Setup { loggers: 3, ..Setup::of(seed) };
    let disk = Arc::new(SimulatedDisk::new());
    let db: Database = setup.open(Arc::clone(&disk) as _).unwrap();
    parallel::load(&db, &plan).unwrap();
    drop(db);
    let recorder = Arc::new(Recorder::over(Arc::new(disk.crash(seed))));
    let db: Database = setup.open(Arc::clone(&recorder) as _).unwrap();
    let transfers: Transfers = parallel::run(&db, &recorder, &plan).unwrap();
    let trace = recorder.trace();
    let recorded = Recorded { seed, trace: &trace, acknowledged: Acknowledged::default(), setup };
    recorded.explore::<R, _>(&transfers, &depth(&trace, 0))
}

/// What is found of a mistake, in one of some runs.
#[track_caller]
pub(crate) fn finds(
    what: &str,
    run: impl Fn(u64) -> Result<Explored, String>,
    is_expected: impl Fn(&str) -> bool,
) {
    let found = (0..400).filter_map(|seed| run(seed).err()).find(|found| is_expected(found));
    let found = found.unwrap_or_else(|| panic!("nobody has noticed: {what}"));
    println!("{what}: {}", found.lines().next().unwrap());
}

fn is_lost(found: &str) -> bool {
    found.contains("was acknowledged")
}

fn is_refused(found: &str) -> bool {
    found.contains("cannot be opened")
}

#[test]
fn without_a_mistake_nothing_is_found() {
    serial_run::<Engine>(0, None).unwrap();
    parallel_run::<Engine>(0).unwrap();
}

#[test]
fn acknowledging_before_the_sync_is_found() {
    finds("acknowledged before the sync", |seed| serial_run::<Engine>(seed, Some(OmittedSync::Log)), is_lost);
}

#[test]
fn leaving_out_the_sync_of_directories_is_found() {
    finds(
        "directories are not synced",
        |seed| serial_run::<Engine>(seed, Some(OmittedSync::Directory)),
        |found| is_lost(found) || is_refused(found),
    );
}

#[test]
fn cutting_the_log_before_the_checkpoint_is_stored_is_found() {
    finds(
        "the log is cut early",
        |seed| serial_run::<Engine>(seed, Some(OmittedSync::Checkpoint)),
        |found| is_lost(found) || is_refused(found),
    );
}
