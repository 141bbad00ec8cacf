//! Making blocks of what was taken from the buffers, and appending them to a file.
//!
//! What is large becomes a block where it lies: its header goes into the room before it. What is small is gathered in one block, so
//! that many workers with a little each cost one header. Compressed blocks are made in memory of their own in any case.

use ensilo_epoch::Epoch;

use super::buffer::Taken;
use super::error::LogError;
use super::log_file::LogFile;
use super::statistics::Counts;
use crate::format::{BlockEnd, BlockHeader, Compression, block_bytes};

/// From this length on a payload is a block of its own.
const LARGE_BYTES: usize = 16 << 10;
/// No more than this is gathered in one block.
const GATHERED_BYTES_MAX: usize = 1 << 20;

/// What all blocks of a batch say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Said {
    /// The epochs that the entries may have.
    pub(crate) epochs: (Epoch, Epoch),
    /// The durable epoch of the database.
    pub(crate) durable_epoch: Epoch,
    /// What the last block says, if the batch ends a round.
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
        file: &mut LogFile,
        taken: &mut [Taken<'_>],
        said: &Said,
        counts: &Counts,
    ) -> Result<(), LogError> {
        for piece in &*taken {
            counts.transactions.add(piece.transactions);
            counts.entry_bytes.add(piece.payload().len() as u64);
        }
        taken.sort_unstable_by_key(|piece| !is_large(piece));
        let mut rest = taken;
        let mut is_last = rest.is_empty() && said.last.is_none();
        while !is_last {
            let (block, others) = rest.split_at_mut(pieces_of_a_block(rest));
            rest = others;
            is_last = rest.is_empty();
            let payload_bytes = block.iter().map(|piece| piece.payload().len()).sum();
            file.make_room(block_bytes(payload_bytes), said.durable_epoch, counts)?;
            let header = header(file, said, !block.is_empty(), is_last);
            self.append_block(file, block, &header, counts)?;
        }
        Ok(())
    }

    fn append_block(
        &mut self,
        file: &mut LogFile,
        pieces: &mut [Taken<'_>],
        header: &BlockHeader,
        counts: &Counts,
    ) -> Result<(), LogError> {
        counts.blocks.add(1);
        if let ([piece], Compression::None) = (&mut *pieces, self.compression) {
            file.codec.seal_in_place(piece.frame, header);
            return file.append(piece.frame, counts);
        }
        self.scratch.clear();
        let payload: Vec<_> = pieces.iter().map(Taken::payload).collect();
        file.codec.seal(&mut self.scratch, header, &payload, self.compression);
        file.append(&self.scratch, counts)
    }
}

fn is_large(piece: &Taken<'_>) -> bool {
    piece.payload().len() >= LARGE_BYTES
}

/// How many of the pieces, of which the large ones come first, go into the next block.
fn pieces_of_a_block(pieces: &[Taken<'_>]) -> usize {
    let mut bytes = 0;
    let fits = |piece: &&Taken<'_>| {
        bytes += piece.payload().len();
        bytes <= GATHERED_BYTES_MAX && !is_large(piece)
    };
    let gathered = pieces.iter().take_while(fits).count();
    if gathered == 0 { pieces.len().min(1) } else { gathered }
}

fn header(file: &LogFile, said: &Said, has_entries: bool, is_last: bool) -> BlockHeader {
    let last = said.last.filter(|_| is_last);
    BlockHeader {
        epochs: has_entries.then_some(said.epochs),
        mark: last.map(|(mark, _)| mark),
        end: last.map_or(BlockEnd::None, |(_, end)| end),
        ..file.header(said.durable_epoch)
    }
}
