//! A power failure after every operation of a recorded run.

use std::sync::Arc;

use ensilo_crash::environment::seed_or;
use ensilo_crash::explore::{Acknowledged, Depth, Recorded};
use ensilo_crash::parallel;
use ensilo_crash::serial::History;
use ensilo_crash::setup::Setup;
use ensilo_test_disk::{Recorder, SimulatedDisk};

use super::*;
use crate::lives::life;

fn lives(seed: u64, lives: u64, steps: u64, crashes: usize) {
    let (mut disk, mut history) = (SimulatedDisk::new(), History::default());
    for number in 0..lives {
        disk = life::<Engine, Engine>(disk, &mut history, (seed, number), steps, crashes);
    }
}

fn parallel_run(seed: u64, crashes: usize) {
    let plan = parallel::Plan {
        seed,
        workers: 3,
        steps: 120,
        accounts: 12,
        stored_percent: 25,
        checkpoints: seed.is_multiple_of(2),
    };
    let setup = Setup::of(seed);
    let disk = Arc::new(SimulatedDisk::new());
    let db: Database = setup.open(Arc::clone(&disk) as _).unwrap();
    parallel::load(&db, &plan).unwrap();
    drop(db);
    let recorder = Arc::new(Recorder::over(Arc::new(disk.crash(seed))));
    let db: Database = setup.open(Arc::clone(&recorder) as _).unwrap();
    let transfers = parallel::run(&db, &recorder, &plan).unwrap();
    db.close().unwrap();
    let trace = recorder.trace();
    let recorded = Recorded { seed, trace: &trace, acknowledged: Acknowledged::default(), setup };
    let depth = Depth::of(&trace, crashes, seed);
    let explored = recorded.explore::<Engine, _>(&transfers, &depth).unwrap_or_else(|what| panic!("{what}"));
    println!("seed {seed}: {} operations, {explored}", trace.len());
}

#[test]
fn every_prefix_of_a_run_recovers_to_a_prefix_of_its_history() {
    lives(seed_or(1), 1, 300, share(100) as usize);
}

#[test]
fn lives_that_end_in_crashes_follow_each_other() {
    for seed in 1..1 + share(3) {
        lives(seed_or(1) + seed, 3, 120, 25);
    }
}

#[test]
fn epochs_of_several_threads_are_whole() {
    for seed in 10..10 + share(6) {
        parallel_run(seed_or(1) + seed, 20);
    }
}
