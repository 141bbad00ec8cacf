//! Tables that change while they are used: a power failure after every operation, and what the checks find of mistakes made on purpose.

use std::sync::Arc;

use ensilo_crash::changing::{self, ANSWERED, CONSUMER, ChangingHistory, ChangingPlan, WORKER};
use ensilo_crash::environment::seed_or;
use ensilo_crash::explore::{Acknowledged, Depth, Explored, Recorded};
use ensilo_crash::omitted_syncs::{OmittedSync, OmittingDisk};
use ensilo_crash::random::Random;
use ensilo_crash::setup::Setup;
use ensilo_test_disk::{Operation, Recorder, SimulatedDisk};

use super::*;

/// Lives of a database that follow each other, each begun on what a crash of the one before has left.
fn lives(seed: u64, lives: u64, steps: u64, crashes: usize) {
    let (mut disk, mut history) = (SimulatedDisk::new(), ChangingHistory::default());
    for number in 0..lives {
        disk = life(disk, &mut history, seed * 100 + number, steps, crashes);
    }
    assert!(
        history.versions() > 0 && history.copies() > 0,
        "{lives} lives of {steps} steps leave something out"
    );
}

/// One life. Returns what a crash somewhere in its second half leaves.
fn life(
    disk: SimulatedDisk,
    history: &mut ChangingHistory,
    seed: u64,
    steps: u64,
    crashes: usize,
) -> SimulatedDisk {
    let setup = Setup::of_changing(seed);
    let recorder = Arc::new(Recorder::over(Arc::new(disk)));
    let mut acknowledged = acknowledged_before(history);
    let db: Database = setup.open(Arc::clone(&recorder) as _).unwrap();
    let done = changing::run(&db, &recorder, history, &ChangingPlan::new(seed, steps));
    done.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    db.close().unwrap();
    let trace = recorder.trace();
    let recorded = Recorded { seed, trace: &trace, acknowledged: acknowledged.clone(), setup };
    let depth = Depth::of(&trace, crashes, seed);
    let explored = recorded.explore::<Engine, _>(history, &depth).unwrap_or_else(|what| panic!("{what}"));
    println!("seed {seed}: {} operations, {explored}", trace.len());
    let mut random = Random::new(seed);
    let position = trace.len() / 2 + random.below(trace.len() as u64 / 2) as usize;
    let tear = random.draw();
    let crashed = || trace.disk_after(position).crash(tear);
    for operation in &trace.operations()[..position] {
        if let Operation::Note(mark) = operation {
            acknowledged.take(*mark);
        }
    }
    let found = recover(&setup, crashed(), history, &acknowledged).unwrap_or_else(|what| panic!("{what}"));
    history.cut_after(found, &acknowledged);
    crashed()
}

/// Everything of the lives before is there.
fn acknowledged_before(history: &ChangingHistory) -> Acknowledged {
    let mut acknowledged = Acknowledged::default();
    acknowledged.raise(WORKER, history.last());
    acknowledged.raise(CONSUMER, history.copies());
    acknowledged.raise(ANSWERED, history.answered());
    acknowledged
}

/// A run on a disk that omits syncs from some place on, recovered from there on; `mistake` is made in what is expected.
fn run_with(
    seed: u64,
    omitted: Option<OmittedSync>,
    mistake: impl Fn(&mut ChangingHistory),
) -> Result<Explored, String> {
    let recorder = Arc::new(Recorder::over(Arc::new(SimulatedDisk::new())));
    let disk = Arc::new(OmittingDisk::new(Arc::clone(&recorder) as _, omitted.unwrap_or(OmittedSync::Log)));
    let setup = Setup { loggers: 1, ..Setup::of_changing(seed) };
    let db: Database = setup.open(Arc::clone(&disk) as _).unwrap();
    let mut history = ChangingHistory::default();
    changing::run(&db, &recorder, &mut history, &ChangingPlan::new(seed, 30)).unwrap();
    if omitted.is_some() {
        disk.begin_to_omit();
    }
    let offset = recorder.position();
    changing::run(&db, &recorder, &mut history, &ChangingPlan::new(seed + 1000, 60)).unwrap();
    let trace = recorder.trace();
    mistake(&mut history);
    let every = ((trace.len() - offset) / 40).max(1);
    let depth = Depth { every, offset, tears: 4, again_every: usize::MAX, again: 0, threads: 2 };
    let recorded = Recorded { seed, trace: &trace, acknowledged: Acknowledged::default(), setup };
    recorded.explore::<Engine, _>(&history, &depth)
}

fn finds(
    what: &str,
    omitted: Option<OmittedSync>,
    mistake: impl Fn(&mut ChangingHistory),
    is_expected: impl Fn(&str) -> bool,
) {
    let found = (0..100).filter_map(|seed| run_with(seed, omitted, &mistake).err());
    let found = found.into_iter().find(|found| is_expected(found));
    let found = found.unwrap_or_else(|| panic!("nobody has noticed: {what}"));
    println!("{what}: {}", found.lines().next().unwrap());
}

#[test]
fn changed_and_truncated_tables_recover_to_a_prefix_of_their_history() {
    lives(seed_or(1), 1, 200, share(60) as usize);
}

#[test]
fn lives_of_changing_tables_follow_each_other() {
    for seed in 1..1 + share(3) {
        lives(seed_or(1) + seed, 3, 80, 12);
    }
}

#[test]
fn without_a_mistake_nothing_is_found_in_changing_tables() {
    run_with(0, None, |_| {}).unwrap();
}

#[test]
fn changes_that_are_acknowledged_before_the_sync_are_found() {
    finds(
        "acknowledged before the sync",
        Some(OmittedSync::Log),
        |_| {},
        |found| found.contains("was acknowledged") || found.contains("cannot go on"),
    );
}

/// A copy that lacks rows is found unless the tables are empty at every crash.
#[test]
fn a_row_that_a_consumer_was_not_given_is_found() {
    finds("rows are missing in a copy", None, ChangingHistory::forget_copied_rows, |found| {
        found.contains("the copy of the consumer has")
    });
}

#[test]
fn a_number_that_is_given_twice_is_found() {
    finds("numbers are given again", None, ChangingHistory::claim_greater_numbers, |found| {
        found.contains("is given again")
    });
}

#[test]
fn a_change_of_columns_that_makes_other_values_is_found() {
    finds("other values", None, ChangingHistory::expect_other_values, |found| found.contains("after step"));
}
