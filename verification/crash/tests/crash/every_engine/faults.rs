//! Disks that fail under a running database, and disks that are full: what was acknowledged survives, nothing is acknowledged after
//! the failure, reads go on, and the error says what happened.

use std::sync::{Arc, Mutex};
use std::thread;

use ensilo::{Durability, Error, LogError, Result};
use ensilo_crash::environment::is_long;
use ensilo_crash::explore::Acknowledged;
use ensilo_crash::omitted_syncs::{OmittedSync, OmittingDisk};
use ensilo_crash::serial::{self, History, Plan, WORKER};
use ensilo_crash::setup::Setup;
use ensilo_crash::state::DatabaseState;
use ensilo_disk::Disk;
use ensilo_test_disk::{Counts, Faults, Recorder, SimulatedDisk, SyncPause};

use super::*;

const STEPS: u64 = 80;

/// A database that has done some work already.
struct Rig {
    seed: u64,
    setup: Setup,
    disk: Arc<SimulatedDisk>,
    recorder: Arc<Recorder>,
    history: History,
    db: Database,
}

impl Rig {
    fn new(seed: u64) -> Rig {
        Rig::on(seed, |disk| disk as _)
    }

    /// A database on what `front` puts in front of the recorder.
    fn on(seed: u64, front: impl FnOnce(Arc<Recorder>) -> Arc<dyn Disk>) -> Rig {
        let setup = Setup { checkpoint_at_close: false, ..Setup::of(seed) };
        let disk = Arc::new(SimulatedDisk::new());
        let recorder = Arc::new(Recorder::over(Arc::clone(&disk)));
        let db = setup.open(front(Arc::clone(&recorder))).unwrap();
        let mut history = History::default();
        serial::run(&db, &recorder, &mut history, &Plan::new(seed, 20)).unwrap();
        Rig { seed, setup, disk, recorder, history, db }
    }

    fn work(&mut self) -> Result<()> {
        self.work_on(1)
    }

    /// Works for so many rounds, each with a plan of its own.
    fn work_on(&mut self, rounds: u64) -> Result<()> {
        (1..=rounds).try_for_each(|round| self.work_by(self.seed + round))
    }

    fn work_by(&mut self, plan: u64) -> Result<()> {
        let plan = Plan { survives_failed_checkpoints: true, ..Plan::new(plan, STEPS) };
        serial::run(&self.db, &self.recorder, &mut self.history, &plan)
    }

    /// What is found after a power failure, and after the process's end alone.
    fn check_survivors(self) -> Result<(), String> {
        let Rig { seed, setup, disk, recorder, history, db } = self;
        let acknowledged = Acknowledged::in_trace(&recorder.trace());
        assert!(acknowledged.of(WORKER) > 0);
        let mut found = vec![disk.fork().kill()];
        found.extend((0..3).map(|tear| disk.fork().crash(seed * 10 + tear)));
        drop(db);
        for disk in found {
            recover(&setup, disk, &history, &acknowledged)?;
        }
        Ok(())
    }
}

/// Works on a disk with these faults, until it fails or all is done. Returns the failure.
fn fail(seed: u64, faults: Faults, is_expected: impl Fn(&LogError) -> bool) -> Option<LogError> {
    fail_within(1, seed, |_| faults, is_expected)
}

/// As [`fail`], with so many rounds of work, and faults that follow from what lies on the disk.
fn fail_within(
    rounds: u64,
    seed: u64,
    faults: impl FnOnce(&SimulatedDisk) -> Faults,
    is_expected: impl Fn(&LogError) -> bool,
) -> Option<LogError> {
    let mut rig = Rig::new(seed);
    let faults = faults(&rig.disk);
    let what = format!("seed {seed}, {faults:?}");
    rig.disk.set_faults(faults);
    let outcome = rig.work_on(rounds);
    let failure = match outcome {
        Ok(()) => None,
        Err(Error::LogFailed(error)) => {
            assert!(is_expected(&error), "{what}: {error}");
            check_failed(&rig, &what);
            Some(*error)
        }
        Err(error) => panic!("{what}: {error}"),
    };
    rig.check_survivors().unwrap_or_else(|wrong| panic!("{what}: {wrong}"));
    failure
}

/// A database whose log has failed.
fn check_failed(rig: &Rig, what: &str) {
    let acknowledged = rig.recorder.trace().len();
    let refused = rig.db.create_index("wide", "never", [("second", ensilo::Order::Ascending)]);
    assert!(matches!(refused, Err(Error::LogFailed(_))), "{what}: {refused:?}");
    let wide: Table<ensilo_crash::schema::Wide> = rig.db.open_table().unwrap();
    for level in [Durability::Visible, Durability::Stored] {
        let refused = rig.db.request().durability(level).transact(|tx| wide.delete(tx, 1));
        let has_row = !matches!(refused, Ok(false));
        assert!(!has_row || matches!(refused, Err(Error::LogFailed(_))), "{what}: {refused:?}");
    }
    let state = DatabaseState::read_at(&rig.db, Durability::Visible)
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(rig.history.has(&state), "{what}: {state:?}");
    assert!(matches!(rig.db.checkpoint(), Err(Error::LogFailed(_) | Error::CheckpointFailed(_))), "{what}");
    let notes = rig.recorder.trace();
    let late = &notes.operations()[acknowledged..];
    assert!(!late.iter().any(|late| matches!(late, ensilo_test_disk::Operation::Note(_))), "{what}");
    assert!(rig.db.close().is_err(), "{what}");
}

#[test]
fn what_is_acknowledged_before_the_sync_is_missed() {
    let mut found = (0..400).filter_map(|seed| {
        let mut omitting = None;
        let mut rig = Rig::on(seed, |disk| {
            let disk = Arc::new(OmittingDisk::new(disk, OmittedSync::Log));
            omitting = Some(Arc::clone(&disk));
            disk
        });
        omitting.unwrap().begin_to_omit();
        rig.work().unwrap();
        rig.check_survivors().err()
    });
    // Either what was acknowledged is not there, or blocks that say what was synced stop the opening before that can show.
    assert!(found.next().is_some());
}

/// How many operations of each kind the work makes without faults.
fn counts(seed: u64) -> Counts {
    let mut rig = Rig::new(seed);
    rig.disk.set_faults(Faults::default());
    rig.work().unwrap();
    rig.disk.counts()
}

/// So many of the numbers up to `count`, or all of them in a long run.
fn some(count: u64, wanted: u64) -> impl Iterator<Item = u64> {
    let step = if is_long() { 1 } else { (count / wanted).max(1) };
    (1..=count).step_by(step as usize)
}

#[test]
fn every_write_error_is_final_or_fails_a_checkpoint() {
    let mut failures = 0;
    for nth in some(counts(1).writes, 12) {
        let faults = Faults { seed: nth, write_error_at: Some(nth), ..Faults::default() };
        let is_write = |error: &LogError| matches!(error, LogError::Write { .. } | LogError::File { .. });
        failures += u64::from(fail(nth, faults, is_write).is_some());
    }
    assert!(failures > 0);
}

#[test]
fn every_sync_error_is_final_or_fails_a_checkpoint() {
    let mut failures = 0;
    for nth in some(counts(2).syncs, 12) {
        let faults = Faults { seed: nth, sync_error_at: Some(nth), ..Faults::default() };
        let is_sync = |error: &LogError| matches!(error, LogError::Sync { .. } | LogError::File { .. });
        failures += u64::from(fail(nth + 100, faults, is_sync).is_some());
    }
    assert!(failures > 0);
}

#[test]
fn every_failed_change_of_a_name_is_final_or_fails_a_checkpoint() {
    let mut failures = 0;
    for nth in some(counts(3).name_changes, 12) {
        let faults = Faults { seed: nth, name_error_at: Some(nth), ..Faults::default() };
        let is_name = |error: &LogError| matches!(error, LogError::File { .. });
        failures += u64::from(fail(nth + 200, faults, is_name).is_some());
    }
    assert!(failures > 0);
}

/// Works on a disk with room for so many bytes more, until that is full or all is done. Returns whether it was full.
fn fills_up(seed: u64, more: u64) -> bool {
    let faults = |disk: &SimulatedDisk| {
        let used: u64 = disk.files().iter().map(|(_, len)| len).sum();
        Faults { seed: more, no_space_after_bytes: Some(used + more), ..Faults::default() }
    };
    // The log goes on in the room that it has; without any more it comes to an end, which takes a while.
    let rounds = if more == 0 { 100 } else { 1 };
    let failure = fail_within(rounds, seed, faults, |error| matches!(error, LogError::NoSpace { .. }));
    if let Some(failure) = &failure {
        assert!(failure.to_string().contains("no space"), "{failure}");
    }
    failure.is_some()
}

#[test]
fn a_full_disk_is_named() {
    let step = if is_long() { 16 << 10 } else { 512 << 10 };
    let mut failures = 0;
    for seed in 0..share(2) {
        failures += (0..5 << 20).step_by(step).filter(|&more| fills_up(seed, more)).count();
    }
    // Over ERMIA's engine the work may come to its end first, which is a matter of time: then it does not with some other seed.
    assert!(failures > 0 || (2..22).any(|seed| fills_up(seed, 0)));
}

#[test]
fn opening_on_a_full_disk_fails_and_harms_nothing() {
    let rig = Rig::new(5);
    let acknowledged = Acknowledged::in_trace(&rig.recorder.trace());
    let disk = rig.disk.fork().kill();
    let used: u64 = disk.files().iter().map(|(_, len)| len).sum();
    let sizes = (3 << 20) >> if is_long() { 12 } else { 16 };
    for more in (0..3 << 20).step_by((3 << 20) / share(sizes) as usize) {
        let disk = Arc::new(disk.fork());
        disk.set_faults(Faults { no_space_after_bytes: Some(used + more), ..Faults::default() });
        match rig.setup.open::<Engine>(Arc::clone(&disk) as _) {
            Ok(db) => drop(db),
            Err(error) => assert!(error.to_string().contains("full"), "{error}"),
        }
        recover(&rig.setup, disk.crash(more), &rig.history, &acknowledged).unwrap();
    }
}

#[test]
fn nothing_is_acknowledged_while_a_sync_hangs() {
    for seed in 0..if is_long() { 40 } else { share(3) } {
        let Rig { setup, disk, recorder, history, db, .. } = Rig::new(seed);
        let pause = SyncPause::new();
        disk.set_faults(Faults { sync_hangs: Some(Arc::clone(&pause)), ..Faults::default() });
        let history = Mutex::new(history);
        let mut crashed = Vec::new();
        thread::scope(|scope| {
            let work = scope.spawn(|| {
                let plan = Plan::new(seed, 40);
                let outcome = serial::run(&db, &recorder, &mut history.lock().unwrap(), &plan);
                pause.end();
                outcome
            });
            for tear in 0..30 {
                while pause.hanging() == 0 && !work.is_finished() {
                    thread::yield_now();
                }
                // What hangs is not synced, and nobody may have been told that it is.
                let acknowledged = Acknowledged::in_trace(&recorder.trace());
                crashed.push((disk.fork().crash(seed * 100 + tear), acknowledged));
                pause.let_one_pass();
            }
            pause.end();
            work.join().unwrap().unwrap();
        });
        let history = history.into_inner().unwrap();
        for (disk, acknowledged) in crashed {
            recover(&setup, disk, &history, &acknowledged).unwrap();
        }
    }
}
