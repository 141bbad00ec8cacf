//! Memory that a disk takes as it is.

use std::ops::{Deref, DerefMut};

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
}

impl PageBuffer {
    /// Changes the length to `len` bytes. What they are is left open.
    pub fn resize(&mut self, len: usize) {
        if len + PAGE_BYTES > self.memory.len() {
            self.memory = vec![0; len + PAGE_BYTES];
            self.start = self.memory.as_ptr().addr().wrapping_neg() % PAGE_BYTES;
        }
        self.len = len;
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
