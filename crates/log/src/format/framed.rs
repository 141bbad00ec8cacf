//! The form of files that are written as a whole: the manifest, and `OWNER` in a log directory.
//!
//! # Layout
//! ```text
//! file := magic 8 bytes | format u32 | crc u32 | bytes u64 | body
//!   crc    CRC-32C over all bytes but itself
//!   bytes  length of the file
//! ```
//! Numbers of the body without a width are varints; a list is preceded by its length; a text is its length in
//! bytes and UTF-8.

use super::cursor::{Cursor, Decoder, Malformed, varint_bytes};
use super::preamble::{HeaderError, check_format, checksum};

/// Bytes before the body.
pub(super) const HEAD_BYTES: usize = 24;

/// The file, while its body is written.
pub(super) struct Framed(Vec<u8>);

impl Framed {
    /// Returns a file with an empty body.
    pub(super) fn new() -> Framed {
        Framed(vec![0; HEAD_BYTES])
    }

    /// Fills in the head.
    pub(super) fn finish(self, magic: [u8; 8], format: u32) -> Vec<u8> {
        let mut bytes = self.0;
        bytes[..8].copy_from_slice(&magic);
        bytes[8..12].copy_from_slice(&format.to_le_bytes());
        let len = bytes.len() as u64;
        bytes[16..24].copy_from_slice(&len.to_le_bytes());
        let checksum = checksum(&bytes);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn numbers(&mut self, numbers: &[u64]) {
        for &number in numbers {
            let start = self.0.len();
            self.0.resize(start + varint_bytes(number), 0);
            Cursor::new(&mut self.0[start..]).put_varint(number);
        }
    }

    pub(super) fn text(&mut self, text: &str) {
        self.numbers(&[text.len() as u64]);
        self.raw(text.as_bytes());
    }

    pub(super) fn list<T>(&mut self, items: &[T], mut each: impl FnMut(&mut Framed, &T)) {
        self.numbers(&[items.len() as u64]);
        items.iter().for_each(|item| each(self, item));
    }
}

/// Returns the format and the body of a whole file that begins with `magic`.
pub(super) fn check_head(magic: [u8; 8], bytes: &[u8]) -> Result<(u32, &[u8]), HeaderError> {
    let (head, body) = bytes.split_first_chunk::<HEAD_BYTES>().ok_or(HeaderError::Short)?;
    let format = check_format(magic, bytes)?;
    if format == 0 || head[16..] != (bytes.len() as u64).to_le_bytes() {
        return Err(HeaderError::Fields);
    }
    Ok((format, body))
}

/// Returns a text.
pub(super) fn text(decoder: &mut Decoder<'_>) -> Result<String, Malformed> {
    let len = decoder.varint()?;
    let bytes = decoder.bytes(len)?;
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| Malformed::Text)
}

/// Returns a list; it ends with the bytes, however long it claims to be.
pub(super) fn list<T>(
    decoder: &mut Decoder<'_>,
    mut each: impl FnMut(&mut Decoder<'_>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let len = decoder.varint()?;
    let mut items = Vec::new();
    for _ in 0..len {
        items.push(each(decoder)?);
    }
    Ok(items)
}
