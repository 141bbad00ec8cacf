//! A power failure after every operation of a run during which backups are made.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ensilo::{Error, Result};
use ensilo_crash::environment::seed_or;
use ensilo_crash::explore::{Acknowledged, Depth, Oracle, Recorded};
use ensilo_crash::progress;
use ensilo_crash::serial::{self, History, Plan, WORKER};
use ensilo_crash::setup::Setup;
use ensilo_disk::Disk;
use ensilo_test_disk::{Operation, Recorder, SimulatedDisk, Trace};

use super::*;

/// A backup that was made, and where in the trace.
struct Made {
    directory: String,
    begin: usize,
    end: usize,
}

/// Makes backups one after the other until told to stop.
fn make_backups(db: &Database, recorder: &Recorder, is_over: &AtomicBool) -> Vec<Made> {
    let mut made = Vec::new();
    while made.is_empty() || !is_over.load(Ordering::Relaxed) {
        let (directory, begin) = (format!("/backup-{}", made.len()), recorder.position());
        db.backup(&directory).unwrap();
        made.push(Made { directory, begin, end: recorder.position() });
    }
    made
}

/// What was acknowledged before a position.
fn acknowledged_before(trace: &Trace, position: usize) -> Acknowledged {
    let mut acknowledged = Acknowledged::default();
    for operation in &trace.operations()[..position] {
        if let Operation::Note(mark) = operation {
            acknowledged.take(*mark);
        }
    }
    acknowledged
}

fn open(disk: &Arc<SimulatedDisk>, directory: &str) -> Result<Database> {
    let disk = Arc::clone(disk) as Arc<dyn Disk>;
    Setup::default().options(Path::new(directory)).open_with(disk, directory)
}

fn is_there(disk: &SimulatedDisk, directory: &str) -> bool {
    let listed = disk.list(Path::new(directory));
    listed.is_ok_and(|names| names.iter().any(|entry| entry.name == "MANIFEST"))
}

fn is_empty(disk: &SimulatedDisk, directory: &str) -> bool {
    disk.list(Path::new(directory)).map_or(true, |names| names.is_empty())
}

/// A backup after a crash at `position`: it is whole, or it is refused, or there is nothing.
fn check_backup(disk: &Arc<SimulatedDisk>, made: &Made, position: usize, expected: &Expected<'_>) -> Outcome {
    let directory = &made.directory;
    let (is_there, is_empty) = (is_there(disk, directory), is_empty(disk, directory));
    let is_made = made.end <= position;
    match open(disk, directory) {
        Ok(db) if is_there => {
            let acknowledged = acknowledged_before(expected.trace, made.begin);
            Oracle::<Engine>::check(expected.history, &db, &acknowledged).unwrap();
            Outcome::Whole
        }
        Ok(_) => {
            assert!(is_empty && !is_made, "a part of {directory} was opened as a new database");
            Outcome::Nothing
        }
        Err(Error::Open(why)) => {
            assert!(!is_made, "{directory}: {why}");
            assert!(why.to_string().contains("was not finished"), "{why}");
            Outcome::Refused
        }
        Err(error) => panic!("{error}"),
    }
}

struct Expected<'e> {
    trace: &'e Trace,
    history: &'e History,
}

#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    Whole,
    Refused,
    Nothing,
}

fn crash_during_backups(seed: u64, steps: u64, crashes: usize) -> Vec<Outcome> {
    let setup = Setup::of(seed);
    let recorder = Arc::new(Recorder::over(Arc::new(SimulatedDisk::new())));
    let db: Database = setup.open(Arc::clone(&recorder) as _).unwrap();
    let (mut history, is_over) = (History::default(), AtomicBool::new(false));
    let made = thread::scope(|scope| {
        let backups = scope.spawn(|| make_backups(&db, &recorder, &is_over));
        let done = serial::run(&db, &recorder, &mut history, &Plan::new(seed, steps));
        is_over.store(true, Ordering::Relaxed);
        done.unwrap();
        backups.join().unwrap()
    });
    db.close().unwrap();
    let trace = recorder.trace();
    let depth = Depth::of(&trace, crashes, seed);
    // The database itself.
    let mut acknowledged = Acknowledged::default();
    acknowledged.raise(WORKER, 0);
    let recorded = Recorded { seed, trace: &trace, acknowledged, setup };
    let explored = recorded.explore::<Engine, _>(&history, &depth).unwrap_or_else(|what| panic!("{what}"));
    println!("seed {seed}: {} operations, {} backups, {explored}", trace.len(), made.len());
    // The backups that were under way or had just been made.
    let expected = Expected { trace: &trace, history: &history };
    let mut outcomes = Vec::new();
    let mut cursor = trace.cursor();
    let positions = (depth.offset..trace.len()).step_by(depth.every);
    let bar = progress::bar("backups", positions.len() as u64);
    for position in positions {
        while cursor.position() < position {
            cursor.step();
        }
        let begun = made.iter().filter(|made| made.begin < position).rev().take(2);
        for made in begun {
            for tear in 0..=depth.tears {
                let disk = match tear {
                    0 => cursor.disk().kill(),
                    tear => cursor.disk().crash(seed ^ (position as u64) << 20 ^ tear),
                };
                outcomes.push(check_backup(&Arc::new(disk), made, position, &expected));
            }
        }
        bar.inc(1);
    }
    outcomes
}

#[test]
fn a_crash_leaves_a_backup_whole_or_refused_and_the_database_unharmed() {
    let outcomes: Vec<_> =
        (1..1 + share(3)).flat_map(|seed| crash_during_backups(seed_or(1) * 10 + seed, 60, 40)).collect();
    let count = |what| outcomes.iter().filter(|outcome| **outcome == what).count();
    let (whole, refused, nothing) = (count(Outcome::Whole), count(Outcome::Refused), count(Outcome::Nothing));
    println!("{whole} whole, {refused} refused, {nothing} with nothing in them");
    assert!(whole > 0 && refused > 0);
}
