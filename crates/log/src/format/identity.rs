//! Which database, and which file of it, some bytes belong to.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use super::epoch_width::EpochWidth;

/// The number that tells one database from every other, drawn when it is created and written in each of its
/// files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DatabaseId(pub u128);

impl DatabaseId {
    /// Returns a new number.
    #[must_use]
    pub fn random() -> DatabaseId {
        DatabaseId(random())
    }
}

/// The number that tells one opening of a database from every other, also of a copy: drawn when it begins,
/// and written in each log file of the opening. 0 before the first, and of openings by versions that drew
/// none or did not write it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct OpeningId(pub u128);

impl OpeningId {
    /// Returns a new number.
    #[must_use]
    pub fn random() -> OpeningId {
        OpeningId(random().max(1))
    }
}

/// Returns a number from the standard library's hashers, which the system seeds, with the time mixed in.
fn random() -> u128 {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let half = |salt: u8| {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u8(salt);
        hasher.write_u128(nanos);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}

impl fmt::Display for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for OpeningId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A file of a database. It goes into the checksum of each block, so that a block that got into another file
/// is no block there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    /// The database.
    pub database: DatabaseId,
    /// The file within the database.
    pub file: FileRole,
    /// The opening that wrote a log file: two copies of a database, each opened by itself, write different
    /// files of the same role. 0 of a log file in the first format, and of a part of a checkpoint, which the
    /// manifest knows by its digest.
    pub opening: OpeningId,
    /// How wide the numbers of epochs in a log file are, by the format in which that opening wrote it. A part
    /// of a checkpoint has none.
    pub epochs: EpochWidth,
}

/// What a file is within its database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileRole {
    /// A log file.
    Log {
        /// How often the database, or what it is a copy of, had been opened, from 1.
        generation: u64,
        /// The logger within the generation, from 0.
        logger: u32,
        /// The place in the order of the logger's files, from 1.
        sequence: u64,
    },
    /// A part of a checkpoint.
    Checkpoint {
        /// The checkpoint, from 1.
        checkpoint: u64,
        /// The number of the part within the checkpoint, from 0.
        part: u32,
    },
}

impl FileRole {
    /// Returns whether it is a log file.
    pub(crate) fn is_log(self) -> bool {
        matches!(self, FileRole::Log { .. })
    }
}

impl FileIdentity {
    /// Bytes of an encoded identity, without the opening.
    pub const BYTES: usize = 40;

    /// Returns the identity without the opening and the width of epochs, as it stands in file headers and goes into checksums:
    ///
    /// | offset | bytes | log file | checkpoint part |
    /// |---|---|---|---|
    /// | 0 | 16 | database | database |
    /// | 16 | 4 | 1 | 2 |
    /// | 20 | 4 | logger | part |
    /// | 24 | 8 | generation | checkpoint |
    /// | 32 | 8 | sequence | 0 |
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let (role, number, owner, sequence) = match self.file {
            FileRole::Log { generation, logger, sequence } => (1u32, logger, generation, sequence),
            FileRole::Checkpoint { checkpoint, part } => (2, part, checkpoint, 0),
        };
        let mut bytes = [0; Self::BYTES];
        bytes[..16].copy_from_slice(&self.database.0.to_le_bytes());
        bytes[16..20].copy_from_slice(&role.to_le_bytes());
        bytes[20..24].copy_from_slice(&number.to_le_bytes());
        bytes[24..32].copy_from_slice(&owner.to_le_bytes());
        bytes[32..].copy_from_slice(&sequence.to_le_bytes());
        bytes
    }

    /// Returns the identity in these bytes, of a file of this opening with such epochs, unless they hold none.
    #[must_use]
    pub fn decode(bytes: &[u8; Self::BYTES], opening: OpeningId, epochs: EpochWidth) -> Option<FileIdentity> {
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        let database = DatabaseId(u128::from(u64_at(0)) | u128::from(u64_at(8)) << 64);
        let file = match (u32_at(16), u64_at(32)) {
            (1, sequence) => FileRole::Log { generation: u64_at(24), logger: u32_at(20), sequence },
            (2, 0) => FileRole::Checkpoint { checkpoint: u64_at(24), part: u32_at(20) },
            _ => return None,
        };
        Some(FileIdentity { database, file, opening, epochs })
    }

    /// Returns the number of the opening as it stands in file headers and goes into checksums, unless there
    /// is none.
    pub(super) fn encode_opening(&self) -> Option<[u8; 16]> {
        (self.opening != OpeningId::default()).then(|| self.opening.0.to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn identities_come_back(database: u128, opening: u128, a: u64, b: u32, c: u64, log: bool) {
            let file = if log {
                FileRole::Log { generation: a, logger: b, sequence: c }
            } else {
                FileRole::Checkpoint { checkpoint: a, part: b }
            };
            let opening = OpeningId(opening);
            let epochs = EpochWidth::Bits44;
            let identity = FileIdentity { database: DatabaseId(database), file, opening, epochs };
            prop_assert_eq!(FileIdentity::decode(&identity.encode(), opening, epochs), Some(identity));
        }
    }

    #[test]
    fn two_databases_differ() {
        assert_ne!(DatabaseId::random(), DatabaseId::random());
    }
}
