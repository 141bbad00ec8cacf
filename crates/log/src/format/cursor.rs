//! Writing and reading numbers and bytes one after the other.
//!
//! Numbers are little endian. A *varint* holds seven bits a byte, low bits first; the high bit says that
//! another byte follows; the shortest form is the only one.

use std::fmt;

/// A place in memory that is written front to back. Whoever writes has made sure before that there is room.
#[derive(Debug)]
pub struct Cursor<'a> {
    bytes: &'a mut [u8],
    filled: usize,
}

impl<'a> Cursor<'a> {
    /// Writes from the first byte of `bytes` on.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a mut [u8]) -> Cursor<'a> {
        Cursor { bytes, filled: 0 }
    }

    /// Returns how many bytes were written.
    #[inline]
    #[must_use]
    pub fn filled(&self) -> usize {
        self.filled
    }

    /// Returns the next `len` bytes, to be written by the caller.
    ///
    /// # Panics
    /// When there is no room; likewise in all that follows.
    #[inline]
    pub fn take(&mut self, len: usize) -> &mut [u8] {
        let start = self.filled;
        self.filled += len;
        &mut self.bytes[start..start + len]
    }

    /// Writes one byte.
    #[inline]
    pub fn put_u8(&mut self, value: u8) {
        self.take(1)[0] = value;
    }

    /// Writes eight bytes.
    #[inline]
    pub fn put_u64(&mut self, value: u64) {
        self.take(8).copy_from_slice(&value.to_le_bytes());
    }

    /// Writes `bytes`.
    #[inline]
    pub fn put_bytes(&mut self, bytes: &[u8]) {
        self.take(bytes.len()).copy_from_slice(bytes);
    }

    /// Writes a varint, in [`varint_bytes`] bytes.
    #[inline]
    pub fn put_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.put_u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.put_u8(value as u8);
    }

    /// Writes the first `len` bytes of a row that is made of words, the bytes of each word from low to high.
    /// Returns where they are.
    ///
    /// # Panics
    /// When `words` yields fewer than `len.div_ceil(8)` words.
    #[inline]
    pub fn put_words(&mut self, len: usize, words: impl IntoIterator<Item = u64>) -> &mut [u8] {
        let mut words = words.into_iter();
        let row = self.take(len);
        let mut whole = row.chunks_exact_mut(8);
        for chunk in &mut whole {
            let Some(word) = words.next() else { row_too_short() };
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        let tail = whole.into_remainder();
        if !tail.is_empty() {
            let Some(word) = words.next() else { row_too_short() };
            tail.copy_from_slice(&word.to_le_bytes()[..tail.len()]);
        }
        row
    }
}

#[cold]
fn row_too_short() -> ! {
    panic!("a row has fewer words than its length asks for")
}

/// Bytes that a varint takes: 1 to 10.
#[inline]
#[must_use]
pub const fn varint_bytes(value: u64) -> usize {
    ((70 - (value | 1).leading_zeros()) / 7) as usize
}

/// What a decoder of bytes found wrong with them. It never panics, whatever the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// The bytes end in the middle.
    Short,
    /// A number is larger than its field, or not in its shortest form.
    Number,
    /// A kind or flag that this version does not know.
    Kind,
    /// The TID of a transaction was logged and its writes were not: a measurement of what logging costs.
    LeftOut,
    /// Bytes are left over.
    Surplus,
    /// A text is not UTF-8.
    Text,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Malformed::Short => "the bytes end in the middle of an entry",
            Malformed::Number => "a number is out of its range",
            Malformed::Kind => "a kind or flag that this version does not know",
            Malformed::LeftOut => {
                "the log has TIDs alone, for a measurement: nothing that was committed can be recovered"
            }
            Malformed::Surplus => "bytes are left over behind the last entry",
            Malformed::Text => "a name is not UTF-8",
        })
    }
}

impl std::error::Error for Malformed {}

/// Bytes that are read front to back.
#[derive(Debug, Clone)]
pub(crate) struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { rest: bytes }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    pub(crate) fn bytes(&mut self, len: u64) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = usize::try_from(len)
            .ok()
            .and_then(|len| self.rest.split_at_checked(len))
            .ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(*taken)
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64, Malformed> {
        let first = self.u8()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        let mut value = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if byte == 0 || bits << shift >> shift != bits {
                return Err(Malformed::Number);
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed::Number)
    }

    #[inline]
    pub(crate) fn varint_u32(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.varint()?).map_err(|_| Malformed::Number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn varints_come_back_in_the_bytes_foretold(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            let mut bytes = [0; 10];
            let mut cursor = Cursor::new(&mut bytes);
            cursor.put_varint(value);
            let filled = cursor.filled();
            prop_assert_eq!(filled, varint_bytes(value));
            let mut decoder = Decoder::new(&bytes[..filled]);
            prop_assert_eq!(decoder.varint(), Ok(value));
            prop_assert!(decoder.is_empty());
        }

        #[test]
        fn a_varint_has_one_form(bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
            let mut decoder = Decoder::new(&bytes);
            if let Ok(value) = decoder.varint() {
                let mut again = [0; 10];
                let mut cursor = Cursor::new(&mut again);
                cursor.put_varint(value);
                let filled = cursor.filled();
                prop_assert_eq!(&again[..filled], &bytes[..bytes.len() - decoder.rest.len()]);
            }
        }

        #[test]
        fn words_become_their_bytes(words in proptest::collection::vec(any::<u64>(), 0..9), cut in 0usize..8) {
            let len = (words.len() * 8).saturating_sub(cut);
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).take(len).collect();
            let mut out = vec![0; len];
            Cursor::new(&mut out).put_words(len, words);
            prop_assert_eq!(out, bytes);
        }
    }
}
