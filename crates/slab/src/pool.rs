//! The memory of one database: chunks, large blocks, the limit, and the heaps.

use std::alloc::Layout;
use std::fmt;
use std::ptr::NonNull;
// The standard library's also under a model checker: nothing here waits for another thread or orders memory.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ensilo_sync::atomic::Ordering;
use ensilo_sync::unchecked::{AtomicBool, AtomicU64};

use crate::account::usage;
use crate::chunk::{CHUNK_BYTES, Chunk, Extent, extent_bytes};
use crate::chunks::{BlockRange, Chunks};
use crate::class::{Class, aligned_size};
use crate::faults::Faults;
use crate::large::LargeBlocks;
use crate::local::Local;
use crate::shared::HeapShared;
use crate::{OutOfMemory, Usage};

/// Less free memory than this is not worth a trim.
const SPARSE_BYTES_MIN: u64 = 4 << 20;

/// Nor is less than this part of what is in use.
const SPARSE_SHARE: u64 = 8;

/// The memory of one database. When it goes, all memory of its heaps goes with it.
///
/// Heaps take chunks of 2 MiB, and pieces of 64 KiB of chunks that they share as long as they are small. Freed memory is used again by the
/// heap that it came from, until that is [trimmed](crate::Heap::trim); then by any heap, and what nobody uses for some time
/// [goes back](Pool::return_unused) to the system. At the limit, where there is no chunk to be had, blocks are taken
/// from larger free blocks, and from heaps that nobody uses.
pub struct Pool {
    /// [`NO_LIMIT`] for none.
    limit_bytes: AtomicU64,
    pub(crate) mapped_bytes: AtomicU64,
    /// Of these, what chunks have.
    pub(crate) chunk_bytes: AtomicU64,
    /// What others have taken elsewhere and, if the pool keeps room, large blocks.
    pub(crate) beside_bytes: AtomicU64,
    /// What large blocks have, if the pool keeps room.
    pub(crate) large_bytes: AtomicU64,
    /// The most bytes that were refused beside the chunks since somebody asked last.
    pub(crate) refused_bytes: AtomicU64,
    /// Chunks leave a share of the limit.
    pub(crate) keeps_room: bool,
    /// What heaps have taken of the reserve beside the limit.
    reserve_bytes: AtomicU64,
    pub(crate) faults: Faults,
    large: LargeBlocks,
    heaps: Mutex<Heaps>,
    /// Free blocks of heaps that their owners do not need now, for those that find no other ones.
    lent: Mutex<Box<Local>>,
    /// A heap has found no block since somebody asked last.
    is_short: AtomicBool,
    /// How often that was so.
    shortages: AtomicU64,
    // Last: unmapped after everything that points into them.
    chunks: Mutex<Chunks>,
}

/// A limit that nothing reaches.
const NO_LIMIT: u64 = u64::MAX;

/// The part of the limit that what others take elsewhere may have in any case.
pub(crate) const OUTSIDE_SHARE: u64 = 8;

/// The part of the limit that is in reserve beside it.
const RESERVE_SHARE: u64 = 16;

#[derive(Default)]
struct Heaps {
    /// Heaps that nobody uses now.
    #[allow(clippy::vec_box, reason = "a heap keeps its box, so that it moves without being copied")]
    parked: Vec<Box<Local>>,
    /// The shared parts of all heaps. Chunks point to them.
    all: Vec<Arc<HeapShared>>,
}

impl Pool {
    /// Returns a pool that takes at most `limit_bytes` from the system, or as much as there is.
    #[must_use]
    pub fn new(limit_bytes: Option<u64>) -> Arc<Pool> {
        Self::with(limit_bytes, false)
    }

    /// Returns a pool that takes at most `limit_bytes` and a share beside them, and whose chunks leave an eighth of the limit to large blocks
    /// and [what others take](Pool::count_outside): for an owner that frees blocks when [memory is short](Pool::shortages), and
    /// large ones when [they are refused](Pool::take_refused).
    #[must_use]
    pub fn with_room(limit_bytes: Option<u64>) -> Arc<Pool> {
        Self::with(limit_bytes, true)
    }

    fn with(limit_bytes: Option<u64>, keeps_room: bool) -> Arc<Pool> {
        Arc::new(Pool {
            limit_bytes: AtomicU64::new(limit_bytes.unwrap_or(NO_LIMIT)),
            mapped_bytes: AtomicU64::new(0),
            chunk_bytes: AtomicU64::new(0),
            beside_bytes: AtomicU64::new(0),
            large_bytes: AtomicU64::new(0),
            refused_bytes: AtomicU64::new(0),
            keeps_room,
            reserve_bytes: AtomicU64::new(0),
            faults: Faults::none(),
            large: LargeBlocks::default(),
            heaps: Mutex::default(),
            lent: Mutex::new(Box::new(Local::new())),
            is_short: AtomicBool::new(false),
            shortages: AtomicU64::new(0),
            chunks: Mutex::default(),
        })
    }

    /// Returns the parts of a heap that another worker left, or of a new one.
    pub(crate) fn take_heap(&self) -> Box<Local> {
        let mut heaps = self.heaps();
        heaps.parked.pop().unwrap_or_else(|| {
            let local = Box::new(Local::new());
            heaps.all.push(Arc::clone(&local.shared));
            local
        })
    }

    /// Returns what the pool holds now.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage_and_general().0
    }

    /// Returns the same, with what of it lies in blocks of the general-purpose allocator.
    pub(crate) fn usage_and_general(&self) -> (Usage, u64) {
        let (mut sum, mut general_bytes) = (Vec::new(), 0_u64);
        for shared in &self.heaps().all {
            shared.accounts.add_to(&mut sum);
            general_bytes = general_bytes.wrapping_add(shared.accounts.general_bytes());
        }
        let in_advance_bytes = self.chunks().in_advance_bytes();
        // The sum is negative for a moment when its parts were read around a move from heap to heap.
        let general_bytes = general_bytes.cast_signed().max(0).cast_unsigned();
        let mapped_bytes = self.mapped_bytes().saturating_sub(in_advance_bytes) + general_bytes;
        (usage(mapped_bytes, &sum), general_bytes)
    }

    /// Bytes that the pool has taken from the system: what the limit bounds.
    #[must_use]
    pub fn mapped_bytes(&self) -> u64 {
        self.mapped_bytes.load(Ordering::Relaxed)
    }

    /// Returns the most bytes that the pool takes from the system.
    #[must_use]
    pub fn limit_bytes(&self) -> Option<u64> {
        Some(self.limit()).filter(|&limit| limit != NO_LIMIT)
    }

    /// Sets the most bytes that the pool takes from the system from now on. What it has taken stays, also where that is more.
    pub fn set_limit_bytes(&self, limit_bytes: Option<u64>) {
        self.limit_bytes.store(limit_bytes.unwrap_or(NO_LIMIT), Ordering::Relaxed);
    }

    pub(crate) fn limit(&self) -> u64 {
        // Relaxed: a number that stands for itself.
        self.limit_bytes.load(Ordering::Relaxed)
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
            self.chunks().keep_in_advance(chunk);
        }
        Ok(())
    }

    /// Gives a heap a new extent: a piece of a shared chunk while it is small, or where there is no chunk to be had; and else a chunk.
    pub(crate) fn extend(&self, local: &Local) -> Result<(), OutOfMemory> {
        let owner = NonNull::from(&*local.shared);
        let range = if local.is_small() { self.give_piece(owner)? } else { self.give_chunk(owner)? };
        local.extend(range);
        Ok(())
    }

    /// The lock is held from the look for a piece until there is one: of heaps that find none at the same
    /// time, one alone takes a chunk.
    fn give_piece(&self, owner: NonNull<HeapShared>) -> Result<BlockRange, OutOfMemory> {
        let mut chunks = self.chunks();
        if let Some(piece) = chunks.give_piece(owner) {
            return Ok(piece);
        }
        let chunk = chunks.take_spare().map_or_else(|| self.map_chunk(), Ok)?;
        Ok(chunks.share(chunk, owner))
    }

    fn give_chunk(&self, owner: NonNull<HeapShared>) -> Result<BlockRange, OutOfMemory> {
        let spare = self.chunks().take_spare();
        match spare.map_or_else(|| self.map_chunk(), Ok) {
            Ok(chunk) => Ok(self.chunks().give(chunk, owner)),
            Err(refused) => self.chunks().give_piece(owner).ok_or(refused),
        }
    }

    /// Takes extents back that have no blocks, for any heap. Returns their bytes.
    pub(crate) fn take_back(&self, extents: &[NonNull<Extent>]) -> u64 {
        let bytes: usize = extents.iter().map(|&extent| extent_bytes(extent)).sum();
        let (now, mut chunks) = (Instant::now(), self.chunks());
        extents.iter().for_each(|&extent| chunks.take_back(extent, now));
        bytes as u64
    }

    /// Returns whether so much of what heaps hold is free that [`Heap::trim`](crate::Heap::trim) may bring something.
    #[must_use]
    pub fn is_sparse(&self) -> bool {
        let (spare_bytes, in_advance_bytes) = {
            let chunks = self.chunks();
            (chunks.spare_bytes(), chunks.in_advance_bytes())
        };
        let Usage { mapped_bytes, live_bytes, .. } = self.usage();
        let free_bytes = (mapped_bytes + in_advance_bytes).saturating_sub(spare_bytes + live_bytes);
        free_bytes >= SPARSE_BYTES_MIN.max(live_bytes / SPARSE_SHARE)
    }

    /// Trims the heaps that nobody uses now, and returns how many bytes that brought, as [`Heap::trim`](crate::Heap::trim).
    pub fn trim_parked(&self) -> u64 {
        self.trim_parked_where(|_| true)
    }

    /// The same, for somebody who finds no memory, with those heaps in which this may bring something.
    pub(crate) fn trim_parked_for_want(&self) -> u64 {
        let live_bytes = self.usage().live_bytes;
        self.trim_parked_where(|local| local.may_trim_bring(live_bytes))
    }

    fn trim_parked_where(&self, is_trimmed: impl Fn(&Local) -> bool) -> u64 {
        let mut bytes = 0;
        let count = self.heaps().parked.len();
        for _ in 0..count {
            let mut heaps = self.heaps();
            if heaps.parked.is_empty() {
                break;
            }
            // Outside the lock: nobody waits for it.
            let local = heaps.parked.remove(0);
            drop(heaps);
            if is_trimmed(&local) {
                let brought = self.take_back(&local.trim(&|| false));
                if brought > 0 {
                    local.expect_trims();
                }
                bytes += brought;
            }
            self.park(local);
        }
        bytes
    }

    /// Gives chunks back to the system that nobody has used for so long, except for a small reserve. Returns how many bytes that were.
    pub fn return_unused(&self, unused_for: Duration) -> u64 {
        let unused = self.chunks().take_unused(unused_for);
        let bytes = unused.len() * CHUNK_BYTES;
        drop(unused);
        self.unreserve_chunks(bytes);
        bytes as u64
    }

    /// Gives chunks that nobody uses back to the system, for so many bytes beside the chunks. False if there are none.
    fn release_spare(&self, bytes: usize) -> bool {
        let spare = self.chunks().take_spare_for(bytes);
        let released = spare.len() * CHUNK_BYTES;
        drop(spare);
        self.unreserve_chunks(released);
        released > 0
    }

    fn map_chunk(&self) -> Result<Chunk, OutOfMemory> {
        self.reserve_chunk()?;
        Chunk::map().ok_or_else(|| {
            self.unreserve_chunks(CHUNK_BYTES);
            self.system_out_of_memory(CHUNK_BYTES)
        })
    }

    /// Counts bytes that the caller takes from elsewhere on behalf of the database, so that the limit bounds them too. All such bytes
    /// together may take an eighth of the limit, whatever heaps have taken: otherwise nothing could be deleted once they have it all. In
    /// a pool [with room](Pool::with_room) they may take what chunks leave too, together with large blocks.
    ///
    /// # Errors
    /// [`OutOfMemory`] when they would pass both; nothing is counted.
    pub fn count_outside(&self, bytes: usize) -> Result<(), OutOfMemory> {
        if bytes == 0 {
            return Ok(());
        }
        if self.faults.strikes() {
            return Err(self.out_of_memory(bytes));
        }
        self.or_release_spare(bytes, || self.reserve_beside(bytes)).inspect_err(|_| self.note_refused(bytes))
    }

    /// Reserves bytes beside the chunks, if need be once more when chunks that nobody uses have gone.
    fn or_release_spare(
        &self,
        bytes: usize,
        reserve: impl Fn() -> Result<(), OutOfMemory>,
    ) -> Result<(), OutOfMemory> {
        reserve().or_else(|refused| if self.release_spare(bytes) { reserve() } else { Err(refused) })
    }

    /// Takes a block of the reserve.
    pub(crate) fn allocate_reserve(&self, layout: Layout) -> Result<NonNull<u8>, OutOfMemory> {
        let (bytes, reserve) = (layout.size() as u64, self.limit() / RESERVE_SHARE);
        let taken = self.reserve_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
            taken.checked_add(bytes).filter(|&sum| sum <= reserve)
        });
        taken.map_err(|_| self.out_of_memory(layout.size()))?;
        self.large.allocate(layout).ok_or_else(|| {
            self.reserve_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.system_out_of_memory(layout.size())
        })
    }

    /// # Safety
    /// `block` is one of the reserve with this layout, which nobody uses from now on.
    pub(crate) unsafe fn free_reserve(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { self.large.free(block, layout) };
        self.reserve_bytes.fetch_sub(layout.size() as u64, Ordering::Relaxed);
    }

    /// From now on about one allocation of `one_in` fails, in an order that `seed` decides; none if `one_in` is 0.
    #[cfg(feature = "testing")]
    pub fn fail_one_in(&self, one_in: u64, seed: u64) {
        self.faults.plant(one_in, seed);
    }

    /// Ends the count of so many bytes, which were counted by [`Pool::count_outside`].
    pub fn forget_outside(&self, bytes: u64) {
        self.mapped_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.beside_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// A block from a heap that nobody uses now.
    pub(crate) fn scrape_parked(&self, class: Class) -> Option<NonNull<u8>> {
        self.heaps().parked.iter().find_map(|local| local.scrape(class))
    }

    /// A block that was lent, or is made of some that were; without one, there is a shortage.
    pub(crate) fn scrape_lent(&self, class: Class) -> Option<NonNull<u8>> {
        let block = self.lent().scrape(class);
        let block = block.or_else(|| self.coalesce_lent(class));
        if block.is_none() {
            // Relaxed: a hint. A caller of `take_shortage` clears it before it looks for blocks to lend.
            self.is_short.store(true, Ordering::Relaxed);
        }
        block
    }

    /// A block made of small ones that were lent, and lie side by side.
    fn coalesce_lent(&self, class: Class) -> Option<NonNull<u8>> {
        // Before the lock: whoever lends what parked heaps have takes theirs first.
        let live_bytes = self.usage().live_bytes;
        let lent = self.lent();
        let block = lent.may_trim_bring(live_bytes).then(|| lent.coalesce(class)).flatten();
        block.inspect(|_| lent.expect_trims())
    }

    /// Whether a heap has found no block since this was called last. Then the caller has heaps that are not in use
    /// [lend](crate::Heap::lend) theirs.
    pub fn take_shortage(&self) -> bool {
        let is_short = self.is_short.load(Ordering::Relaxed) && self.is_short.swap(false, Ordering::Relaxed);
        if is_short {
            self.shortages.fetch_add(1, Ordering::Relaxed);
        }
        is_short
    }

    /// How often [`Pool::take_shortage`] has found one. A heap in use lends when this has changed, since nobody else can do it.
    #[must_use]
    #[inline]
    pub fn shortages(&self) -> u64 {
        self.shortages.load(Ordering::Relaxed)
    }

    /// Takes free blocks of a heap to lend them to others.
    pub(crate) fn borrow(&self, local: &Local, is_interrupted: &dyn Fn() -> bool) {
        let lent = self.lent();
        local.lend(&lent, is_interrupted);
        lent.expect_trims();
    }

    /// Lends what the heaps that nobody uses now have free.
    pub fn lend_parked(&self) {
        let (heaps, lent) = (self.heaps(), self.lent());
        heaps.parked.iter().for_each(|local| local.lend(&lent, &|| false));
        lent.expect_trims();
    }

    /// Sends what was lent and not used back to its owners.
    pub fn return_lent(&self) {
        self.lent().return_lent();
    }

    /// Leaves a heap for the next worker.
    pub(crate) fn park(&self, local: Box<Local>) {
        self.heaps().parked.push(local);
    }

    pub(crate) fn allocate_large(&self, layout: Layout) -> Result<NonNull<u8>, OutOfMemory> {
        let bytes = aligned_size(layout);
        self.or_release_spare(bytes, || self.reserve_large(bytes))?;
        self.large.allocate(layout).ok_or_else(|| {
            self.unreserve_large(bytes);
            self.system_out_of_memory(bytes)
        })
    }

    /// # Safety
    /// As for [`Heap::free`](crate::Heap::free).
    pub(crate) unsafe fn free_large(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { self.large.free(block, layout) };
        self.unreserve_large(aligned_size(layout));
    }

    /// Returns the error of an allocation of so many bytes that was refused.
    #[must_use]
    pub fn out_of_memory(&self, bytes: usize) -> OutOfMemory {
        OutOfMemory {
            asked_bytes: bytes as u64,
            limit_bytes: self.limit_bytes(),
            mapped_bytes: self.mapped_bytes(),
        }
    }

    pub(crate) fn system_out_of_memory(&self, bytes: usize) -> OutOfMemory {
        OutOfMemory { limit_bytes: None, ..self.out_of_memory(bytes) }
    }

    pub(crate) fn reserve_below(&self, bytes: usize, limit: u64) -> Result<(), OutOfMemory> {
        self.mapped_bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |mapped| {
                mapped.checked_add(bytes as u64).filter(|&sum| sum <= limit)
            })
            .map(drop)
            .map_err(|_| self.out_of_memory(bytes))
    }

    fn lent(&self) -> MutexGuard<'_, Box<Local>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn chunks(&self) -> MutexGuard<'_, Chunks> {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn heaps(&self) -> MutexGuard<'_, Heaps> {
        self.heaps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("limit_bytes", &self.limit_bytes())
            .field("mapped_bytes", &self.mapped_bytes())
            .finish_non_exhaustive()
    }
}
