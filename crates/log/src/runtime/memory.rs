//! Memory that threads share by agreement: who may touch which bytes is decided elsewhere.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::cell::UnsafeCell;
use std::ops::Range;
use std::ptr::{NonNull, slice_from_raw_parts_mut};

/// Bytes that several threads share, each its own part of them.
pub(crate) struct Memory {
    bytes: Box<[UnsafeCell<u8>]>,
    /// For the model: one cell per byte, which finds accesses that are not ordered.
    #[cfg(all(loom, test))]
    accesses: Vec<loom::cell::UnsafeCell<()>>,
}

// SAFETY: shared access reaches the bytes only through `slice` and `slice_mut`, whose callers promise that
// nobody writes what they have, or that nobody else has it.
unsafe impl Sync for Memory {}

impl Memory {
    pub(crate) fn new(len: usize) -> Memory {
        let refused = || handle_alloc_error(Layout::array::<u8>(len).unwrap_or(Layout::new::<u8>()));
        Memory::try_new(len).unwrap_or_else(refused)
    }

    /// Returns so many bytes, which are 0; `None` if the system has no memory. It gives the memory when that is first written.
    pub(crate) fn try_new(len: usize) -> Option<Memory> {
        assert!(len > 0, "memory without bytes");
        let layout = Layout::array::<u8>(len).ok()?;
        // SAFETY: the layout has bytes.
        let zeros = NonNull::new(unsafe { alloc_zeroed(layout) })?.cast::<UnsafeCell<u8>>();
        // SAFETY: so many bytes were just allocated, are initialized, and nobody else has them; `UnsafeCell<u8>` has the layout of `u8`,
        // with which the box frees them.
        let bytes = unsafe { Box::from_raw(slice_from_raw_parts_mut(zeros.as_ptr(), len)) };
        Some(Memory {
            bytes,
            #[cfg(all(loom, test))]
            accesses: (0..len).map(|_| loom::cell::UnsafeCell::new(())).collect(),
        })
    }

    pub(crate) fn address(&self) -> usize {
        self.bytes.as_ptr().addr()
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes at `range`.
    ///
    /// # Safety
    /// As long as the slice lives, nobody else reads or writes these bytes.
    #[inline]
    #[allow(
        clippy::mut_from_ref,
        reason = "the bytes are cells; the caller promises that nobody else has them"
    )]
    pub(crate) unsafe fn slice_mut(&self, range: Range<usize>) -> &mut [u8] {
        #[cfg(all(loom, test))]
        self.accesses[range.clone()].iter().for_each(|access| access.with_mut(|_| ()));
        let cells = &self.bytes[range];
        // SAFETY: the cells are bytes of this memory, which `&self` keeps; by the caller's promise nobody
        // else has them.
        unsafe { std::slice::from_raw_parts_mut(UnsafeCell::raw_get(cells.as_ptr()), cells.len()) }
    }

    /// Returns the bytes at `range`.
    ///
    /// # Safety
    /// As long as the slice lives, nobody writes these bytes.
    pub(crate) unsafe fn slice(&self, range: Range<usize>) -> &[u8] {
        #[cfg(all(loom, test))]
        self.accesses[range.clone()].iter().for_each(|access| access.with(|_| ()));
        let cells = &self.bytes[range];
        // SAFETY: as in `slice_mut`; by the caller's promise nobody writes them.
        unsafe { std::slice::from_raw_parts(UnsafeCell::raw_get(cells.as_ptr()), cells.len()) }
    }
}
