//! Rounds that are made by threads that would wait for them.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use ensilo_disk::{Disk, File};
use ensilo_epoch::Epoch;
use ensilo_log::{EpochClock, LogError, LogOptions};
use ensilo_test_disk::{Faults, SimulatedDisk, SyncPause, forward_disk, forward_file};

use crate::rig::{Rig, Worker, options};

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
        // What is stored when it is asked for is answered at once.
        let is_asking = Arc::new(AtomicBool::new(true));
        let is_at_once = Arc::clone(&is_asking);
        rig.log.on_durable(
            epoch,
            Box::new(move |result| {
                let is_callers = thread::current().id() == caller && !is_at_once.load(Ordering::Relaxed);
                sender.send((result.is_ok(), is_callers)).unwrap();
            }),
        );
        is_asking.store(false, Ordering::Relaxed);
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
        // It may hit the next file, which is made on another thread: how soon the log knows of it is a matter of time.
        let failure = (0..1_000_000).find_map(|_| {
            let epoch = worker.commit(10).unwrap_or_else(|_| rig.epochs.global_epoch());
            rig.log.wait_durable(epoch).err()
        });
        assert!(matches!(failure, Some(LogError::Sync { .. } | LogError::File { .. })), "{failure:?}");
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

/// Commits when it is dropped, as a destructor of the program may.
struct Commits<'a>(&'a Rig, &'a mut Worker);

impl Drop for Commits<'_> {
    fn drop(&mut self) {
        let epoch = self.1.commit(10).unwrap();
        self.0.log.wait_durable(epoch).unwrap();
    }
}

#[test]
fn a_wait_in_a_destructor_behind_a_panic_of_the_program_leaves_the_log_alone() {
    let rig = Rig::somewhere(&["log"], &options());
    let mut worker = rig.worker(1);
    for _ in 0..20 {
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let _commits = Commits(&rig, &mut worker);
            panic!("of the program");
        }));
        assert!(caught.is_err() && rig.log.failure().is_none());
    }
    // Asked before the files are read: the log goes on.
    let durable = rig.log.durable_epoch();
    rig.scan().check(&worker.committed, durable);
}

#[test]
fn who_waits_for_an_epoch_to_come_is_served_behind_a_callers_round() {
    let clock = EpochClock::ByLoggers { max: Duration::from_secs(3600) };
    let rig = Rig::somewhere(&["log"], &LogOptions { clock, ..options() });
    let (sender, receiver) = channel();
    for _ in 0..20 {
        let sender = sender.clone();
        let next = Epoch::new(rig.epochs.global_epoch().get() + 1);
        rig.log.on_durable(next, Box::new(move |result| sender.send(result.is_ok()).unwrap()));
        rig.log.wait_durable(rig.epochs.global_epoch()).unwrap();
        assert!(receiver.recv().unwrap());
    }
}

/// Three threads commit, ask to be called back, and wait, until the log is closed after `open_for`. Each
/// callback is to come once, and on no thread that waits.
fn close_under_load(rig: &Rig, open_for: Duration) {
    let (asked, answered, by_callers) = (AtomicU64::new(0), Arc::default(), Arc::default());
    thread::scope(|scope| {
        for number in 0..3 {
            let (asked, answered, by_callers) = (&asked, Arc::clone(&answered), Arc::clone(&by_callers));
            scope.spawn(move || {
                let mut worker = rig.worker(number);
                while let Ok(epoch) = worker.commit(30) {
                    asked.fetch_add(1, Ordering::Relaxed);
                    let is_known = call_back(rig, epoch, &answered, &by_callers);
                    is_known.store(false, Ordering::Relaxed);
                    if rig.log.wait_durable(epoch).is_err() {
                        break;
                    }
                }
            });
        }
        thread::sleep(open_for);
        // A failure was planned in some.
        let _ = rig.log.close();
    });
    assert_eq!(asked.into_inner(), answered.load(Ordering::Relaxed));
    assert_eq!(by_callers.load(Ordering::Relaxed), 0, "calls on the thread of a caller that waits");
}

/// Asks to be called back. As long as the flag that it returns is set, the answer may come on this thread,
/// because it is known.
fn call_back(
    rig: &Rig,
    epoch: Epoch,
    answered: &Arc<AtomicU64>,
    by_callers: &Arc<AtomicU64>,
) -> Arc<AtomicBool> {
    let is_known = Arc::new(AtomicBool::new(true));
    let (known, answered, by_callers) = (Arc::clone(&is_known), Arc::clone(answered), Arc::clone(by_callers));
    let caller = thread::current().id();
    rig.log.on_durable(
        epoch,
        Box::new(move |_| {
            answered.fetch_add(1, Ordering::Relaxed);
            if thread::current().id() == caller && !known.load(Ordering::Relaxed) {
                by_callers.fetch_add(1, Ordering::Relaxed);
            }
        }),
    );
    is_known
}

#[test]
fn whenever_a_log_is_closed_or_fails_each_callback_comes_once_and_by_no_caller() {
    for run in 0..400 {
        let disk = Arc::new(SimulatedDisk::new());
        let directories = [&["a"][..], &["a", "b"], &["a", "b", "c"]][run % 3];
        let rig = Rig::new(Arc::clone(&disk) as _, directories, &options());
        if run % 4 == 0 {
            disk.set_faults(Faults { sync_error_at: Some(1 + run as u64 % 40), ..Faults::default() });
        }
        close_under_load(&rig, Duration::from_micros(run as u64 * 377 % 5000));
    }
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
    let (sender, receiver) = channel();
    let (caller, far) = (thread::current().id(), Epoch::new(1 << 30));
    rig.log.on_durable(far, Box::new(move |_| sender.send(thread::current().id() == caller).unwrap()));
    let epoch = worker.commit(10).unwrap();
    panics.store(true, Ordering::Relaxed);
    // The round is this thread's, or was made by the log's just before.
    let waited = catch_unwind(AssertUnwindSafe(|| rig.log.wait_durable(epoch)));
    assert!(!matches!(waited, Ok(Ok(()))) || rig.log.durable_epoch() >= epoch);
    let later = catch_unwind(AssertUnwindSafe(|| rig.log.wait_durable(rig.epochs.global_epoch())));
    assert!(!matches!(later, Ok(Ok(()))));
    assert!(matches!(rig.log.wait_durable(rig.epochs.global_epoch()), Err(LogError::Panicked)));
    assert!(!receiver.recv().unwrap(), "called on the thread that panicked");
    assert!(matches!(rig.log.close(), Err(LogError::Panicked)));
}
