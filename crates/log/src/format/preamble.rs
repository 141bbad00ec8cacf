//! What log files, checkpoint parts, manifests and `OWNER` begin with in every version: the kind of file, its
//! format and a checksum.
//!
//! # Layout
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | magic, one for each kind of file |
//! | 8 | 4 | format version |
//! | 12 | 4 | CRC-32C of all other bytes of the file header, or of a file that is written as a whole |

use std::fmt;

use ensilo_disk::Checksum;

/// The format of the databases that this version writes, and the newest that it reads: that of the manifest.
/// A file with bytes that have not changed since an earlier format has the number of that one.
pub const FORMAT_VERSION: u32 = 4;

/// Why some bytes are no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderError {
    /// Fewer bytes than a header has.
    Short,
    /// Another kind of file.
    Magic,
    /// Written by a later version, in this format.
    Newer(u32),
    /// The checksum is wrong.
    Checksum,
    /// A field makes no sense.
    Fields,
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeaderError::Short => f.write_str("the file is shorter than its header"),
            HeaderError::Magic => f.write_str("the file does not begin as a file of this kind does"),
            HeaderError::Newer(format) => {
                write!(f, "the file has format {format}; this version knows {FORMAT_VERSION} and older ones")
            }
            HeaderError::Checksum => f.write_str("the checksum of the file's header is wrong"),
            HeaderError::Fields => f.write_str("a field of the file's header makes no sense"),
        }
    }
}

/// Returns the format that `bytes` name: a file header, or a file that is written as a whole, that has to begin
/// with `magic`.
pub(super) fn check_format(magic: [u8; 8], bytes: &[u8]) -> Result<u32, HeaderError> {
    if bytes[..8] != magic {
        return Err(HeaderError::Magic);
    }
    if bytes[12..16] != checksum(bytes).to_le_bytes() {
        return Err(HeaderError::Checksum);
    }
    match u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) {
        format if format > FORMAT_VERSION => Err(HeaderError::Newer(format)),
        format => Ok(format),
    }
}

/// Over everything but the checksum itself.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    let mut digest = Checksum::default();
    digest.update(&bytes[..12]);
    digest.update(&bytes[16..]);
    digest.value()
}
