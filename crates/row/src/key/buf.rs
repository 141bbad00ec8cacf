//! A key being made: bytes in place for the usual key, a vector for a long one.

use std::borrow::Borrow;

use crate::{KEY_LEN_MAX, RowError, Words};

const INLINE_LEN: usize = 48;

/// An encoded key that is used again and again: keys of at most 48 bytes never allocate.
///
/// Aligned, and the bytes first, so that the stores and loads of a key's first slices stay within a cache line.
#[derive(Clone)]
#[repr(C, align(16))]
pub struct KeyBuf {
    inline: [u8; INLINE_LEN],
    /// The whole key if it is longer than `INLINE_LEN`, otherwise what an earlier key left.
    spill: Vec<u8>,
    len: usize,
}

impl KeyBuf {
    /// Returns an empty key.
    #[inline]
    pub const fn new() -> Self {
        Self { inline: [0; INLINE_LEN], spill: Vec::new(), len: 0 }
    }

    /// Returns the key.
    #[inline(always)]
    pub fn as_bytes(&self) -> &[u8] {
        if self.len <= INLINE_LEN { &self.inline[..self.len] } else { &self.spill }
    }

    /// Returns the length of the key in bytes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the key has no bytes.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Makes the key empty; keeps its memory.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Makes the key these bytes.
    #[inline]
    pub fn set(&mut self, bytes: &[u8]) {
        self.clear();
        self.append(bytes);
    }

    /// Makes the key the bytes of a row: how an index entry holds its primary key.
    #[inline]
    pub fn set_words(&mut self, row: &impl Words) {
        self.clear();
        let len = row.len_bytes();
        for index in 0..len / 8 {
            self.append_array(row.word(index).to_le_bytes());
        }
        if !len.is_multiple_of(8) {
            self.append(&row.word(len / 8).to_le_bytes()[..len % 8]);
        }
    }

    /// Returns whether the key may be stored.
    ///
    /// # Errors
    /// [`RowError::KeyTooLong`] if it is longer than [`KEY_LEN_MAX`].
    #[inline]
    pub fn check_len(&self) -> Result<(), RowError> {
        if self.len <= KEY_LEN_MAX { Ok(()) } else { Err(RowError::KeyTooLong { len: self.len }) }
    }

    /// Appends bytes.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if end <= INLINE_LEN {
            self.inline[self.len..end].copy_from_slice(bytes);
            self.len = end;
        } else {
            self.append_spilled(bytes);
        }
    }

    /// Appends as many bytes as the type says; the length check goes away where the length so far is known.
    #[inline(always)]
    pub fn append_array<const N: usize>(&mut self, bytes: [u8; N]) {
        let end = self.len + N;
        if end <= INLINE_LEN {
            self.inline[self.len..end].copy_from_slice(&bytes);
            self.len = end;
        } else {
            self.append_spilled(&bytes);
        }
    }

    /// Appends the first `len` of these bytes, writing all of them where there is room: one store of a constant size.
    #[inline(always)]
    pub(crate) fn append_part<const N: usize>(&mut self, bytes: [u8; N], len: usize) {
        debug_assert!(len <= N);
        if self.len + N <= INLINE_LEN {
            self.inline[self.len..self.len + N].copy_from_slice(&bytes);
            self.len += len;
        } else {
            self.append(&bytes[..len]);
        }
    }

    /// Inverts the bytes from `start` on: a descending column.
    pub(crate) fn invert_from(&mut self, start: usize) {
        let len = self.len;
        let bytes = if len <= INLINE_LEN { &mut self.inline[..len] } else { &mut self.spill[..] };
        for byte in &mut bytes[start..] {
            *byte = !*byte;
        }
    }

    /// Turns the key into the least byte string above every string that begins with it: the end of a scan by prefix.
    /// Answers `false`, and leaves the key empty, if there is none.
    pub fn make_prefix_end(&mut self) -> bool {
        let bytes = self.as_bytes();
        let kept = bytes.iter().rposition(|byte| *byte != 0xff).map_or(0, |index| index + 1);
        self.truncate(kept);
        if kept == 0 {
            return false;
        }
        let bytes = if kept <= INLINE_LEN { &mut self.inline[..] } else { &mut self.spill[..] };
        bytes[kept - 1] += 1;
        true
    }

    fn truncate(&mut self, len: usize) {
        if self.len > INLINE_LEN {
            if len <= INLINE_LEN {
                self.inline[..len].copy_from_slice(&self.spill[..len]);
            }
            self.spill.truncate(len);
        }
        self.len = len;
    }

    #[cold]
    #[inline(never)]
    fn append_spilled(&mut self, bytes: &[u8]) {
        if self.len <= INLINE_LEN {
            self.spill.clear();
            self.spill.extend_from_slice(&self.inline[..self.len]);
        }
        self.spill.extend_from_slice(bytes);
        self.len = self.spill.len();
    }
}

impl Default for KeyBuf {
    fn default() -> Self {
        Self::new()
    }
}

impl AsRef<[u8]> for KeyBuf {
    #[inline(always)]
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl Borrow<[u8]> for KeyBuf {
    fn borrow(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl std::fmt::Debug for KeyBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyBuf({:02x?})", self.as_bytes())
    }
}

impl PartialEq for KeyBuf {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for KeyBuf {}

impl PartialOrd for KeyBuf {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for KeyBuf {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl std::hash::Hash for KeyBuf {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}
