//! The key that a scan is at, put together from slices and a suffix.

use std::mem::MaybeUninit;

use crate::KEY_LEN_MAX;
use crate::suffix::{Suffix, words_for};

/// Room for the longest key, and for the last slice or suffix word to be written whole.
const CAPACITY: usize = KEY_LEN_MAX + 8;

/// A key of up to `KEY_LEN_MAX` bytes. It lives on the stack, and is not cleared first.
pub(crate) struct KeyBuffer {
    bytes: [MaybeUninit<u8>; CAPACITY],
    /// The bytes in front of this are initialised.
    written: usize,
}

impl KeyBuffer {
    pub(crate) fn new() -> Self {
        KeyBuffer { bytes: [const { MaybeUninit::uninit() }; CAPACITY], written: 0 }
    }

    /// Sets the 8 bytes of the slice at `depth`.
    #[inline]
    pub(crate) fn set_slice(&mut self, depth: usize, slice: u64) {
        self.write(8 * depth, slice.to_be_bytes());
    }

    /// Sets what comes behind the slice at `depth`, and returns it.
    #[inline]
    pub(crate) fn set_suffix(&mut self, depth: usize, suffix: Suffix<'_>) -> &[u8] {
        let start = 8 * (depth + 1);
        for (place, word) in suffix.words().enumerate() {
            self.write(start + 8 * place, word.to_le_bytes());
        }
        debug_assert!(start + 8 * words_for(suffix.len()) <= self.written);
        &self.bytes(start + suffix.len())[start..]
    }

    /// Returns the first `len` bytes, which must have been set.
    #[inline]
    pub(crate) fn bytes(&self, len: usize) -> &[u8] {
        assert!(len <= self.written);
        // SAFETY: `written` counts the bytes from the start that are initialised, and len is no more.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr().cast(), len) }
    }

    /// Writes at a place up to which all bytes are set.
    #[inline]
    fn write(&mut self, start: usize, bytes: [u8; 8]) {
        assert!(start <= self.written, "keys are set from the start");
        self.bytes[start..start + 8].copy_from_slice(&bytes.map(MaybeUninit::new));
        self.written = self.written.max(start + 8);
    }
}
