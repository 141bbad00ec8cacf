//! Why some bytes are no block.

use std::fmt;

/// Why some bytes are no block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockError {
    /// Zeros: nothing was written here.
    Empty,
    /// The magic is wrong.
    Magic,
    /// A length or flag makes no sense.
    Header,
    /// The block would reach past the end of the file.
    Length,
    /// The block was written for another place in a file.
    Offset,
    /// The checksum is wrong.
    Checksum,
    /// The payload cannot be decompressed.
    Compression,
    /// No damage: the payload is compressed, and the program was built without the feature `lz4`.
    CompressionUnsupported,
}

impl fmt::Display for BlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BlockError::Empty => "no block was written here",
            BlockError::Magic => "the bytes are not the beginning of a block",
            BlockError::Header => "a length or flag of the block's header makes no sense",
            BlockError::Length => "the block reaches past the end of the file",
            BlockError::Offset => "the block was written for another place",
            BlockError::Checksum => "the block's checksum is wrong",
            BlockError::Compression => "the block's payload cannot be decompressed",
            BlockError::CompressionUnsupported => {
                "the block is compressed, and this program was built without the feature lz4 of ensilo"
            }
        })
    }
}
