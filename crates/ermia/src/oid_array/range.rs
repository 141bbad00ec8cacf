//! Slots in a range of addresses, without memory at first.
//!
//! A slot is read at every access to a record, and slots of records that are used together lie apart: with pages of 4 KiB the processor would look
//! most of them up in the page table. So the system is asked for huge pages, which it can give where a whole one is backed.

use std::ptr::NonNull;

use ensilo_sync::atomic::AtomicU64;

/// What a huge page has. A range of whole ones begins on one.
pub(super) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Range {
    base: NonNull<AtomicU64>,
    slots: usize,
}

// SAFETY: a slot is an atomic, and the addresses belong to the range.
unsafe impl Send for Range {}
// SAFETY: as above.
unsafe impl Sync for Range {}

impl Range {
    /// Returns a range, unless the system refuses.
    pub(super) fn reserve(slots: usize) -> Option<Range> {
        memory::reserve(slots).map(|base| Range { base, slots })
    }

    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    /// Has the system put memory behind so many bytes more, if it does.
    pub(super) fn back(&self, backed: usize, more: usize) -> bool {
        assert!(backed + more <= self.slots * size_of::<AtomicU64>(), "behind the range");
        // SAFETY: within the range, behind what is in use.
        unsafe { memory::back(self.base, backed, more) }
    }

    /// Returns where a slot lies.
    pub(super) fn address(&self, at: usize) -> NonNull<AtomicU64> {
        assert!(at < self.slots, "a slot behind the range");
        // SAFETY: within the range.
        unsafe { self.base.add(at) }
    }

    pub(super) fn contains(&self, slot: NonNull<AtomicU64>) -> bool {
        let start = self.base.addr().get();
        (start..start + self.slots * size_of::<AtomicU64>()).contains(&slot.addr().get())
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        // SAFETY: the addresses are ours, and nobody holds a slot any more.
        unsafe { memory::release(self.base, self.slots) }
    }
}

/// Returns how many bytes are backed at a time at least.
pub(super) fn page_bytes() -> usize {
    memory::page_bytes()
}

/// The system's.
#[cfg(not(any(loom, shuttle)))]
mod memory {
    use std::ptr::{NonNull, null_mut};

    use ensilo_sync::atomic::AtomicU64;
    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

    use super::HUGE_PAGE_BYTES;

    pub(super) fn page_bytes() -> usize {
        rustix::param::page_size()
    }

    pub(super) fn reserve(slots: usize) -> Option<NonNull<AtomicU64>> {
        let bytes = slots * size_of::<AtomicU64>();
        if !bytes.is_multiple_of(HUGE_PAGE_BYTES) {
            return map(bytes);
        }
        let start = map(bytes + HUGE_PAGE_BYTES)?.as_ptr().cast::<u8>();
        let before = start.addr().wrapping_neg() % HUGE_PAGE_BYTES;
        let base = start.wrapping_add(before);
        // SAFETY: three parts of the mapping made above, which nobody knows yet, on borders of pages. If the system refuses to take one back its
        // addresses stay reserved; without huge pages it works as well, if slower.
        unsafe {
            if before > 0 {
                let _ = munmap(start.cast(), before);
            }
            let _ = munmap(base.wrapping_add(bytes).cast(), HUGE_PAGE_BYTES - before);
            ask_for_huge_pages(base, bytes);
        }
        NonNull::new(base.cast())
    }

    /// # Safety
    /// So many bytes are mapped at `base`.
    #[cfg(target_os = "linux")]
    unsafe fn ask_for_huge_pages(base: *mut u8, bytes: usize) {
        // SAFETY: the caller's promise; it is advice, which changes no byte.
        let _ = unsafe { rustix::mm::madvise(base.cast(), bytes, rustix::mm::Advice::LinuxHugepage) };
    }

    /// # Safety
    /// None: other systems choose by themselves.
    #[cfg(not(target_os = "linux"))]
    unsafe fn ask_for_huge_pages(_: *mut u8, _: usize) {}

    fn map(bytes: usize) -> Option<NonNull<AtomicU64>> {
        // SAFETY: a new mapping, where the system likes, which needs no memory.
        let base = unsafe { mmap_anonymous(null_mut(), bytes, ProtFlags::empty(), MapFlags::PRIVATE) };
        NonNull::new(base.ok()?.cast())
    }

    /// # Safety
    /// The bytes lie within a range that begins at `base`, and are not in use.
    pub(super) unsafe fn back(base: NonNull<AtomicU64>, backed: usize, more: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            let start = base.as_ptr().cast::<u8>().add(backed);
            mprotect(start.cast(), more, MprotectFlags::READ | MprotectFlags::WRITE).is_ok()
        }
    }

    /// # Safety
    /// So many slots were reserved at `base`, and nobody uses them any more.
    pub(super) unsafe fn release(base: NonNull<AtomicU64>, slots: usize) {
        // SAFETY: the caller's promise. If the system refuses, the addresses stay reserved.
        let _ = unsafe { munmap(base.as_ptr().cast(), slots * size_of::<AtomicU64>()) };
    }
}

/// A model checker's atomics, which have to be constructed.
#[cfg(any(loom, shuttle))]
mod memory {
    use std::ptr::NonNull;

    use ensilo_sync::atomic::AtomicU64;

    pub(super) fn page_bytes() -> usize {
        size_of::<AtomicU64>()
    }

    #[allow(clippy::unnecessary_wraps, reason = "as the system's")]
    pub(super) fn reserve(slots: usize) -> Option<NonNull<AtomicU64>> {
        let slots: Box<[AtomicU64]> = (0..slots).map(|_| AtomicU64::new(0)).collect();
        Some(NonNull::from(Box::leak(slots)).cast())
    }

    /// # Safety
    /// None: as the system's.
    pub(super) unsafe fn back(_: NonNull<AtomicU64>, _: usize, _: usize) -> bool {
        true
    }

    /// # Safety
    /// So many slots were reserved at `base`, and nobody uses them any more.
    pub(super) unsafe fn release(base: NonNull<AtomicU64>, slots: usize) {
        let slots = NonNull::slice_from_raw_parts(base, slots);
        // SAFETY: the caller's promise: it is the box that `reserve` has leaked.
        drop(unsafe { Box::from_raw(slots.as_ptr()) });
    }
}
