//! The checksum of what lies in files.

use crc_fast::{CrcAlgorithm, Digest};

/// A CRC-32C over bytes that come in pieces.
#[derive(Debug, Clone, Copy)]
pub struct Checksum(Digest);

impl Default for Checksum {
    fn default() -> Self {
        Checksum(Digest::new(CrcAlgorithm::Crc32Iscsi))
    }
}

impl Checksum {
    /// Goes on over `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the checksum over all bytes so far.
    #[must_use]
    pub fn value(&self) -> u32 {
        self.0.finalize() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_is_that_of_crc_32c() {
        let mut checksum = Checksum::default();
        checksum.update(b"1234");
        checksum.update(b"56789");
        assert_eq!(checksum.value(), 0xe306_9283);
    }
}
