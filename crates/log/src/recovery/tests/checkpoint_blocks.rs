//! The blocks of a checkpoint: all of its records are in them, and where they cannot be found nothing else is taken for them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use ensilo_epoch::Epoch;
use ensilo_test_disk::SimulatedDisk;

use super::model::Versions;
use super::writer::{DIR, TestLog, find};
use crate::format::{BlockCodec, BlockHeader, Compression};
use crate::recovery::BlockScratch;
use crate::recovery::replay_file::part_identity;

/// Rows of two tables, of which each block has some two hundred; in some of them stands `inside`.
fn rows(inside: &[u8]) -> Versions<Vec<u8>> {
    let mut rows = Versions::new();
    for number in 0..4000u32 {
        let mut row = vec![number as u8; 1000];
        row[..inside.len()].copy_from_slice(inside);
        row[500..500 + inside.len()].copy_from_slice(inside);
        let table = if number < 1500 { 17 } else { 19 };
        rows.insert((table, number.to_be_bytes().to_vec()), (u64::from(number + 1) << 3, row));
    }
    rows
}

fn with_checkpoint(rows: &Versions<Vec<u8>>, parts: u32, compression: Compression) -> Arc<SimulatedDisk> {
    let disk = Arc::new(SimulatedDisk::new());
    let mut log = TestLog::open(&disk, 1);
    log.compression = compression;
    let begin = log.first_epoch;
    log.round(&[vec![]], Epoch::new(begin.get() + 2));
    log.checkpoint(begin, rows, parts);
    drop(log);
    disk
}

fn part_path(disk: &SimulatedDisk, number: u32) -> PathBuf {
    let name = format!("part-{number}.ckpt");
    disk.files().into_iter().map(|(path, _)| path).find(|path| path.ends_with(&name)).unwrap()
}

/// Returns what the blocks hold, if they can be found and read.
fn read_back(disk: &Arc<SimulatedDisk>) -> Option<Versions<Vec<u8>>> {
    let mut blocks = find(disk).unwrap().checkpoint_blocks(2)?;
    let mut rows = Versions::new();
    let mut scratch = BlockScratch::default();
    let mut runs = BTreeMap::<_, Vec<u8>>::new();
    for block in blocks.take() {
        for record in blocks.read(&block, &mut scratch).ok()? {
            // Rising keys within each part and table.
            let last = runs.insert((block.part, block.table), record.key.to_vec());
            assert!(last.is_none_or(|last| *last < *record.key));
            rows.insert((block.table, record.key.to_vec()), (record.tid, record.row.to_vec()));
        }
    }
    Some(rows)
}

#[test]
fn every_record_is_in_a_block_that_is_found() {
    let compressions = [
        Compression::None,
        #[cfg(feature = "lz4")]
        Compression::Lz4,
    ];
    for compression in compressions {
        for parts in [1, 3] {
            let rows = rows(b"ENSB");
            assert!(read_back(&with_checkpoint(&rows, parts, compression)) == Some(rows));
        }
    }
}

#[test]
fn a_checkpoint_without_records_has_no_blocks() {
    let disk = with_checkpoint(&Versions::new(), 2, Compression::None);
    assert_eq!(read_back(&disk), Some(Versions::new()));
    assert!(find(&Arc::new(SimulatedDisk::new())).unwrap().checkpoint_blocks(1).is_none());
}

/// A row may look like a block, also one that says that it lies where it does.
#[test]
fn no_row_is_taken_for_a_block() {
    let marker = *b"here is the place of what looks like a block, of 64 bytes in all";
    let disk = with_checkpoint(&rows(&marker), 1, Compression::None);
    let path = part_path(&disk, 0);
    let bytes = disk.contents(&path).unwrap();
    let places: Vec<_> = memchr::memmem::find_iter(&bytes, &marker).collect();
    assert_eq!(places.len(), 8000);
    let mut refused = 0;
    for &place in places.iter().step_by(501) {
        let mut disguised = Vec::new();
        let header = BlockHeader::new(place as u64, 0, Epoch::default());
        codec_of(&disk).seal(&mut disguised, &header, &[], Compression::None);
        // All rows get it, and only in one of them it is where it says.
        let rows = rows(&disguised);
        match read_back(&with_checkpoint(&rows, 1, Compression::None)) {
            Some(found) => assert!(found == rows),
            None => refused += 1,
        }
    }
    assert!(refused > 0, "none of them was met");
}

fn codec_of(disk: &Arc<SimulatedDisk>) -> BlockCodec {
    let found = find(disk).unwrap();
    let (manifest, checkpoint) = (found.manifest().unwrap(), found.checkpoint().unwrap());
    let identity = part_identity(manifest, checkpoint.id, &checkpoint.parts[0]);
    BlockCodec::new(&identity)
}

#[test]
fn damage_is_found_by_looking_or_by_reading() {
    let rows = rows(b"");
    let disk = with_checkpoint(&rows, 2, Compression::None);
    let path = part_path(&disk, 1);
    let len = disk.contents(&path).unwrap().len() as u64;
    for place in (4096..len).step_by(9973).chain(len - 66..len) {
        let damaged = Arc::new(disk.fork());
        damaged.flip(&path, place * 8).unwrap();
        assert_eq!(read_back(&damaged), None, "{place}");
    }
    assert!(read_back(&disk) == Some(rows));
    assert!(path.starts_with(DIR));
}
