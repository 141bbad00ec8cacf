//! Rows as they are read: a sequence of 64-bit words, and single columns of it.
//!
//! A stored row is an array of atomic words that a writer may overwrite while it is read. A decoder sees a row
//! through [`Words`], one word at a time, and never as a byte slice.

use crate::Malformed;

/// A word to overwrite: its index in the row, and its new value.
pub type WordPatch = (u32, u64);

/// The words of a row.
///
/// Byte `i` of the row is bits `8 * (i % 8)..` of word `i / 8`. Two calls of [`word`](Self::word) may answer from two
/// versions of the row: a decoder must accept any combination, and its caller decides afterwards whether the row was torn.
pub trait Words {
    /// Returns the length of the row in bytes; the same whenever it is asked.
    fn len_bytes(&self) -> usize;

    /// Returns the word with this index; 0 past the end.
    fn word(&self, index: usize) -> u64;

    /// Returns the `width` (1, 2, 4 or 8) bytes at an offset that is a multiple of `width`, as a number.
    #[inline(always)]
    fn aligned_bits(&self, offset: usize, width: usize) -> u64 {
        debug_assert!(offset.is_multiple_of(width));
        let word = self.word(offset / 8) >> (offset % 8 * 8);
        if width == 8 { word } else { word & ((1 << (width * 8)) - 1) }
    }

    /// Returns the 16 bytes at an offset that is a multiple of 8, as a number.
    #[inline(always)]
    fn wide_bits(&self, offset: usize) -> u128 {
        debug_assert!(offset.is_multiple_of(8));
        u128::from(self.word(offset / 8)) | u128::from(self.word(offset / 8 + 1)) << 64
    }

    /// Returns the eight bytes at any offset, as a number; bytes past the last word are 0.
    #[inline(always)]
    fn unaligned_word(&self, offset: usize) -> u64 {
        let shift = offset % 8 * 8;
        let low = self.word(offset / 8) >> shift;
        if shift == 0 { low } else { low | self.word(offset / 8 + 1) << (64 - shift) }
    }

    /// Returns the bit with this index, counted from bit 0 of byte 0.
    #[inline(always)]
    fn bit(&self, index: usize) -> bool {
        self.word(index / 64) >> (index % 64) & 1 != 0
    }

    /// Copies the bytes from `offset` on into `target`; bytes past the last word are 0.
    #[inline]
    fn copy_bytes(&self, offset: usize, target: &mut [u8]) {
        let (chunks, rest) = target.as_chunks_mut::<8>();
        let mut words = UnalignedWords::new(&self, offset);
        for chunk in chunks {
            *chunk = words.next_word().to_le_bytes();
        }
        if !rest.is_empty() {
            let mut word = words.next_word();
            for byte in rest {
                *byte = word as u8;
                word >>= 8;
            }
        }
    }

    /// Returns the `len` bytes from `offset` on.
    ///
    /// # Errors
    /// [`Malformed`] if the row ends before them: the row's length bounds what is allocated.
    #[inline]
    fn bytes_at(&self, offset: usize, len: usize) -> Result<Vec<u8>, Malformed> {
        if offset.checked_add(len).is_none_or(|end| end > self.len_bytes()) {
            return Err(Malformed);
        }
        let mut bytes = vec![0; len];
        self.copy_bytes(offset, &mut bytes);
        Ok(bytes)
    }
}

impl<W: Words + ?Sized> Words for &W {
    #[inline(always)]
    fn len_bytes(&self) -> usize {
        (**self).len_bytes()
    }

    #[inline(always)]
    fn word(&self, index: usize) -> u64 {
        (**self).word(index)
    }
}

/// Eight bytes after eight bytes of a row from any offset on; bytes past the last word are 0. Each word of the row is asked for once.
pub(crate) struct UnalignedWords<'a, W> {
    row: &'a W,
    /// The index of the word behind `word`.
    next: usize,
    word: u64,
    shift: usize,
}

impl<'a, W: Words> UnalignedWords<'a, W> {
    #[inline(always)]
    pub(crate) fn new(row: &'a W, offset: usize) -> Self {
        let at = offset / 8;
        Self { row, next: at + 1, word: row.word(at), shift: offset % 8 * 8 }
    }

    /// Returns the next eight bytes, as a number.
    #[inline(always)]
    pub(crate) fn next_word(&mut self) -> u64 {
        let following = self.row.word(self.next);
        // In two steps, because a shift by all 64 bits is none.
        let word = self.word >> self.shift | following << 1 << (63 - self.shift);
        self.word = following;
        self.next += 1;
        word
    }
}

/// A row in ordinary memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordSlice<'a> {
    words: &'a [u64],
    len_bytes: usize,
}

impl<'a> WordSlice<'a> {
    /// Returns the first `len_bytes` bytes of `words`.
    ///
    /// # Panics
    /// If the words are fewer.
    #[inline]
    pub fn new(words: &'a [u64], len_bytes: usize) -> Self {
        assert!(len_bytes <= words.len() * 8, "a row is not longer than its words");
        Self { words, len_bytes }
    }
}

impl Words for WordSlice<'_> {
    #[inline(always)]
    fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    #[inline(always)]
    fn word(&self, index: usize) -> u64 {
        self.words.get(index).copied().unwrap_or(0)
    }
}

/// Puts the low `width` (1, 2, 4 or 8) bytes of `bits` at an offset that is a multiple of `width`.
#[inline(always)]
pub(crate) fn put_bits(words: &mut [u64], offset: usize, width: usize, bits: u64) {
    debug_assert!(offset.is_multiple_of(width));
    let shift = offset % 8 * 8;
    let mask = if width == 8 { u64::MAX } else { ((1 << (width * 8)) - 1) << shift };
    let word = &mut words[offset / 8];
    *word = *word & !mask | bits << shift & mask;
}

/// Puts 16 bytes at an offset that is a multiple of 8.
#[inline(always)]
pub(crate) fn put_wide(words: &mut [u64], offset: usize, bits: u128) {
    debug_assert!(offset.is_multiple_of(8));
    words[offset / 8] = bits as u64;
    words[offset / 8 + 1] = (bits >> 64) as u64;
}

/// Sets or clears the bit with this index.
#[inline(always)]
pub(crate) fn put_bit(words: &mut [u64], index: usize, bit: bool) {
    let word = &mut words[index / 64];
    *word = *word & !(1 << (index % 64)) | u64::from(bit) << (index % 64);
}

/// Puts the low `len` (1 to 8) bytes of `bits` at any offset.
#[inline(always)]
pub(crate) fn put_unaligned(words: &mut [u64], offset: usize, bits: u64, len: usize) {
    let mask = u64::MAX >> (64 - len * 8);
    let bits = bits & mask;
    let shift = offset % 8 * 8;
    let word = &mut words[offset / 8];
    *word = *word & !(mask << shift) | bits << shift;
    if shift + len * 8 > 64 {
        let word = &mut words[offset / 8 + 1];
        *word = *word & !(mask >> (64 - shift)) | bits >> (64 - shift);
    }
}

/// Puts the bytes at any offset.
#[inline(always)]
pub(crate) fn put_bytes(words: &mut [u64], offset: usize, bytes: &[u8]) {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let mut at = offset;
    for chunk in chunks {
        put_unaligned(words, at, u64::from_le_bytes(*chunk), 8);
        at += 8;
    }
    if !rest.is_empty() {
        put_unaligned(words, at, partial_word(rest), rest.len());
    }
}

/// Puts zeros over `len` bytes at any offset.
pub(crate) fn put_zeros(words: &mut [u64], offset: usize, len: usize) {
    let mut at = offset;
    while at < offset + len {
        let part = (offset + len - at).min(8);
        put_unaligned(words, at, 0, part);
        at += part;
    }
}

/// At most seven bytes as the low bytes of a word: two loads that may overlap.
#[inline(always)]
pub(crate) fn partial_word(bytes: &[u8]) -> u64 {
    debug_assert!(bytes.len() < 8);
    if let (Some(front), Some(back)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return u64::from(u32::from_le_bytes(*front))
            | u64::from(u32::from_le_bytes(*back)) << (8 * (bytes.len() - 4));
    }
    if let (Some(front), Some(back)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return u64::from(u16::from_le_bytes(*front))
            | u64::from(u16::from_le_bytes(*back)) << (8 * (bytes.len() - 2));
    }
    bytes.first().copied().map_or(0, u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_one_after_the_other_are_those_at_their_offsets() {
        let words: Vec<u64> = (1..=4).map(|at| at * 0x0123_4567_89ab_cdef).collect();
        let row = WordSlice::new(&words, 29);
        for offset in 0..48 {
            let mut following = UnalignedWords::new(&row, offset);
            for at in (offset..offset + 32).step_by(8) {
                assert_eq!(following.next_word(), row.unaligned_word(at), "at {at}");
            }
        }
    }
}
