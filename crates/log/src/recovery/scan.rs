//! Reading a log file to its end, and telling a torn end from damage.
//!
//! # Crash
//! The blocks of a file count up to the first place where there is no valid one. That is as it should be if
//! what follows was never synced: a power failure leaves any part of it. Valid blocks behind that place are
//! therefore looked for, and asked what was on disk when they were written
//! ([`crate::BlockHeader::synced_to`], [`crate::BlockHeader::durable_epoch`]). If one of them knows more than
//! the scan has found, something that was synced is gone, and that is damage. A file without a last block
//! that is shorter than its header, or a block that counts, says that it was made, was cut, and with it
//! perhaps what could testify.

use std::io;

use ensilo_disk::File;
use ensilo_epoch::Epoch;
use memchr::memmem;

use super::block_stream::{BlockStream, CHUNK_BYTES, Chunk, Next};
use crate::format::{
    BLOCK_HEADER_BYTES, BLOCK_MAGIC, BlockClaim, BlockCodec, BlockEnd, BlockError, FILE_HEADER_BYTES,
    FileHeader, SealedHeader,
};

/// What a log file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogFileScan {
    /// The length of the file.
    pub(super) bytes: u64,
    /// How long it was made, as far as its blocks say; its header may say more.
    pub(super) reserved_bytes: u64,
    /// The end of the last block that counts.
    pub(super) valid_end: u64,
    /// Why nothing counts after it; `None` at the end of the file, and after a block that ends the file or
    /// the logger.
    pub(super) stopped: Option<BlockError>,
    /// What the last block that counts ends.
    pub(super) end: BlockEnd,
    /// The last mark that counts, and the end of its block.
    pub(super) mark: Option<(Epoch, u64)>,
    /// No entry that counts has a later epoch.
    pub(super) last_entry: Epoch,
    /// What the valid blocks say, including those behind the place where the scan stopped.
    pub(super) evidence: Evidence,
}

/// What blocks say of what was on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Evidence {
    /// Whether there is any valid block.
    pub(super) has_blocks: bool,
    /// The file was synced up to here.
    pub(super) synced_to: u64,
    /// All transactions up to this epoch were stored.
    pub(super) durable_epoch: Epoch,
    /// No entry or mark has a later epoch.
    pub(super) largest_epoch: Epoch,
    /// The last mark that would count if nothing in front of it were damaged.
    pub(super) mark: Epoch,
}

impl Evidence {
    /// Takes what another file says. How far that one was synced is its own affair.
    pub(super) fn merge(&mut self, other: Evidence) {
        self.has_blocks |= other.has_blocks;
        self.durable_epoch = self.durable_epoch.max(other.durable_epoch);
        self.largest_epoch = self.largest_epoch.max(other.largest_epoch);
        self.mark = self.mark.max(other.mark);
    }

    fn take(&mut self, sealed: &SealedHeader) {
        let header = &sealed.header;
        self.has_blocks = true;
        self.synced_to = self.synced_to.max(header.synced_to);
        self.durable_epoch = self.durable_epoch.max(header.durable_epoch);
        self.largest_epoch = self.largest_epoch.max(header.largest_epoch());
    }
}

/// Scans the blocks of a file.
pub(super) fn scan(file: &dyn File, codec: &BlockCodec) -> io::Result<LogFileScan> {
    let len = file.len_bytes()?;
    let mut scan = LogFileScan {
        bytes: len,
        reserved_bytes: 0,
        valid_end: FILE_HEADER_BYTES as u64,
        stopped: None,
        end: BlockEnd::None,
        mark: None,
        last_entry: Epoch::default(),
        evidence: Evidence::default(),
    };
    (_, scan.stopped) = each_block(file, codec, scan.valid_end, len, &mut |sealed, _| {
        scan.take(sealed);
        true
    })?;
    scan.evidence.mark = scan.mark.map_or(Epoch::default(), |(mark, _)| mark);
    if scan.stopped.is_some() {
        look_beyond(file, codec, scan.valid_end, len, &mut scan.evidence)?;
    }
    Ok(scan)
}

impl LogFileScan {
    /// Returns whether bytes that were synced are missing or damaged.
    pub(super) fn is_damaged(&self) -> bool {
        self.evidence.synced_to > self.valid_end
    }

    /// Returns how long the file has to be, if it is shorter and nothing says that its space was given back.
    pub(super) fn is_cut(&self, header: &FileHeader) -> Option<u64> {
        let reserved_bytes = self.reserved_bytes.max(header.reserved_bytes);
        (self.end == BlockEnd::None && self.bytes < reserved_bytes).then_some(reserved_bytes)
    }

    fn take(&mut self, sealed: &SealedHeader) {
        let header = &sealed.header;
        self.valid_end = sealed.end_offset();
        self.end = header.end;
        self.reserved_bytes = self.reserved_bytes.max(header.reserved_bytes.unwrap_or_default());
        self.mark = header.mark.map(|mark| (mark, self.valid_end)).or(self.mark);
        self.last_entry = self.last_entry.max(header.epochs.map_or(Epoch::default(), |(_, last)| last));
        self.evidence.take(sealed);
    }
}

/// How far a log file that is written meanwhile is needed for everything up to some epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needed {
    /// Up to here: the end of the first block with such a mark.
    To(u64),
    /// All of it, up to here, and the next one.
    Whole(u64),
    /// The log does not reach the epoch.
    TooShort,
}

/// Returns how far a file that is written meanwhile is needed for everything up to `epoch`; and an epoch that
/// is not before any in that part.
pub(super) fn needed_up_to(file: &dyn File, codec: &BlockCodec, epoch: Epoch) -> io::Result<(Needed, Epoch)> {
    match look_for_mark_after(file, codec, epoch) {
        // When its logger was done with it, after its length was read, it was cut off behind its last block.
        // That happens once.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => look_for_mark_after(file, codec, epoch),
        found => found,
    }
}

fn look_for_mark_after(file: &dyn File, codec: &BlockCodec, epoch: Epoch) -> io::Result<(Needed, Epoch)> {
    let (mut needed, mut evidence) = (Needed::TooShort, Evidence::default());
    each_block(file, codec, FILE_HEADER_BYTES as u64, file.len_bytes()?, &mut |sealed, _| {
        evidence.take(sealed);
        if sealed.header.mark.is_some_and(|mark| mark > epoch) {
            needed = Needed::To(sealed.end_offset());
        } else if sealed.header.end == BlockEnd::Seal {
            needed = Needed::Whole(sealed.end_offset());
        }
        needed == Needed::TooShort
    })?;
    Ok((needed, evidence.largest_epoch))
}

/// Takes the evidence of all valid blocks between `start` and `end`, wherever they begin.
///
/// A mark among them would count if all in front of it that was synced were in order: if the blocks up to it
/// follow each other from within what was synced.
fn look_beyond(
    file: &dyn File,
    codec: &BlockCodec,
    start: u64,
    end: u64,
    evidence: &mut Evidence,
) -> io::Result<()> {
    let mut run = start..start;
    let mut mark = None;
    each_block_beyond(file, codec, start, end, &mut |sealed, _| {
        evidence.take(sealed);
        if sealed.header.offset != run.end {
            run.start = sealed.header.offset;
            mark = None;
        }
        run.end = sealed.end_offset();
        mark = sealed.header.mark.or(mark);
        true
    })?;
    if let Some(mark) = mark.filter(|_| run.start <= evidence.synced_to) {
        evidence.mark = evidence.mark.max(mark);
    }
    Ok(())
}

/// Shows the blocks from `start` on that follow each other, up to `end`, each with its payload, until one ends
/// something or `each` wants no more. Returns where that is, and why there is no valid block if that is why.
pub(super) fn each_block(
    file: &dyn File,
    codec: &BlockCodec,
    start: u64,
    end: u64,
    each: &mut dyn FnMut(&SealedHeader, &[u8]) -> bool,
) -> io::Result<(u64, Option<BlockError>)> {
    let mut stream = BlockStream::starting_at(file, start, end);
    let mut chunk = Chunk::default();
    loop {
        match stream.next(&mut chunk)? {
            Next::Blocks => {
                let mut offset = chunk.offset;
                for (_, block) in chunk.blocks() {
                    let (sealed, payload) = match codec.check(block, offset) {
                        Ok(checked) => checked,
                        Err(error) => return Ok((offset, Some(error))),
                    };
                    offset = sealed.end_offset();
                    if !each(&sealed, &block[payload]) || sealed.header.end != BlockEnd::None {
                        return Ok((offset, None));
                    }
                }
            }
            Next::Stopped(error) => return Ok((stream.offset(), Some(error))),
            Next::End => return Ok((stream.offset(), None)),
        }
    }
}

/// Shows all valid blocks between `start` and `end`, wherever they begin, each with its payload, until `each`
/// wants no more.
pub(super) fn each_block_beyond(
    file: &dyn File,
    codec: &BlockCodec,
    start: u64,
    end: u64,
    each: &mut dyn FnMut(&SealedHeader, &[u8]) -> bool,
) -> io::Result<()> {
    let mut window = vec![0; CHUNK_BYTES + BLOCK_HEADER_BYTES];
    let mut block = Vec::new();
    let mut at = start;
    while end.saturating_sub(at) >= BLOCK_HEADER_BYTES as u64 {
        let len = window.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
        let bytes = &mut window[..len];
        file.read_at(at, bytes)?;
        for place in memmem::find_iter(bytes, &BLOCK_MAGIC) {
            let offset = at + place as u64;
            let Some(head) = bytes[place..].first_chunk::<BLOCK_HEADER_BYTES>() else { continue };
            let Ok(claimed) = BlockClaim::read(head) else { continue };
            if claimed.offset != offset || claimed.end_offset() > end {
                continue;
            }
            block.resize(claimed.bytes, 0);
            file.read_at(offset, &mut block)?;
            if let Ok((sealed, payload)) = codec.check(&block, offset)
                && !each(&sealed, &block[payload])
            {
                return Ok(());
            }
        }
        // The windows overlap by what a header has, less one byte: no header lies in none of them.
        at += (len - BLOCK_HEADER_BYTES) as u64 + 1;
    }
    Ok(())
}
