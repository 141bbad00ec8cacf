//! What a full disk means to the log: files made ahead come later, or are shorter, and what lies ready is
//! used.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use ensilo_disk::Disk;
use ensilo_log::{LogError, LogOptions};
use ensilo_test_disk::{Faults, SimulatedDisk};

use crate::rig::{Rig, Worker, options};

const FILE_BYTES: u64 = 1 << 20;
const DIRECTORY: &str = "/ensilo-test/log";

/// A log of one logger whose next file lies ready, on a disk that has `room` bytes beside these two.
fn with_next_file(room: u64) -> (Arc<SimulatedDisk>, Rig) {
    let disk = Arc::new(SimulatedDisk::new());
    let rig = Rig::new(Arc::clone(&disk) as _, &["log"], &LogOptions { file_bytes: FILE_BYTES, ..options() });
    until(|| files(&disk).len() == 2 && disk.is_synced());
    set_room(&disk, 2 * FILE_BYTES + room);
    (disk, rig)
}

fn set_room(disk: &SimulatedDisk, bytes: u64) {
    disk.set_faults(Faults { no_space_after_bytes: Some(bytes), ..Faults::default() });
}

/// The lengths of the log files.
fn files(disk: &SimulatedDisk) -> Vec<u64> {
    disk.list(Path::new(DIRECTORY)).unwrap().iter().map(|file| file.len_bytes).collect()
}

/// Waits until this holds, as it will.
fn until(holds: impl Fn() -> bool) {
    while !holds() {
        thread::yield_now();
    }
}

/// Commits rows of so many bytes, each stored before the next, until the log fails; returns how many were
/// stored.
fn fill(rig: &Rig, worker: &mut Worker, row_bytes: usize) -> (u64, LogError) {
    for stored in 0.. {
        let committed = worker.commit(row_bytes).and_then(|epoch| rig.log.wait_durable(epoch));
        if let Err(error) = committed {
            return (stored, error);
        }
    }
    unreachable!("the disk is full some day")
}

/// Whether all that was stored is there after a power failure.
fn check_after_crash(disk: &SimulatedDisk, rig: &Rig, worker: &Worker) {
    let durable = rig.log.durable_epoch();
    for seed in 0..10 {
        rig.scan_on(&disk.fork().crash(seed)).check(&worker.committed, durable);
    }
}

#[test]
fn the_file_that_lies_ready_is_filled_although_none_can_be_made_after_it() {
    let (disk, rig) = with_next_file(0);
    let mut worker = rig.worker(1);
    // Three of them are less than the seven eighths at which a file is full; the fourth has no room in it.
    let (stored, error) = fill(&rig, &mut worker, 300_000);
    assert_eq!(stored, 6, "three in each file");
    assert!(matches!(error, LogError::NoSpace { .. }), "{error}");
    assert!(error.to_string().contains("log_file_bytes"), "{error}");
    // A second time where the room that the first file gave back was noticed in time.
    assert!((1..=2).contains(&rig.log.statistics().rotations));
    check_after_crash(&disk, &rig, &worker);
    assert!(rig.log.close().is_err());
}

#[test]
fn where_a_whole_file_has_no_room_a_shorter_one_is_made() {
    let (disk, rig) = with_next_file(100_000);
    let mut worker = rig.worker(1);
    // It is over when a shorter file is there.
    let was_short = Arc::new(AtomicBool::new(false));
    rig.log.watch(Box::new({
        let (was_short, log) = (Arc::clone(&was_short), Arc::downgrade(&rig.log));
        move || {
            let is_short = log.upgrade().is_some_and(|log| log.shortage().is_some());
            was_short.fetch_or(is_short, Ordering::SeqCst);
        }
    }));
    rig.log.rotate();
    while rig.log.statistics().rotations == 0 {
        let epoch = worker.commit(10_000).unwrap();
        rig.log.wait_durable(epoch).unwrap();
    }
    // Where the second file is longer than it was made, the room may be gone before.
    until(|| was_short.load(Ordering::SeqCst) && files(&disk).len() == 3);
    let (stored, error) = fill(&rig, &mut worker, 10_000);
    assert!(matches!(error, LogError::NoSpace { .. }), "{error}");
    // What the first file has left is given back. Up to an eighth of the second is not, if it was made longer.
    let all = (FILE_BYTES + 100_000) / 10_000;
    assert!(stored > all - 30, "{stored} of about {all}");
    assert!(rig.log.statistics().rotations >= 2);
    check_after_crash(&disk, &rig, &worker);
}

#[test]
fn a_full_disk_that_gets_room_is_forgotten() {
    let (disk, rig) = with_next_file(0);
    let told = Arc::new(AtomicU64::new(0));
    rig.log.watch(Box::new({
        let (told, log) = (Arc::clone(&told), Arc::downgrade(&rig.log));
        // Of the file that was made before it may be told as well.
        move || {
            let is_short = log.upgrade().is_some_and(|log| log.shortage().is_some());
            told.fetch_add(u64::from(is_short), Ordering::SeqCst);
        }
    }));
    let mut worker = rig.worker(1);
    assert!(rig.log.shortage().is_none());
    for _ in 0..4 {
        let epoch = worker.commit(300_000).unwrap();
        rig.log.wait_durable(epoch).unwrap();
    }
    until(|| told.load(Ordering::SeqCst) > 0);
    assert!(matches!(rig.log.shortage(), Some(LogError::NoSpace { .. })));
    set_room(&disk, 100 * FILE_BYTES);
    rig.log.retry_files();
    until(|| rig.log.shortage().is_none());
    for _ in 0..40 {
        let epoch = worker.commit(300_000).unwrap();
        rig.log.wait_durable(epoch).unwrap();
    }
    rig.log.close().unwrap();
    rig.scan().check(&worker.committed, worker.committed.last().unwrap().1);
}

#[test]
fn a_finished_file_gives_back_what_it_has_not_used() {
    let (_disk, rig) = with_next_file(0);
    let mut worker = rig.worker(1);
    while rig.log.statistics().rotations <= 5 {
        rig.log.rotate();
        let epoch = worker.commit(10).unwrap();
        rig.log.wait_durable(epoch).unwrap();
        // Files are made in the background, which may be late: what there is must not be full by then.
        thread::sleep(Duration::from_millis(1));
    }
    rig.log.close().unwrap();
    rig.scan().check(&worker.committed, worker.committed.last().unwrap().1);
}
