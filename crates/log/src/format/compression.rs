//! The compression of payloads, which the feature `lz4` brings.

use super::block_error::BlockError;

/// Whether the payloads of blocks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Compression {
    /// They are written as they are.
    #[default]
    None,
    /// LZ4, where that makes a payload shorter.
    #[cfg(feature = "lz4")]
    Lz4,
}

/// Appends the compressed payload of so many bytes, unless it would not be shorter.
#[cfg(feature = "lz4")]
pub(super) fn append_lz4(out: &mut Vec<u8>, payload: &[&[u8]], raw_bytes: usize) -> bool {
    let start = out.len();
    let joined;
    let raw = match payload {
        [one] => *one,
        pieces => {
            joined = pieces.concat();
            &joined
        }
    };
    out.resize(start + lz4_flex::block::get_maximum_output_size(raw_bytes), 0);
    match lz4_flex::block::compress_into(raw, &mut out[start..]) {
        Ok(bytes) if bytes < raw_bytes => {
            out.truncate(start + bytes);
            true
        }
        _ => {
            out.truncate(start);
            false
        }
    }
}

/// Fills `raw` with what a compressed payload was.
#[cfg(feature = "lz4")]
pub(super) fn decompress(payload: &[u8], raw: &mut [u8]) -> Result<(), BlockError> {
    match lz4_flex::block::decompress_into(payload, raw) {
        Ok(bytes) if bytes == raw.len() => Ok(()),
        _ => Err(BlockError::Compression),
    }
}

/// What is compressed can be read by a program with the feature `lz4` alone.
#[cfg(not(feature = "lz4"))]
pub(super) fn decompress(_payload: &[u8], _raw: &mut [u8]) -> Result<(), BlockError> {
    Err(BlockError::CompressionUnsupported)
}
