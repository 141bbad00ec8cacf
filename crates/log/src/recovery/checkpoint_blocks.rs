//! The blocks of a checkpoint, to be read one by one and in any order, so that a database can answer before all
//! of them are in memory.
//!
//! # Layout
//! The blocks of a table stand side by side in a part, a *run*, and their keys rise from record to record and
//! from block to block ([`super::checkpoint_writer`]). So a key of the table can be in one block of a part
//! alone: the last one that begins with this key or a smaller one.
//!
//! # Invariants
//! - B1: the first block of a run and the last one were read, and their checksums are right. So no block
//!   belongs to another table than is said here: between two blocks of a table there is none of another one.
//! - B2: of any other block the checksum is not compared before it is [read](CheckpointBlocks::read), and the
//!   key that it begins with may be wrong until then. Who concludes from the directory that a key is in no
//!   other block of a part has to have read the block behind it as well.
//! - B3: the checksums themselves are those of the checkpoint that was installed: the digest in the manifest is
//!   over all of them.

mod directory;

use std::collections::HashSet;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use ensilo_disk::{Disk, File, PAGE_BYTES, PageBuffer};
use ensilo_sync::side_by_side;

use super::block_writes::BlockWrites;
use super::corruption::CorruptionKind;
use super::error::OpenError;
use super::file_access::open;
use super::replay_file::ReplayFile;
use crate::format::{BlockCodec, BlockEnd, Change};

/// Looking at the beginnings of blocks means to wait for the disk, which serves many at a time.
const THREADS_PER_CORE: usize = 4;

/// The blocks of a checkpoint. See the module's documentation.
#[derive(Debug)]
pub struct CheckpointBlocks {
    parts: Vec<Part>,
    /// By part, each part's in the order in which they stand there.
    blocks: Vec<CheckpointBlock>,
}

/// A block with records of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointBlock {
    /// The table.
    pub table: u32,
    /// The key of its first record.
    pub first_key: Box<[u8]>,
    /// How many bytes it takes in its file.
    pub bytes: usize,
    /// The number of its part.
    pub part: usize,
    /// Where in the part it begins.
    offset: u64,
}

/// A record of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointRecord<'b> {
    /// Its key.
    pub key: &'b [u8],
    /// The TID of the version.
    pub tid: u64,
    /// The row.
    pub row: &'b [u8],
}

/// Memory that blocks are read into, one after the other.
#[derive(Debug, Default)]
pub struct BlockScratch {
    page: PageBuffer,
    raw: Vec<u8>,
}

/// A part, open to be read.
#[derive(Debug)]
struct Part {
    replayed: ReplayFile,
    file: Box<dyn File>,
}

impl CheckpointBlocks {
    /// Finds the blocks of these parts. `None` when anything is not as it should be.
    pub(super) fn find(
        disk: &dyn Disk,
        replayed: Vec<ReplayFile>,
        threads: usize,
    ) -> Option<CheckpointBlocks> {
        let parts = replayed.into_iter().map(|replayed| {
            let (file, len) = open(disk, &replayed.path).ok()?;
            (len == replayed.bytes).then_some(Part { replayed, file })
        });
        let parts = parts.collect::<Option<Vec<_>>>()?;
        let numbered = parts.iter().enumerate();
        let sections: Vec<_> =
            numbered.flat_map(|(number, part)| directory::sections(number, part)).collect();
        let found = for_each(&sections, threads, |section| directory::walk(&parts[section.part], section))?;
        let mut by_part: Vec<Vec<_>> = parts.iter().map(|_| Vec::new()).collect();
        sections.iter().zip(found).for_each(|(section, found)| by_part[section.part].push(found));
        let joined = parts.iter().zip(by_part).map(|(part, found)| directory::join(&part.replayed, found));
        let blocks = joined.collect::<Option<Vec<_>>>()?.concat();
        let all = CheckpointBlocks { parts, blocks };
        all.check_run_ends(threads).then_some(all)
    }

    /// Takes the blocks out: by part, each part's in the order in which they stand there.
    #[must_use]
    pub fn take(&mut self) -> Vec<CheckpointBlock> {
        std::mem::take(&mut self.blocks)
    }

    /// Reads a block into `scratch`, checks all of it, and returns its records, in the order of their keys.
    ///
    /// # Errors
    /// [`OpenError::Corrupt`] when the block is damaged, or not the one that was found; [`OpenError::Io`].
    pub fn read<'b>(
        &self,
        block: &CheckpointBlock,
        scratch: &'b mut BlockScratch,
    ) -> Result<Vec<CheckpointRecord<'b>>, OpenError> {
        let Part { replayed, file } = &self.parts[block.part];
        let BlockScratch { page, raw } = scratch;
        let bytes = read_bytes(&**file, block.offset..block.offset + block.bytes as u64, page)
            .map_err(OpenError::io("read", &replayed.path))?;
        let found = records(replayed, block.offset, bytes, raw);
        let (table, records) = found.map_err(|kind| replayed.corruption(Some(block.offset), kind))?;
        let is_as_found =
            table == block.table && records.first().is_some_and(|first| *first.key == *block.first_key);
        if is_as_found && records.is_sorted_by(|one, other| one.key < other.key) {
            return Ok(records);
        }
        Err(replayed.corruption(Some(block.offset), CorruptionKind::NotAsInstalled))
    }

    /// Returns the file of a block.
    #[must_use]
    pub fn file_of(&self, block: &CheckpointBlock) -> PathBuf {
        self.parts[block.part].replayed.path.clone()
    }

    /// Returns whether the blocks stand in runs, and whether the first and the last block of each is valid
    /// (B1).
    fn check_run_ends(&self, threads: usize) -> bool {
        let runs = self.blocks.chunk_by(|one, other| (one.part, one.table) == (other.part, other.table));
        let (mut known, mut ends) = (HashSet::new(), Vec::new());
        for run in runs {
            let is_in_order = run.is_sorted_by(|one, other| one.first_key < other.first_key);
            if !is_in_order || !known.insert((run[0].part, run[0].table)) {
                return false;
            }
            ends.push(&run[0]);
            ends.extend(run[1..].last());
        }
        let check = |end: &&CheckpointBlock| self.read(end, &mut BlockScratch::default()).ok().map(drop);
        for_each(&ends, threads, check).is_some()
    }
}

/// Does some work for each of these, by so many threads for each of which some wait for the disk. Returns the
/// results in order, if each has one.
fn for_each<T: Sync, R: Send>(
    all: &[T],
    threads: usize,
    work: impl Fn(&T) -> Option<R> + Sync,
) -> Option<Vec<R>> {
    let next = AtomicUsize::new(0);
    let work_on = |_| {
        let mut done = Vec::new();
        // Relaxed: the numbers need only differ.
        while let number = next.fetch_add(1, Ordering::Relaxed)
            && let Some(one) = all.get(number)
        {
            done.push((number, work(one)?));
        }
        Some(done)
    };
    let threads = (threads * THREADS_PER_CORE).clamp(1, all.len().max(1));
    let done: Option<Vec<_>> = side_by_side("ensilo-blocks", threads, work_on).into_iter().collect();
    let mut done: Vec<(usize, R)> = done?.into_iter().flatten().collect();
    done.sort_by_key(|(number, _)| *number);
    Some(done.into_iter().map(|(_, result)| result).collect())
}

/// Reads these bytes of a file, and the pages that they lie in.
fn read_bytes<'p>(file: &dyn File, bytes: Range<u64>, page: &'p mut PageBuffer) -> std::io::Result<&'p [u8]> {
    let before = (bytes.start % PAGE_BYTES as u64) as usize;
    let len = (bytes.end - bytes.start) as usize;
    let whole = (before + len).next_multiple_of(PAGE_BYTES);
    let left = file.len_bytes()?.saturating_sub(bytes.start - before as u64);
    // What the file has not is not read, unless it is asked for, which is an error.
    page.resize(whole.min(usize::try_from(left).unwrap_or(usize::MAX)).max(before + len))?;
    file.read_at(bytes.start - before as u64, page)?;
    Ok(&page[before..before + len])
}

/// Returns the table of a block, which lies at `offset` in this part, and its records.
fn records<'b>(
    part: &ReplayFile,
    offset: u64,
    bytes: &'b [u8],
    raw: &'b mut Vec<u8>,
) -> Result<(u32, Vec<CheckpointRecord<'b>>), CorruptionKind> {
    let codec = BlockCodec::new(&part.identity);
    let (sealed, payload) = codec.check(bytes, offset).map_err(CorruptionKind::Block)?;
    if sealed.header.end != BlockEnd::None {
        return Err(CorruptionKind::NotAsInstalled);
    }
    let raw = sealed.raw(&bytes[payload], raw).map_err(CorruptionKind::Block)?;
    let (mut table, mut records) = (None, Vec::new());
    let mut writes = BlockWrites::new(part.identity.file, &sealed, raw);
    while let Some(write) = writes.next_checked()? {
        let Change::Put(row) = write.change else { return Err(CorruptionKind::NotAsInstalled) };
        table = Some(write.table);
        records.push(CheckpointRecord { key: write.key, tid: write.tid, row });
    }
    table.map(|table| (table, records)).ok_or(CorruptionKind::NotAsInstalled)
}
