//! An encoded key being taken apart, column by column.

use super::escaped;
use crate::Malformed;

/// The bytes of a key that are still to be decoded.
#[derive(Clone, Copy, Debug)]
pub struct KeyReader<'a> {
    rest: &'a [u8],
    /// What every byte is xored with: 0xff inside a descending column.
    flip: u8,
}

impl<'a> KeyReader<'a> {
    /// Returns the whole key.
    #[inline(always)]
    pub const fn new(key: &'a [u8]) -> Self {
        Self { rest: key, flip: 0 }
    }

    /// Returns what is still to be decoded.
    #[inline]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns the next `N` bytes.
    ///
    /// # Errors
    /// [`Malformed`] if the key ends before.
    #[inline(always)]
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed)?;
        self.rest = rest;
        Ok(bytes.map(|byte| byte ^ self.flip))
    }

    /// Returns the next `N` (1 to 8) bytes as a big-endian number.
    ///
    /// # Errors
    /// [`Malformed`] if the key ends before.
    #[inline(always)]
    pub fn take_bits<const N: usize>(&mut self) -> Result<u64, Malformed> {
        let mut wide = [0; 8];
        wide[8 - N..].copy_from_slice(&self.take::<N>()?);
        Ok(u64::from_be_bytes(wide))
    }

    /// Returns the next `len` bytes.
    ///
    /// # Errors
    /// [`Malformed`] if the key ends before.
    pub fn take_slice(&mut self, len: usize) -> Result<Vec<u8>, Malformed> {
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(Malformed)?;
        self.rest = rest;
        Ok(bytes.iter().map(|byte| byte ^ self.flip).collect())
    }

    /// Leaves out the next `len` bytes.
    ///
    /// # Errors
    /// [`Malformed`] if the key ends before.
    pub fn skip(&mut self, len: usize) -> Result<(), Malformed> {
        self.rest = self.rest.get(len..).ok_or(Malformed)?;
        Ok(())
    }

    /// Returns the next escaped bytes, each given to `each`.
    ///
    /// # Errors
    /// [`Malformed`] if they are not terminated or an escape is unknown.
    #[inline]
    pub fn take_escaped(&mut self, each: impl FnMut(u8) -> Result<(), Malformed>) -> Result<(), Malformed> {
        self.rest = escaped::decode(self.rest, self.flip, each)?;
        Ok(())
    }

    /// Decodes a descending column with `decode`, which sees its bytes inverted back.
    ///
    /// # Errors
    /// Those of `decode`.
    #[inline(always)]
    pub fn descending<R>(
        &mut self,
        decode: impl FnOnce(&mut KeyReader<'a>) -> Result<R, Malformed>,
    ) -> Result<R, Malformed> {
        let mut inverted = KeyReader { rest: self.rest, flip: !self.flip };
        let value = decode(&mut inverted)?;
        self.rest = inverted.rest;
        Ok(value)
    }

    /// Ends the decoding of a key.
    ///
    /// # Errors
    /// [`Malformed`] if bytes are left.
    #[inline(always)]
    pub fn finish(self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}
