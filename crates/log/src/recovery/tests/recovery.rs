//! What was stored comes back, after any end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;
use ensilo_test_disk::{Faults, SimulatedDisk};

use super::history::{Random, Run};
use super::model::{AnyOrder, OneWrite, Op, Rows, Transaction, Versions, in_order};
use super::writer::{DIR, TestLog, encode, find, options, recover, rows_up_to};
use crate::format::{BlockEnd, Compression, FILE_HEADER_BYTES, Transactions, Write};
use crate::recovery::block_stream::{BlockStream, Chunk, Next};
use crate::recovery::corruption::CorruptionKind;
use crate::recovery::replay::Applier;
use crate::recovery::{CheckpointWriterOptions, OpenError, Progress, Replay, ReplayError};

fn new_disk() -> Arc<SimulatedDisk> {
    Arc::new(SimulatedDisk::new())
}

#[test]
fn a_new_database_is_empty_and_stays_so() {
    let disk = new_disk();
    let found = find(&disk).unwrap();
    assert!(found.is_new());
    assert_eq!((found.durable_epoch(), found.largest_epoch()), (None, Epoch::default()));
    drop(found);
    let log = TestLog::open(&disk, 2);
    let first = log.first_epoch;
    drop(log);
    let disk = Arc::new(disk.crash(1));
    let (rows, durable_epoch) = recover(&disk, 1).unwrap();
    assert!(rows.is_empty());
    assert_eq!(durable_epoch, Some(Epoch::new(first.get() - 1)));
    assert!(!find(&disk).unwrap().is_new());
}

#[test]
fn any_history_comes_back_with_any_number_of_threads() {
    for seed in 0..60 {
        let disk = new_disk();
        let mut run = Run::new(&disk, 1 + seed as usize % 3, seed);
        run.log.compression = if seed % 2 == 0 { Compression::Lz4 } else { Compression::None };
        for _ in 0..1 + seed % 25 {
            run.anything();
        }
        let is_closed = seed % 3 == 0;
        if is_closed {
            run.log.close();
        }
        let stored = run.log.durable_epoch;
        let rows = rows_up_to(&run.history, stored);
        drop(run);
        // Nine have three others that read for them.
        for threads in [1, 2, 3, 9] {
            assert_eq!(recover(&disk, threads).unwrap(), (rows.clone(), Some(stored)), "seed {seed}");
        }
        assert_eq!(find(&disk).unwrap().was_closed(), is_closed);
    }
}

/// Whoever applies a write with it panics.
struct Panics;

impl Replay for Panics {
    type Worker<'r> = ();

    fn worker(&self) {}

    fn apply(&self, (): &mut (), _: &[Write<'_>]) -> Result<(), ReplayError> {
        panic!("planted")
    }
}

#[test]
fn a_panic_while_writes_are_applied_ends_the_replay() {
    let disk = new_disk();
    let mut run = Run::new(&disk, 1, 1);
    // More files than are read before the first is applied.
    for _ in 0..20 {
        run.round();
        run.rotate(0);
    }
    drop(run);
    let found = find(&disk).unwrap();
    let replayed = catch_unwind(AssertUnwindSafe(|| found.replay(&Panics, 1, &Progress::default())));
    assert!(replayed.is_err());
}

/// Rounds of two loggers, one of which begins new files all the time; the other one's file ends with the last round.
#[test]
fn the_frontier_follows_the_logs_of_all_loggers() {
    let disk = new_disk();
    let mut run = Run::new(&disk, 2, 1);
    for round in 0..40 {
        run.round();
        run.rotate(0);
        if round % 13 == 0 {
            run.rotate(1);
        }
    }
    let (first, last) = (run.log.first_epoch.get(), run.log.durable_epoch.get());
    drop(run);
    for threads in [1, 3, 9] {
        let target = AnyOrder::default();
        find(&disk).unwrap().replay(&target, threads, &Progress::default()).unwrap();
        assert!(target.frontier() < Epoch::MAX);
        if threads == 1 {
            let middle = Epoch::new(first.midpoint(last));
            assert!(target.frontier() > middle, "{} of {first} to {last}", target.frontier());
        }
    }
}

#[test]
fn an_entry_that_was_said_not_to_come_is_damage() {
    let disk = new_disk();
    let mut run = Run::new(&disk, 1, 1);
    while run.history.is_empty() {
        run.round();
    }
    drop(run);
    let files = find(&disk).unwrap().files_to_replay(|_| true);
    let file = files.last().unwrap();
    let read = disk.open_read(&file.path).unwrap();
    let mut stream = BlockStream::starting_at(&*read, FILE_HEADER_BYTES as u64, file.bytes);
    let mut chunk = Chunk::default();
    assert!(matches!(stream.next(&mut chunk), Ok(Next::Blocks)));
    let target = AnyOrder::default();
    let apply = |frontier| Applier::new(&target).apply_chunk(file, &chunk, frontier);
    assert!(apply(Epoch::default()).unwrap() > 0);
    let Err(OpenError::Corrupt(corruption)) = apply(Epoch::LAST) else { panic!("an early entry was taken") };
    assert!(matches!(corruption.kind, CorruptionKind::Epoch), "{corruption}");
}

#[test]
fn a_file_that_is_damaged_at_its_beginning_is_read_before_others_are_folded() {
    let disk = new_disk();
    let mut run = Run::new(&disk, 1, 1);
    for _ in 0..8 {
        run.round();
        run.rotate(0);
    }
    drop(run);
    let files = find(&disk).unwrap().files_to_replay(|_| true);
    let oldest = files.iter().map(|file| &file.path).min().unwrap();
    // The durable epoch in the header of its first block, which becomes that of a later time.
    disk.flip(oldest, (FILE_HEADER_BYTES as u64 + 56) * 8 + 20).unwrap();
    let target = AnyOrder::default();
    let replayed = find(&disk).unwrap().replay(&target, 1, &Progress::default());
    let Err(OpenError::Corrupt(corruption)) = replayed else { panic!("{replayed:?}") };
    assert!(corruption.to_string().contains(&*oldest.to_string_lossy()), "{corruption}");
    assert_eq!(target.frontier(), Epoch::default());
}

#[test]
fn the_order_of_writes_is_free() {
    for seed in 0..40 {
        let mut run = Run::new(&new_disk(), 1, seed);
        for _ in 0..20 {
            run.round();
        }
        let mut shuffled: Vec<&Transaction> = run.history.iter().collect();
        let mut random = Random::new(seed);
        for at in (1..shuffled.len()).rev() {
            shuffled.swap(at, random.below(at as u64 + 1) as usize);
        }
        let target = AnyOrder::default();
        for transaction in shuffled {
            let bytes = encode(transaction);
            let mut entries = Transactions::new(&bytes);
            while let Some(write) = entries.next_write().unwrap() {
                target.take(&write);
            }
        }
        assert_eq!(target.rows(), in_order(&run.history), "seed {seed}");
    }
}

#[test]
fn generations_follow_each_other() {
    for seed in 0..30 {
        let mut disk = new_disk();
        let mut run = Run::new(&disk, 2, seed);
        for generation in 0..6 {
            for _ in 0..run.random.below(6) {
                run.anything();
            }
            let stored = run.log.durable_epoch;
            run.unsynced_round();
            disk = Arc::new(disk.crash(seed * 10 + generation));
            let (rows, durable_epoch) = recover(&disk, 2).unwrap();
            let durable_epoch = durable_epoch.unwrap();
            assert!(durable_epoch >= stored, "seed {seed}: {durable_epoch} after {stored}");
            assert_eq!(rows, rows_up_to(&run.history, durable_epoch), "seed {seed}");
            run.reopen(&disk, 1 + run.random.clone().below(3) as usize, durable_epoch);
        }
    }
}

#[test]
fn a_power_failure_takes_only_what_was_not_stored() {
    for seed in 0..80 {
        let disk = new_disk();
        let mut run = Run::new(&disk, 3, seed);
        for _ in 0..run.random.below(8) {
            run.anything();
        }
        let stored = run.log.durable_epoch;
        run.unsynced_round();
        for crash in 0..10 {
            let disk = Arc::new(disk.fork().crash(crash));
            let (rows, durable_epoch) = recover(&disk, 1).unwrap();
            assert!(durable_epoch.unwrap() >= stored);
            assert_eq!(rows, rows_up_to(&run.history, durable_epoch.unwrap()), "seed {seed}, crash {crash}");
            // Looking at it and crashing again changes nothing.
            let again = Arc::new(disk.crash(crash + 100));
            assert_eq!(recover(&again, 1).unwrap(), (rows, durable_epoch), "seed {seed}, crash {crash}");
        }
    }
}

#[test]
fn a_failure_while_a_generation_begins_does_no_harm() {
    for seed in 0..12 {
        let disk = new_disk();
        let mut run = Run::new(&disk, 2, seed);
        (0..5).for_each(|_| run.anything());
        run.unsynced_round();
        let disk = Arc::new(disk.crash(seed));
        let before = recover(&disk, 1).unwrap();
        for fault in 0..40 {
            let disk = Arc::new(disk.fork());
            let is_sync = fault % 2 == 1;
            let at = Some(fault / 2);
            disk.set_faults(if is_sync {
                Faults { seed: fault, sync_error_at: at, ..Faults::default() }
            } else {
                Faults { seed: fault, write_error_at: at, ..Faults::default() }
            });
            let begun = find(&disk).and_then(|found| {
                let options = options(&found, 3);
                found.next_generation(&options).map(drop)
            });
            if let Err(error) = &begun {
                assert!(matches!(error, OpenError::Io { .. }), "{error}");
            }
            let disk = Arc::new(disk.crash(fault));
            let (rows, durable_epoch) = recover(&disk, 1).unwrap();
            assert_eq!(rows, before.0, "seed {seed}, fault {fault}");
            assert!(durable_epoch >= before.1);
        }
    }
}

#[test]
fn a_checkpoint_takes_the_place_of_the_log_before_it() {
    let disk = new_disk();
    let mut run = Run::new(&disk, 2, 5);
    for _ in 0..4 {
        run.round();
        run.rotate(0);
        run.rotate(1);
    }
    let logs = |disk: &SimulatedDisk| {
        disk.files().iter().filter(|(path, _)| path.to_string_lossy().contains("log-")).count()
    };
    assert_eq!(logs(&disk), 10);
    run.checkpoint(2);
    // Of each logger: the newest sealed file, whose mark counts, and the open one.
    assert_eq!(logs(&disk), 4);
    assert!(disk.exists(&Path::new(DIR).join("checkpoint-1/part-1.ckpt")).unwrap());
    run.checkpoint(1);
    assert!(!disk.exists(&Path::new(DIR).join("checkpoint-1")).unwrap());
    run.round();
    let stored = run.log.durable_epoch;
    let disk = Arc::new(disk.crash(3));
    assert_eq!(recover(&disk, 2).unwrap(), (rows_up_to(&run.history, stored), Some(stored)));
    let mut found = find(&disk).unwrap();
    let checkpoint = found.checkpoint().unwrap().clone();
    assert_eq!(checkpoint.id, 2);
    // The next opening needs no log file whose entries are all in the checkpoint.
    let options = options(&found, 2);
    found.replay(&AnyOrder::default(), 1, &Progress::new()).unwrap();
    let (_, files) = found.next_generation(&options).unwrap();
    let earlier = &files.manifest().earlier;
    assert_eq!(earlier.len(), 2);
    drop(files);
    found = find(&disk).unwrap();
    assert_eq!(found.checkpoint(), Some(&checkpoint));
}

/// Earlier programs made all files of their full length, 64 MiB by default; a file may follow one of any other length.
#[test]
fn files_of_any_length_follow_each_other() {
    for seed in 0..6 {
        let mut disk = new_disk();
        let mut run = Run::new(&disk, 1, seed);
        for file_mib in [64, 1, 16, 64] {
            run.log.file_bytes = file_mib << 20;
            run.round();
            run.rotate(0);
        }
        run.round();
        run.log.make_ahead(0);
        let lengths: Vec<u64> =
            disk.files().iter().filter(|(path, _)| is_open_log(path)).map(|(_, bytes)| *bytes).collect();
        assert_eq!(lengths, [64 << 20; 2], "the file that is written, and the next one");
        let is_closed = seed % 2 == 0;
        if is_closed {
            run.log.close();
        }
        for _ in 0..2 {
            let stored = run.log.durable_epoch;
            disk = Arc::new(disk.crash(seed));
            assert_eq!(recover(&disk, 2).unwrap(), (rows_up_to(&run.history, stored), Some(stored)));
            // It goes on in short files.
            run.reopen(&disk, 1, stored);
            run.round();
            run.rotate(0);
            run.round();
        }
    }
}

fn is_open_log(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "open")
}

#[test]
fn an_opening_removes_what_an_interrupted_checkpoint_left() {
    let disk = new_disk();
    let mut run = Run::new(&disk, 1, 12);
    run.round();
    run.checkpoint(2);
    let stored = run.log.durable_epoch;
    for _ in 0..2 {
        let place = run.log.files.begin_checkpoint(stored).unwrap();
        place.writer(0, CheckpointWriterOptions::default()).unwrap().finish().unwrap();
    }
    let disk = Arc::new(disk.kill());
    let of_checkpoints = |disk: &SimulatedDisk| -> Vec<String> {
        let listed = disk.list(Path::new(DIR)).unwrap().into_iter().map(|entry| entry.name);
        listed.filter(|name| name.starts_with("checkpoint-")).collect()
    };
    assert_eq!(of_checkpoints(&disk).len(), 3);
    let before = recover(&disk, 1).unwrap().0;
    run.reopen(&disk, 1, stored);
    assert_eq!(of_checkpoints(&disk), ["checkpoint-1"]);
    run.checkpoint(1);
    assert_eq!(of_checkpoints(&disk), ["checkpoint-2"]);
    drop(run);
    assert!(recover(&disk, 1).is_ok() && !before.is_empty());
}

#[test]
fn a_checkpoint_is_synced_as_often_as_it_is_told() {
    let disk = new_disk();
    let mut run = Run::new(&disk, 1, 12);
    let mut syncs = |sync_bytes| {
        let place = run.log.files.begin_checkpoint(run.log.durable_epoch).unwrap();
        let options = CheckpointWriterOptions { sync_bytes, ..Default::default() };
        let mut writer = place.writer(0, options).unwrap();
        let before = disk.counts().syncs;
        for key in 0..40_u64 {
            let words = std::iter::repeat_n(key, 12 << 10);
            writer.record(1, &key.to_be_bytes(), 1, 96 << 10, words).unwrap();
        }
        writer.finish().unwrap();
        disk.counts().syncs - before
    };
    assert_eq!(syncs(u64::MAX), 1);
    let regular = syncs(1 << 20);
    assert!((4..=5).contains(&regular), "{regular} syncs of 3.75 MiB");
}

#[test]
fn progress_reaches_the_end() {
    let disk = new_disk();
    let mut run = Run::new(&disk, 2, 1);
    (0..10).for_each(|_| run.round());
    run.checkpoint(2);
    drop(run);
    let found = find(&disk).unwrap();
    let progress = Progress::new();
    assert_eq!(progress.report().bytes_total, 0);
    let replayed = found.replay(&AnyOrder::default(), 2, &progress).unwrap();
    let report = progress.report();
    assert_eq!(report.bytes_done, report.bytes_total);
    assert_eq!(replayed.log_bytes + replayed.checkpoint_bytes, report.bytes_total);
    assert!(replayed.records > 0 && replayed.writes > 0);
    assert_eq!(report.seconds_left, Some(0.0));
}

#[test]
fn a_database_is_open_once() {
    let disk = new_disk();
    let log = TestLog::open(&disk, 1);
    assert!(matches!(find(&disk), Err(OpenError::Locked { .. })));
    drop(log);
    find(&disk).unwrap();
}

#[test]
fn a_logger_that_falls_behind_holds_all_back() {
    let disk = new_disk();
    let mut run = Run::new(&disk, 2, 2);
    run.round();
    let stored = run.log.durable_epoch;
    let transactions = run.transactions(3);
    run.next_epoch();
    let mark = Epoch::new(stored.get() + 50);
    run.log.append(0, &transactions, Some(mark), BlockEnd::None);
    run.log.sync(0);
    assert_eq!(
        recover(&Arc::new(disk.crash(0)), 1).unwrap(),
        (rows_up_to(&run.history, stored), Some(stored))
    );
}

#[test]
fn what_a_killed_process_left_is_safe_once_it_was_believed() {
    for seed in 0..60 {
        let disk = new_disk();
        let mut run = Run::new(&disk, 2, seed);
        for _ in 0..run.random.below(6) {
            run.anything();
        }
        run.unsynced_round();
        let disk = Arc::new(disk.kill());
        let believed = recover(&disk, 1).unwrap();
        assert_eq!(believed.0, rows_up_to(&run.history, believed.1.unwrap()), "seed {seed}");
        if seed % 2 == 0 {
            drop(TestLog::open(&disk, 1));
        }
        let disk = Arc::new(disk.crash(seed));
        let (rows, durable_epoch) = recover(&disk, 1).unwrap();
        assert_eq!(rows, believed.0, "seed {seed}");
        assert!(durable_epoch >= believed.1);
    }
}

#[test]
fn an_entry_that_the_checkpoint_covers_does_not_come_back() {
    let disk = new_disk();
    let mut run = Run::new(&disk, 2, 0);
    let first = run.log.first_epoch.get();
    let epoch = |after: u64| Epoch::new(first + after);
    let write = |epoch: Epoch, op: Op| Transaction {
        tid: epoch.get() << 20 | 8,
        writes: vec![OneWrite { table: 1, key: b"key".to_vec(), op }],
    };
    let (put, delete) = (write(epoch(0), Op::Put(vec![1; 8])), write(epoch(1), Op::Delete));
    run.log.round(&[vec![put], vec![]], epoch(1));
    run.log.round(&[vec![], vec![delete]], epoch(2));
    // The deletion's file goes with the checkpoint; the put's is still written.
    run.log.rotate(1, epoch(2));
    run.log.round(&[vec![], vec![]], epoch(3));
    run.log.rotate(1, epoch(3));
    run.log.round(&[vec![], vec![]], epoch(4));
    run.log.checkpoint(epoch(3), &Versions::new(), 1);
    assert_eq!(run.log.files.manifest().loggers[1].first_sequence, 2);
    drop(run);
    assert_eq!(recover(&disk, 1).unwrap().0, Rows::new());
}
