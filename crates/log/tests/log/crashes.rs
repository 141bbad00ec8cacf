//! What was said to be stored is there after a power failure, and epochs are all or nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ensilo_epoch::Epoch;
use ensilo_log::{Compression, LogOptions};
use ensilo_test_disk::{Operation, Recorder, SimulatedDisk};

use crate::rig::{Rig, Watermark, options};

/// Power fails `images` times during a run of `workers` workers.
fn crash_often(directories: &[&str], options: &LogOptions, workers: u64, images: u64) {
    let disk = Arc::new(SimulatedDisk::new());
    let rig = Rig::new(Arc::clone(&disk) as _, directories, options);
    let acknowledged = Watermark::default();
    let is_over = AtomicBool::new(false);
    let (crashed, committed) = thread::scope(|scope| {
        let working: Vec<_> = (0..workers)
            .map(|number| {
                let (rig, acknowledged, is_over) = (&rig, &acknowledged, &is_over);
                scope.spawn(move || {
                    let mut worker = rig.worker(number);
                    while !is_over.load(Ordering::Relaxed) {
                        let epoch = worker.commit(worker.sequence as usize * 7 % 300).unwrap();
                        if worker.sequence % (number + 3) == 0 {
                            rig.log.wait_durable(epoch).unwrap();
                            acknowledged.raise(epoch);
                        }
                    }
                    worker.committed
                })
            })
            .collect();
        let crashed: Vec<_> = (0..images)
            .map(|seed| {
                let before = acknowledged.get();
                while acknowledged.get() == before {
                    thread::yield_now();
                }
                let before = acknowledged.get();
                (seed, before, disk.fork())
            })
            .collect();
        is_over.store(true, Ordering::Relaxed);
        let committed = working.into_iter().flat_map(|working| working.join().unwrap());
        (crashed, committed.collect::<Vec<_>>())
    });
    for (seed, acknowledged, image) in crashed {
        for seed in [seed, seed + 1000, seed + 2000] {
            rig.scan_on(&image.crash(seed)).check(&committed, acknowledged);
        }
    }
    rig.log.close().unwrap();
}

#[test]
fn one_logger() {
    crash_often(&["log"], &LogOptions { file_bytes: 30_000, ..options() }, 3, 60);
}

#[test]
fn three_loggers_with_tiny_buffers() {
    let options = LogOptions { buffer_bytes: 500, buffers_per_logger: 3, file_bytes: 20_000, ..options() };
    crash_often(&["a", "b", "c"], &options, 5, 40);
}

#[test]
fn compressed() {
    let options = LogOptions { compression: Compression::Lz4, file_bytes: 10_000, ..options() };
    crash_often(&["a", "b"], &options, 3, 30);
}

#[test]
fn a_file_that_is_made_longer_is_as_long_as_it_says() {
    let recorder = Arc::new(Recorder::over(Arc::new(SimulatedDisk::new())));
    let rig = Rig::new(Arc::clone(&recorder) as _, &["log"], &LogOptions { file_bytes: 6_000, ..options() });
    // From here on the first file is there.
    let begun = recorder.position();
    let mut worker = rig.worker(1);
    for row_bytes in [100, 3_000, 10, 9_000, 20_000, 700] {
        let epoch = worker.commit(row_bytes).unwrap();
        rig.log.wait_durable(epoch).unwrap();
        recorder.note(epoch.get());
    }
    rig.log.close().unwrap();
    let trace = recorder.trace();
    let mut cursor = trace.cursor();
    let (mut acknowledged, mut longer) = (Epoch::new(0), 0);
    while let Some(operation) = cursor.step() {
        if let Operation::Note(epoch) = operation {
            acknowledged = Epoch::new(*epoch);
        }
        for seed in (0..60).filter(|_| cursor.position() >= begun) {
            let scan = rig.scan_on(&cursor.disk().crash(seed));
            scan.check(&worker.committed, acknowledged);
            longer += scan.reservations;
        }
    }
    assert!(longer > 0);
}
