//! Which blocks a part of a checkpoint has: by their headers, and by the first record of each, which is
//! read with the header. A compressed block is read whole for that.
//!
//! The header of a block says where the next one begins, so that each look waits for the one before. A part is
//! therefore walked in sections, side by side. A section begins with the first place that looks like a block
//! which says that it lies there; it counts if the walk over the section before comes to just this place.

use std::ops::Range;

use ensilo_disk::{Checksum, File, PAGE_BYTES, PageBuffer};
use memchr::memmem;

use super::{CheckpointBlock, Part, read_bytes, records};
use crate::format::{
    BLOCK_HEADER_BYTES, BLOCK_MAGIC, BlockClaim, BlockCodec, BlockEnd, Decoder, FILE_HEADER_BYTES,
};
use crate::recovery::replay_file::{Extent, ReplayFile};

/// How long a section is. In tests it is shorter than a block.
const SECTION_BYTES: u64 = if cfg!(test) { 100 << 10 } else { 32 << 20 };

/// So much is read of the beginning of a block: nearly always its first key is in it.
const LOOK_BYTES: usize = PAGE_BYTES;

/// So much is read to look for a block: a little more than one takes.
const SEARCH_BYTES: u64 = 264 << 10;

/// A piece of a part: the blocks that begin in it.
#[derive(Debug, Clone)]
pub(super) struct Section {
    pub(super) part: usize,
    range: Range<u64>,
}

/// What the walk over a section has found.
#[derive(Debug, Default)]
pub(super) struct FoundBlocks {
    /// Where the first block begins, and where the last one ends; `None` without blocks.
    extent: Option<Range<u64>>,
    blocks: Vec<CheckpointBlock>,
    /// The checksums of all blocks, as they claim.
    checksums: Vec<[u8; 4]>,
    /// Whether the last block ends the part.
    has_end: bool,
}

/// The table of a block, and its first key.
type First = (u32, Box<[u8]>);

/// Returns the sections of a part, in order.
pub(super) fn sections(number: usize, part: &Part) -> impl Iterator<Item = Section> + use<> {
    let end = part.replayed.bytes;
    let begins = (FILE_HEADER_BYTES as u64..end).step_by(SECTION_BYTES as usize);
    begins.map(move |begin| Section { part: number, range: begin..(begin + SECTION_BYTES).min(end) })
}

/// Walks over a section of this part; `None` when it is not as it should be.
pub(super) fn walk(part: &Part, section: &Section) -> Option<FoundBlocks> {
    let mut found = FoundBlocks::default();
    let mut page = PageBuffer::default();
    let begin = match section.range.start {
        first if first == FILE_HEADER_BYTES as u64 => first,
        later => match search(&*part.file, later..section.range.end, part.replayed.bytes, &mut page)? {
            Some(begin) => begin,
            None => return Some(found),
        },
    };
    let mut walk =
        SectionWalk { part: &part.replayed, number: section.part, file: &*part.file, offset: begin, page };
    while walk.offset < section.range.end && !found.has_end {
        walk.next(&mut found)?;
    }
    found.extent = Some(begin..walk.offset);
    Some(found)
}

/// Puts the sections of a part together: returns its blocks, if all are there that were installed.
pub(super) fn join(part: &ReplayFile, sections: Vec<FoundBlocks>) -> Option<Vec<CheckpointBlock>> {
    let Extent::Part { bytes, digest: installed, .. } = part.extent else { return None };
    let mut digest = Checksum::default();
    let (mut end, mut has_end, mut blocks) = (FILE_HEADER_BYTES as u64, false, Vec::new());
    for section in sections {
        let Some(extent) = section.extent else { continue };
        if extent.start != end || has_end {
            return None;
        }
        (end, has_end) = (extent.end, section.has_end);
        section.checksums.iter().for_each(|checksum| digest.update(checksum));
        blocks.extend(section.blocks);
    }
    (has_end && end == bytes && digest.value() == installed).then_some(blocks)
}

/// Returns where in this range of a file of `len` bytes the first block begins, by what it claims; nothing if
/// none does.
fn search(file: &dyn File, range: Range<u64>, len: u64, page: &mut PageBuffer) -> Option<Option<u64>> {
    let mut at = range.start;
    while at < range.end {
        // A header that begins before the end may lie behind it.
        let end = (at + SEARCH_BYTES).min(len);
        let bytes = read_bytes(file, at..end, page).ok()?;
        for place in memmem::find_iter(bytes, &BLOCK_MAGIC) {
            let offset = at + place as u64;
            let claim = bytes[place..].first_chunk().and_then(|head| BlockClaim::read(head).ok());
            let fits = |claim: &BlockClaim| claim.offset == offset && claim.end_offset() <= len;
            if claim.as_ref().is_some_and(fits) {
                return Some((offset < range.end).then_some(offset));
            }
        }
        // The header of a block may have been cut.
        at = if end == len { len } else { end - BLOCK_HEADER_BYTES as u64 + 1 };
    }
    Some(None)
}

/// The walk over the blocks of one section.
struct SectionWalk<'p> {
    part: &'p ReplayFile,
    number: usize,
    file: &'p dyn File,
    offset: u64,
    page: PageBuffer,
}

impl SectionWalk<'_> {
    /// Adds the next block.
    fn next(&mut self, found: &mut FoundBlocks) -> Option<()> {
        let (claim, checksum, first) = self.look()?;
        let offset = self.offset;
        if claim.offset != offset || claim.end_offset() > self.part.bytes {
            return None;
        }
        self.offset = claim.end_offset();
        found.checksums.push(checksum);
        match claim.end {
            BlockEnd::Part => found.has_end = self.is_part_end(offset, claim.bytes),
            BlockEnd::None => {
                let (table, first_key) = match first {
                    Some(first) => first,
                    None => self.first_of_whole(offset, claim.bytes)?,
                };
                let (part, bytes) = (self.number, claim.bytes);
                found.blocks.push(CheckpointBlock { table, first_key, bytes, part, offset });
            }
            BlockEnd::Seal | BlockEnd::Closed => return None,
        }
        Some(())
    }

    /// Looks at the beginning of the next block: what its header claims, its checksum, and its first key with
    /// the table, if they stand there.
    fn look(&mut self) -> Option<(BlockClaim, [u8; 4], Option<First>)> {
        let end = (self.offset + LOOK_BYTES as u64).min(self.part.bytes);
        let seen = read_bytes(self.file, self.offset..end, &mut self.page).ok()?;
        let (head, payload) = seen.split_first_chunk::<BLOCK_HEADER_BYTES>()?;
        let claim = BlockClaim::read(head).ok()?;
        let first = if claim.is_compressed { None } else { first_key(payload) };
        Some((claim, *head[4..].first_chunk()?, first))
    }

    /// Returns the table and the first key of a block, all of which is read.
    fn first_of_whole(&mut self, offset: u64, bytes: usize) -> Option<First> {
        let bytes = read_bytes(self.file, offset..offset + bytes as u64, &mut self.page).ok()?;
        let mut raw = Vec::new();
        let (table, records) = records(self.part, offset, bytes, &mut raw).ok()?;
        Some((table, records.first()?.key.into()))
    }

    /// Returns whether the block there ends a part that has as many records as were installed.
    fn is_part_end(&mut self, offset: u64, bytes: usize) -> bool {
        let Extent::Part { records, .. } = self.part.extent else { return false };
        let codec = BlockCodec::new(&self.part.identity);
        let Ok(bytes) = read_bytes(self.file, offset..offset + bytes as u64, &mut self.page) else {
            return false;
        };
        let Ok((_, payload)) = codec.check(bytes, offset) else { return false };
        Decoder::new(&bytes[payload]).varint() == Ok(records)
    }
}

/// Returns the table and the first key, if they stand within the beginning of a payload.
fn first_key(payload: &[u8]) -> Option<First> {
    let mut decoder = Decoder::new(payload);
    let table = decoder.varint_u32().ok()?;
    let key_len = decoder.varint().ok()?;
    Some((table, decoder.bytes(key_len).ok()?.into()))
}
