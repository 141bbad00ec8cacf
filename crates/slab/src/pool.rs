//! The memory of one database: chunks, large blocks, the limit, and the heaps.

use std::alloc::Layout;
use std::fmt;
use std::ptr::NonNull;
// The standard library's also under a model checker: nothing here waits for another thread or orders memory.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ensilo_sync::atomic::Ordering;
use ensilo_sync::unchecked::AtomicU64;

use crate::account::usage;
use crate::chunk::{CHUNK_BYTES, Chunk};
use crate::class::{Class, aligned_size};
use crate::large::LargeBlocks;
use crate::local::{Local, Shared};
use crate::{Heap, OutOfMemory, Usage};

/// The memory of one database. When it goes, all memory of its heaps goes with it.
///
/// Heaps take chunks of 2 MiB, which stay with the pool: freed memory is used again, by the heap that it came from. Up to the
/// limit, that is: where a new chunk would pass it, blocks are taken from larger free blocks, and from heaps that nobody uses.
pub struct Pool {
    limit_bytes: Option<u64>,
    mapped_bytes: AtomicU64,
    /// Of these, what others have taken elsewhere.
    outside_bytes: AtomicU64,
    large: LargeBlocks,
    heaps: Mutex<Heaps>,
    /// Chunks with memory behind them that no heap has yet.
    spare: Mutex<Vec<Chunk>>,
    // Last: unmapped after everything that points into them.
    chunks: Mutex<Vec<Chunk>>,
}

/// The part of the limit that what others take elsewhere may have in any case.
const OUTSIDE_SHARE: u64 = 8;

#[derive(Default)]
struct Heaps {
    /// Heaps that nobody uses now.
    #[allow(clippy::vec_box, reason = "a heap keeps its box, so that it moves without being copied")]
    parked: Vec<Box<Local>>,
    /// The shared parts of all heaps. Chunks point to them.
    all: Vec<Arc<Shared>>,
}

impl Pool {
    /// A pool that takes at most `limit_bytes` from the system, or as much as there is.
    #[must_use]
    pub fn new(limit_bytes: Option<u64>) -> Arc<Pool> {
        Arc::new(Pool {
            limit_bytes,
            mapped_bytes: AtomicU64::new(0),
            outside_bytes: AtomicU64::new(0),
            large: LargeBlocks::default(),
            heaps: Mutex::default(),
            spare: Mutex::default(),
            chunks: Mutex::default(),
        })
    }

    /// A heap for one worker: one that another left, or a new one.
    #[must_use]
    pub fn heap(self: &Arc<Self>) -> Heap {
        let mut heaps = self.heaps();
        let local = heaps.parked.pop().unwrap_or_else(|| {
            let local = Box::new(Local::new());
            heaps.all.push(Arc::clone(&local.shared));
            local
        });
        drop(heaps);
        Heap::new(local, Arc::clone(self))
    }

    /// What the pool holds now.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let mut sum = Vec::new();
        for shared in &self.heaps().all {
            shared.accounts.add_to(&mut sum);
        }
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).len();
        usage(self.mapped_bytes() - (spare * CHUNK_BYTES) as u64, &sum)
    }

    /// Bytes that the pool has taken from the system.
    #[must_use]
    pub fn mapped_bytes(&self) -> u64 {
        self.mapped_bytes.load(Ordering::Relaxed)
    }

    /// The most bytes that the pool takes from the system.
    #[must_use]
    pub fn limit_bytes(&self) -> Option<u64> {
        self.limit_bytes
    }

    /// Takes `bytes` from the system in advance, rounded up to chunks, and has memory put behind every page, so that heaps
    /// which grow do not wait for the system (Silo, SOSP 2013, §5.1).
    ///
    /// # Errors
    /// [`OutOfMemory`] when that would pass the limit, or the system refuses; what was taken until then stays in reserve.
    pub fn prefault(&self, bytes: u64) -> Result<(), OutOfMemory> {
        for _ in 0..bytes.div_ceil(CHUNK_BYTES as u64) {
            let chunk = self.map_chunk()?;
            chunk.touch();
            self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(chunk);
        }
        Ok(())
    }

    /// Gives a heap a new chunk.
    pub(crate) fn extend(&self, local: &Local) -> Result<(), OutOfMemory> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let chunk = spare.map_or_else(|| self.map_chunk(), Ok)?;
        chunk.set_owner(NonNull::from(&*local.shared));
        local.extend(&chunk);
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner).push(chunk);
        Ok(())
    }

    fn map_chunk(&self) -> Result<Chunk, OutOfMemory> {
        self.reserve(CHUNK_BYTES)?;
        Chunk::map().ok_or_else(|| {
            self.unreserve(CHUNK_BYTES);
            self.system_out_of_memory(CHUNK_BYTES)
        })
    }

    /// Counts bytes that the caller takes from elsewhere on behalf of the database, so that the limit bounds them too. All such bytes
    /// together may take an eighth of the limit, whatever heaps have taken: otherwise nothing could be deleted once they have it all.
    ///
    /// # Errors
    /// [`OutOfMemory`] when they would pass both; nothing is counted.
    pub fn count_outside(&self, bytes: usize) -> Result<(), OutOfMemory> {
        let limit = self.limit_bytes.unwrap_or(u64::MAX);
        let outside =
            self.outside_bytes.fetch_add(bytes as u64, Ordering::Relaxed).saturating_add(bytes as u64);
        let limit = if outside <= limit / OUTSIDE_SHARE { u64::MAX } else { limit };
        self.reserve_below(bytes, limit).inspect_err(|_| {
            self.outside_bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
        })
    }

    /// Ends the count of so many bytes, which were counted by [`Pool::count_outside`].
    pub fn forget_outside(&self, bytes: u64) {
        self.mapped_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.outside_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// A block from a heap that nobody uses now.
    pub(crate) fn scrape_parked(&self, class: Class) -> Option<NonNull<u8>> {
        self.heaps().parked.iter().find_map(|local| local.scrape(class))
    }

    /// Leaves a heap for the next worker.
    pub(crate) fn park(&self, local: Box<Local>) {
        self.heaps().parked.push(local);
    }

    pub(crate) fn allocate_large(&self, layout: Layout) -> Result<NonNull<u8>, OutOfMemory> {
        let bytes = aligned_size(layout);
        self.reserve(bytes)?;
        self.large.allocate(layout).ok_or_else(|| {
            self.unreserve(bytes);
            self.system_out_of_memory(bytes)
        })
    }

    /// # Safety
    /// As for [`Heap::free`].
    pub(crate) unsafe fn free_large(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { self.large.free(block, layout) };
        self.unreserve(aligned_size(layout));
    }

    /// The error for `bytes` more than there are.
    pub(crate) fn out_of_memory(&self, bytes: usize) -> OutOfMemory {
        OutOfMemory {
            asked_bytes: bytes as u64,
            limit_bytes: self.limit_bytes,
            mapped_bytes: self.mapped_bytes(),
        }
    }

    pub(crate) fn system_out_of_memory(&self, bytes: usize) -> OutOfMemory {
        OutOfMemory { limit_bytes: None, ..self.out_of_memory(bytes) }
    }

    fn reserve(&self, bytes: usize) -> Result<(), OutOfMemory> {
        self.reserve_below(bytes, self.limit_bytes.unwrap_or(u64::MAX))
    }

    fn reserve_below(&self, bytes: usize, limit: u64) -> Result<(), OutOfMemory> {
        self.mapped_bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |mapped| {
                mapped.checked_add(bytes as u64).filter(|&sum| sum <= limit)
            })
            .map(drop)
            .map_err(|_| self.out_of_memory(bytes))
    }

    fn unreserve(&self, bytes: usize) {
        self.mapped_bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    fn heaps(&self) -> MutexGuard<'_, Heaps> {
        self.heaps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("limit_bytes", &self.limit_bytes)
            .field("mapped_bytes", &self.mapped_bytes())
            .finish_non_exhaustive()
    }
}
