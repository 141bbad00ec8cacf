//! The frame of a message: the same in all channels.
//!
//! # Layout
//! | bytes | what |
//! |---|---|
//! | 0..4 | the number of bytes of the message, at most [`MESSAGE_BYTES_MAX`], little-endian |
//! | 4..8 | CRC-32C of the message's bytes, exclusive-or the low 32 bits of the message's number in its direction, little-endian |
//! | 8.. | the message |
//!
//! A frame is valid if and only if its length is no more than the bound and the checksum is that of its bytes and its number: what was a valid
//! frame before, or at another place, is none.

use crc_fast::{CrcAlgorithm, checksum};

/// The most bytes that a message may have.
pub const MESSAGE_BYTES_MAX: usize = if cfg!(loom) { 16 } else { 32 << 10 };

/// What stands in front of a message.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Header(pub(super) u64);

impl Header {
    #[cfg(not(loom))]
    pub(super) const BYTES: usize = size_of::<u64>();

    /// Returns the header of a message, which is not too long, with this number.
    pub(super) fn of(message: &[u8], number: u64) -> Self {
        debug_assert!(message.len() <= MESSAGE_BYTES_MAX);
        Header(message.len() as u64 | u64::from(checksum_of(message) ^ number as u32) << u32::BITS)
    }

    /// Returns how many bytes the message has, if that may be.
    pub(super) fn message_bytes(self) -> Result<usize, &'static str> {
        let bytes = self.0 as u32 as usize;
        if bytes <= MESSAGE_BYTES_MAX { Ok(bytes) } else { Err("it is longer than messages are") }
    }

    /// Checks that this is the header of a message with this number.
    pub(super) fn check(self, message: &[u8], number: u64) -> Result<(), &'static str> {
        if Header::of(message, number) == self {
            Ok(())
        } else {
            Err("its checksum is that of something else")
        }
    }
}

fn checksum_of(message: &[u8]) -> u32 {
    // The result of this algorithm has 32 bits.
    checksum(CrcAlgorithm::Crc32Iscsi, message) as u32
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn no_bit_of_a_frame_changes_unnoticed() {
        let message = *b"to be sent";
        let header = Header::of(&message, 7);
        assert_eq!((header.message_bytes(), header.check(&message, 7)), (Ok(10), Ok(())));
        for bit in 0..64 {
            let damaged = Header(header.0 ^ 1 << bit);
            let is_noticed = damaged.message_bytes() != Ok(10) || damaged.check(&message, 7).is_err();
            assert!(is_noticed, "bit {bit} of the header");
        }
        for bit in 0..message.len() * 8 {
            let mut damaged = message;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(header.check(&damaged, 7).is_err(), "bit {bit} of the message");
        }
    }

    #[test]
    fn a_frame_of_another_number_is_none() {
        assert!(Header::of(b"again", 3).check(b"again", 4).is_err());
    }

    #[test]
    fn the_bound_is_the_longest_message() {
        assert_eq!(Header(MESSAGE_BYTES_MAX as u64).message_bytes(), Ok(MESSAGE_BYTES_MAX));
        assert!(Header(MESSAGE_BYTES_MAX as u64 + 1).message_bytes().is_err());
    }
}
