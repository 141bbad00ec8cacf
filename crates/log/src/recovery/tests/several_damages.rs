//! Several damages in one file are all named.

use std::path::Path;
use std::sync::Arc;

use ensilo_epoch::Epoch;
use ensilo_test_disk::SimulatedDisk;

use super::bad_sectors::{BadDisk, SECTOR_BYTES};
use super::model::{OneWrite, Op, Transaction};
use super::writer::TestLog;
use crate::format::BlockEnd;
use crate::recovery::{CorruptionKind, check_file};

const LOG: &str = "db/log/log-1-0-1.open";

/// Returns a log file with a block for each of these lengths, and where the blocks begin.
fn with_blocks(lengths: &[usize]) -> (Arc<SimulatedDisk>, Vec<u64>) {
    let disk = Arc::new(SimulatedDisk::new());
    let mut log = TestLog::open(&disk, 1);
    let epoch = log.durable_epoch.get() + 1;
    let mut starts = Vec::new();
    for (sequence, &bytes) in (1u8..).zip(lengths) {
        let write = OneWrite { table: 5, key: vec![sequence], op: Op::Put(vec![7; bytes]) };
        let transaction = Transaction { tid: epoch << 20 | u64::from(sequence) << 3, writes: vec![write] };
        starts.push(log.loggers[0].offset);
        log.append(0, &[transaction], Some(Epoch::new(epoch)), BlockEnd::None);
    }
    log.sync(0);
    log.close();
    drop(log);
    (Arc::new(disk.kill()), starts)
}

#[test]
fn two_sectors_of_one_block_hide_no_damage_in_front_of_a_valid_one() {
    let (disk, starts) = with_blocks(&[100, 100, 100, 40_000, 100]);
    let path = Path::new(LOG);
    disk.flip(path, (starts[1] + 70) * 8).unwrap();
    let first = starts[3] / SECTOR_BYTES + 2;
    assert!((first + 4) * SECTOR_BYTES < starts[4], "both lie within the long block");
    let bad = BadDisk::with_bad_sectors(&disk, path, &[first, first + 3], 0);
    let corruptions = check_file(&bad, path, None).unwrap().corruptions;
    let [
        (flipped, CorruptionKind::Block(_)),
        (one, CorruptionKind::Unreadable { .. }),
        (other, CorruptionKind::Unreadable { .. }),
    ] = corruptions[..]
    else {
        panic!("{corruptions:?}")
    };
    assert_eq!([flipped, one, other], [starts[1], first * SECTOR_BYTES, (first + 3) * SECTOR_BYTES]);
}

#[test]
fn sectors_that_follow_each_other_are_one_damage() {
    let (disk, starts) = with_blocks(&[100, 60_000, 100]);
    let path = Path::new(LOG);
    let first = starts[1] / SECTOR_BYTES + 1;
    let sectors: Vec<_> = (first..first + 9).collect();
    let bad = BadDisk::with_bad_sectors(&disk, path, &sectors, 0);
    let corruptions = check_file(&bad, path, None).unwrap().corruptions;
    let [(at, CorruptionKind::Unreadable { bytes, .. })] = corruptions[..] else { panic!("{corruptions:?}") };
    assert_eq!((at, bytes), (first * SECTOR_BYTES, 9 * SECTOR_BYTES));
}
