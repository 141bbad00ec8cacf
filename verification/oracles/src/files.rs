//! What must hold for any bytes that somebody takes for a log file or for a part of a checkpoint.

use std::io;
use std::sync::{Mutex, PoisonError};

use ensilo_disk::File;
use ensilo_epoch::Epoch;
use ensilo_log::fuzzing::{Scanned, apply_file, check_file, dump_file, needed_bytes, scan_file};
use ensilo_log::{
    BlockCodec, BlockEnd, Dumped, FILE_HEADER_BYTES, FileHeader, FileRole, Replay, ReplayError, Write,
    epoch_of,
};

use crate::plain::{
    PlainBlock, PlainWrite, mend_block, mend_header, plain_block, plain_entries, plain_records,
};

/// A whole log file.
pub fn log_file(bytes: &[u8]) {
    check_log_file(bytes.to_vec());
    check_log_file(mend_file(bytes));
}

/// A whole part of a checkpoint.
pub fn checkpoint_part(bytes: &[u8]) {
    check_part(bytes.to_vec());
    check_part(mend_file(bytes));
}

/// Bytes that are read as a file.
#[derive(Debug)]
struct Bytes(Vec<u8>);

/// The blocks of a file from the first on, and where they stop.
struct Walk {
    blocks: Vec<(u64, PlainBlock)>,
    valid_end: u64,
}

fn check_log_file(bytes: Vec<u8>) {
    let Some((header, walk, file)) = open(bytes) else { return };
    if !matches!(header.identity.file, FileRole::Log { .. }) {
        return;
    }
    let found = scan_file(&file, &header.identity).expect("memory can be read");
    walk.check_scan(&found);
    // What counts is the same without what comes after it.
    let cut = Bytes(file.0[..found.valid_end as usize].to_vec());
    let again = scan_file(&cut, &header.identity).expect("memory can be read");
    assert_eq!(
        (again.valid_end, again.end, again.mark, again.last_entry),
        (found.valid_end, found.end, found.mark, found.last_entry)
    );
    if let Some((mark, end)) = found.mark {
        let before = Epoch::new(mark.get() - 1);
        let needed = needed_bytes(&file, &header.identity, before).expect("memory can be read");
        assert!(needed.is_some_and(|needed| needed <= end), "{needed:?}");
    }
    walk.check_dump(&file, &header);
    check_entries(&file, &header, &walk);
}

impl Walk {
    fn check_scan(&self, found: &Scanned) {
        let mut last_entry = 0;
        let mut mark = None;
        for (offset, block) in &self.blocks {
            last_entry = last_entry.max(block.epochs.map_or(0, |(_, last)| last));
            mark = Some((Epoch::new(block.mark), offset + block.bytes as u64))
                .filter(|_| block.mark > 0)
                .or(mark);
        }
        let reserved_bytes = self.blocks.iter().map(|(_, block)| block.reserved_bytes).max();
        assert_eq!(found.valid_end, self.valid_end);
        assert_eq!((found.mark, found.last_entry.get()), (mark, last_entry));
        assert_eq!(found.reserved_bytes, reserved_bytes.unwrap_or(0));
        assert_eq!(found.end != BlockEnd::None, self.has_end());
        assert!(found.has_blocks || self.blocks.is_empty());
    }

    fn has_end(&self) -> bool {
        self.blocks.last().is_some_and(|(_, block)| block.end != 0)
    }

    /// All blocks are shown, up to one with a malformed payload.
    fn check_dump(&self, file: &Bytes, header: &FileHeader) {
        let (mut shown, mut corruptions, mut ends) = (0, 0, 0);
        let dumped = dump_file(file, header, &mut |dumped| match dumped {
            Dumped::Block(_) => shown += 1,
            Dumped::Corruption { .. } => corruptions += 1,
            Dumped::End { .. } => ends += 1,
            _ => {}
        });
        dumped.expect("memory can be read");
        assert_eq!(corruptions + ends, 1);
        assert!(shown == self.blocks.len() || (shown < self.blocks.len() && corruptions == 1));
    }

    /// A check of the file by itself finds the same blocks, and perhaps more behind them, and damage where
    /// replay does.
    fn check_by_itself(&self, file: &Bytes, header: &FileHeader, are_valid: bool) {
        let check =
            |valid_bytes, end| check_file(file, header, valid_bytes, end).expect("memory can be read");
        let found = check(Some(self.valid_end), BlockEnd::None);
        assert_eq!((found.blocks as usize, found.bytes), (self.blocks.len(), self.valid_end));
        assert_eq!(found.corruptions.is_empty(), are_valid, "{found:?}");
        for end in [BlockEnd::None, BlockEnd::Seal, BlockEnd::Part] {
            let found = check(None, end);
            assert!(found.blocks as usize >= self.blocks.len() && found.bytes >= self.valid_end);
        }
    }
}

/// Replay takes a file's entries if and only if they are valid, and takes them all.
fn check_entries(file: &Bytes, header: &FileHeader, walk: &Walk) {
    let mut expected = Vec::new();
    let are_valid = walk.blocks.iter().all(|(offset, block)| {
        let Some(raw) = raw(file, header, *offset, block) else { return false };
        let (transactions, is_valid) = plain_entries(&raw);
        let is_inside = transactions
            .iter()
            .filter(|(_, writes)| !writes.is_empty())
            .all(|(tid, _)| block.may_have(epoch_of(*tid)));
        let writes = transactions
            .into_iter()
            .flat_map(|(tid, writes)| writes.into_iter().map(move |write| (tid, write)));
        expected.extend(writes);
        is_valid && is_inside
    });
    let (applied, found) = apply(file, header, walk.valid_end);
    assert_eq!(applied, are_valid, "{found:?}");
    walk.check_by_itself(file, header, are_valid);
    if are_valid {
        assert_eq!(found, expected);
    }
}

fn check_part(bytes: Vec<u8>) {
    let Some((header, walk, file)) = open(bytes) else { return };
    if !matches!(header.identity.file, FileRole::Checkpoint { .. }) {
        return;
    }
    walk.check_dump(&file, &header);
    let mut expected = Vec::new();
    let are_valid = walk.blocks.iter().filter(|(_, block)| block.end == 0).all(|(offset, block)| {
        let records = raw(&file, &header, *offset, block).and_then(|raw| plain_records(&raw));
        let is_valid = records.is_some();
        expected.extend(records.into_iter().flatten());
        is_valid
    });
    let (applied, found) = apply(&file, &header, walk.valid_end);
    assert_eq!(applied, are_valid, "{found:?}");
    walk.check_by_itself(&file, &header, are_valid);
    if are_valid {
        assert_eq!(found, expected);
    }
}

/// Returns a file with a valid header.
fn open(bytes: Vec<u8>) -> Option<(FileHeader, Walk, Bytes)> {
    let header = FileHeader::decode(&bytes).ok()?;
    let mut walk = Walk { blocks: Vec::new(), valid_end: FILE_HEADER_BYTES as u64 };
    while !walk.has_end() {
        let rest = &bytes[walk.valid_end as usize..];
        let Some(block) = plain_block(&header.identity, rest, walk.valid_end) else { break };
        let offset = walk.valid_end;
        walk.valid_end += block.bytes as u64;
        walk.blocks.push((offset, block));
    }
    Some((header, walk, Bytes(bytes)))
}

/// Returns the payload of a block before compression.
fn raw(file: &Bytes, header: &FileHeader, offset: u64, block: &PlainBlock) -> Option<Vec<u8>> {
    let bytes = &file.0[offset as usize..][..block.bytes];
    let (sealed, payload) = BlockCodec::new(&header.identity).check(bytes, offset).ok()?;
    sealed.raw(&bytes[payload], &mut Vec::new()).ok().map(<[u8]>::to_vec)
}

/// Replays the first `valid_bytes` bytes of a file. Returns whether all of it was taken, and what was taken.
fn apply(file: &Bytes, header: &FileHeader, valid_bytes: u64) -> (bool, Vec<(u64, PlainWrite)>) {
    let taken = Taken::default();
    let applied = apply_file(file, header, valid_bytes, &taken);
    if let Ok(end) = applied {
        assert_eq!(end, valid_bytes, "all blocks are read");
    }
    (applied.is_ok(), taken.0.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Takes everything in the order in which it comes.
#[derive(Debug, Default)]
struct Taken(Mutex<Vec<(u64, PlainWrite)>>);

impl Replay for Taken {
    type Worker<'r> = ();

    fn worker(&self) {}

    fn apply(&self, (): &mut (), writes: &[Write<'_>]) -> Result<(), ReplayError> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken.extend(writes.iter().map(|write| (write.tid, PlainWrite::of(write))));
        Ok(())
    }
}

/// Makes the checksums, and the offsets, of a file's header and of its blocks right.
fn mend_file(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    mend_header(&mut bytes);
    let Ok(header) = FileHeader::decode(&bytes) else { return bytes };
    let codec = BlockCodec::new(&header.identity);
    let mut at = FILE_HEADER_BYTES;
    // Zeros stay: that is how most files end.
    while bytes.len() - at >= 64 && bytes[at..at + 64].iter().any(|&byte| byte != 0) {
        let block = &mut bytes[at..];
        block[24..32].copy_from_slice(&(at as u64).to_le_bytes());
        mend_block(&header.identity, block);
        let Ok((sealed, _)) = codec.check(block, at as u64) else { return bytes };
        at += sealed.bytes();
    }
    bytes
}

impl File for Bytes {
    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).ok();
        let read = start.and_then(|start| self.0.get(start..)?.get(..bytes.len()));
        bytes.copy_from_slice(read.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}

impl PlainBlock {
    /// Returns whether a transaction of this epoch may be in the block.
    fn may_have(&self, epoch: Epoch) -> bool {
        self.epochs.is_some_and(|(first, last)| (first..=last).contains(&epoch.get()))
    }
}
