//! Asking for a cache line before it is needed.

/// The length of a cache line.
pub const LINE_BYTES: usize = 64;

/// Starts to load the cache line at `ptr` into every level of the cache. Any address will do: a prefetch never faults.
///
/// A hint with no other effect; nothing on processors other than x86-64 and under model checkers.
#[inline(always)]
#[allow(clippy::inline_always, reason = "one instruction, which a call would outweigh")]
pub fn prefetch(ptr: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(any(loom, shuttle))))]
    // SAFETY: the instruction is part of every x86-64 processor (SSE), and a prefetch of an address that cannot be
    // read does nothing.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(ptr.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(any(loom, shuttle)))))]
    let _ = ptr;
}
