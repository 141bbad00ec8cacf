//! Fixed bytes and text of bounded length, stored in the fixed part of the row.

use super::Text;
use crate::key::escaped;
use crate::words::{UnalignedWords, put_bytes, put_unaligned};
use crate::{ColumnType, ColumnValue, KeyBuf, KeyReader, Malformed, Slot, Words};

/// Returns a length as a column type holds it.
const fn len_u16(len: usize) -> u16 {
    assert!(len <= u16::MAX as usize, "fixed text and bytes hold at most 65535 bytes");
    len as u16
}

impl<const N: usize> ColumnValue for [u8; N] {
    const TYPE: ColumnType = ColumnType::FixedBytes { len: len_u16(N) };
    const KEY_LEN: Option<usize> = Some(N);

    #[inline]
    fn read(row: &impl Words, slot: Slot) -> Result<Self, Malformed> {
        let mut bytes = [0; N];
        row.copy_bytes(slot.offset(), &mut bytes);
        Ok(bytes)
    }

    #[inline]
    fn write(&self, words: &mut [u64], slot: Slot) {
        put_bytes(words, slot.offset(), self);
    }

    #[inline(always)]
    fn encode_value_key(&self, key: &mut KeyBuf) {
        key.append_array(*self);
    }

    #[inline(always)]
    fn decode_value_key(key: &mut KeyReader<'_>) -> Result<Self, Malformed> {
        key.take()
    }
}

impl<const N: usize> Text<N> {
    /// The bytes of the length that stands before the text.
    const PREFIX_LEN: usize = if N <= 255 { 1 } else { 2 };
}

impl<const N: usize> ColumnValue for Text<N> {
    const TYPE: ColumnType = ColumnType::FixedText { len_max: len_u16(N) };
    const KEY_LEN: Option<usize> = None;

    #[inline]
    fn read(row: &impl Words, slot: Slot) -> Result<Self, Malformed> {
        let len = (row.unaligned_word(slot.offset()) & ((1 << (8 * Self::PREFIX_LEN)) - 1)) as usize;
        if len > N {
            return Err(Malformed);
        }
        let mut words = UnalignedWords::new(row, slot.offset() + Self::PREFIX_LEN);
        Self::from_words(len, || words.next_word())
    }

    #[inline]
    fn write(&self, words: &mut [u64], slot: Slot) {
        put_unaligned(words, slot.offset(), self.len() as u64, Self::PREFIX_LEN);
        put_bytes(words, slot.offset() + Self::PREFIX_LEN, self.padded());
    }

    #[inline]
    fn encode_value_key(&self, key: &mut KeyBuf) {
        escaped::encode(self.as_bytes(), key);
    }

    #[inline]
    fn decode_value_key(key: &mut KeyReader<'_>) -> Result<Self, Malformed> {
        let mut bytes = [0; N];
        let mut len = 0;
        key.take_escaped(|byte| {
            *bytes.get_mut(len).ok_or(Malformed)? = byte;
            len += 1;
            Ok(())
        })?;
        Self::from_utf8(&bytes[..len]).map_err(|_| Malformed)
    }
}
