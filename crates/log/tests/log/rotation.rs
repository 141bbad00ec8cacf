//! Small buffers, small files, large transactions, workers that come and go.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ensilo_disk::RealDisk;
use ensilo_log::{Compression, EpochClock, EpochWidth, LogOptions};

use crate::rig::{Rig, TemporaryDirectory, options};

/// Workers come and go, each committing `commits` transactions of all sizes.
fn run(rig: &Rig, workers: u64, commits: u64) {
    let committed = thread::scope(|scope| {
        let working: Vec<_> = (0..4)
            .map(|thread| {
                scope.spawn(move || {
                    let mut committed = Vec::new();
                    for turn in 0..workers {
                        let mut worker = rig.worker(thread * workers + turn);
                        for commit in 0..commits {
                            let bytes = if commit % 50 == 49 { 70_000 } else { (commit * 37 % 400) as usize };
                            worker.commit(bytes).unwrap();
                        }
                        committed.append(&mut worker.committed);
                    }
                    committed
                })
            })
            .collect();
        working.into_iter().flat_map(|working| working.join().unwrap()).collect::<Vec<_>>()
    });
    let last = committed.iter().map(|&(_, epoch)| epoch).max().unwrap();
    rig.log.wait_durable(last).unwrap();
    assert!(rig.log.durable_epoch() >= last);
    rig.log.close().unwrap();
    let scan = rig.scan();
    scan.check(&committed, last);
    assert_eq!(scan.entries.len() as u64, 4 * workers * commits);
    assert_eq!(scan.transactions, rig.log.statistics().transactions);
    assert_eq!(scan.blocks, rig.log.statistics().blocks);
    assert!(scan.reservations > 0, "transactions of 70,000 bytes do not fit into files of 20,000");
}

/// With short epochs: nobody waits while the workers commit, and files end with rounds.
fn tiny() -> LogOptions {
    let clock = EpochClock::ByLoggers { max: Duration::from_millis(1) };
    LogOptions { buffer_bytes: 1000, buffers_per_logger: 2, file_bytes: 20_000, clock, ..options() }
}

#[test]
fn tiny_buffers_and_files_on_a_simulated_disk() {
    let rig = Rig::somewhere(&["a", "b"], &tiny());
    // So long that the thread that makes the files comes to run several times.
    run(&rig, 40, 100);
    let statistics = rig.log.statistics();
    assert!(statistics.rotations > 2, "{statistics:?}");
    assert!(statistics.buffer_waits > 0 && !statistics.buffer_wait_time.is_zero(), "{statistics:?}");
}

#[test]
fn tiny_buffers_and_files_on_a_real_disk() {
    let directory = TemporaryDirectory::new("tiny");
    let log = directory.path().join("log");
    let rig = Rig::new(Arc::new(RealDisk), &[log.to_str().unwrap(), log.to_str().unwrap()], &tiny());
    run(&rig, 5, 100);
}

#[test]
fn compressed_blocks_on_a_simulated_disk() {
    let options = LogOptions { compression: Compression::Lz4, ..tiny() };
    let rig = Rig::somewhere(&["a"], &options);
    run(&rig, 5, 100);
    let statistics = rig.log.statistics();
    assert!(statistics.written_bytes < statistics.entry_bytes / 2, "{statistics:?}");
}

#[test]
fn epochs_of_a_fixed_length() {
    let options = LogOptions { clock: EpochClock::Fixed(Duration::from_millis(3)), ..tiny() };
    let rig = Rig::somewhere(&["a", "b", "c"], &options);
    run(&rig, 5, 100);
}

#[test]
fn a_finished_file_is_named_after_its_largest_epoch() {
    let rig = Rig::somewhere(&["log"], &options());
    let mut worker = rig.worker(1);
    for _ in 0..3 {
        let before = rig.log.statistics().rotations;
        // The next file is made on another thread: until it is there the logger stays where it is.
        while rig.log.statistics().rotations == before {
            rig.log.rotate();
            let epoch = worker.commit(10).unwrap();
            rig.log.wait_durable(epoch).unwrap();
        }
    }
    rig.log.close().unwrap();
    let scan = rig.scan();
    scan.check(&worker.committed, worker.committed.last().unwrap().1);
    let named: Vec<_> =
        scan.files.iter().map_while(|name| name.largest_epoch(EpochWidth::default())).collect();
    assert_eq!(named.len() as u64, rig.log.statistics().rotations);
    assert!(named.is_sorted());
}
