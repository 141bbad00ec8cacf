//! Blocks that others freed, on their way back to their heap.
//!
//! A stack that anybody pushes onto and only the owner takes, as a whole: without single pops there is no ABA.

use std::ptr::{self, NonNull};

use ensilo_sync::atomic::{AtomicPtr, Ordering};

/// What a freed block holds: its place in a list.
pub(crate) struct FreeBlock {
    pub(crate) next: *mut FreeBlock,
    /// The index of its class. Only set on the way through a remote stack.
    class: usize,
}

const _: () = assert!(size_of::<FreeBlock>() <= crate::class::ALIGN_MIN);

/// A stack of blocks that others freed.
#[derive(Debug)]
pub(crate) struct RemoteStack {
    top: AtomicPtr<FreeBlock>,
}

impl RemoteStack {
    pub(crate) fn new() -> Self {
        RemoteStack { top: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Pushes a block of the class with this index.
    ///
    /// # Safety
    /// The block is at least `FreeBlock` in size and alignment, and the caller is its only user and gives it away.
    pub(crate) unsafe fn push(&self, block: NonNull<u8>, class: usize) {
        let block = block.cast::<FreeBlock>();
        // Relaxed: the link is only compared here.
        let mut next = self.top.load(Ordering::Relaxed);
        loop {
            // SAFETY: the caller gave the block to us alone; it is not in the stack yet.
            unsafe { block.write(FreeBlock { next, class }) };
            // Release: [remote].
            let pushed =
                self.top.compare_exchange_weak(next, block.as_ptr(), Ordering::Release, Ordering::Relaxed);
            match pushed {
                Ok(_) => return,
                Err(top) => next = top,
            }
        }
    }

    /// Takes all blocks.
    pub(crate) fn take(&self) -> RemoteBlocks {
        // Relaxed: a glance that saves the exchange when there is nothing.
        if self.top.load(Ordering::Relaxed).is_null() {
            return RemoteBlocks::none();
        }
        // Acquire: [remote]. Pushes below the top came earlier; each exchange continues the release of those before.
        RemoteBlocks { next: self.top.swap(ptr::null_mut(), Ordering::Acquire) }
    }
}

/// Blocks taken from a remote stack. They belong to the holder of this value.
#[derive(Debug)]
pub(crate) struct RemoteBlocks {
    next: *mut FreeBlock,
}

impl RemoteBlocks {
    pub(crate) const fn none() -> Self {
        RemoteBlocks { next: ptr::null_mut() }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.next.is_null()
    }
}

impl Iterator for RemoteBlocks {
    /// A block and the index of its class.
    type Item = (NonNull<FreeBlock>, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let block = NonNull::new(self.next)?;
        // SAFETY: `push` wrote the block before it linked it, and gave it to whoever takes the stack: to us alone.
        let FreeBlock { next, class } = unsafe { block.read() };
        self.next = next;
        Some((block, class))
    }
}

#[cfg(all(test, loom))]
mod tests {
    use std::sync::Arc;

    use loom::cell::UnsafeCell;
    use loom::thread;

    use super::*;

    const BLOCKS: usize = 3;

    /// Two threads free blocks that they have used, while the owner takes what is there and uses it again. Every use is recorded in
    /// a cell, so that the checker reports one that is not ordered after the one before.
    #[test]
    fn blocks_freed_by_others_come_back_once() {
        loom::model(|| {
            let stack = Arc::new(RemoteStack::new());
            let uses: Arc<[UnsafeCell<u32>; BLOCKS]> = Arc::default();
            let free = |range: std::ops::Range<usize>| {
                let (stack, uses) = (Arc::clone(&stack), Arc::clone(&uses));
                move || {
                    for class in range {
                        // SAFETY: loom checks that nobody else uses the block.
                        uses[class].with_mut(|last| unsafe { *last += 1 });
                        let block = Box::new(FreeBlock { next: ptr::null_mut(), class: 0 });
                        // SAFETY: the block is given away here.
                        unsafe { stack.push(NonNull::from(Box::leak(block)).cast(), class) };
                    }
                }
            };
            let threads = [thread::spawn(free(0..1)), thread::spawn(free(1..BLOCKS))];
            let mut taken = [0; BLOCKS];
            let mut take = || {
                for (block, class) in stack.take() {
                    // SAFETY: the block was leaked from a box above, and the stack gave it to us alone.
                    drop(unsafe { Box::from_raw(block.as_ptr()) });
                    // SAFETY: loom checks that nobody else uses the block.
                    uses[class].with_mut(|last| unsafe { *last += 1 });
                    taken[class] += 1;
                }
            };
            take();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            take();
            assert_eq!(taken, [1; BLOCKS]);
        });
    }
}
