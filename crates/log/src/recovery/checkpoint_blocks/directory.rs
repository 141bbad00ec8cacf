//! Which blocks a part of a checkpoint has: by their headers, and by the first record of each, which is
//! read with the header. A compressed block is read whole for that.

use crc_fast::{CrcAlgorithm, Digest};
use ensilo_disk::{Disk, File, PAGE_BYTES, PageBuffer};

use super::{CheckpointBlock, read_bytes, records};
use crate::format::{BLOCK_HEADER_BYTES, BlockClaim, BlockCodec, BlockEnd, Decoder, FILE_HEADER_BYTES};
use crate::recovery::file_access::open;
use crate::recovery::replay_file::{Extent, ReplayFile};

/// So much is read of the beginning of a block: nearly always its first key is in it.
const LOOK_BYTES: usize = PAGE_BYTES;

/// The table of a block, and its first key.
type First = (u32, Box<[u8]>);

/// The walk over the blocks of one part.
struct PartWalk<'p> {
    part: &'p ReplayFile,
    number: usize,
    file: &'p dyn File,
    /// Where the part ends.
    limit: u64,
    offset: u64,
    page: PageBuffer,
    digest: Digest,
}

/// Returns the file of a part, and its blocks; `None` when it is not, as far as was looked, the part that was
/// installed.
pub(super) fn of_part(
    disk: &dyn Disk,
    part: &ReplayFile,
    number: usize,
) -> Option<(Box<dyn File>, Vec<CheckpointBlock>)> {
    let Extent::Part { bytes, records, digest } = part.extent else { return None };
    let (file, len) = open(disk, &part.path).ok()?;
    if len != bytes {
        return None;
    }
    let mut walk = PartWalk {
        part,
        number,
        file: &*file,
        limit: bytes,
        offset: FILE_HEADER_BYTES as u64,
        page: PageBuffer::default(),
        digest: Digest::new(CrcAlgorithm::Crc32Iscsi),
    };
    let mut blocks = Vec::new();
    while let Some(block) = walk.next(records)? {
        blocks.push(block);
    }
    (walk.offset == bytes && walk.digest.finalize() as u32 == digest).then_some((file, blocks))
}

impl PartWalk<'_> {
    /// Returns the next block; nothing behind the last one, which has to be that of a part with so many
    /// records.
    fn next(&mut self, records: u64) -> Option<Option<CheckpointBlock>> {
        let (claim, first) = self.look()?;
        let (offset, end) = (self.offset, self.offset + claim.bytes as u64);
        if claim.offset != offset || end > self.limit {
            return None;
        }
        self.offset = end;
        match claim.end {
            BlockEnd::Part => self.is_part_end(offset, claim.bytes, records).then_some(None),
            BlockEnd::None => {
                let (table, first_key) = match first {
                    Some(first) => first,
                    None => self.first_of_whole(offset, claim.bytes)?,
                };
                let (part, bytes) = (self.number, claim.bytes);
                Some(Some(CheckpointBlock { table, first_key, bytes, part, offset }))
            }
            BlockEnd::Seal | BlockEnd::Closed => None,
        }
    }

    /// Looks at the beginning of the next block: what its header claims, and its first key with the table, if
    /// they stand there.
    fn look(&mut self) -> Option<(BlockClaim, Option<First>)> {
        let end = (self.offset + LOOK_BYTES as u64).min(self.limit);
        let seen = read_bytes(self.file, self.offset..end, &mut self.page).ok()?;
        let (head, payload) = seen.split_first_chunk::<BLOCK_HEADER_BYTES>()?;
        let claim = BlockClaim::read(head).ok()?;
        self.digest.update(&head[4..8]);
        let first = if claim.is_compressed { None } else { first_key(payload) };
        Some((claim, first))
    }

    /// Returns the table and the first key of a block, all of which is read.
    fn first_of_whole(&mut self, offset: u64, bytes: usize) -> Option<First> {
        let bytes = read_bytes(self.file, offset..offset + bytes as u64, &mut self.page).ok()?;
        let mut raw = Vec::new();
        let (table, records) = records(self.part, offset, bytes, &mut raw).ok()?;
        Some((table, records.first()?.key.into()))
    }

    /// Returns whether the block there ends a part that has so many records.
    fn is_part_end(&mut self, offset: u64, bytes: usize, records: u64) -> bool {
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
