//! The central log buffer, from workers whose stamps are its places to the files.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use ensilo_epoch::Epoch;
use ensilo_log::{
    EpochClock, LogError, LogOptions, Place, RECORD_BYTES_MAX, ReserveError, UNITS_PER_EPOCH, put_bytes,
    take_place, transaction_bytes,
};
use ensilo_test_disk::{Faults, SimulatedDisk, SyncPause};

use crate::rig::{Rig, Worker, options};

/// A worker that takes its TIDs from a clock of units.
struct RingWorker<'r> {
    rig: &'r Rig,
    clock: Arc<AtomicU64>,
    worker: Worker,
}

/// What becomes of an attempt to commit.
enum Attempt {
    Committed(Epoch),
    Aborted,
    NoPlace,
    NoRoom,
}

impl<'r> RingWorker<'r> {
    fn new(rig: &'r Rig, clock: &Arc<AtomicU64>, number: u64) -> Self {
        RingWorker { rig, clock: Arc::clone(clock), worker: rig.worker(number) }
    }

    /// Commits a transaction that writes one row, or aborts one.
    fn commit(&mut self, row_bytes: usize, aborts: bool) -> Result<Option<Epoch>, LogError> {
        self.worker.sequence += 1;
        loop {
            self.worker.participant.begin_commit();
            let epoch = self.worker.participant.global_epoch();
            let attempt = self.attempt(epoch, row_bytes, aborts);
            self.worker.participant.end_commit();
            match attempt {
                Attempt::Committed(epoch) => return Ok(Some(epoch)),
                Attempt::Aborted => return Ok(None),
                Attempt::NoPlace => assert!(self.rig.epochs.advance_past(epoch)),
                Attempt::NoRoom => {
                    self.worker.writer.wait_for_buffer()?;
                    self.rig.log.ring().wait_for_room()?;
                }
            }
        }
    }

    fn attempt(&mut self, epoch: Epoch, row_bytes: usize, aborts: bool) -> Attempt {
        let ring = self.rig.log.ring();
        let Worker { participant, writer, number, sequence, committed } = &mut self.worker;
        let key = *number << 32 | *sequence;
        match writer.reserve(transaction_bytes(1) + put_bytes(1, 8, row_bytes)) {
            Ok(()) if ring.has_room() => {}
            Err(error @ (ReserveError::TooLarge | ReserveError::OutOfMemory)) => panic!("{error}"),
            _ => return Attempt::NoRoom,
        }
        writer.begin(0, 1);
        writer.put(1, &key.to_be_bytes(), row_bytes, std::iter::repeat_n(key, row_bytes.div_ceil(8)));
        let units = Place::units_for(writer.entry().len());
        let first = take_place(&self.clock, epoch.get() * UNITS_PER_EPOCH + 1, units, Ordering::AcqRel);
        let place = Place::new(first << 3, units);
        let move_commit = |epoch| participant.move_commit(epoch);
        if aborts || !place.lies_in(epoch) {
            ring.skip(place, &[], move_commit);
            return if aborts { Attempt::Aborted } else { Attempt::NoPlace };
        }
        writer.set_tid(first << 3);
        if writer.entry().len() > RECORD_BYTES_MAX {
            writer.publish();
            ring.skip(place, &[], move_commit);
        } else {
            ring.fill(place, writer.entry(), move_commit);
        }
        committed.push((key, epoch));
        Attempt::Committed(epoch)
    }
}

/// Workers commit, and abort, beside each other.
fn run(rig: &Rig, workers: u64, commits: u64) -> Vec<(u64, Epoch)> {
    let clock = Arc::new(AtomicU64::new(0));
    thread::scope(|scope| {
        let working: Vec<_> = (0..workers)
            .map(|number| {
                let mut worker = RingWorker::new(rig, &clock, number);
                scope.spawn(move || {
                    for commit in 0..commits {
                        let row_bytes =
                            if commit % 100 == 7 { RECORD_BYTES_MAX + 9 } else { 10 + commit as usize };
                        let epoch = worker.commit(row_bytes, commit % 5 == 3).unwrap();
                        if let Some(epoch) = epoch.filter(|_| commit % 50 == 0) {
                            rig.log.wait_durable(epoch).unwrap();
                        }
                    }
                    worker.worker.committed
                })
            })
            .collect();
        working.into_iter().flat_map(|working| working.join().unwrap()).collect()
    })
}

#[test]
fn what_was_committed_is_stored_at_the_end() {
    let disk = Arc::new(SimulatedDisk::new());
    for directories in [&["a"][..], &["b", "c", "d"]] {
        let rig = Rig::new(Arc::clone(&disk) as _, directories, &options());
        let committed = run(&rig, 3, 500);
        rig.log.close().unwrap();
        let last = committed.iter().map(|&(_, epoch)| epoch).max().unwrap();
        rig.log.wait_durable(last).unwrap();
        let scan = rig.scan_on(&disk.fork().crash(3));
        scan.check(&committed, last);
        assert_eq!((scan.closed, scan.transactions), (directories.len(), committed.len() as u64));
        assert_eq!(rig.log.statistics().transactions, committed.len() as u64);
        let clock = Arc::new(AtomicU64::new(u64::MAX >> 8));
        assert!(matches!(RingWorker::new(&rig, &clock, 9).commit(1, false), Err(LogError::Closed)));
    }
}

#[test]
fn more_than_an_epoch_holds_goes_on_in_the_next() {
    // Nobody else ends an epoch.
    let clock = EpochClock::Fixed(Duration::from_secs(3600));
    let rig = Rig::somewhere(&["log"], &LogOptions { clock, file_bytes: 64 << 20, ..options() });
    let mut worker = RingWorker::new(&rig, &Arc::new(AtomicU64::new(0)), 1);
    let row_bytes = RECORD_BYTES_MAX - 100;
    let first = worker.commit(row_bytes, false).unwrap().unwrap();
    let mut last = first;
    while last == first {
        last = worker.commit(row_bytes, false).unwrap().unwrap();
    }
    let bytes = worker.worker.committed.len() * RECORD_BYTES_MAX;
    assert!(bytes > (UNITS_PER_EPOCH as usize - 2048) * 64);
    rig.log.close().unwrap();
    rig.scan().check(&worker.worker.committed, last);
}

#[test]
fn while_a_sync_hangs_commits_go_on_as_long_as_there_is_room() {
    let disk = Arc::new(SimulatedDisk::new());
    let options = LogOptions { buffer_bytes: 64 << 10, buffers_per_logger: 4, ..options() };
    let rig = Rig::new(Arc::clone(&disk) as _, &["log"], &options);
    let mut worker = RingWorker::new(&rig, &Arc::new(AtomicU64::new(0)), 1);
    let pause = SyncPause::new();
    disk.set_faults(Faults { sync_hangs: Some(Arc::clone(&pause)), ..Faults::default() });
    let committed = thread::scope(|scope| {
        let committing = scope.spawn(|| {
            for _ in 0..2000 {
                worker.commit(1000, false).unwrap();
            }
            worker.worker.committed
        });
        while rig.log.ring().has_room() {
            thread::yield_now();
        }
        disk.set_faults(Faults::default());
        pause.end();
        committing.join().unwrap()
    });
    let last = committed.last().unwrap().1;
    rig.log.wait_durable(last).unwrap();
    assert!(rig.log.statistics().buffer_waits > 0);
    rig.log.close().unwrap();
    rig.scan().check(&committed, last);
}

#[test]
fn who_waits_with_a_stamp_goes_on_when_the_disk_does() {
    let (rig, committed, _) = run_out_of_segments(false);
    let last = committed.last().unwrap().1;
    rig.log.close().unwrap();
    rig.scan().check(&committed, last);
}

#[test]
fn who_waits_with_a_stamp_is_let_go_when_the_log_fails() {
    let (rig, committed, error) = run_out_of_segments(true);
    assert!(error.is_some() && rig.log.failure().is_some());
    // A file that was finished before may still be given its name.
    assert!(rig.log.close().is_err());
    rig.scan().check(&committed, Epoch::new(0));
}

/// A sync hangs for more epochs than there are segments, while somebody commits in each; then the disk goes on, or fails.
fn run_out_of_segments(fails: bool) -> (Rig, Vec<(u64, Epoch)>, Option<LogError>) {
    let disk = Arc::new(SimulatedDisk::new());
    let clock = EpochClock::Fixed(Duration::from_millis(1));
    // So much room that nobody waits for it.
    let options = LogOptions { clock, buffers_per_logger: 1 << 12, ..options() };
    let rig = Rig::new(Arc::clone(&disk) as _, &["log"], &options);
    let mut worker = RingWorker::new(&rig, &Arc::new(AtomicU64::new(0)), 1);
    let (pause, goes_on) = (SyncPause::new(), AtomicBool::new(false));
    disk.set_faults(Faults {
        sync_hangs: Some(Arc::clone(&pause)),
        sync_error_at: fails.then_some(1),
        goes_on_failing: fails,
        ..Faults::default()
    });
    let (committed, error) = thread::scope(|scope| {
        let committing = scope.spawn(|| {
            while !goes_on.load(Ordering::Relaxed) {
                if let Err(error) = worker.commit(10, false) {
                    return (worker.worker.committed, Some(error));
                }
            }
            (worker.worker.committed, None)
        });
        while rig.log.statistics().buffer_waits == 0 {
            thread::yield_now();
        }
        if !fails {
            disk.set_faults(Faults::default());
            goes_on.store(true, Ordering::Relaxed);
        }
        pause.end();
        committing.join().unwrap()
    });
    (rig, committed, error)
}
