//! The blocks of one table, and which of them a key or a range needs.
//!
//! In each part of the checkpoint the table's blocks are a run of rising keys: a key may be in the last block
//! of a run that begins with it or a smaller key, and in no other one of the run.

use std::ops::{Bound, Range};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use ensilo_log::CheckpointBlock;

/// See the module's documentation.
pub(super) struct TableBlocks {
    blocks: Vec<LoadBlock>,
    /// Those of each part.
    runs: Vec<Range<usize>>,
}

/// A block, and how far it is.
pub(super) struct LoadBlock {
    pub(super) block: CheckpointBlock,
    state: AtomicU8,
    /// Whether its first key is known to be right: all of the block was read once.
    is_proved: AtomicBool,
}

/// Left for [`LOADING`].
const UNLOADED: u8 = 0;
/// A thread is putting its rows into memory. Left for [`LOADED`], or back.
const LOADING: u8 = 1;
/// All of its rows are in memory. Never left.
const LOADED: u8 = 2;

impl LoadBlock {
    /// Returns whether the calling thread is to load the block, alone; [`LoadBlock::end`] follows.
    pub(super) fn claim(&self) -> bool {
        self.state.compare_exchange(UNLOADED, LOADING, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Ends what [`LoadBlock::claim`] began.
    pub(super) fn end(&self, is_loaded: bool) {
        // Release: [block-loaded].
        self.state.store(if is_loaded { LOADED } else { UNLOADED }, Ordering::Release);
    }

    pub(super) fn is_loaded(&self) -> bool {
        // Acquire: [block-loaded].
        self.state.load(Ordering::Acquire) == LOADED
    }

    /// Returns whether another thread is loading it.
    pub(super) fn is_being_loaded(&self) -> bool {
        self.state.load(Ordering::Relaxed) == LOADING
    }

    /// Returns whether the key that it begins with is known to be right.
    pub(super) fn is_proved(&self) -> bool {
        self.is_loaded() || self.is_proved.load(Ordering::Relaxed)
    }

    pub(super) fn set_proved(&self) {
        self.is_proved.store(true, Ordering::Relaxed);
    }
}

impl TableBlocks {
    /// `blocks` are those of the table by part, each part's in the order in which they stand there.
    pub(super) fn new(blocks: Vec<CheckpointBlock>) -> Self {
        let mut runs = Vec::new();
        for run in blocks.chunk_by(|one, other| one.part == other.part) {
            let begin = runs.last().map_or(0, |before: &Range<usize>| before.end);
            runs.push(begin..begin + run.len());
        }
        let blocks = blocks.into_iter().map(|block| LoadBlock {
            block,
            state: AtomicU8::new(UNLOADED),
            is_proved: AtomicBool::new(false),
        });
        let blocks = TableBlocks { blocks: blocks.collect(), runs };
        // They were read when they were found.
        let ends = blocks.runs.iter().flat_map(|run| [run.start, run.end - 1]);
        ends.for_each(|end| blocks.blocks[end].set_proved());
        blocks
    }

    pub(super) fn all(&self) -> &[LoadBlock] {
        &self.blocks
    }

    pub(super) fn bytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.block.bytes as u64).sum()
    }

    /// Returns the runs.
    pub(super) fn runs(&self) -> impl Iterator<Item = &[LoadBlock]> {
        self.runs.iter().map(|run| &self.blocks[run.clone()])
    }
}

/// Returns how many blocks of a run begin at a bound or before it: seen from above, at a bound that excludes its
/// key, before it.
pub(super) fn begun_by(run: &[LoadBlock], bound: Bound<&[u8]>, unbounded: usize, is_high: bool) -> usize {
    match bound {
        Bound::Unbounded => unbounded,
        Bound::Excluded(key) if is_high => run.partition_point(|block| *block.block.first_key < *key),
        Bound::Included(key) | Bound::Excluded(key) => {
            run.partition_point(|block| *block.block.first_key <= *key)
        }
    }
}
