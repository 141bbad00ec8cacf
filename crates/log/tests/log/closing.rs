//! The end: everything is stored, and nobody waits for ever.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use ensilo_epoch::Epoch;
use ensilo_log::{LogError, LogOptions, ReserveError};
use ensilo_test_disk::{Recorder, SimulatedDisk};

use crate::rig::{Rig, options};

#[test]
fn what_was_committed_is_stored_at_the_end() {
    let disk = Arc::new(SimulatedDisk::new());
    for directories in [&["a"][..], &["b", "c", "d"]] {
        let rig = Rig::new(Arc::clone(&disk) as _, directories, &options());
        let mut workers: Vec<_> = (0..4).map(|number| rig.worker(number)).collect();
        for _ in 0..100 {
            workers.iter_mut().for_each(|worker| {
                worker.commit(50).unwrap();
            });
        }
        rig.log.close().unwrap();
        rig.log.close().unwrap();
        let committed: Vec<_> = workers.iter().flat_map(|worker| worker.committed.clone()).collect();
        let last = committed.iter().map(|&(_, epoch)| epoch).max().unwrap();
        rig.log.wait_durable(last).unwrap();
        // Closed means synced.
        let scan = rig.scan_on(&disk.fork().crash(3));
        scan.check(&committed, last);
        assert_eq!(scan.closed, directories.len());
        assert!(matches!(workers[0].commit(1), Err(LogError::Closed)));
    }
}

#[test]
fn a_power_failure_at_the_end_takes_nothing_with_it() {
    // The last block comes to lie in one sector or in two.
    for row_bytes in (0..512).step_by(32) {
        let recorder = Arc::new(Recorder::over(Arc::new(SimulatedDisk::new())));
        let rig = Rig::new(Arc::clone(&recorder) as _, &["log"], &options());
        let mut worker = rig.worker(1);
        let last = worker.commit(row_bytes).unwrap();
        rig.log.wait_durable(last).unwrap();
        let stored = recorder.position();
        rig.log.close().unwrap();
        let trace = recorder.trace();
        for position in stored..=trace.len() {
            for seed in 0..40 {
                // Checks that no file is shorter than it says, unless it ends in order.
                rig.scan_on(&trace.disk_after(position).crash(seed)).check(&worker.committed, last);
            }
        }
    }
}

#[test]
fn an_unused_log_is_closed_in_order() {
    let rig = Rig::somewhere(&["a", "b"], &options());
    rig.log.close().unwrap();
    let scan = rig.scan();
    assert_eq!((scan.closed, scan.transactions), (2, 0));
}

#[test]
fn nobody_waits_for_a_log_that_was_closed() {
    // The clock of an epoch a minute: whoever waits is let go by the end alone.
    let clock = ensilo_log::EpochClock::Fixed(Duration::from_secs(60));
    let options = LogOptions { buffer_bytes: 64, buffers_per_logger: 1, clock, ..options() };
    let rig = Rig::somewhere(&["log"], &options);
    let (sender, receiver) = channel();
    let far = Epoch::new(rig.epochs.global_epoch().get() + 1_000_000);
    rig.log.on_durable(far, Box::new(move |result| sender.send(result).unwrap()));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| rig.log.wait_durable(far));
        let committing = scope.spawn(|| {
            let mut worker = rig.worker(1);
            let ended = loop {
                if let Err(error) = worker.commit(1000) {
                    break error;
                }
            };
            assert_eq!(worker.writer.reserve(1), Err(ReserveError::Failed));
            ended
        });
        while rig.log.statistics().entry_bytes < 100_000 {
            thread::yield_now();
        }
        rig.log.close().unwrap();
        assert!(matches!(waiting.join().unwrap(), Err(LogError::Closed)));
        assert!(matches!(committing.join().unwrap(), LogError::Closed));
    });
    assert!(matches!(receiver.recv().unwrap(), Err(LogError::Closed)));
}

#[test]
fn a_commit_under_way_is_waited_for_and_stored() {
    let rig = Rig::somewhere(&["a", "b"], &options());
    let mut slow = rig.worker(1);
    let other = rig.worker(2).writer;
    slow.participant.begin_commit();
    let epoch = slow.participant.global_epoch();
    slow.writer.reserve(1000).unwrap();
    thread::scope(|scope| {
        let closing = scope.spawn(|| rig.log.close());
        let mut other = other;
        while other.reserve(1).is_ok() {
            thread::yield_now();
        }
        // The log takes nothing new; it must not end before this commit has, however long one looks.
        let looked = Instant::now();
        while looked.elapsed() < Duration::from_millis(100) {
            assert!(!closing.is_finished(), "closed over a commit that is under way");
            thread::yield_now();
        }
        slow.writer.begin(epoch.get() << 20 | 1 << 3, 1);
        slow.writer.put(1, &1_u64.to_be_bytes(), 8, [1]);
        slow.writer.publish();
        slow.participant.end_commit();
        closing.join().unwrap().unwrap();
    });
    rig.log.wait_durable(epoch).unwrap();
    assert_eq!((rig.scan().closed, rig.scan().transactions), (2, 1));
}

#[test]
fn who_waits_for_an_epoch_in_which_nothing_was_written_is_let_go_by_the_end() {
    let clock = ensilo_log::EpochClock::Fixed(Duration::from_secs(60));
    let rig = Rig::somewhere(&["a", "b"], &LogOptions { clock, ..options() });
    let epoch = rig.epochs.global_epoch();
    let (sender, receiver) = channel();
    rig.log.on_durable(epoch, Box::new(move |result| sender.send(result.is_ok()).unwrap()));
    rig.log.close().unwrap();
    assert!(receiver.recv().unwrap());
}

#[test]
fn a_commit_that_does_not_end_is_named_at_the_end() {
    let rig = Rig::somewhere(&["a", "b"], &options());
    let mut worker = rig.worker(1);
    let stuck = rig.worker(2);
    stuck.participant.begin_commit();
    worker.commit(10).unwrap();
    assert!(matches!(rig.log.close(), Err(LogError::Unfinished)));
    assert_eq!(rig.scan().closed, 0);
    stuck.participant.end_commit();
}

#[test]
fn a_dropped_log_is_closed() {
    let Rig { disk, log, epochs, .. } = Rig::somewhere(&["log"], &options());
    let mut writer = log.writer();
    drop(log);
    assert_eq!(writer.reserve(1), Err(ReserveError::Failed));
    assert!(matches!(writer.wait_for_buffer(), Err(LogError::Closed)));
    drop((disk, epochs));
}

#[test]
fn the_last_reference_may_go_in_a_callback() {
    for directories in [&["a"][..], &["b", "c"]] {
        let mut rig = Rig::somewhere(directories, &options());
        let mut worker = rig.worker(1);
        let epoch = worker.commit(10).unwrap();
        let other = Rig::somewhere(&["log"], &options());
        let log = std::mem::replace(&mut rig.log, Arc::clone(&other.log));
        let (sender, receiver) = channel();
        let held = Arc::clone(&log);
        log.on_durable(
            epoch,
            Box::new(move |result| {
                drop(held);
                sender.send(result.is_ok()).unwrap();
            }),
        );
        drop(log);
        // Either the drop here ended the log or the one in the callback.
        assert!(receiver.recv().unwrap());
    }
}
