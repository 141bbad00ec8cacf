//! A heap over the global allocator.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::{AccountId, OutOfMemory, Pool};

/// What one worker allocates from. It belongs to one thread at a time.
#[derive(Debug)]
pub struct Heap {
    pool: Arc<Pool>,
    not_sync: PhantomData<Cell<()>>,
}

impl Heap {
    pub(crate) fn new(pool: Arc<Pool>) -> Heap {
        Heap { pool, not_sync: PhantomData }
    }

    /// Takes a block of `layout`, which must not be empty, aligned to at least 16 bytes.
    ///
    /// # Errors
    /// [`OutOfMemory`] when the block would pass the limit; nothing is changed.
    pub fn allocate(&self, layout: Layout, account: AccountId) -> Result<NonNull<u8>, OutOfMemory> {
        let bytes = Self::usable_size(layout) as u64;
        self.pool.charge(account, bytes)?;
        // SAFETY: `usable_size` is at least 16, so the layout is not empty.
        let block = unsafe { alloc(real_layout(layout)) };
        NonNull::new(block).ok_or(OutOfMemory { asked_bytes: bytes, limit_bytes: None, mapped_bytes: 0 })
    }

    /// Gives a block back.
    ///
    /// # Safety
    /// `block` came from a heap of the same pool, for this layout and account, was not freed since, and nobody uses it
    /// from now on.
    pub unsafe fn free(&self, block: NonNull<u8>, layout: Layout, account: AccountId) {
        // SAFETY: the caller gives back a block that `allocate` made with the same layout.
        unsafe { dealloc(block.as_ptr(), real_layout(layout)) };
        self.pool.discharge(account, Self::usable_size(layout) as u64);
    }

    /// How many bytes a block of `layout` really has.
    #[must_use]
    pub fn usable_size(layout: Layout) -> usize {
        real_layout(layout).size()
    }
}

fn real_layout(layout: Layout) -> Layout {
    let align = layout.align().max(16);
    let size = layout.size().max(1).next_multiple_of(align);
    // SAFETY: the alignment is a power of two, and the size of any real layout rounded up to it stays below the
    // largest address (`Layout` allows no size above `isize::MAX` rounded down to its alignment).
    unsafe { Layout::from_size_align_unchecked(size, align) }
}
