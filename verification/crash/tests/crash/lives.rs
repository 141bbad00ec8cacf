//! Lives of a database that follow each other, each begun on what a crash of the one before has left.

use std::sync::Arc;

use ensilo::Engine;
use ensilo::generic::Database;
use ensilo_crash::explore::{Acknowledged, Depth, Oracle, Recorded};
use ensilo_crash::random::Random;
use ensilo_crash::serial::{self, History, Plan, WORKER};
use ensilo_crash::setup::Setup;
use ensilo_test_disk::{Recorder, SimulatedDisk};

/// One life of a database over the engine `E`, begun on what a crash of the one before has left. After a power failure anywhere `R`
/// recovers it. Returns what a crash somewhere in the second half leaves.
pub(crate) fn life<E: Engine, R: Engine>(
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
