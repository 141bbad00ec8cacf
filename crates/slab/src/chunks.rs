//! The chunks of a pool: those of one heap each, those that heaps share, and those that nobody uses.

use std::collections::HashMap;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use crate::chunk::{CHUNK_BYTES, Chunk, Extent, PIECES, place_of};
use crate::shared::HeapShared;

/// Unused chunks that stay, however long nobody uses them; and one for so many that are in use.
const RESERVE_MIN: usize = 2;
const IN_USE_PER_RESERVE: usize = 32;

/// See the module's documentation. Chunks are known by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    owned: HashMap<usize, Chunk>,
    shared: HashMap<usize, SharedChunk>,
    /// Used last, given out first.
    spare: Vec<Spare>,
}

/// A chunk that heaps own pieces of.
#[derive(Debug)]
struct SharedChunk {
    chunk: Chunk,
    /// A bit for each piece without an owner.
    free: u32,
}

/// A chunk that nobody uses.
#[derive(Debug)]
struct Spare {
    chunk: Chunk,
    /// `None` for a chunk that was taken in advance, which stays.
    unused_since: Option<Instant>,
}

const _: () = assert!(PIECES == u32::BITS as usize);

/// A range that a heap may cut into blocks.
pub(crate) type BlockRange = (NonNull<u8>, usize);

impl Chunks {
    /// Returns bytes of the chunks that nobody uses.
    pub(crate) fn spare_bytes(&self) -> u64 {
        (self.spare.len() * CHUNK_BYTES) as u64
    }

    /// Returns bytes of the chunks that were taken in advance and that nobody has used yet.
    pub(crate) fn in_advance_bytes(&self) -> u64 {
        let in_advance = self.spare.iter().filter(|spare| spare.unused_since.is_none());
        (in_advance.count() * CHUNK_BYTES) as u64
    }

    /// Keeps a chunk that was taken in advance.
    pub(crate) fn keep_in_advance(&mut self, chunk: Chunk) {
        self.spare.push(Spare { chunk, unused_since: None });
    }

    /// Returns a chunk that nobody uses.
    pub(crate) fn take_spare(&mut self) -> Option<Chunk> {
        self.spare.pop().map(|spare| spare.chunk)
    }

    /// Takes out as many of the chunks that nobody uses as so many bytes need.
    pub(crate) fn take_spare_for(&mut self, bytes: usize) -> Vec<Chunk> {
        std::iter::from_fn(|| self.take_spare()).take(bytes.div_ceil(CHUNK_BYTES)).collect()
    }

    /// Gives a heap a whole chunk.
    pub(crate) fn give(&mut self, chunk: Chunk, owner: NonNull<HeapShared>) -> BlockRange {
        let range = chunk.give(owner);
        self.owned.insert(chunk.number(), chunk);
        range
    }

    /// Gives a heap a piece of a chunk that is shared already.
    pub(crate) fn give_piece(&mut self, owner: NonNull<HeapShared>) -> Option<BlockRange> {
        self.shared.values_mut().find(|shared| shared.free != 0).map(|shared| shared.give(owner))
    }

    /// Makes a shared chunk, and gives a heap its first piece.
    pub(crate) fn share(&mut self, chunk: Chunk, owner: NonNull<HeapShared>) -> BlockRange {
        chunk.share();
        let mut shared = SharedChunk { chunk, free: u32::MAX };
        let range = shared.give(owner);
        self.shared.insert(shared.chunk.number(), shared);
        range
    }

    /// Takes an extent back that has no blocks.
    pub(crate) fn take_back(&mut self, extent: NonNull<Extent>, now: Instant) {
        let (number, piece) = place_of(extent);
        let unused = match piece {
            None => self.owned.remove(&number),
            Some(piece) => self.take_piece_back(number, piece),
        };
        let spare = unused.map(|chunk| Spare { chunk, unused_since: Some(now) });
        self.spare.extend(spare);
    }

    /// Returns the chunk, if that was the last of its pieces.
    fn take_piece_back(&mut self, number: usize, piece: usize) -> Option<Chunk> {
        let shared = self.shared.get_mut(&number)?;
        shared.free |= 1 << piece;
        if shared.free != u32::MAX {
            return None;
        }
        self.shared.remove(&number).map(|shared| shared.chunk)
    }

    /// Takes out the chunks that nobody has used for so long, except for a reserve.
    pub(crate) fn take_unused(&mut self, unused_for: Duration) -> Vec<Chunk> {
        let reserve = RESERVE_MIN.max((self.owned.len() + self.shared.len()) / IN_USE_PER_RESERVE);
        let is_unused = |spare: &Spare| spare.unused_since.is_some_and(|since| since.elapsed() >= unused_for);
        let mut surplus = self.spare.len().saturating_sub(reserve);
        let unused = self.spare.extract_if(.., |spare| {
            let is_taken = surplus > 0 && is_unused(spare);
            surplus -= usize::from(is_taken);
            is_taken
        });
        unused.map(|spare| spare.chunk).collect()
    }
}

impl SharedChunk {
    /// Gives a heap a piece. There is one.
    fn give(&mut self, owner: NonNull<HeapShared>) -> BlockRange {
        let piece = self.free.trailing_zeros();
        self.free &= !(1 << piece);
        // SAFETY: the chunk is shared, and a piece without an owner has no blocks.
        unsafe { self.chunk.give_piece(piece as usize, owner) }
    }
}
