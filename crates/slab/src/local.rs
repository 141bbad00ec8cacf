//! A heap's lists and spans, which its owner alone touches, and the part that others see.

use std::array;
use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use ensilo_sync::prefetch;

use crate::chunk::{CHUNK_BYTES, PIECE_BYTES, extent_of};
use crate::class::{CLASSES, Class};
use crate::remote::{FreeBlock, RemoteBlocks};
use crate::shared::HeapShared;

mod coalesce;
mod trim;

/// A class's first span, so that a small database does not spread over 64 KiB per class. Each further one is twice as large.
const SPAN_BYTES_FIRST: usize = 4 << 10;

/// The largest span.
const SPAN_BYTES_MAX: usize = 64 << 10;

/// Blocks from the remote stack that one refill sorts into their lists. More wait for the next one: no allocation takes long.
const REMOTE_BATCH: usize = 1024;

/// The part of a heap that its owner alone touches.
pub(crate) struct Local {
    lists: [FreeList; CLASSES],
    /// The part of the newest extent that is not yet cut into spans.
    uncut: Uncut,
    /// Bytes of all extents.
    extended_bytes: Cell<usize>,
    /// Blocks taken from the remote stack and not yet sorted into their lists.
    returned: Cell<RemoteBlocks>,
    /// The most live bytes in the pool since this heap was last trimmed for want of memory and had nothing whole; 0 if it had.
    live_bytes_max: Cell<u64>,
    /// Bytes of the blocks that came back from others since then.
    sorted_bytes: Cell<usize>,
    pub(crate) shared: Arc<HeapShared>,
}

// SAFETY: the pointers lead to blocks of the heap's own extents, which nobody else touches (I2) and which stay mapped until the heap gives
// them back (I4), whatever thread the owner is on.
unsafe impl Send for Local {}

/// The free blocks of one class.
#[derive(Debug)]
struct FreeList {
    free: Cell<*mut FreeBlock>,
    span: Uncut,
    span_bytes: Cell<usize>,
}

/// A range that is given out from front to end.
#[derive(Debug)]
struct Uncut {
    next: Cell<*mut u8>,
    left: Cell<usize>,
}

impl Local {
    pub(crate) fn new() -> Self {
        Local {
            lists: array::from_fn(|_| FreeList::new()),
            uncut: Uncut::new(),
            extended_bytes: Cell::new(0),
            returned: Cell::new(RemoteBlocks::none()),
            live_bytes_max: Cell::new(0),
            sorted_bytes: Cell::new(0),
            shared: Arc::new(HeapShared::new()),
        }
    }

    /// Returns a free block at hand: from the list, or else from the span.
    #[inline]
    pub(crate) fn take(&self, class: Class) -> Option<NonNull<u8>> {
        let list = &self.lists[class.index];
        list.pop().or_else(|| list.span.cut(class.size))
    }

    /// Puts a block of this heap into its list.
    ///
    /// # Safety
    /// The block is of this heap and class, and the caller is its only user and gives it away.
    #[inline]
    pub(crate) unsafe fn put(&self, block: NonNull<u8>, class: Class) {
        // SAFETY: the caller gives us the block, which is at least `ALIGN_MIN` large and aligned.
        unsafe { self.lists[class.index].push(block.cast()) };
    }

    /// Returns a block from what others freed or from a new span of the newest chunk; `None` if a new chunk is needed.
    pub(crate) fn refill(&self, class: Class) -> Option<NonNull<u8>> {
        self.sort_returned(REMOTE_BATCH);
        self.lists[class.index].pop().or_else(|| {
            self.begin_span(class);
            self.take(class)
        })
    }

    /// Returns a block from anything that this heap has, if need be from a larger free block; `None` if there is none.
    ///
    /// For when no new chunk can be had.
    pub(crate) fn scrape(&self, class: Class) -> Option<NonNull<u8>> {
        while self.sort_returned(usize::MAX) > 0 {}
        self.refill(class).or_else(|| {
            let (larger, block) = (class.index + 1..CLASSES)
                .map(Class::at)
                .filter(|&larger| class.fits_into(larger))
                .find_map(|larger| self.take(larger).map(|block| (larger, block)))?;
            // SAFETY: the block has left its list.
            unsafe { self.cut_up(block, larger.size, class) };
            self.lists[class.index].pop()
        })
    }

    /// Gives the heap a new extent. What is left of the one before is lost until that comes back as a whole: less than a span of the
    /// class that asked for more.
    pub(crate) fn extend(&self, (start, bytes): (NonNull<u8>, usize)) {
        self.uncut.set(start, bytes);
        self.extended_bytes.set(self.extended_bytes.get() + bytes);
    }

    /// Returns whether a trim for want of memory may bring something. If the last one did not, it may when a piece's
    /// worth of memory was freed since, or came back that had been lent: a trim takes time for every free block.
    pub(crate) fn may_trim_bring(&self, live_bytes: u64) -> bool {
        let most = self.live_bytes_max.get();
        let may_bring =
            most == 0 || live_bytes + PIECE_BYTES as u64 <= most || self.sorted_bytes.get() >= PIECE_BYTES;
        self.live_bytes_max.set(if may_bring { live_bytes } else { most.max(live_bytes) });
        if may_bring {
            self.sorted_bytes.set(0);
        }
        may_bring
    }

    /// The last trim has brought something: so may the next.
    pub(crate) fn expect_trims(&self) {
        self.live_bytes_max.set(0);
    }

    /// Returns whether the heap has so little that a piece of a shared chunk is enough.
    pub(crate) fn is_small(&self) -> bool {
        self.extended_bytes.get() < CHUNK_BYTES / 2
    }

    /// Sorts at most `batch` blocks that others freed into their lists, and says how many.
    fn sort_returned(&self, batch: usize) -> usize {
        let mut returned = self.returned.replace(RemoteBlocks::none());
        if returned.is_empty() {
            returned = self.shared.remote.take();
        }
        let (mut sorted, mut bytes) = (0, self.sorted_bytes.get());
        for (block, class) in returned.by_ref().take(batch) {
            // SAFETY: others pushed the block because it is of this heap, with its class, and gave it away.
            unsafe { self.lists[class].push(block) };
            sorted += 1;
            bytes = bytes.saturating_add(Class::at(class).size);
        }
        self.sorted_bytes.set(bytes);
        self.returned.set(returned);
        sorted
    }

    /// Cuts the class's next span from the newest chunk; shorter, perhaps empty, if there is little left.
    fn begin_span(&self, class: Class) {
        let list = &self.lists[class.index];
        self.uncut.align(class.align());
        let wanted = list.span_bytes.get().max(class.size).min(self.uncut.left.get());
        let bytes = wanted - wanted % class.size;
        if bytes > 0
            && let Some(start) = self.uncut.cut(bytes)
        {
            list.span.set(start, bytes);
            // SAFETY: the range is of an extent of this heap.
            unsafe { extent_of(start).as_ref() }.add_cut(bytes);
            list.span_bytes.set((2 * list.span_bytes.get()).min(SPAN_BYTES_MAX));
        }
    }
}

impl FreeList {
    fn new() -> Self {
        FreeList {
            free: Cell::new(ptr::null_mut()),
            span: Uncut::new(),
            span_bytes: Cell::new(SPAN_BYTES_FIRST),
        }
    }

    /// Returns what of the span is not cut into blocks yet, if anything.
    fn uncut(&self) -> Option<(NonNull<u8>, usize)> {
        NonNull::new(self.span.next.get())
            .map(|start| (start, self.span.left.get()))
            .filter(|&(_, left)| left > 0)
    }

    /// Returns the free blocks, without those that are not yet cut from the span. The list stays as it is until the last one is asked for.
    fn free_blocks(&self) -> impl Iterator<Item = NonNull<u8>> {
        let mut next = self.free.get();
        std::iter::from_fn(move || {
            let block = NonNull::new(next)?;
            // SAFETY: a block in the list belongs to it, and `push` wrote its link.
            next = unsafe { block.as_ref().next };
            Some(block.cast())
        })
    }

    #[inline]
    fn pop(&self) -> Option<NonNull<u8>> {
        let block = NonNull::new(self.free.get())?;
        // SAFETY: a block in the list belongs to it, and `push` wrote its link.
        let next = unsafe { block.as_ref().next };
        // The next one is used soon: its link is read, and then it is written.
        prefetch(next.cast_const().cast());
        self.free.set(next);
        Some(block.cast())
    }

    /// # Safety
    /// The block is of this list's heap and class, and the caller is its only user and gives it away.
    #[inline]
    unsafe fn push(&self, block: NonNull<FreeBlock>) {
        // SAFETY: the caller gives us the block, which is large enough and aligned for a link.
        unsafe { (&raw mut (*block.as_ptr()).next).write(self.free.get()) };
        self.free.set(block.as_ptr());
    }
}

impl Uncut {
    fn new() -> Self {
        Uncut { next: Cell::new(ptr::null_mut()), left: Cell::new(0) }
    }

    fn set(&self, start: NonNull<u8>, bytes: usize) {
        self.next.set(start.as_ptr());
        self.left.set(bytes);
    }

    /// Skips to a multiple of `align`.
    fn align(&self, align: usize) {
        let skipped = (self.next.get().addr().wrapping_neg() & (align - 1)).min(self.left.get());
        self.next.set(self.next.get().wrapping_add(skipped));
        self.left.set(self.left.get() - skipped);
    }

    /// Cuts off the first `bytes`.
    #[inline]
    fn cut(&self, bytes: usize) -> Option<NonNull<u8>> {
        self.left.set(self.left.get().checked_sub(bytes)?);
        let start = self.next.get();
        self.next.set(start.wrapping_add(bytes));
        NonNull::new(start)
    }
}
