//! Making blocks of what was taken from the buffers, and appending them to a file.
//!
//! What is large becomes a block where it lies: its header goes into the room before it. What is small is
//! gathered in one block, so that many workers with a little each cost one header. Compressed blocks are made
//! in memory of their own in any case.

use ensilo_epoch::Epoch;

use super::buffer::Taken;
use super::error::LogError;
use super::tail::Tail;
use crate::format::{BlockEnd, BlockHeader, Compression, block_bytes};

/// From this length on a payload is a block of its own.
const LARGE_BYTES: usize = 16 << 10;
/// No more than this is gathered in one block.
const JOINED_BYTES_MAX: usize = 1 << 20;
/// What is kept of the memory in which blocks are made: enough for any that is gathered, not for one of a large transaction.
const SCRATCH_BYTES_KEPT: usize = 2 * JOINED_BYTES_MAX;

/// What the headers of all blocks of a batch hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockMetadata {
    /// The epochs that the entries may have.
    pub(crate) epochs: (Epoch, Epoch),
    /// The durable epoch of the database.
    pub(crate) durable_epoch: Epoch,
    /// What the last block holds, if the batch ends a round. A round that ends the file, too, is the business
    /// of the tail.
    pub(crate) last: Option<(Epoch, BlockEnd)>,
}

/// Appends batches.
#[derive(Debug)]
pub(crate) struct Batcher {
    compression: Compression,
    scratch: Vec<u8>,
}

impl Batcher {
    pub(crate) fn new(compression: Compression) -> Batcher {
        Batcher { compression, scratch: Vec::new() }
    }

    /// Appends blocks with what was taken; if they end a round, at least one.
    pub(crate) fn append(
        &mut self,
        tail: &mut Tail,
        taken: &mut [Taken<'_>],
        metadata: &BlockMetadata,
    ) -> Result<(), LogError> {
        for piece in &*taken {
            tail.counts().transactions.add(piece.transactions);
            tail.counts().entry_bytes.add(piece.payload().len() as u64);
        }
        taken.sort_unstable_by_key(|piece| !is_large(piece));
        let mut rest = taken;
        let mut is_last = rest.is_empty() && metadata.last.is_none();
        while !is_last {
            let (block, others) = rest.split_at_mut(pieces_of_a_block(rest));
            rest = others;
            is_last = rest.is_empty();
            let payload_bytes = block.iter().map(|piece| piece.payload().len()).sum();
            tail.make_room(block_bytes(payload_bytes), metadata.durable_epoch)?;
            let header = header(tail, metadata, !block.is_empty(), is_last);
            if let Some((_, last)) = header.epochs {
                tail.note_entries(last);
            }
            self.append_block(tail, block, &header)?;
        }
        Ok(())
    }

    fn append_block(
        &mut self,
        tail: &mut Tail,
        pieces: &mut [Taken<'_>],
        header: &BlockHeader,
    ) -> Result<(), LogError> {
        if let ([piece], Compression::None) = (&mut *pieces, self.compression) {
            tail.file().codec.seal_in_place(piece.frame, header);
            return tail.append_block(piece.frame);
        }
        let payload: Vec<_> = pieces.iter().map(Taken::payload).collect();
        tail.file().codec.seal(&mut self.scratch, header, &payload, self.compression);
        let appended = tail.append_block(&self.scratch);
        self.scratch.clear();
        self.scratch.shrink_to(SCRATCH_BYTES_KEPT);
        appended
    }
}

fn is_large(piece: &Taken<'_>) -> bool {
    piece.payload().len() >= LARGE_BYTES
}

/// Returns how many of the pieces, of which the large ones come first, go into the next block.
fn pieces_of_a_block(pieces: &[Taken<'_>]) -> usize {
    let mut bytes = 0;
    let fits = |piece: &&Taken<'_>| {
        bytes += piece.payload().len();
        bytes <= JOINED_BYTES_MAX && !is_large(piece)
    };
    let gathered = pieces.iter().take_while(fits).count();
    if gathered == 0 { pieces.len().min(1) } else { gathered }
}

fn header(tail: &mut Tail, metadata: &BlockMetadata, has_entries: bool, is_last: bool) -> BlockHeader {
    let last = metadata.last.filter(|_| is_last);
    let end = match last {
        Some((_, BlockEnd::None)) => tail.end_of_round(),
        Some((_, end)) => end,
        None => BlockEnd::None,
    };
    BlockHeader {
        epochs: has_entries.then_some(metadata.epochs),
        mark: last.map(|(mark, _)| mark),
        end,
        ..tail.file().header(metadata.durable_epoch)
    }
}
