//! Reading the blocks of a file front to back, many at a time.

use std::io;

use ensilo_disk::{File, PAGE_BYTES, PageBuffer};

use crate::format::{BLOCK_HEADER_BYTES, BlockClaim, BlockEnd, BlockError};

/// So much is read at once, unless a single block is longer.
pub(super) const CHUNK_BYTES: usize = 1 << 20;

/// Walks over the blocks of a file by what their headers claim. The checksums are left to the users of the
/// blocks.
pub(super) struct BlockStream<'f> {
    file: &'f dyn File,
    /// Where the next chunk begins.
    offset: u64,
    /// Nothing is read from here on.
    limit: u64,
    /// So much is read at once, unless a single block is longer.
    chunk_bytes: usize,
}

/// Blocks that follow each other in a file.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    /// Where in the file it begins.
    pub(super) offset: u64,
    /// Whole pages. Something may lie before and behind the blocks.
    bytes: PageBuffer,
    /// Where in `bytes` the blocks begin.
    start: usize,
    /// How many of the bytes are blocks.
    pub(super) len: usize,
    /// What the last block ends. No other block ends anything.
    pub(super) end: BlockEnd,
}

impl Chunk {
    /// Returns the blocks, by what their headers claim.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (BlockClaim, &[u8])> {
        let mut rest = &self.bytes[self.start..self.start + self.len];
        std::iter::from_fn(move || {
            let claim = BlockClaim::read(rest.first_chunk()?).ok()?;
            let (block, after) = rest.split_at_checked(claim.bytes)?;
            rest = after;
            Some((claim, block))
        })
    }
}

/// What comes next in a file.
pub(super) enum Next {
    /// At least one block.
    Blocks,
    /// No block, for this reason.
    Stopped(BlockError),
    /// The limit.
    End,
}

impl<'f> BlockStream<'f> {
    /// Returns the blocks of `file` from `offset` on, where one begins, up to `limit`, which does not lie
    /// past the file's end.
    pub(super) fn starting_at(file: &'f dyn File, offset: u64, limit: u64) -> BlockStream<'f> {
        BlockStream { file, offset, limit, chunk_bytes: CHUNK_BYTES }
    }

    /// Reads so much at once, unless a single block is longer.
    pub(super) fn in_chunks_of(self, chunk_bytes: usize) -> BlockStream<'f> {
        BlockStream { chunk_bytes, ..self }
    }

    /// Returns where the next chunk begins.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads the next blocks into `chunk`.
    pub(super) fn next(&mut self, chunk: &mut Chunk) -> io::Result<Next> {
        let mut want = self.chunk_bytes;
        loop {
            let left = usize::try_from(self.limit.saturating_sub(self.offset)).unwrap_or(usize::MAX);
            if left == 0 {
                return Ok(Next::End);
            }
            chunk.offset = self.offset;
            chunk.start = (self.offset % PAGE_BYTES as u64) as usize;
            let bytes = (chunk.start + want).next_multiple_of(PAGE_BYTES);
            chunk.bytes.resize(bytes.min(chunk.start + left))?;
            self.file.read_at(self.offset - chunk.start as u64, &mut chunk.bytes)?;
            let (len, stop) = whole_blocks(&chunk.bytes[chunk.start..], self.offset);
            chunk.len = len;
            chunk.end = BlockEnd::None;
            self.offset += len as u64;
            match stop {
                WalkEnd::Ended(end) => {
                    chunk.end = end;
                    return Ok(Next::Blocks);
                }
                _ if len > 0 => return Ok(Next::Blocks),
                WalkEnd::Invalid(error) => return Ok(Next::Stopped(error)),
                WalkEnd::Cut(bytes) if bytes > left => return Ok(Next::Stopped(BlockError::Length)),
                WalkEnd::Cut(bytes) => want = bytes,
            }
        }
    }
}

/// Why a walk over blocks ended.
enum WalkEnd {
    /// The block there has so many bytes, or at least so many, and they are not all there.
    Cut(usize),
    /// There is no block.
    Invalid(BlockError),
    /// The block before ends something.
    Ended(BlockEnd),
}

/// Returns how many of the bytes, which lie at `offset`, are whole blocks, and what comes after them.
fn whole_blocks(bytes: &[u8], offset: u64) -> (usize, WalkEnd) {
    let mut at = 0;
    loop {
        let Some(head) = bytes[at..].first_chunk::<BLOCK_HEADER_BYTES>() else {
            return (at, WalkEnd::Cut(BLOCK_HEADER_BYTES));
        };
        match BlockClaim::read(head) {
            Err(error) => return (at, WalkEnd::Invalid(error)),
            Ok(block) if block.offset != offset + at as u64 => {
                return (at, WalkEnd::Invalid(BlockError::Offset));
            }
            Ok(block) if block.bytes > bytes.len() - at => return (at, WalkEnd::Cut(block.bytes)),
            Ok(block) => {
                at += block.bytes;
                if block.end != BlockEnd::None {
                    return (at, WalkEnd::Ended(block.end));
                }
            }
        }
    }
}
