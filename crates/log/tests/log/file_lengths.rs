//! How long log files are: short as long as little is logged, up to the length of the options where much is.

use std::path::Path;
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;
use ensilo_log::{FILE_HEADER_BYTES, FileHeader, LogFileName, LogOptions};
use ensilo_test_disk::SimulatedDisk;

use crate::rig::{Rig, Worker, options};

const DIRECTORY: &str = "/ensilo-test/log";
const MIB: u64 = 1 << 20;

/// A log of one logger with files of up to so many bytes.
fn with_files_of(file_bytes: u64) -> (Arc<SimulatedDisk>, Rig) {
    let disk = Arc::new(SimulatedDisk::new());
    let rig = Rig::new(Arc::clone(&disk) as _, &["log"], &LogOptions { file_bytes, ..options() });
    (disk, rig)
}

/// Returns the sequence numbers of the log files with the lengths that they were made with, sorted.
fn made(disk: &SimulatedDisk) -> Vec<(u64, u64)> {
    let listed = disk.list(Path::new(DIRECTORY)).unwrap();
    let mut made: Vec<_> = listed
        .iter()
        .filter_map(|file| {
            let sequence = LogFileName::parse(&file.name)?.sequence;
            // It may just be given another name, or have no header yet.
            let file = disk.open_read(&Path::new(DIRECTORY).join(&file.name)).ok()?;
            let mut header = [0; FILE_HEADER_BYTES];
            file.read_at(0, &mut header).unwrap();
            Some((sequence, FileHeader::decode(&header).ok()?.reserved_bytes))
        })
        .collect();
    made.sort_unstable();
    made
}

/// Waits until all files are made that the log has asked for, and returns how long they were made.
fn lengths(disk: &SimulatedDisk, rig: &Rig) -> Vec<u64> {
    loop {
        let (made, finished) = (made(disk), rig.log.statistics().rotations);
        let sequences: Vec<_> = made.iter().map(|(sequence, _)| *sequence).collect();
        // The file that is written, and the next one.
        if sequences == (1..=finished + 2).collect::<Vec<_>>() {
            return made.into_iter().map(|(_, bytes)| bytes).collect();
        }
        std::thread::yield_now();
    }
}

fn store(rig: &Rig, worker: &mut Worker, row_bytes: usize) -> Epoch {
    let epoch = worker.commit(row_bytes).unwrap();
    rig.log.wait_durable(epoch).unwrap();
    epoch
}

#[test]
fn a_log_begins_with_two_short_files() {
    let (disk, rig) = with_files_of(64 * MIB);
    assert_eq!(lengths(&disk, &rig), [MIB, MIB]);
    let mut worker = rig.worker(1);
    (0..100).for_each(|_| _ = store(&rig, &mut worker, 1000));
    assert_eq!(lengths(&disk, &rig), [MIB, MIB], "they have room for that");
}

#[test]
fn files_are_twice_as_long_as_the_log_before_them_up_to_the_full_length() {
    let (disk, rig) = with_files_of(16 * MIB);
    let mut worker = rig.worker(1);
    while rig.log.statistics().written_bytes < 40 * MIB {
        store(&rig, &mut worker, 200_000);
        let longest = lengths(&disk, &rig).into_iter().max().unwrap();
        // The room that lies ready follows what was logged.
        assert!(longest <= MIB + 2 * rig.log.statistics().written_bytes, "{longest}");
    }
    let lengths = lengths(&disk, &rig);
    assert_eq!(lengths[..2], [MIB, MIB]);
    assert!(lengths.is_sorted(), "{lengths:?}");
    assert_eq!(lengths.last(), Some(&(16 * MIB)));
    assert!(lengths.iter().filter(|&&bytes| bytes < 16 * MIB).count() <= 7, "{lengths:?}");
    rig.log.close().unwrap();
    rig.scan().check(&worker.committed, worker.committed.last().unwrap().1);
}

#[test]
fn files_are_short_again_where_little_is_logged_between_checkpoints() {
    let (disk, rig) = with_files_of(4 * MIB);
    let mut worker = rig.worker(1);
    while lengths(&disk, &rig).last() != Some(&(4 * MIB)) {
        store(&rig, &mut worker, 200_000);
    }
    for checkpoint in 1..=3 {
        let before = rig.log.statistics().rotations;
        rig.log.rotate();
        while rig.log.statistics().rotations == before {
            store(&rig, &mut worker, 10);
        }
        let next = *lengths(&disk, &rig).last().unwrap();
        assert!(checkpoint > 1 || next == 4 * MIB, "{next} bytes, but the load may go on");
    }
    assert_eq!(lengths(&disk, &rig).last(), Some(&MIB));
}

#[test]
fn what_was_stored_in_files_that_become_longer_survives_a_power_failure() {
    let (disk, rig) = with_files_of(4 * MIB);
    let mut worker = rig.worker(1);
    let mut images = Vec::new();
    for number in 0..120 {
        let epoch = store(&rig, &mut worker, 1000 * (number % 200));
        if number % 10 == 9 {
            images.push((epoch, disk.fork()));
            // So that the next file lies ready.
            lengths(&disk, &rig);
        }
    }
    assert!(rig.log.statistics().rotations >= 3);
    for (seed, (stored, image)) in (0..).zip(images) {
        rig.scan_on(&image.crash(seed)).check(&worker.committed, stored);
    }
}
