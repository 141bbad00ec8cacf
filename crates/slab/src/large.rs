//! Blocks too large for a class, and those of the reserve: from the global allocator, each remembered so that the pool can free them when it
//! goes.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use crate::class::{ALIGN_MIN, aligned_size};
use crate::poison::poison;

/// The large blocks of a pool, by address.
#[derive(Debug, Default)]
pub(crate) struct LargeBlocks {
    // The standard library's lock also under a model checker: nothing in it waits for another thread.
    live: Mutex<HashMap<usize, Large>>,
    /// Under a model checker, what was freed: it stays readable, so that a use of it is found and does no harm.
    freed: Mutex<Vec<Large>>,
}

#[derive(Debug)]
struct Large {
    block: NonNull<u8>,
    layout: Layout,
}

// SAFETY: an entry is the pool's right to free the block, which any thread may do.
unsafe impl Send for Large {}

impl LargeBlocks {
    /// Allocates a block; `None` if the system refuses.
    pub(crate) fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        let layout = whole(layout)?;
        // SAFETY: `whole` makes the size at least `ALIGN_MIN`.
        let block = NonNull::new(unsafe { alloc(layout) })?;
        self.with(|live| live.insert(block.addr().get(), Large { block, layout }));
        Some(block)
    }

    /// Frees a block.
    ///
    /// # Panics
    /// When there is no such block, or it was allocated with another layout.
    ///
    /// # Safety
    /// Nobody uses the block from now on.
    pub(crate) unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        let known = self.with(|live| live.remove(&block.addr().get()));
        match known {
            // SAFETY: the block was allocated with this layout and not freed since, otherwise it were not known.
            Some(large) if Some(large.layout) == whole(layout) => unsafe { self.give_back(large) },
            known => {
                panic!("a large block is freed twice or with another layout: {block:?} {layout:?} {known:?}")
            }
        }
    }

    /// # Safety
    /// The block belongs to the caller alone, and the caller gives it away.
    unsafe fn give_back(&self, large: Large) {
        // SAFETY: the caller's promise.
        unsafe { poison(large.block, large.layout.size()) };
        if cfg!(any(loom, shuttle)) {
            self.freed.lock().unwrap_or_else(PoisonError::into_inner).push(large);
        } else {
            // SAFETY: the block was allocated with this layout; the caller's promise.
            unsafe { dealloc(large.block.as_ptr(), large.layout) };
        }
    }

    fn with<R>(&self, change: impl FnOnce(&mut HashMap<usize, Large>) -> R) -> R {
        change(&mut self.live.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for LargeBlocks {
    fn drop(&mut self) {
        let live = self.with(std::mem::take).into_values();
        let freed = std::mem::take(&mut *self.freed.lock().unwrap_or_else(PoisonError::into_inner));
        for large in live.chain(freed) {
            // SAFETY: the block was allocated with this layout and not freed since; the pool goes, and with it everybody who could use
            // the block.
            unsafe { dealloc(large.block.as_ptr(), large.layout) };
        }
    }
}

/// Returns what is really allocated for a layout; `None` if there is no such size.
fn whole(layout: Layout) -> Option<Layout> {
    Layout::from_size_align(aligned_size(layout), layout.align().max(ALIGN_MIN)).ok()
}
