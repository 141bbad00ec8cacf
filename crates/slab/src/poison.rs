//! Freed memory that says so, in builds for tests and under model checkers.
//!
//! A freed block is overwritten at once, except for what links it into a list. A read that comes later, because it was freed too early,
//! finds words that stand in no live block, and can tell.

use std::ptr::NonNull;

/// Whether freed blocks are overwritten.
pub const POISONS: bool = cfg!(any(feature = "testing", debug_assertions, loom, shuttle));

/// What every byte of a freed block is, apart from its first 16 bytes.
const FREED_BYTE: u8 = 0xF8;

/// What every word of a freed block is, apart from its first two.
pub const FREED_WORD: u64 = u64::from_ne_bytes([FREED_BYTE; 8]);

/// Overwrites a block that is being freed.
///
/// # Safety
/// The block has so many bytes, and the caller is its only user and gives it away.
#[inline]
pub(crate) unsafe fn poison(block: NonNull<u8>, size_bytes: usize) {
    if POISONS {
        // SAFETY: the caller's promise.
        unsafe { block.write_bytes(FREED_BYTE, size_bytes) };
    }
}
