//! Rounds that are made by threads that would wait for them.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use ensilo_disk::{Disk, File};
use ensilo_log::{EpochClock, LogError, LogOptions};
use ensilo_test_disk::{Faults, SimulatedDisk, SyncPause, forward_disk, forward_file};

use crate::rig::{Rig, options};

#[test]
fn a_single_client_makes_its_rounds_itself() {
    let rig = Rig::somewhere(&["log"], &options());
    let mut worker = rig.worker(1);
    let before = rig.log.statistics().caller_rounds;
    for _ in 0..200 {
        let epoch = worker.commit(30).unwrap();
        rig.log.wait_durable(epoch).unwrap();
        rig.scan().check(&worker.committed, epoch);
    }
    // The log's thread makes some, too: when it looks around of itself.
    let made = rig.log.statistics().caller_rounds - before;
    assert!((1..=200).contains(&made), "{made}");
}

#[test]
fn a_clock_alone_leaves_no_round_to_callers() {
    let clock = EpochClock::Fixed(Duration::from_millis(1));
    let rig = Rig::somewhere(&["log"], &LogOptions { clock, ..options() });
    let mut worker = rig.worker(1);
    for _ in 0..20 {
        let epoch = worker.commit(30).unwrap();
        rig.log.wait_durable(epoch).unwrap();
    }
    assert_eq!(rig.log.statistics().caller_rounds, 0);
}

#[test]
fn what_the_program_is_called_back_for_is_left_to_the_log() {
    let rig = Rig::somewhere(&["a", "b"], &options());
    let (sender, receiver) = channel();
    let mut worker = rig.worker(1);
    for _ in 0..200 {
        let epoch = worker.commit(30).unwrap();
        let sender = sender.clone();
        let caller = thread::current().id();
        rig.log.on_durable(
            epoch,
            Box::new(move |result| {
                sender.send((result.is_ok(), thread::current().id() == caller)).unwrap();
            }),
        );
        rig.log.wait_durable(epoch).unwrap();
    }
    for _ in 0..200 {
        assert_eq!(receiver.recv().unwrap(), (true, false));
    }
}

#[test]
fn a_sync_that_fails_in_a_callers_round_ends_the_log() {
    for first_failing in 1..4 {
        let disk = Arc::new(SimulatedDisk::new());
        let rig = Rig::new(Arc::clone(&disk) as _, &["log"], &options());
        let mut worker = rig.worker(1);
        let stored = worker.commit(10).unwrap();
        rig.log.wait_durable(stored).unwrap();
        // Counted from here; the file that comes next may be synced in between.
        disk.set_faults(Faults { sync_error_at: Some(first_failing), ..Faults::default() });
        let failure = (0..10).find_map(|_| {
            let epoch = worker.commit(10).unwrap_or_else(|_| rig.epochs.global_epoch());
            rig.log.wait_durable(epoch).err()
        });
        assert!(matches!(failure, Some(LogError::Sync { .. })), "{failure:?}");
        assert!(rig.log.failure().is_some());
        let durable = rig.log.durable_epoch();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert!(rig.log.wait_durable(rig.epochs.global_epoch()).is_err()));
            }
        });
        assert_eq!(rig.log.durable_epoch(), durable);
        rig.log.close().unwrap_err();
    }
}

#[test]
fn a_log_is_closed_although_a_callers_round_hangs() {
    let disk = Arc::new(SimulatedDisk::new());
    let rig = Rig::new(Arc::clone(&disk) as _, &["log"], &options());
    let mut worker = rig.worker(1);
    let stored = worker.commit(10).unwrap();
    rig.log.wait_durable(stored).unwrap();
    let pause = SyncPause::new();
    disk.set_faults(Faults { sync_hangs: Some(Arc::clone(&pause)), ..Faults::default() });
    let epoch = worker.commit(10).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| rig.log.wait_durable(epoch));
        pause.wait_until_hanging(1);
        let closing = scope.spawn(|| rig.log.close());
        pause.end();
        waiting.join().unwrap().unwrap();
        closing.join().unwrap().unwrap();
    });
    rig.scan().check(&worker.committed, epoch);
}

/// A disk whose syncs panic once they are to.
#[derive(Debug)]
struct PanickingDisk {
    inner: SimulatedDisk,
    panics: Arc<AtomicBool>,
}

#[derive(Debug)]
struct PanickingFile {
    inner: Box<dyn File>,
    panics: Arc<AtomicBool>,
}

impl Disk for PanickingDisk {
    forward_disk!(|self, path| self.inner; open, open_read, rename, remove, remove_dir, list, create_dir_all);
    forward_disk!(|self, path| self.inner; sync_dir, exists, free_bytes, place, lock, lock_shared);

    fn create(&self, path: &Path, preallocate_bytes: u64) -> io::Result<Box<dyn File>> {
        let inner = self.inner.create(path, preallocate_bytes)?;
        Ok(Box::new(PanickingFile { inner, panics: Arc::clone(&self.panics) }))
    }
}

impl File for PanickingFile {
    forward_file!(|self| self.inner; len_bytes, read_at, write_at, sync_all, set_len);

    fn sync_data(&self) -> io::Result<()> {
        assert!(!self.panics.load(Ordering::Relaxed), "on purpose");
        self.inner.sync_data()
    }
}

#[test]
fn a_panic_in_a_callers_round_ends_the_log() {
    let panics = Arc::new(AtomicBool::new(false));
    let disk = PanickingDisk { inner: SimulatedDisk::new(), panics: Arc::clone(&panics) };
    let rig = Rig::new(Arc::new(disk), &["log"], &options());
    let mut worker = rig.worker(1);
    let epoch = worker.commit(10).unwrap();
    panics.store(true, Ordering::Relaxed);
    // The round is this thread's, or was made by the log's just before.
    let waited = catch_unwind(AssertUnwindSafe(|| rig.log.wait_durable(epoch)));
    assert!(!matches!(waited, Ok(Ok(()))) || rig.log.durable_epoch() >= epoch);
    let later = catch_unwind(AssertUnwindSafe(|| rig.log.wait_durable(rig.epochs.global_epoch())));
    assert!(!matches!(later, Ok(Ok(()))));
    assert!(matches!(rig.log.wait_durable(rig.epochs.global_epoch()), Err(LogError::Panicked)));
    assert!(matches!(rig.log.close(), Err(LogError::Panicked)));
}
