//! What a killed process has written and not synced: a repair goes on with it only when it is on the disk.

use std::path::Path;
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;
use ensilo_test_disk::SimulatedDisk;

use super::model::{OneWrite, Op, Transaction};
use super::repair::with_copies;
use super::writer::{DIR, TestLog, recover};
use crate::format::BlockEnd;
use crate::recovery::{Repaired, repair};

const TABLE: u32 = 5;

fn put(epoch: u64, key: u8) -> Transaction {
    let write = OneWrite { table: TABLE, key: vec![key], op: Op::Put(vec![key; 40]) };
    Transaction { tid: epoch << 20 | 8, writes: vec![write] }
}

/// Returns a database of which a copy of definitions is lost, and the end of the log was written and not
/// synced; repaired.
fn repaired() -> (Arc<SimulatedDisk>, Repaired) {
    let disk = Arc::new(with_copies().0.kill());
    let mut log = TestLog::open(&disk, 1);
    let epoch = log.durable_epoch.get() + 1;
    log.round(&[vec![put(epoch, 50)]], Epoch::new(epoch + 1));
    log.append(0, &[put(epoch + 1, 51)], Some(Epoch::new(epoch + 2)), BlockEnd::None);
    drop(log);
    let disk = Arc::new(disk.kill());
    disk.remove(Path::new("db/checkpoint-1/copies.ckpt")).unwrap();
    let repaired = repair(&(Arc::clone(&disk) as Arc<dyn Disk>), Path::new(DIR), None).unwrap();
    assert_eq!(repaired.kept_to, Epoch::new(epoch + 1));
    (disk, repaired)
}

#[test]
fn what_a_repair_keeps_is_there_after_any_crash() {
    let (disk, repaired) = repaired();
    for seed in 0..50 {
        let crashed = Arc::new(disk.crash(seed));
        let (rows, epoch) = recover(&crashed, 1).unwrap_or_else(|error| panic!("{seed}: {error}"));
        assert!(epoch >= Some(repaired.kept_to), "{seed}: {epoch:?}");
        assert!([50, 51].iter().all(|&key| rows.contains_key(&(TABLE, vec![key]))), "{seed}");
    }
}

#[test]
fn what_is_stored_after_a_repair_is_there_after_any_crash() {
    let (disk, _) = repaired();
    let mut log = TestLog::open(&disk, 1);
    let epoch = log.durable_epoch.get() + 1;
    log.round(&[vec![put(epoch, 60)]], Epoch::new(epoch + 1));
    for seed in 0..50 {
        let crashed = Arc::new(disk.crash(seed));
        let (rows, found) = recover(&crashed, 1).unwrap_or_else(|error| panic!("{seed}: {error}"));
        assert_eq!(found, Some(log.durable_epoch), "{seed}");
        assert!([50, 51, 60].iter().all(|&key| rows.contains_key(&(TABLE, vec![key]))), "{seed}");
    }
}
