//! A value on cache lines of its own.

use std::ops::{Deref, DerefMut};

/// A value that shares its cache lines with nothing else.
///
/// The alignment is 128 bytes, two lines: the adjacent-line prefetcher of x86 fetches lines in pairs, so that with 64
/// bytes the words of two workers would still travel together.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct CachePadded<T>(T);

impl<T> CachePadded<T> {
    /// Puts `value` on cache lines of its own.
    pub const fn new(value: T) -> Self {
        CachePadded(value)
    }
}

impl<T> Deref for CachePadded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for CachePadded<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
