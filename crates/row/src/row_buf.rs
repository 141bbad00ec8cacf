//! A row being made: words in a vector that is used again for the next row.

use crate::layout::LONG;
use crate::words::{partial_word, put_bits};
use crate::{Malformed, ROW_LEN_MAX, RowError, Slot, Words};

/// An encoded row that is used again and again: once it has grown to the largest row, encoding allocates nothing. What a large row took goes back
/// by [`RowBuf::shrink_to`].
///
/// Bytes of the last word past the end of the row are 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowBuf {
    words: Vec<u64>,
    len_bytes: usize,
}

impl RowBuf {
    /// Returns an empty row.
    pub const fn new() -> Self {
        Self { words: Vec::new(), len_bytes: 0 }
    }

    /// Returns the words of the row.
    #[inline]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Returns the length of the row in bytes.
    #[inline]
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Makes the row empty; keeps its memory.
    #[inline]
    pub fn clear(&mut self) {
        self.words.clear();
        self.len_bytes = 0;
    }

    /// Makes the row empty, and gives back the memory beyond that of a row of so many bytes.
    pub fn shrink_to(&mut self, len_bytes: usize) {
        self.clear();
        self.words.shrink_to(len_bytes.div_ceil(8));
    }

    /// Returns for how many bytes of a row there is memory.
    #[inline]
    pub fn capacity_bytes(&self) -> usize {
        self.words.capacity() * 8
    }

    /// Makes the row these bytes: how an index entry holds its primary key.
    #[inline]
    pub fn set_bytes(&mut self, bytes: &[u8]) {
        self.clear();
        self.append_bytes(bytes);
    }

    /// Makes the row the first `len_bytes` bytes of `row`.
    pub fn set_words(&mut self, row: &impl Words) {
        self.set_fixed_of(row, row.len_bytes());
    }

    /// Returns whether the row may be stored.
    ///
    /// # Errors
    /// [`RowError::RowTooLarge`] if it is longer than [`ROW_LEN_MAX`].
    #[inline]
    pub fn check_len(&self) -> Result<(), RowError> {
        if self.len_bytes <= ROW_LEN_MAX {
            Ok(())
        } else {
            Err(RowError::RowTooLarge { len: self.len_bytes })
        }
    }

    /// Makes the row its fixed part alone; [`append_variable`](Self::append_variable) for each variable column follows.
    #[inline(always)]
    pub fn set_fixed(&mut self, words: &[u64], len_bytes: usize) {
        debug_assert_eq!(words.len(), len_bytes.div_ceil(8));
        self.words.clear();
        self.words.extend_from_slice(words);
        self.len_bytes = len_bytes;
    }

    /// Appends the bytes of the variable column `slot` and notes where they end.
    ///
    /// Past 2 GiB the noted end is wrong, and [`check_len`](Self::check_len) refuses the row long before.
    #[inline]
    pub fn append_variable(&mut self, slot: Slot, bytes: &[u8]) {
        self.append_bytes(bytes);
        self.end_variable(slot, false);
    }

    /// Appends what the variable column `slot` has in another row of the same table, also where that stands for a
    /// [long value](crate::LongValue).
    ///
    /// # Errors
    /// [`Malformed`] if it is none.
    pub fn append_variable_of(&mut self, slot: Slot, row: &impl Words) -> Result<(), Malformed> {
        let (start, end, is_long) = slot.stored_range(row)?;
        self.append_range(row, start, end - start);
        self.end_variable(slot, is_long);
        Ok(())
    }

    /// Makes the row the fixed part of another one of the same table, to be followed by what each variable column has.
    pub fn begin_variables(&mut self, row: &impl Words, fixed_len: usize) {
        self.set_fixed_of(row, fixed_len);
    }

    /// Appends a part of the bytes of a variable column; [`end_variable`](Self::end_variable) follows the last one.
    pub fn append_part(&mut self, bytes: &[u8]) {
        self.append_bytes(bytes);
    }

    /// Notes that the bytes of the variable column `slot` end here, and whether they stand for a [long value](crate::LongValue).
    pub fn end_variable(&mut self, slot: Slot, is_long: bool) {
        let end = self.len_bytes as u64 & u64::from(!LONG);
        put_bits(&mut self.words, slot.offset(), 4, end | if is_long { u64::from(LONG) } else { 0 });
    }

    /// Returns the words, to write fixed columns into.
    #[inline]
    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// Makes the row the first `len_bytes` bytes of `base`.
    pub(crate) fn set_fixed_of(&mut self, base: &impl Words, len_bytes: usize) {
        self.clear();
        self.append_range(base, 0, len_bytes);
    }

    /// Makes the row that many zeros.
    pub(crate) fn set_zeros(&mut self, len_bytes: usize) {
        self.words.clear();
        self.words.resize(len_bytes.div_ceil(8), 0);
        self.len_bytes = len_bytes;
    }

    fn append_bytes(&mut self, bytes: &[u8]) {
        let (chunks, rest) = bytes.as_chunks::<8>();
        self.words.reserve(bytes.len() / 8 + 1);
        for chunk in chunks {
            self.append_word(u64::from_le_bytes(*chunk), 8);
        }
        if !rest.is_empty() {
            self.append_word(partial_word(rest), rest.len());
        }
    }

    fn append_range(&mut self, row: &impl Words, offset: usize, len: usize) {
        self.words.reserve(len / 8 + 1);
        let mut at = 0;
        while at < len {
            let part = (len - at).min(8);
            self.append_word(row.unaligned_word(offset + at) & u64::MAX >> (64 - part * 8), part);
            at += part;
        }
    }

    /// Appends the low `len` (1 to 8) bytes of `word`. Its other bytes are 0.
    #[inline(always)]
    fn append_word(&mut self, word: u64, len: usize) {
        let shift = self.len_bytes % 8 * 8;
        if shift == 0 {
            self.words.push(word);
        } else {
            let last = self.words.len() - 1;
            self.words[last] |= word << shift;
            if shift + len * 8 > 64 {
                self.words.push(word >> (64 - shift));
            }
        }
        self.len_bytes += len;
    }
}

impl Words for RowBuf {
    #[inline(always)]
    fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    #[inline(always)]
    fn word(&self, index: usize) -> u64 {
        self.words.get(index).copied().unwrap_or(0)
    }
}
