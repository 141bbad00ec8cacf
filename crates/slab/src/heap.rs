//! What one worker allocates from.

use std::alloc::Layout;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use crate::class::{Class, aligned_size};
use crate::local::Local;
use crate::poison::poison;
use crate::{AccountId, OutOfMemory, Pool, chunk};

/// What one worker allocates from. It belongs to one thread at a time.
///
/// Dropping a heap leaves it in the pool, for the next [`Pool::heap`].
pub struct Heap {
    local: ManuallyDrop<Box<Local>>,
    pool: Arc<Pool>,
}

impl Pool {
    /// Returns a heap for one worker: one that another left, or a new one.
    #[must_use]
    pub fn heap(self: &Arc<Self>) -> Heap {
        Heap { local: ManuallyDrop::new(self.take_heap()), pool: Arc::clone(self) }
    }
}

impl Heap {
    /// Takes a block for `layout`, aligned to at least 16 bytes. Its bytes are not initialized.
    ///
    /// A block has [`Heap::usable_size`] bytes, all of which may be used, and lives until it is freed or the pool goes. Blocks of a
    /// size that is a multiple of 64 (or another power of two up to 4096) are aligned to that.
    ///
    /// # Errors
    /// [`OutOfMemory`] when the block does not fit under the limit; nothing is changed.
    #[inline]
    pub fn allocate(&self, layout: Layout, account: AccountId) -> Result<NonNull<u8>, OutOfMemory> {
        if self.pool.faults.strikes() {
            return Err(self.pool.out_of_memory(layout.size()));
        }
        let Some(class) = Class::of(layout) else {
            return self.allocate_large(layout, account);
        };
        let block = match self.local.take(class) {
            Some(block) => block,
            None => self.grow(class)?,
        };
        self.local.shared.accounts.add_as_owner(account, class.size as u64);
        Ok(block)
    }

    /// Frees a block.
    ///
    /// # Safety
    /// `block` came from a heap of the same pool, for this layout and account, was not freed since, and nobody uses it from now on.
    #[inline]
    pub unsafe fn free(&self, block: NonNull<u8>, layout: Layout, account: AccountId) {
        let Some(class) = Class::of(layout) else {
            // SAFETY: the caller's promise.
            return unsafe { self.free_large(block, layout, account) };
        };
        self.local.shared.accounts.add_as_owner(account, (class.size as u64).wrapping_neg());
        // SAFETY: a block of this class, which the caller gives away.
        unsafe { poison(block, class.size) };
        // SAFETY: a block of a class lies in a chunk of the pool, which stays mapped as long as one of its blocks is in use (I4).
        let owner = unsafe { chunk::owner_of(block) };
        if ptr::eq(owner, Arc::as_ptr(&self.local.shared)) {
            // SAFETY: the block is of this heap and, as the layout says, of this class; the caller gives it away.
            unsafe { self.local.put(block, class) };
        } else {
            // SAFETY: the pool keeps the shared part of its heaps; the caller gives the block away.
            unsafe { (*owner).remote.push(block, class.index) };
        }
    }

    /// Takes a block of exactly this layout from the general-purpose allocator, and counts it on the account. The limit does not bound
    /// such blocks, and they do not go with the pool.
    ///
    /// # Errors
    /// [`OutOfMemory`] when the system refuses.
    ///
    /// # Panics
    /// When the layout has no bytes.
    pub fn allocate_general(&self, layout: Layout, account: AccountId) -> Result<NonNull<u8>, OutOfMemory> {
        assert!(layout.size() > 0, "a block without bytes");
        if self.pool.faults.strikes() {
            return Err(self.pool.system_out_of_memory(layout.size()));
        }
        // SAFETY: the layout has bytes.
        let block = NonNull::new(unsafe { std::alloc::alloc(layout) });
        let block = block.ok_or_else(|| self.pool.system_out_of_memory(layout.size()))?;
        self.local.shared.accounts.add_general_as_owner(account, layout.size() as u64);
        Ok(block)
    }

    /// Takes a block of exactly this layout for what is needed where the limit leaves nothing: all such blocks together take at most a
    /// sixteenth of the limit, beside it. They come from the general-purpose allocator, and go with the pool.
    ///
    /// # Errors
    /// [`OutOfMemory`] when they would take more, or the system refuses.
    #[cold]
    pub fn allocate_reserve(&self, layout: Layout, account: AccountId) -> Result<NonNull<u8>, OutOfMemory> {
        if self.pool.faults.strikes() {
            return Err(self.pool.system_out_of_memory(layout.size()));
        }
        let block = self.pool.allocate_reserve(layout)?;
        self.local.shared.accounts.add_general_as_owner(account, layout.size() as u64);
        Ok(block)
    }

    /// Frees a block of [`Heap::allocate_reserve`].
    ///
    /// # Panics
    /// When there is no such block.
    ///
    /// # Safety
    /// `block` came from there, for this layout and account, on a heap of the same pool, and nobody uses it from now on.
    #[cold]
    pub unsafe fn free_reserve(&self, block: NonNull<u8>, layout: Layout, account: AccountId) {
        self.local.shared.accounts.add_general_as_owner(account, (layout.size() as u64).wrapping_neg());
        // SAFETY: the caller's promise.
        unsafe { self.pool.free_reserve(block, layout) };
    }

    /// Frees a block of [`Heap::allocate_general`].
    ///
    /// # Safety
    /// `block` came from there, for this layout and account, on a heap of the same pool, was not freed since, and nobody uses it from now
    /// on.
    pub unsafe fn free_general(&self, block: NonNull<u8>, layout: Layout, account: AccountId) {
        self.local.shared.accounts.add_general_as_owner(account, (layout.size() as u64).wrapping_neg());
        // SAFETY: the caller's promise.
        unsafe { std::alloc::dealloc(block.as_ptr(), layout) };
    }

    /// Gives the pool back what this heap has whole: chunks, and pieces of shared ones, where all blocks are free. Takes time for
    /// every free block; asks `is_interrupted` now and then, and gives up when that returns true, with everything in its place.
    /// Returns how many bytes the pool got.
    pub fn trim(&self, is_interrupted: &dyn Fn() -> bool) -> u64 {
        self.pool.take_back(&self.local.trim(is_interrupted))
    }

    /// Lends all free blocks to heaps that find no other ones, for as long as there is a [shortage](Pool::take_shortage). Asks
    /// `is_interrupted` now and then, and ends when that returns true.
    pub fn lend(&self, is_interrupted: &dyn Fn() -> bool) {
        self.pool.borrow(&self.local, is_interrupted);
    }

    /// Returns how many bytes a block for `layout` really has.
    #[must_use]
    #[inline]
    pub const fn usable_size(layout: Layout) -> usize {
        match Class::of(layout) {
            Some(class) => class.size,
            None => aligned_size(layout),
        }
    }

    /// Returns whether a block for `layout` is a large one, which lies in no chunk.
    #[must_use]
    #[inline]
    pub const fn is_large(layout: Layout) -> bool {
        Class::of(layout).is_none()
    }

    /// Returns the pool that this heap belongs to.
    #[must_use]
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Returns a block from what others freed, a new span, a new chunk, or, when the limit forbids that, from any
    /// free block that is large enough, or from what is free as a whole, also in heaps that nobody uses now.
    #[cold]
    fn grow(&self, class: Class) -> Result<NonNull<u8>, OutOfMemory> {
        if let Some(block) = self.local.refill(class) {
            return Ok(block);
        }
        match self.pool.extend(&self.local) {
            Ok(()) => self.local.refill(class).ok_or_else(|| self.pool.out_of_memory(class.size)),
            Err(refused) => (self.local.scrape(class))
                .or_else(|| self.grow_from_own(class))
                .or_else(|| self.pool.scrape_parked(class))
                .or_else(|| self.grow_from_parked(class))
                .or_else(|| self.pool.scrape_lent(class))
                .ok_or(OutOfMemory { asked_bytes: class.size as u64, ..refused }),
        }
    }

    /// Returns a block from what this heap has free in blocks that are too small: extents as a whole, or blocks side by side.
    fn grow_from_own(&self, class: Class) -> Option<NonNull<u8>> {
        if !self.local.may_trim_bring(self.pool.usage().live_bytes) {
            return None;
        }
        let block = match self.trim(&|| false) {
            0 => self.local.coalesce(class),
            _ => self.pool.extend(&self.local).ok().and_then(|()| self.local.refill(class)),
        };
        block.inspect(|_| self.local.expect_trims())
    }

    /// Returns a block from what the heaps that nobody uses now have free as a whole. They have not looked at what
    /// others freed of theirs.
    fn grow_from_parked(&self, class: Class) -> Option<NonNull<u8>> {
        if !self.pool.is_sparse() || self.pool.trim_parked_for_want() == 0 {
            return None;
        }
        self.pool.extend(&self.local).ok()?;
        self.local.refill(class)
    }

    #[cold]
    fn allocate_large(&self, layout: Layout, account: AccountId) -> Result<NonNull<u8>, OutOfMemory> {
        let block =
            self.pool.allocate_large(layout).or_else(|refused| self.trim_for_large(layout).ok_or(refused));
        let block = block.inspect_err(|_| self.pool.note_refused(aligned_size(layout)))?;
        self.local.shared.accounts.add_as_owner(account, Self::usable_size(layout) as u64);
        Ok(block)
    }

    /// Returns a large block in the place of chunks that this heap, or one that nobody uses now, has free as a whole.
    fn trim_for_large(&self, layout: Layout) -> Option<NonNull<u8>> {
        let is_trimmed = self.local.may_trim_bring(self.pool.usage().live_bytes) && self.trim(&|| false) > 0;
        if is_trimmed {
            self.local.expect_trims();
        } else if !self.pool.is_sparse() || self.pool.trim_parked_for_want() == 0 {
            return None;
        }
        self.pool.allocate_large(layout).ok()
    }

    /// # Safety
    /// As for [`Heap::free`].
    #[cold]
    unsafe fn free_large(&self, block: NonNull<u8>, layout: Layout, account: AccountId) {
        // SAFETY: the caller's promise.
        unsafe { self.pool.free_large(block, layout) };
        let bytes = Self::usable_size(layout) as u64;
        self.local.shared.accounts.add_as_owner(account, bytes.wrapping_neg());
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: the heap is dropped once, and nobody uses `local` afterwards.
        let local = unsafe { ManuallyDrop::take(&mut self.local) };
        self.pool.park(local);
    }
}

impl fmt::Debug for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heap").field("pool", &self.pool).finish_non_exhaustive()
    }
}
