//! The first failed write or sync ends the log, and everybody is told.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use ensilo_log::{LogError, LogOptions, ReserveError};
use ensilo_test_disk::{Faults, SimulatedDisk, SyncPause};

use crate::rig::{Rig, Watermark, options};

/// Workers commit until the log fails; returns the failure.
fn run_into(faults: Faults, directories: &[&str], options: &LogOptions) -> LogError {
    let disk = Arc::new(SimulatedDisk::new());
    let rig = Rig::new(Arc::clone(&disk) as _, directories, options);
    let acknowledged = Watermark::default();
    let workers: Vec<_> = (0..3).map(|number| rig.worker(number)).collect();
    disk.set_faults(faults);
    let committed = thread::scope(|scope| {
        let working: Vec<_> = workers
            .into_iter()
            .map(|mut worker| {
                let (rig, acknowledged) = (&rig, &acknowledged);
                scope.spawn(move || {
                    while let Ok(epoch) = worker.commit(300) {
                        if worker.sequence % 5 == 0 {
                            match rig.log.wait_durable(epoch) {
                                Ok(()) => acknowledged.raise(epoch),
                                Err(_) => break,
                            }
                        }
                    }
                    assert_eq!(worker.writer.reserve(1), Err(ReserveError::Failed));
                    worker.committed
                })
            })
            .collect();
        working.into_iter().flat_map(|working| working.join().unwrap()).collect::<Vec<_>>()
    });
    // Later callers too.
    let failure = rig.log.failure().unwrap();
    let durable = rig.log.durable_epoch();
    let epoch = rig.epochs.global_epoch();
    assert!(rig.log.wait_durable(epoch).is_err());
    let (sender, receiver) = channel();
    rig.log.on_durable(epoch, Box::new(move |result| sender.send(result.is_err()).unwrap()));
    assert!(receiver.recv().unwrap());
    rig.log.wait_durable(durable).unwrap();
    // The clock goes on for the readers.
    while rig.epochs.global_epoch() == epoch {
        thread::yield_now();
    }
    disk.set_faults(Faults::default());
    assert!(rig.log.close().is_err(), "closing does not make it good");
    assert_eq!(rig.log.durable_epoch(), durable);
    // What was acknowledged is there, and no clean end.
    for seed in 0..10 {
        let scan = rig.scan_on(&disk.fork().crash(seed));
        scan.check(&committed, acknowledged.get());
        assert!(scan.closed < directories.len());
    }
    failure
}

#[test]
fn a_failed_sync_is_final() {
    for (seed, at) in (0..).zip([1, 2, 5, 9]) {
        let faults = Faults { seed, sync_error_at: Some(at), ..Faults::default() };
        let failure = run_into(faults, &["log"], &options());
        assert!(matches!(failure, LogError::Sync { .. } | LogError::File { .. }), "{failure}");
    }
}

#[test]
fn a_failed_write_is_final() {
    for (seed, at) in (0..).zip([1, 2, 5, 9]) {
        let faults = Faults { seed, write_error_at: Some(at), ..Faults::default() };
        let failure = run_into(faults, &["a", "b"], &options());
        assert!(matches!(failure, LogError::Write { .. } | LogError::File { .. }), "{failure}");
    }
}

#[test]
fn a_full_disk_is_named() {
    for room in [3 << 20, (3 << 20) + 100_000, 5 << 20] {
        let options = LogOptions { file_bytes: 1 << 20, buffer_bytes: 4096, ..options() };
        let faults = Faults { no_space_after_bytes: Some(room), ..Faults::default() };
        let failure = run_into(faults, &["log"], &options);
        assert!(matches!(failure, LogError::NoSpace { .. }), "{failure}");
        assert!(failure.to_string().starts_with("no space is left"), "{failure}");
    }
}

#[test]
fn a_file_that_cannot_be_made_or_renamed_is_a_failure() {
    for at in 1..5 {
        let options = LogOptions { file_bytes: 10_000, ..options() };
        let faults = Faults { name_error_at: Some(at), ..Faults::default() };
        let failure = run_into(faults, &["a", "b"], &options);
        assert!(matches!(failure, LogError::File { .. }), "{failure}");
    }
}

#[test]
fn who_waits_while_the_sync_hangs_is_told_when_it_fails() {
    let disk = Arc::new(SimulatedDisk::new());
    let rig = Rig::new(Arc::clone(&disk) as _, &["log"], &options());
    let mut worker = rig.worker(1);
    let stored = worker.commit(10).unwrap();
    rig.log.wait_durable(stored).unwrap();
    let pause = SyncPause::new();
    disk.set_faults(Faults {
        sync_hangs: Some(Arc::clone(&pause)),
        // All: the first may be one of the file that is made ahead, beside a round that would succeed.
        sync_error_at: Some(1),
        goes_on_failing: true,
        ..Faults::default()
    });
    let epoch = worker.commit(10).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| rig.log.wait_durable(epoch));
        pause.wait_until_hanging(1);
        pause.end();
        let told = waiting.join().unwrap();
        assert!(matches!(told, Err(LogError::Sync { .. } | LogError::File { .. })), "{told:?}");
    });
}
