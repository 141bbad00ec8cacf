//! The first 4096 bytes of a log file and of a checkpoint part.
//!
//! # Layout
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | magic, `ENSILOLG` |
//! | 8 | 4 | format version: 1 without the number of an opening, 3 with it, 4 with epochs of 44 bits, too |
//! | 12 | 4 | CRC-32C of all other bytes |
//! | 16 | 40 | identity of the file without the opening: see [`FileIdentity::encode`] |
//! | 56 | 8 | first epoch: no entry in the file has an earlier one |
//! | 64 | 8 | reserved length of a log file; 0 in a checkpoint part |
//! | 72 | 16 | opening that wrote a log file; 0 in the first format |
//! | 88 | 4008 | zeros |
//!
//! # Crash
//! A log file was made as long as its header says, and that was synced, before the header was written. So a
//! log file with a valid header was at least that long from then on, until its last block was synced.

use ensilo_epoch::Epoch;

use super::cursor::Decoder;
use super::epoch_width::EpochWidth;
use super::identity::{FileIdentity, FileRole, OpeningId};
use super::preamble::{HeaderError, check_format, checksum};

/// The format of checkpoint parts, and of log files of the first two versions: without the number of an
/// opening.
const FORMAT_WITHOUT_OPENING: u32 = 1;
/// The format of log files with the number of an opening and epochs of 40 bits.
const FORMAT_WITH_OPENING: u32 = 3;
/// The format of log files.
const FORMAT: u32 = 4;
/// Bytes before the first block of a file.
pub const FILE_HEADER_BYTES: usize = 4096;
/// Behind the fields come zeros.
const FIELDS_END: usize = 88;

const MAGIC: [u8; 8] = *b"ENSILOLG";

/// What stands at the beginning of a log file or checkpoint part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileHeader {
    /// Which file it is.
    pub identity: FileIdentity,
    /// No entry in the file has an earlier epoch.
    pub first_epoch: Epoch,
    /// So long is a log file at least, as long as it has no last block. 0 in the part of a checkpoint.
    pub reserved_bytes: u64,
}

impl FileHeader {
    /// Returns the bytes of the header.
    #[must_use]
    pub fn encode(&self) -> [u8; FILE_HEADER_BYTES] {
        let mut bytes = [0; FILE_HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.format().to_le_bytes());
        bytes[16..56].copy_from_slice(&self.identity.encode());
        bytes[56..64].copy_from_slice(&self.identity.epochs.number(self.first_epoch).to_le_bytes());
        bytes[64..72].copy_from_slice(&self.reserved_bytes.to_le_bytes());
        bytes[72..FIELDS_END].copy_from_slice(&self.identity.opening.0.to_le_bytes());
        let checksum = checksum(&bytes);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Returns whether these are the first bytes of the header of such a file, of any opening, or none of
    /// them, and zeros: the write of it was interrupted. What follows from more than the identity may be
    /// anything.
    pub(crate) fn is_torn(bytes: &[u8; FILE_HEADER_BYTES], identity: &FileIdentity) -> bool {
        let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        let begins_with = |(opening, epochs)| {
            let identity = FileIdentity { opening, epochs, ..*identity };
            let whole = FileHeader { identity, first_epoch: Epoch::default(), reserved_bytes: 0 }.encode();
            (0..12).chain(16..56).take_while(|&at| at < end).all(|at| bytes[at] == whole[at])
        };
        // One of each format.
        let formats = [(0, EpochWidth::Bits40), (1, EpochWidth::Bits40), (1, EpochWidth::Bits44)];
        let formats = formats.map(|(opening, epochs)| (OpeningId(opening), epochs));
        end <= FIELDS_END && formats.into_iter().any(begins_with)
    }

    /// Returns the header at the beginning of `bytes`.
    ///
    /// # Errors
    /// [`HeaderError`] when there is no valid one.
    pub fn decode(bytes: &[u8]) -> Result<FileHeader, HeaderError> {
        let bytes = bytes.first_chunk::<FILE_HEADER_BYTES>().ok_or(HeaderError::Short)?;
        let format = check_format(MAGIC, bytes)?;
        let mut fields = Decoder::new(&bytes[16..FIELDS_END]);
        let header = FileHeader::decode_fields(format, &mut fields).ok_or(HeaderError::Fields)?;
        let is_known = format == header.format() && bytes[FIELDS_END..].iter().all(|&byte| byte == 0);
        if is_known && header.makes_sense() { Ok(header) } else { Err(HeaderError::Fields) }
    }

    fn decode_fields(format: u32, fields: &mut Decoder<'_>) -> Option<FileHeader> {
        let identity = fields.array().ok()?;
        let (first_epoch, reserved_bytes) = (fields.u64().ok()?, fields.u64().ok()?);
        let opening = OpeningId(u128::from_le_bytes(fields.array().ok()?));
        let identity = FileIdentity::decode(&identity, opening, EpochWidth::of_format(format))?;
        // A part has none, and is the same in all formats.
        let epochs = if identity.file.is_log() { identity.epochs } else { EpochWidth::default() };
        let identity = FileIdentity { epochs, ..identity };
        Some(FileHeader { identity, first_epoch: epochs.first(first_epoch)?, reserved_bytes })
    }

    /// Returns the format of the bytes: that which has just what the identity says.
    fn format(&self) -> u32 {
        match (self.identity.file, self.identity.epochs) {
            (FileRole::Checkpoint { .. }, _) => FORMAT_WITHOUT_OPENING,
            (_, EpochWidth::Bits40) if self.identity.opening == OpeningId::default() => {
                FORMAT_WITHOUT_OPENING
            }
            (_, EpochWidth::Bits40) => FORMAT_WITH_OPENING,
            (_, EpochWidth::Bits44) => FORMAT,
        }
    }

    fn makes_sense(&self) -> bool {
        match self.identity.file {
            FileRole::Log { .. } => {
                let has_opening = self.identity.opening != OpeningId::default();
                has_opening == (self.format() != FORMAT_WITHOUT_OPENING)
                    && self.reserved_bytes >= FILE_HEADER_BYTES as u64
            }
            FileRole::Checkpoint { .. } => {
                (self.first_epoch, self.reserved_bytes, self.identity.opening) == Default::default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::identity::DatabaseId;
    use super::super::preamble::FORMAT_VERSION;
    use super::*;
    use proptest::prelude::*;

    fn header_of(opening: u128, epochs: EpochWidth) -> FileHeader {
        let file = FileRole::Log { generation: 2, logger: 3, sequence: 4 };
        let identity = FileIdentity { database: DatabaseId(5), file, opening: OpeningId(opening), epochs };
        FileHeader { identity, first_epoch: Epoch::new(96), reserved_bytes: 1 << 20 }
    }

    fn header() -> FileHeader {
        header_of(7, EpochWidth::Bits44)
    }

    #[test]
    fn headers_come_back_in_the_format_that_has_what_they_say() {
        use EpochWidth::{Bits40, Bits44};
        for (opening, epochs, format, first_epoch) in [
            (7, Bits44, FORMAT, 96),
            (7, Bits40, FORMAT_WITH_OPENING, 6),
            (0, Bits40, FORMAT_WITHOUT_OPENING, 6),
        ] {
            let bytes = header_of(opening, epochs).encode();
            assert_eq!((bytes[8], bytes[56]), (format as u8, first_epoch));
            assert_eq!(FileHeader::decode(&bytes), Ok(header_of(opening, epochs)));
        }
    }

    #[test]
    fn the_format_and_the_opening_fit_each_other() {
        for (opening, format) in [(7, 1), (0, 3), (0, 4), (7, 2), (0, 2), (7, 0), (0, 0)] {
            let mut bytes = header_of(opening, EpochWidth::of_format(u32::from(format))).encode();
            bytes[8] = format;
            let checksum = checksum(&bytes);
            bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
            assert_eq!(FileHeader::decode(&bytes), Err(HeaderError::Fields), "{opening} in {format}");
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let mut bytes = header().encode();
        for bit in 0..FILE_HEADER_BYTES * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(FileHeader::decode(&bytes).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn a_later_format_is_named() {
        let mut bytes = header().encode();
        bytes[8] = FORMAT_VERSION as u8 + 1;
        let checksum = checksum(&bytes);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(FileHeader::decode(&bytes), Err(HeaderError::Newer(FORMAT_VERSION + 1)));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_no_header(bytes in proptest::collection::vec(any::<u8>(), 0..5000)) {
            prop_assert!(FileHeader::decode(&bytes).is_err());
        }
    }
}
