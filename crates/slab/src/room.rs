//! Room beside the chunks, and how full a pool is that has it.
//!
//! An owner that frees blocks for want of memory makes room in chunks, which stay mapped: one block in use is enough. If chunks could take the
//! whole limit, large blocks and what others take elsewhere would find nothing from then on. So in a pool [with room](Pool::with_room) chunks
//! leave them a share of the limit, in addition to the share beside it, and large blocks give it back to each other.
//!
//! # Layout
//! ```text
//! 0                                            7/8 limit, in chunks    limit      9/8 limit
//! | chunks                                                 | room ...             | share beside the limit |
//! ```
//! Chunks that are not there yet are room as well.

use ensilo_sync::atomic::Ordering;

use crate::chunk::CHUNK_BYTES;
use crate::pool::{OUTSIDE_SHARE, Pool};
use crate::{OutOfMemory, Usage};

/// The part of the limit that chunks leave.
const ROOM_SHARE: u64 = 8;

/// How full a pool [with room](Pool::with_room) is that can take no chunk more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fill {
    /// Bytes of the chunks; at most as many as they should have.
    pub chunk_bytes: u64,
    /// Bytes of the blocks in use that lie in chunks.
    pub block_bytes: u64,
    /// The most bytes that large blocks and what others take elsewhere may have.
    pub room_bytes: u64,
    /// What they have.
    pub beside_bytes: u64,
    /// What large blocks have of it.
    pub large_bytes: u64,
    /// Bytes of large blocks because of which there is no chunk to be had; 0 if chunks have all that they may.
    pub in_the_way_bytes: u64,
}

impl Pool {
    /// Returns how full the pool is under this limit, which may be another than that of the moment; `None` if there is a chunk to be had.
    #[must_use]
    pub fn fill(&self, limit_bytes: u64) -> Option<Fill> {
        let (mapped, chunks, chunk) = (self.mapped_bytes(), self.chunk_bytes(), CHUNK_BYTES as u64);
        let chunk_limit = self.chunk_limit(limit_bytes);
        let has_chunks_left = chunks + chunk <= chunk_limit;
        if has_chunks_left && mapped + chunk <= limit_bytes {
            return None;
        }
        // Relaxed, both: numbers that stand for themselves.
        let beside = self.beside_bytes.load(Ordering::Relaxed);
        let large = self.large_bytes.load(Ordering::Relaxed);
        let (Usage { live_bytes, .. }, general) = self.usage_and_general();
        let most = limit_bytes.saturating_add(limit_bytes / OUTSIDE_SHARE);
        Some(Fill {
            chunk_bytes: chunks.min(chunk_limit).min(most.saturating_sub(beside)),
            block_bytes: live_bytes.saturating_sub(large + general),
            room_bytes: self.room_bytes(limit_bytes),
            beside_bytes: beside,
            large_bytes: large,
            in_the_way_bytes: if has_chunks_left { (mapped + chunk - limit_bytes).min(large) } else { 0 },
        })
    }

    /// Returns the most bytes that were asked for beside the chunks, and refused, since this was called last; 0 if none were.
    pub fn take_refused(&self) -> u64 {
        // Relaxed, here and below: a hint for one that frees large blocks.
        match self.refused_bytes.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.refused_bytes.swap(0, Ordering::Relaxed),
        }
    }

    pub(crate) fn note_refused(&self, bytes: usize) {
        if self.keeps_room {
            self.refused_bytes.fetch_max(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Counts bytes that do not lie in chunks. All of them together may take what chunks leave, and in any pool the share beside the
    /// limit, whatever chunks have taken.
    pub(crate) fn reserve_beside(&self, bytes: usize) -> Result<(), OutOfMemory> {
        let limit = self.limit();
        let more = bytes as u64;
        let beside = self.beside_bytes.fetch_add(more, Ordering::Relaxed).saturating_add(more);
        let limit = if beside <= self.room_bytes(limit) { u64::MAX } else { limit };
        self.reserve_below(bytes, limit).inspect_err(|_| {
            self.beside_bytes.fetch_sub(more, Ordering::Relaxed);
        })
    }

    /// Counts the bytes of a large block.
    pub(crate) fn reserve_large(&self, bytes: usize) -> Result<(), OutOfMemory> {
        if !self.keeps_room {
            return self.reserve_below(bytes, self.limit());
        }
        self.reserve_beside(bytes)?;
        self.large_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn unreserve_large(&self, bytes: usize) {
        let bytes = bytes as u64;
        self.mapped_bytes.fetch_sub(bytes, Ordering::Relaxed);
        if self.keeps_room {
            self.beside_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.large_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Counts the bytes of a chunk.
    pub(crate) fn reserve_chunk(&self) -> Result<(), OutOfMemory> {
        let limit = self.limit();
        let most = self.chunk_limit(limit);
        let counted = self.chunk_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |bytes| {
            Some(bytes + CHUNK_BYTES as u64).filter(|&sum| sum <= most)
        });
        counted.map_err(|_| self.out_of_memory(CHUNK_BYTES))?;
        self.reserve_below(CHUNK_BYTES, limit).inspect_err(|_| {
            self.chunk_bytes.fetch_sub(CHUNK_BYTES as u64, Ordering::Relaxed);
        })
    }

    /// Ends the count of so many bytes of chunks.
    pub(crate) fn unreserve_chunks(&self, bytes: usize) {
        self.mapped_bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
        self.chunk_bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes.load(Ordering::Relaxed)
    }

    /// Returns the most bytes of chunks.
    fn chunk_limit(&self, limit: u64) -> u64 {
        let chunk = CHUNK_BYTES as u64;
        if self.keeps_room { ((limit - limit / ROOM_SHARE) / chunk * chunk).max(chunk) } else { limit }
    }

    /// Returns what may be taken beside the chunks, whatever they have taken.
    fn room_bytes(&self, limit: u64) -> u64 {
        let left = if self.keeps_room {
            limit.saturating_sub(self.chunk_bytes().min(self.chunk_limit(limit)))
        } else {
            0
        };
        left.saturating_add(limit / OUTSIDE_SHARE)
    }
}
