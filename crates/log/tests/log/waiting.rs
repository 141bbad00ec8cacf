//! Who is let go, and when.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use ensilo_disk::RealDisk;
use ensilo_epoch::Epoch;
use ensilo_log::{EpochClock, LogError, LogOptions};
use ensilo_test_disk::{Faults, SimulatedDisk, SyncPause};

use crate::rig::{Rig, TemporaryDirectory, options};

#[test]
fn a_commit_is_stored_and_found() {
    let directory = TemporaryDirectory::new("stored");
    let log = directory.path().join("log");
    let rig = Rig::new(Arc::new(RealDisk), &[log.to_str().unwrap()], &options());
    let mut worker = rig.worker(1);
    for _ in 0..20 {
        let epoch = worker.commit(100).unwrap();
        rig.log.wait_durable(epoch).unwrap();
        assert!(rig.log.durable_epoch() >= epoch);
        rig.scan().check(&worker.committed, epoch);
    }
    let statistics = rig.log.statistics();
    assert_eq!(statistics.transactions, 20);
    assert!(statistics.syncs >= 20 && statistics.blocks >= 20, "{statistics:?}");
    assert!(statistics.written_bytes > statistics.entry_bytes && statistics.entry_bytes > 2000);
}

#[test]
fn nobody_has_to_wait_for_commits_to_be_stored() {
    let rig = Rig::somewhere(&["log"], &options());
    let mut worker = rig.worker(1);
    let epoch = worker.commit(10).unwrap();
    while rig.log.durable_epoch() < epoch {
        thread::yield_now();
    }
    rig.scan().check(&worker.committed, epoch);
}

#[test]
fn epochs_go_on_without_work_and_idle_loggers_write_nothing() {
    let rig = Rig::somewhere(&["a", "b"], &options());
    let mut worker = rig.worker(1);
    let epoch = worker.commit(10).unwrap();
    rig.log.wait_durable(epoch).unwrap();
    let wait_for_epochs = || {
        let start = rig.epochs.global_epoch();
        while rig.epochs.global_epoch().get() < start.get() + 5 {
            thread::yield_now();
        }
    };
    wait_for_epochs();
    // The round behind the last commit, by both loggers.
    while rig.log.statistics().syncs < 4 {
        thread::yield_now();
    }
    let before = rig.log.statistics();
    wait_for_epochs();
    let after = rig.log.statistics();
    assert_eq!((before.syncs, before.written_bytes), (after.syncs, after.written_bytes));
    assert!(after.ticks > before.ticks);
}

#[test]
fn an_epoch_without_transactions_becomes_durable_for_who_waits() {
    let rig = Rig::somewhere(&["a", "b"], &options());
    for _ in 0..5 {
        rig.log.wait_durable(rig.epochs.global_epoch()).unwrap();
    }
}

#[test]
fn a_sync_that_hangs_lets_nobody_go() {
    let disk = Arc::new(SimulatedDisk::new());
    let rig = Rig::new(Arc::clone(&disk) as _, &["log"], &options());
    let mut worker = rig.worker(1);
    let first = worker.commit(10).unwrap();
    rig.log.wait_durable(first).unwrap();

    let pause = SyncPause::new();
    disk.set_faults(Faults { sync_hangs: Some(Arc::clone(&pause)), ..Faults::default() });
    let epoch = worker.commit(10).unwrap();
    let released = AtomicUsize::new(0);
    let (sender, receiver) = channel();
    rig.log.on_durable(epoch, Box::new(move |result| sender.send(result.is_ok()).unwrap()));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                rig.log.wait_durable(epoch).unwrap();
                released.fetch_add(1, Ordering::SeqCst);
            });
        }
        pause.wait_until_hanging(1);
        // The clock goes on, and what was durable is.
        let start = rig.epochs.global_epoch();
        while rig.epochs.global_epoch().get() < start.get() + 5 {
            thread::yield_now();
        }
        rig.log.wait_durable(first).unwrap();
        assert!(rig.log.durable_epoch() < epoch);
        assert_eq!(released.load(Ordering::SeqCst), 0);
        assert!(receiver.try_recv().is_err());
        // Power fails: the commit may be gone, and nobody was told that it was there.
        rig.scan_on(&disk.fork().crash(1)).check(&[], first);
        pause.end();
    });
    assert_eq!(released.load(Ordering::SeqCst), 3);
    assert!(receiver.recv().unwrap());
    rig.scan().check(&worker.committed, epoch);
}

#[test]
fn one_logger_that_hangs_holds_the_durable_epoch_back() {
    let disk = Arc::new(SimulatedDisk::new());
    let rig = Rig::new(Arc::clone(&disk) as _, &["a", "b"], &options());
    let (mut one, mut other) = (rig.worker(1), rig.worker(2));
    let first = one.commit(10).unwrap().max(other.commit(10).unwrap());
    rig.log.wait_durable(first).unwrap();
    let pause = SyncPause::new();
    disk.set_faults(Faults { sync_hangs: Some(Arc::clone(&pause)), ..Faults::default() });
    let epoch = one.commit(10).unwrap();
    pause.wait_until_hanging(2);
    pause.let_one_pass();
    let start = rig.epochs.global_epoch();
    while rig.epochs.global_epoch().get() < start.get() + 3 {
        thread::yield_now();
    }
    assert!(rig.log.durable_epoch() < epoch);
    pause.end();
    rig.log.wait_durable(epoch).unwrap();
}

#[test]
fn many_threads_wait_for_many_epochs() {
    for clock in [options().clock, EpochClock::Fixed(Duration::from_millis(2))] {
        let options = LogOptions { clock, ..options() };
        let rig = Rig::somewhere(&["a", "b"], &options);
        let called = Arc::new(Mutex::new(Vec::new()));
        thread::scope(|scope| {
            for number in 0..8 {
                let (rig, called) = (&rig, Arc::clone(&called));
                scope.spawn(move || {
                    let mut worker = rig.worker(number);
                    for _ in 0..25 {
                        let epoch = worker.commit(30).unwrap();
                        let called = Arc::clone(&called);
                        let log = Arc::downgrade(&rig.log);
                        rig.log.on_durable(
                            epoch,
                            Box::new(move |result| {
                                result.unwrap();
                                assert!(log.upgrade().is_none_or(|log| log.durable_epoch() >= epoch));
                                called.lock().unwrap().push(epoch);
                            }),
                        );
                        rig.log.wait_durable(epoch).unwrap();
                        assert!(rig.log.durable_epoch() >= epoch);
                    }
                });
            }
        });
        rig.log.close().unwrap();
        assert_eq!(called.lock().unwrap().len(), 200);
    }
}

#[test]
fn a_callback_that_panics_hurts_nobody() {
    let rig = Rig::somewhere(&["log"], &options());
    let mut worker = rig.worker(1);
    let epoch = worker.commit(10).unwrap();
    rig.log.on_durable(epoch, Box::new(|_| panic!("of a callback")));
    rig.log.wait_durable(epoch).unwrap();
    let epoch = worker.commit(10).unwrap();
    rig.log.wait_durable(epoch).unwrap();
    rig.log.close().unwrap();
}

#[test]
fn an_answer_that_is_known_comes_at_once() {
    let rig = Rig::somewhere(&["log"], &options());
    let (sender, receiver) = channel();
    rig.log.on_durable(Epoch::new(1), Box::new(move |result| sender.send(result.is_ok()).unwrap()));
    assert!(receiver.try_recv().unwrap());
}

#[test]
fn a_call_for_the_next_epoch_is_forgotten_or_ended_while_the_log_goes_on() {
    let rig = Rig::somewhere(&["log"], &options());
    let far = Epoch::new(rig.epochs.global_epoch().get() + 1_000_000);
    let (held, kept) = (Arc::new(()), Arc::new(()));
    let holding = |held: &Arc<()>| {
        let held = Arc::clone(held);
        rig.log.on_next_durable(far, Box::new(move |_| drop(held)))
    };
    // The durable epoch may move, with which calls are made.
    let until_dropped = |held: &Arc<()>| {
        while Arc::strong_count(held) > 1 {
            thread::yield_now()
        }
    };
    holding(&held).into_iter().for_each(|number| rig.log.forget_next(number));
    until_dropped(&held);
    holding(&kept);
    rig.log.end_next_waits();
    until_dropped(&kept);
    let (sender, receiver) = channel();
    let number = rig.log.on_next_durable(far, Box::new(move |result| sender.send(result).unwrap()));
    assert!(number.is_none());
    assert!(matches!(receiver.try_recv().unwrap(), Err(LogError::Closed)));
    let epoch = rig.worker(1).commit(10).unwrap();
    rig.log.wait_durable(epoch).unwrap();
}

#[test]
fn a_commit_under_way_holds_back_its_epoch_alone() {
    let rig = Rig::somewhere(&["log"], &options());
    let slow = rig.worker(1);
    let mut worker = rig.worker(2);
    let stored = worker.commit(10).unwrap();
    rig.log.wait_durable(stored).unwrap();
    slow.participant.begin_commit();
    let held = slow.participant.global_epoch();
    let epoch = worker.commit(10).unwrap();
    let start = rig.epochs.global_epoch();
    while rig.epochs.global_epoch().get() < start.get() + 5 {
        thread::yield_now();
    }
    assert!(rig.log.durable_epoch() < held.max(Epoch::new(epoch.get() + 1)));
    slow.participant.end_commit();
    rig.log.wait_durable(epoch).unwrap();
    rig.scan().check(&worker.committed, epoch);
}

#[test]
fn rounds_become_rare_while_nobody_waits() {
    let clock = EpochClock::ByLoggers { max: Duration::from_millis(40) };
    let rig = Rig::somewhere(&["log"], &LogOptions { clock, ..options() });
    let mut worker = rig.worker(1);
    let begin = Instant::now();
    for _ in 0..10 {
        let seen = rig.log.durable_epoch();
        while rig.log.durable_epoch() == seen {
            worker.commit(10).unwrap();
            thread::yield_now();
        }
    }
    // The second round comes 10 ms after the first, the third one 20 ms later, the seven others 40 ms each.
    assert!(begin.elapsed() >= Duration::from_millis(310), "{:?}", begin.elapsed());
}
