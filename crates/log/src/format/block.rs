//! Blocks: what log files and checkpoint parts consist of behind their header.
//!
//! # Layout
//! A block takes `64 + payload` bytes and begins where the one before ends.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | magic, `ENSB` |
//! | 4 | 4 | CRC-32C over the identity of the file, with the opening if there is one, then the block from byte 8 on |
//! | 8 | 4 | payload bytes in the file |
//! | 12 | 4 | payload bytes before compression |
//! | 16 | 4 | flags: bit 0 compressed (LZ4 block format), bits 1-2 the end: 0 none, 1 seal, 2 closed, 3 checkpoint part, bit 3 a reservation |
//! | 20 | 4 | how many bytes lie between what was known to be synced and this block, at most 2^32 - 1 |
//! | 24 | 8 | offset of this block in the file |
//! | 32 | 8 | no entry of the block has an earlier epoch; 0 if there are no entries; in a reservation the length of the file |
//! | 40 | 8 | no entry of the block has a later epoch; 0 if there are no entries |
//! | 48 | 8 | the logger's mark; 0 for none |
//! | 56 | 8 | the durable epoch of the database, as known when the block was written: no entry of it, nor of a block behind it, is of that epoch or an earlier one |
//!
//! A block is valid if and only if the magic, the offset and the CRC are right, the payload lies within the
//! file, and the flags and lengths make sense. The numbers of epochs are as wide as the file's format says
//! ([`EpochWidth`]).
//!
//! # Terms
//! - **mark** `C`: every transaction of this logger's workers with an epoch below `C` lies in this logger's
//!   files before the end of the block. A round of the logger ends with a block that has a mark; then follows
//!   the sync.
//! - **seal**: the last block of a file that has a successor; synced before anything is written into the
//!   successor.
//! - **closed**: the last block of a logger that was shut down in order; written after the last mark was
//!   synced.
//! - **reservation**: a block without entries that says how long the file was made, and synced, before this
//!   block was written. The file's header says how long it was at first. A file without a seal or an end in
//!   order that is shorter was cut.
//! - **evidence**: the fields at 20 and 56 say what was on disk when the block was written. A scan that finds
//!   less has met damage, not the torn end of the last round.

use std::ops::Range;

use ensilo_disk::Checksum;
use ensilo_epoch::Epoch;

use super::block_error::BlockError;
#[cfg(feature = "lz4")]
use super::compression::append_lz4;
use super::compression::{Compression, decompress};
use super::epoch_width::EpochWidth;
use super::identity::FileIdentity;

/// The first four bytes of a block.
pub(crate) const BLOCK_MAGIC: [u8; 4] = *b"ENSB";
/// Bytes before the payload.
pub const BLOCK_HEADER_BYTES: usize = 64;
/// The most payload bytes of a block, before and after compression.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 30;

const COMPRESSED: u32 = 1;
const END_SHIFT: u32 = 1;
const END_MASK: u32 = 3;
const RESERVATION: u32 = 8;
/// In the place of the bytes that are not known to be synced: so many or more.
const MANY: u32 = u32::MAX;

/// What ends with a block, by the number that stands in its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BlockEnd {
    /// Nothing: more may follow.
    #[default]
    None,
    /// The file: the logger goes on in the file with the next sequence number.
    Seal,
    /// The logger: it was shut down in order.
    Closed,
    /// The part of a checkpoint.
    Part,
}

impl BlockEnd {
    fn from_code(code: u32) -> Option<BlockEnd> {
        [BlockEnd::None, BlockEnd::Seal, BlockEnd::Closed, BlockEnd::Part].get(code as usize).copied()
    }
}

/// What a block says of itself and of the moment at which it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHeader {
    /// Where in the file the block begins.
    pub offset: u64,
    /// The file was synced up to here when the block was written.
    pub synced_to: u64,
    /// The range of epochs that the entries lie in; bounds, not necessarily reached. `None` without entries.
    pub epochs: Option<(Epoch, Epoch)>,
    /// The logger's mark, if the block ends a round.
    pub mark: Option<Epoch>,
    /// The durable epoch of the database when the block was written.
    pub durable_epoch: Epoch,
    /// What ends here.
    pub end: BlockEnd,
    /// So long was the file made, and synced, before the block was written. Only in a block of its own,
    /// without payload, epochs, mark and end.
    pub reserved_bytes: Option<u64>,
}

/// A header and the lengths that come with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealedHeader {
    /// What was given when the block was sealed.
    pub header: BlockHeader,
    /// Bytes of the payload in the file.
    pub payload_bytes: usize,
    /// Bytes of the payload before compression.
    pub raw_bytes: usize,
    /// Whether the payload is compressed.
    pub compressed: bool,
    checksum: u32,
}

/// Seals and checks the blocks of one file.
#[derive(Debug, Clone)]
pub struct BlockCodec {
    /// The checksum of the file's identity, with which that of each block begins.
    identity: Checksum,
    epochs: EpochWidth,
}

/// What the header of a block claims, its checksum not yet compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockClaim {
    /// Where in the file the block begins.
    pub(crate) offset: u64,
    /// How many bytes it takes in the file: within bounds that make it safe to act on them.
    pub(crate) bytes: usize,
    /// What ends with it.
    pub(crate) end: BlockEnd,
    /// Whether its payload is compressed.
    pub(crate) is_compressed: bool,
    /// The number of the last epoch of its entries; 0 without any.
    last_number: u64,
    /// The number of the durable epoch when it was written.
    durable_number: u64,
}

impl BlockCodec {
    /// For the blocks of this file.
    #[must_use]
    pub fn new(file: &FileIdentity) -> BlockCodec {
        let mut identity = Checksum::default();
        identity.update(&file.encode());
        file.encode_opening().into_iter().for_each(|opening| identity.update(&opening));
        BlockCodec { identity, epochs: file.epochs }
    }

    /// Appends a block with the concatenated `payload` to `out`.
    ///
    /// # Panics
    /// When the payload is longer than [`PAYLOAD_BYTES_MAX`].
    pub fn seal(&self, out: &mut Vec<u8>, header: &BlockHeader, payload: &[&[u8]], compression: Compression) {
        let raw_bytes: usize = payload.iter().map(|piece| piece.len()).sum();
        assert!(raw_bytes <= PAYLOAD_BYTES_MAX, "a block of {raw_bytes} bytes");
        let start = out.len();
        out.reserve(block_bytes(raw_bytes));
        out.resize(start + BLOCK_HEADER_BYTES, 0);
        let compressed = match compression {
            Compression::None => false,
            #[cfg(feature = "lz4")]
            Compression::Lz4 => append_lz4(out, payload, raw_bytes),
        };
        if !compressed {
            payload.iter().for_each(|piece| out.extend_from_slice(piece));
        }
        self.write_header(&mut out[start..], header, raw_bytes, compressed);
    }

    /// Makes a block of memory that has the payload behind [`BLOCK_HEADER_BYTES`] free bytes.
    ///
    /// # Panics
    /// When there is no room for the header, or the payload is longer than [`PAYLOAD_BYTES_MAX`].
    pub fn seal_in_place(&self, block: &mut [u8], header: &BlockHeader) {
        let raw_bytes = block.len() - BLOCK_HEADER_BYTES;
        assert!(raw_bytes <= PAYLOAD_BYTES_MAX, "a block of {raw_bytes} bytes");
        self.write_header(block, header, raw_bytes, false);
    }

    /// Returns the block at the beginning of `bytes`, which lie at `offset` in the file; its place in `bytes`
    /// comes with it.
    ///
    /// # Errors
    /// [`BlockError`] when there is no valid block.
    pub fn check(&self, bytes: &[u8], offset: u64) -> Result<(SealedHeader, Range<usize>), BlockError> {
        let head = bytes.first_chunk::<BLOCK_HEADER_BYTES>().ok_or(BlockError::Length)?;
        let sealed = SealedHeader::decode(head, self.epochs)?;
        if sealed.header.offset != offset {
            return Err(BlockError::Offset);
        }
        let block = bytes.get(..sealed.bytes()).ok_or(BlockError::Length)?;
        if self.checksum(block) != sealed.checksum {
            return Err(BlockError::Checksum);
        }
        Ok((sealed, BLOCK_HEADER_BYTES..BLOCK_HEADER_BYTES + sealed.payload_bytes))
    }

    fn write_header(&self, block: &mut [u8], header: &BlockHeader, raw_bytes: usize, compressed: bool) {
        let payload_bytes = block.len() - BLOCK_HEADER_BYTES;
        let sealed = SealedHeader { header: *header, payload_bytes, raw_bytes, compressed, checksum: 0 };
        block[..BLOCK_HEADER_BYTES].copy_from_slice(&sealed.encode(self.epochs));
        self.mend(block);
    }

    /// Makes the checksum of a block right.
    pub(super) fn mend(&self, block: &mut [u8]) {
        let checksum = self.checksum(block);
        block[4..8].copy_from_slice(&checksum.to_le_bytes());
    }

    fn checksum(&self, block: &[u8]) -> u32 {
        let mut digest = self.identity;
        digest.update(&block[8..]);
        digest.value()
    }
}

/// Bytes that a block with such a payload takes in the file.
#[must_use]
pub const fn block_bytes(payload_bytes: usize) -> usize {
    BLOCK_HEADER_BYTES + payload_bytes
}

impl BlockHeader {
    /// Returns a block at `offset` without entries, mark and end.
    #[must_use]
    pub fn new(offset: u64, synced_to: u64, durable_epoch: Epoch) -> BlockHeader {
        BlockHeader {
            offset,
            synced_to,
            epochs: None,
            mark: None,
            durable_epoch,
            end: BlockEnd::None,
            reserved_bytes: None,
        }
    }

    /// No entry, mark or durable epoch of the block is later.
    pub(crate) fn largest_epoch(&self) -> Epoch {
        let last = self.epochs.map_or(Epoch::default(), |(_, last)| last);
        last.max(self.mark.unwrap_or_default()).max(self.durable_epoch)
    }
}

impl BlockClaim {
    /// Returns what a header of any file claims. Whether the numbers of its epochs are as wide as those of the
    /// file, [`BlockCodec::check`] finds out.
    pub(crate) fn read(bytes: &[u8; BLOCK_HEADER_BYTES]) -> Result<BlockClaim, BlockError> {
        let sealed = SealedHeader::decode(bytes, EpochWidth::Bits44)?;
        let BlockHeader { offset, epochs, end, durable_epoch, .. } = sealed.header;
        let number = |epoch| EpochWidth::Bits44.number(epoch);
        Ok(BlockClaim {
            offset,
            bytes: sealed.bytes(),
            end,
            is_compressed: sealed.compressed,
            last_number: epochs.map_or(0, |(_, last)| number(last)),
            durable_number: number(durable_epoch),
        })
    }

    /// Returns the last epoch of its entries, if epochs in the file are so wide; 0 without entries.
    pub(crate) fn last_entry(&self, epochs: EpochWidth) -> Epoch {
        epochs.last(self.last_number).unwrap_or(Epoch::MAX)
    }

    /// Returns an epoch before which no entry of this block lies, nor one of a block that was written later: all up to the durable epoch
    /// had been written by then.
    pub(crate) fn frontier(&self, epochs: EpochWidth) -> Epoch {
        epochs.last(self.durable_number).map_or(Epoch::default(), |durable| Epoch::new(durable.get() + 1))
    }

    /// Returns the offset at which the next block begins.
    pub(crate) fn end_offset(&self) -> u64 {
        self.offset + self.bytes as u64
    }
}

impl SealedHeader {
    /// Returns the checksum of the block.
    pub(crate) fn checksum(&self) -> u32 {
        self.checksum
    }

    /// Bytes that the block takes in the file.
    #[must_use]
    pub fn bytes(&self) -> usize {
        block_bytes(self.payload_bytes)
    }

    /// Returns the offset at which the next block begins.
    #[must_use]
    pub fn end_offset(&self) -> u64 {
        self.header.offset + self.bytes() as u64
    }

    /// Returns the payload as it was before compression, in `scratch` if it is compressed. `payload` is what
    /// [`BlockCodec::check`] found.
    ///
    /// # Errors
    /// [`BlockError::Compression`]; [`BlockError::CompressionUnsupported`] in a program without the feature
    /// `lz4`.
    pub fn raw<'a>(&self, payload: &'a [u8], scratch: &'a mut Vec<u8>) -> Result<&'a [u8], BlockError> {
        if !self.compressed {
            return Ok(payload);
        }
        scratch.resize(self.raw_bytes, 0);
        decompress(payload, scratch)?;
        Ok(scratch)
    }

    fn encode(&self, epochs: EpochWidth) -> [u8; BLOCK_HEADER_BYTES] {
        let header = &self.header;
        let number = |epoch| epochs.number(epoch);
        let unsynced = header.offset.saturating_sub(header.synced_to).min(u64::from(MANY));
        let (first, last) = header.epochs.map_or((0, 0), |(first, last)| (number(first), number(last)));
        let reservation = if header.reserved_bytes.is_some() { RESERVATION } else { 0 };
        let flags = u32::from(self.compressed) | (header.end as u32) << END_SHIFT | reservation;
        let words = [
            self.payload_bytes as u64 | (self.raw_bytes as u64) << 32,
            u64::from(flags) | unsynced << 32,
            header.offset,
            header.reserved_bytes.unwrap_or(first),
            last,
            header.mark.map_or(0, number),
            number(header.durable_epoch),
        ];
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        bytes[..4].copy_from_slice(&BLOCK_MAGIC);
        for (chunk, word) in bytes[8..].chunks_exact_mut(8).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Returns what the header claims, its checksum not yet compared. Lengths are within bounds that make it
    /// safe to act on them.
    fn decode(bytes: &[u8; BLOCK_HEADER_BYTES], epochs: EpochWidth) -> Result<SealedHeader, BlockError> {
        if bytes[..4] != BLOCK_MAGIC {
            let empty = bytes.iter().all(|&byte| byte == 0);
            return Err(if empty { BlockError::Empty } else { BlockError::Magic });
        }
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        let (payload_bytes, raw_bytes) = (u32_at(8) as usize, u32_at(12) as usize);
        let (flags, offset) = (u32_at(16), u64_at(24));
        let first_of = |number| epochs.first(number).ok_or(BlockError::Header);
        let last_of = |number| epochs.last(number).ok_or(BlockError::Header);
        let (entries, reserved_bytes) = match (u64_at(32), u64_at(40)) {
            (reserved, 0) if flags & RESERVATION != 0 => (None, Some(reserved)),
            (0, 0) => (None, None),
            (first, last) => (Some((first_of(first)?, last_of(last)?)), None),
        };
        let header = BlockHeader {
            offset,
            synced_to: match u32_at(20) {
                MANY => 0,
                unsynced => offset.saturating_sub(u64::from(unsynced)),
            },
            epochs: entries,
            mark: Some(first_of(u64_at(48))?).filter(|mark| mark.get() != 0),
            durable_epoch: last_of(u64_at(56))?,
            end: BlockEnd::from_code(flags >> END_SHIFT & END_MASK).ok_or(BlockError::Header)?,
            reserved_bytes,
        };
        let compressed = flags & COMPRESSED != 0;
        let sealed = SealedHeader { header, payload_bytes, raw_bytes, compressed, checksum: u32_at(4) };
        // A header has one form: unknown flags, or more unsynced bytes than there are, would not be written
        // again.
        let is_one_form = sealed.encode(epochs)[8..] == bytes[8..];
        if is_one_form && sealed.makes_sense() { Ok(sealed) } else { Err(BlockError::Header) }
    }

    fn makes_sense(&self) -> bool {
        let SealedHeader { header, payload_bytes, raw_bytes, compressed, .. } = *self;
        let lengths_fit = if compressed {
            payload_bytes < raw_bytes && raw_bytes.div_ceil(256) <= payload_bytes
        } else {
            payload_bytes == raw_bytes
        };
        let is_bare = raw_bytes == 0 && header.mark.is_none() && header.end == BlockEnd::None;
        lengths_fit
            && raw_bytes <= PAYLOAD_BYTES_MAX
            && header.epochs.is_none_or(|(first, last)| first <= last)
            && (header.reserved_bytes.is_none() || is_bare)
    }
}

#[cfg(test)]
#[path = "block/tests.rs"]
mod tests;
