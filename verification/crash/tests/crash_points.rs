//! A power failure after every operation of a recorded run.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use ensilo::ermia::{Ermia, SnapshotIsolation};
use ensilo::generic::Database;
use ensilo::{Engine, Silo};
use ensilo_crash::environment::seed_or;
use ensilo_crash::explore::{Acknowledged, Depth, Oracle, Recorded};
use ensilo_crash::parallel;
use ensilo_crash::random::Random;
use ensilo_crash::serial::{self, History, Plan, WORKER};
use ensilo_crash::setup::Setup;
use ensilo_test_disk::{Recorder, SimulatedDisk};

/// One life of a database over the engine `E`, begun on what a crash of the one before has left. After a power failure anywhere `R`
/// recovers it. Returns what a crash somewhere in the second half leaves.
fn life<E: Engine, R: Engine>(
    disk: SimulatedDisk,
    history: &mut History,
    (seed, life): (u64, u64),
    steps: u64,
    crashes: usize,
) -> SimulatedDisk {
    let setup = Setup::of(seed * 100 + life);
    let recorder = Arc::new(Recorder::over(Arc::new(disk)));
    let mut acknowledged = Acknowledged::default();
    acknowledged.raise(WORKER, history.last());
    let db: Database<E> = setup.open(Arc::clone(&recorder) as _).unwrap();
    serial::run(&db, &recorder, history, &Plan::new(seed * 100 + life, steps)).unwrap();
    db.close().unwrap();
    let trace = recorder.trace();
    let recorded = Recorded { seed, trace: &trace, acknowledged: acknowledged.clone(), setup };
    let depth = Depth::of(&trace, crashes, seed);
    let explored = recorded.explore::<R, _>(history, &depth).unwrap_or_else(|what| panic!("{what}"));
    println!("seed {seed} life {life}: {} operations, {explored}", trace.len());
    let mut random = Random::new(seed + life);
    let position = trace.len() / 2 + random.below(trace.len() as u64 / 2) as usize;
    let tear = random.draw();
    let crashed = Arc::new(trace.disk_after(position).crash(tear));
    let db: Database<R> = setup.open(Arc::clone(&crashed) as _).unwrap();
    let found = Oracle::<R>::check(history, &db, &acknowledged).unwrap();
    history.cut_after(found);
    drop(db);
    trace.disk_after(position).crash(tear)
}

fn lives<E: Engine>(seed: u64, lives: u64, steps: u64, crashes: usize) {
    let (mut disk, mut history) = (SimulatedDisk::new(), History::default());
    for number in 0..lives {
        disk = life::<E, E>(disk, &mut history, (seed, number), steps, crashes);
    }
}

/// A directory is opened with either engine, whichever has written there.
#[test]
fn each_engine_goes_on_where_the_other_has_crashed() {
    for seed in 4..6 {
        let seed = seed_or(1) + seed;
        let (mut disk, mut history) = (SimulatedDisk::new(), History::default());
        for number in 0..6 {
            let life = match number % 3 {
                0 => life::<Silo, Ermia>,
                1 => life::<Ermia, Silo>,
                _ => life::<Ermia<SnapshotIsolation>, Ermia>,
            };
            disk = life(disk, &mut history, (seed, number), 100, 15);
        }
    }
}

fn parallel_run<E: Engine>(seed: u64, crashes: usize) {
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
    let db: Database<E> = setup.open(Arc::clone(&disk) as _).unwrap();
    parallel::load(&db, &plan).unwrap();
    drop(db);
    let recorder = Arc::new(Recorder::over(Arc::new(disk.crash(seed))));
    let db: Database<E> = setup.open(Arc::clone(&recorder) as _).unwrap();
    let transfers = parallel::run(&db, &recorder, &plan).unwrap();
    db.close().unwrap();
    let trace = recorder.trace();
    let recorded = Recorded { seed, trace: &trace, acknowledged: Acknowledged::default(), setup };
    let depth = Depth::of(&trace, crashes, seed);
    let explored = recorded.explore::<E, _>(&transfers, &depth).unwrap_or_else(|what| panic!("{what}"));
    println!("seed {seed}: {} operations, {explored}", trace.len());
}

/// The tests of one engine.
macro_rules! on_engine {
    ($($name:ident: $engine:ty;)+) => {
        $(mod $name {
            use super::*;

            #[test]
            fn every_prefix_of_a_run_recovers_to_a_prefix_of_its_history() {
                lives::<$engine>(seed_or(1), 1, 300, 100);
            }

            #[test]
            fn lives_that_end_in_crashes_follow_each_other() {
                for seed in 1..4 {
                    lives::<$engine>(seed_or(1) + seed, 3, 120, 25);
                }
            }

            #[test]
            fn epochs_of_several_threads_are_whole() {
                for seed in 10..16 {
                    parallel_run::<$engine>(seed_or(1) + seed, 20);
                }
            }
        })+
    };
}

on_engine! {
    silo: Silo;
    ermia: Ermia;
    ermia_snapshot_isolation: Ermia<SnapshotIsolation>;
}
