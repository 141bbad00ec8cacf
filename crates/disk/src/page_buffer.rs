//! Memory that a disk takes as it is.

use std::io;
use std::mem::replace;
use std::ops::{Deref, DerefMut};

/// So much is kept when less is needed.
const KEPT_BYTES: usize = 4 << 20;

/// Bytes of a page: what a disk writes in one piece, or a multiple of it.
pub const PAGE_BYTES: usize = 4096;

/// Bytes that begin on a page of memory, so that [`crate::RealDisk`] can read and write whole pages of them past the page cache.
#[derive(Debug, Default)]
pub struct PageBuffer {
    /// A page more than is used, so that a page begins in its first part.
    memory: Vec<u8>,
    /// Where that page begins.
    start: usize,
    len: usize,
    /// Whether the memory is much larger than what was needed the last time.
    was_short: bool,
}

impl PageBuffer {
    /// Changes the length to `len` bytes. What they are is left open. What was needed for a much larger length goes back with the second
    /// short one in a row: long pieces are read by their beginnings first, which say how long they are.
    ///
    /// # Errors
    /// `OutOfMemory`; the length is 0 then.
    pub fn resize(&mut self, len: usize) -> io::Result<()> {
        let needed = len + PAGE_BYTES;
        let is_short = self.memory.len() > KEPT_BYTES.max(2 * needed);
        let was_short = replace(&mut self.was_short, is_short);
        if needed > self.memory.len() || (is_short && was_short) {
            *self = PageBuffer::default();
            self.memory.try_reserve_exact(needed)?;
            self.memory.resize(needed, 0);
            self.start = self.memory.as_ptr().addr().wrapping_neg() % PAGE_BYTES;
        }
        self.len = len;
        Ok(())
    }
}

impl Deref for PageBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }
}

impl DerefMut for PageBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn what_a_long_piece_took_goes_back_with_the_second_short_one() {
        let mut pages = PageBuffer::default();
        for (len, kept) in [
            (3 * KEPT_BYTES, 3 * KEPT_BYTES),
            (2 * KEPT_BYTES, 3 * KEPT_BYTES),
            (10, 3 * KEPT_BYTES),
            (3 * KEPT_BYTES, 3 * KEPT_BYTES),
            (10, 3 * KEPT_BYTES),
            (10, 10),
            (KEPT_BYTES / 2, KEPT_BYTES / 2),
            (10, KEPT_BYTES / 2),
        ] {
            pages.resize(len).unwrap();
            assert_eq!((pages.len(), pages.memory.capacity()), (len, kept + PAGE_BYTES));
            assert!(pages.as_ptr().addr().is_multiple_of(PAGE_BYTES));
        }
    }
}
