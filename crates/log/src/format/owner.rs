//! Whose log a directory holds: the file `OWNER` in each log directory.
//!
//! # Layout
//! ```text
//! owner := magic "ENSILOOW" | format u32 | crc u32 | bytes u64 | body
//! body  := database 16 bytes | opening 16 bytes | generation | text directory
//! ```
//! As in the manifest, numbers without a width are varints, and a text is its length in bytes and UTF-8.

use super::cursor::{Decoder, Malformed};
use super::framed::{Framed, check_head, text};
use super::identity::{DatabaseId, OpeningId};
use super::preamble::HeaderError;

const MAGIC: [u8; 8] = *b"ENSILOOW";
/// Later formats have left the file as it was.
const FORMAT: u32 = 2;

/// Whose log a directory holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) database: DatabaseId,
    /// The opening that wrote this: that of the manifest, unless one of them was put back or taken over.
    pub(crate) opening: OpeningId,
    /// The generation of that opening.
    pub(crate) generation: u64,
    /// The directory of the database, as an absolute path.
    pub(crate) directory: String,
}

impl Owner {
    /// Returns the bytes of the file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = Framed::new();
        body.raw(&self.database.0.to_le_bytes());
        body.raw(&self.opening.0.to_le_bytes());
        body.numbers(&[self.generation]);
        body.text(&self.directory);
        body.finish(MAGIC, FORMAT)
    }

    /// Returns the owner in these bytes, which are a whole file.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Owner, HeaderError> {
        let (_, body) = check_head(MAGIC, bytes)?;
        decode_body(Decoder::new(body)).map_err(|_| HeaderError::Fields)
    }
}

fn decode_body(mut decoder: Decoder<'_>) -> Result<Owner, Malformed> {
    let owner = Owner {
        database: DatabaseId(u128::from_le_bytes(decoder.array()?)),
        opening: OpeningId(u128::from_le_bytes(decoder.array()?)),
        generation: decoder.varint()?,
        directory: text(&mut decoder)?,
    };
    if decoder.is_empty() { Ok(owner) } else { Err(Malformed::Surplus) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn owners_come_back_and_damage_is_found(
            database: u128,
            opening: u128,
            generation: u64,
            directory: String,
            bit: prop::sample::Index,
        ) {
            let database = DatabaseId(database);
            let owner = Owner { database, opening: OpeningId(opening), generation, directory };
            let mut bytes = owner.encode();
            prop_assert_eq!(Owner::decode(&bytes), Ok(owner));
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Owner::decode(&bytes).is_err());
        }
    }
}
