//! The manifest: which files make up the database. All else in its directories is left over from something
//! that was interrupted.
//!
//! # Layout
//! ```text
//! manifest   := magic "ENSILOMF" | format u32 | crc u32 | bytes u64 | body
//!   crc         CRC-32C over all bytes but itself
//!   bytes       length of the file
//! body       := database 16 bytes | generation | first epoch | durable epoch | next checkpoint
//!               | list of logger | list of earlier file | checkpoints: 0 or 1 | [checkpoint]
//!               | opening 16 bytes | previous opening 16 bytes        -- from format 2 on
//!               | last generation of 40 bits                          -- from format 4 on
//! logger     := text directory | first sequence
//! earlier    := text directory | text name | valid bytes, 0 for "up to the seal" | durable epoch
//!               | opening 16 bytes                                    -- from format 3 on
//! checkpoint := id | begin epoch | end epoch | list of part | list of table
//! part       := text path | number | bytes | records | digest u32
//! table      := table | records
//! ```
//! The numbers of epochs are as wide as the format says ([`EpochWidth`]), also where they speak of earlier
//! files. Numbers without a width are varints; a list is preceded by its length; a text is its length in bytes and
//! UTF-8. Paths are relative to the directory of the database, or absolute.
//!
//! # Crash
//! The manifest is written to `MANIFEST.new`, synced, renamed to `MANIFEST`, and the directory synced. A
//! reader finds the one before or the new one, never a mixture; a `MANIFEST.new` means nothing.

use std::fmt;

use ensilo_epoch::Epoch;

use super::cursor::{Decoder, Malformed};
use super::epoch_width::EpochWidth;
use super::file_name::LogFileName;
use super::framed::{Framed, check_head, list, text};
use super::identity::{DatabaseId, FileIdentity, OpeningId};
use super::preamble::HeaderError;

const MAGIC: [u8; 8] = *b"ENSILOMF";

/// The first format that has the numbers of openings.
const FORMAT_OF_OPENINGS: u32 = 2;
/// The first format that goes with log files in the headers of which they stand.
const FORMAT_OF_LOG_OPENINGS: u32 = 3;
/// The first format that may go with log files the epochs of which are of another width.
const FORMAT_OF_WIDTHS: u32 = 4;

/// Parts of a checkpoint with this number or a later one have only records that other parts have too.
pub(crate) const FIRST_COPY: u32 = 1 << 31;

/// The files of a database and what they are good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The format that it has, or is to be written in: [`crate::FORMAT_VERSION`], unless an earlier version
    /// wrote it.
    pub format: u32,
    /// Drawn when the database was created.
    pub database: DatabaseId,
    /// How often the database was opened.
    pub generation: u64,
    /// The first epoch of this generation; later than every epoch on disk when it began.
    pub first_epoch: Epoch,
    /// Every transaction up to this epoch was on disk when the manifest was written.
    pub durable_epoch: Epoch,
    /// The number that the next checkpoint gets. Every one that was ever installed has a smaller one.
    pub next_checkpoint: u64,
    /// The loggers of this generation, by number.
    pub loggers: Vec<LoggerFiles>,
    /// Log files of earlier generations that are needed still.
    pub earlier: Vec<EarlierFile>,
    /// The checkpoint that replay begins with.
    pub checkpoint: Option<CheckpointEntry>,
    /// The opening that began this generation.
    pub opening: OpeningId,
    /// The opening of the manifest before.
    pub previous_opening: OpeningId,
    /// The last generation that an earlier version wrote whose epochs have 40 bits, in its log files and their
    /// names; 0 if there is none.
    pub last_generation_of_40_bits: u64,
}

/// The files of one logger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggerFiles {
    /// Where they lie.
    pub directory: String,
    /// The sequence number of the first one that is needed; all after it are.
    pub first_sequence: u64,
}

/// A log file of an earlier generation. Nobody writes it any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierFile {
    /// Where it lies.
    pub directory: String,
    /// Its name.
    pub name: LogFileName,
    /// How much of it counts: the first so many bytes, or, if `None`, all up to its seal.
    pub valid_bytes: Option<u64>,
    /// Entries of later epochs are void: their generation ended before they were stored.
    pub durable_epoch: Epoch,
    /// The opening that wrote it, as its header says; 0 if that has no number.
    pub opening: OpeningId,
}

/// A checkpoint that is complete and on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointEntry {
    /// Its number.
    pub id: u64,
    /// `e_l`: records of this epoch and later ones may be missing.
    pub begin_epoch: Epoch,
    /// `e_h`: the log is needed from `begin_epoch` to at least here.
    pub end_epoch: Epoch,
    /// Its files.
    pub parts: Vec<CheckpointPart>,
    /// How many records it has of each table. What is there twice counts once.
    pub tables: Vec<(u32, u64)>,
}

impl CheckpointEntry {
    /// Returns how many records it has. What is there twice counts once.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.tables.iter().map(|(_, records)| records).sum()
    }
}

/// One file of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointPart {
    /// Where it lies.
    pub path: String,
    /// Its number within the checkpoint.
    pub number: u32,
    /// Its length.
    pub bytes: u64,
    /// How many records are in it.
    pub records: u64,
    /// CRC-32C over the checksums of its blocks.
    pub digest: u32,
}

impl CheckpointPart {
    /// Returns whether it has only records that other parts have too.
    #[must_use]
    pub fn is_copy(&self) -> bool {
        self.number >= FIRST_COPY
    }
}

/// Why some bytes are no manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ManifestError {
    /// The head is no head of a manifest of a format that is known.
    Head(HeaderError),
    /// The body is malformed, although its checksum is right.
    Body(Malformed),
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ManifestError::Head(error) => error.fmt(f),
            ManifestError::Body(malformed) => malformed.fmt(f),
        }
    }
}

impl Manifest {
    /// Returns the bytes of the file, in the format of the manifest: that which such a format has no place
    /// for is left out.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Framed::new();
        let number = |epoch| EpochWidth::of_format(self.format).number(epoch);
        body.raw(&self.database.0.to_le_bytes());
        body.numbers(&[
            self.generation,
            number(self.first_epoch),
            number(self.durable_epoch),
            self.next_checkpoint,
        ]);
        body.list(&self.loggers, |body, logger| {
            body.text(&logger.directory);
            body.numbers(&[logger.first_sequence]);
        });
        body.list(&self.earlier, |body, file| {
            body.text(&file.directory);
            body.text(&file.name.to_string());
            body.numbers(&[file.valid_bytes.unwrap_or(0), number(file.durable_epoch)]);
            if self.format >= FORMAT_OF_LOG_OPENINGS {
                body.raw(&file.opening.0.to_le_bytes());
            }
        });
        body.list(self.checkpoint.as_slice(), |body, checkpoint| {
            let epochs = [checkpoint.begin_epoch, checkpoint.end_epoch].map(number);
            put_checkpoint(body, checkpoint, epochs);
        });
        if self.format >= FORMAT_OF_OPENINGS {
            body.raw(&self.opening.0.to_le_bytes());
            body.raw(&self.previous_opening.0.to_le_bytes());
        }
        if self.format >= FORMAT_OF_WIDTHS {
            body.numbers(&[self.last_generation_of_40_bits]);
        }
        body.finish(MAGIC, self.format)
    }

    /// Returns the opening that the headers of this generation's log files name: the manifest's, or 0 if an
    /// earlier version wrote them.
    #[must_use]
    pub fn log_opening(&self) -> OpeningId {
        if self.format >= FORMAT_OF_LOG_OPENINGS { self.opening } else { OpeningId::default() }
    }

    /// Returns what the header of the log file of this name has to say; `None` of a file that the manifest does
    /// not know.
    #[must_use]
    pub fn identity_of(&self, name: LogFileName) -> Option<FileIdentity> {
        let opening = match self.earlier.iter().find(|file| file.name == name) {
            _ if name.generation == self.generation => self.log_opening(),
            earlier => earlier?.opening,
        };
        let epochs = self.epochs_of(name.generation);
        Some(FileIdentity { database: self.database, file: name.role(), opening, epochs })
    }

    /// Returns how wide the numbers of epochs are in the log files of a generation, and in their names.
    #[must_use]
    pub(crate) fn epochs_of(&self, generation: u64) -> EpochWidth {
        if generation > self.last_generation_of_40_bits { EpochWidth::Bits44 } else { EpochWidth::Bits40 }
    }

    /// Returns the epochs, the first and the last one, that count together with this one, all or none of them:
    /// those of one epoch of 40 bits, if log files may have entries of that; otherwise this one alone.
    pub(crate) fn all_with(&self, epoch: Epoch) -> (Epoch, Epoch) {
        let earlier = self.earlier.iter().map(|file| (file.name.generation, file.durable_epoch));
        let mut ends = earlier.chain([(self.generation, Epoch::MAX)]);
        let has_40_bits =
            ends.any(|(generation, end)| epoch <= end && self.epochs_of(generation) == EpochWidth::Bits40);
        let width = if has_40_bits { EpochWidth::Bits40 } else { EpochWidth::Bits44 };
        width.all_with(epoch)
    }

    /// Returns the directories that log files may lie in, as the manifest spells them, each once.
    #[must_use]
    pub fn log_directories(&self) -> Vec<&str> {
        let loggers = self.loggers.iter().map(|logger| logger.directory.as_str());
        let mut directories: Vec<&str> =
            loggers.chain(self.earlier.iter().map(|file| file.directory.as_str())).collect();
        directories.sort_unstable();
        directories.dedup();
        directories
    }

    /// Returns the last epoch of which anything counts, if the log reaches `durable_epoch`: what lies between
    /// the end of the generations before and the first epoch of this one is void.
    #[must_use]
    pub fn counted_to(&self, durable_epoch: Epoch) -> Epoch {
        if durable_epoch < self.first_epoch { durable_epoch.min(self.durable_epoch) } else { durable_epoch }
    }

    /// Returns the end epoch of the checkpoint, if there is one.
    #[must_use]
    pub fn checkpoint_end(&self) -> Option<Epoch> {
        self.checkpoint.as_ref().map(|checkpoint| checkpoint.end_epoch)
    }

    /// Returns whether a log file of this name was needed once, and is not any more.
    #[must_use]
    pub fn is_done_with(&self, name: &LogFileName) -> bool {
        if name.generation < self.generation {
            return !self.earlier.iter().any(|file| file.name == *name);
        }
        let first_sequence = self.loggers.get(name.logger as usize).map_or(0, |logger| logger.first_sequence);
        name.generation == self.generation && name.sequence < first_sequence
    }

    /// Returns the manifest in these bytes, which are a whole file.
    ///
    /// # Errors
    /// [`ManifestError`] when there is no valid one.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, ManifestError> {
        let (format, body) = check_head(MAGIC, bytes).map_err(ManifestError::Head)?;
        decode_body(format, Decoder::new(body)).map_err(ManifestError::Body)
    }
}

fn put_checkpoint(body: &mut Framed, checkpoint: &CheckpointEntry, [begin, end]: [u64; 2]) {
    body.numbers(&[checkpoint.id, begin, end]);
    body.list(&checkpoint.parts, |body, part| {
        body.text(&part.path);
        body.numbers(&[u64::from(part.number), part.bytes, part.records]);
        body.raw(&part.digest.to_le_bytes());
    });
    body.list(&checkpoint.tables, |body, &(table, records)| body.numbers(&[u64::from(table), records]));
}

fn decode_body(format: u32, mut decoder: Decoder<'_>) -> Result<Manifest, Malformed> {
    let opening = |decoder: &mut Decoder<'_>, first_format| match format < first_format {
        true => Ok(OpeningId::default()),
        false => Ok(OpeningId(u128::from_le_bytes(decoder.array()?))),
    };
    let epochs = EpochWidth::of_format(format);
    let mut manifest = Manifest {
        format,
        database: DatabaseId(u128::from_le_bytes(decoder.array()?)),
        generation: decoder.varint()?,
        first_epoch: first_epoch(&mut decoder, epochs)?,
        durable_epoch: last_epoch(&mut decoder, epochs)?,
        next_checkpoint: decoder.varint()?,
        loggers: list(&mut decoder, |decoder| {
            Ok(LoggerFiles { directory: text(decoder)?, first_sequence: decoder.varint()? })
        })?,
        earlier: list(&mut decoder, |decoder| {
            Ok(EarlierFile {
                directory: text(decoder)?,
                name: LogFileName::parse(&text(decoder)?).ok_or(Malformed::Text)?,
                valid_bytes: Some(decoder.varint()?).filter(|&bytes| bytes != 0),
                durable_epoch: last_epoch(decoder, epochs)?,
                opening: opening(decoder, FORMAT_OF_LOG_OPENINGS)?,
            })
        })?,
        checkpoint: match decoder.varint()? {
            0 => None,
            1 => Some(checkpoint(&mut decoder, epochs)?),
            _ => return Err(Malformed::Number),
        },
        opening: opening(&mut decoder, FORMAT_OF_OPENINGS)?,
        previous_opening: opening(&mut decoder, FORMAT_OF_OPENINGS)?,
        last_generation_of_40_bits: 0,
    };
    manifest.last_generation_of_40_bits = match epochs {
        EpochWidth::Bits40 => manifest.generation,
        EpochWidth::Bits44 => decoder.varint()?,
    };
    if !decoder.is_empty() {
        return Err(Malformed::Surplus);
    }
    Ok(manifest)
}

fn checkpoint(decoder: &mut Decoder<'_>, epochs: EpochWidth) -> Result<CheckpointEntry, Malformed> {
    Ok(CheckpointEntry {
        id: decoder.varint()?,
        begin_epoch: first_epoch(decoder, epochs)?,
        end_epoch: last_epoch(decoder, epochs)?,
        parts: list(decoder, |decoder| {
            Ok(CheckpointPart {
                path: text(decoder)?,
                number: decoder.varint_u32()?,
                bytes: decoder.varint()?,
                records: decoder.varint()?,
                digest: u32::from_le_bytes(decoder.array()?),
            })
        })?,
        tables: list(decoder, |decoder| Ok((decoder.varint_u32()?, decoder.varint()?)))?,
    })
}

/// Returns an epoch with which something begins.
fn first_epoch(decoder: &mut Decoder<'_>, epochs: EpochWidth) -> Result<Epoch, Malformed> {
    epochs.first(decoder.varint()?).ok_or(Malformed::Number)
}

/// Returns an epoch up to which something reaches.
fn last_epoch(decoder: &mut Decoder<'_>, epochs: EpochWidth) -> Result<Epoch, Malformed> {
    epochs.last(decoder.varint()?).ok_or(Malformed::Number)
}

#[cfg(test)]
mod tests {
    use super::super::epoch_width::EPOCH_END;
    use super::super::framed::HEAD_BYTES;
    use super::super::preamble::{FORMAT_VERSION, checksum};
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn epochs() -> impl Strategy<Value = Epoch> {
        (0..EPOCH_END.get()).prop_map(Epoch::new)
    }

    fn checkpoints() -> impl Strategy<Value = CheckpointEntry> {
        let part = (any::<String>(), any::<u32>(), any::<u64>(), any::<u64>(), any::<u32>()).prop_map(
            |(path, number, bytes, records, digest)| CheckpointPart { path, number, bytes, records, digest },
        );
        (any::<u64>(), epochs(), epochs(), vec(part, 0..4), vec(any::<(u32, u64)>(), 0..4)).prop_map(
            |(id, begin_epoch, end_epoch, parts, tables)| CheckpointEntry {
                id,
                begin_epoch,
                end_epoch,
                parts,
                tables,
            },
        )
    }

    fn manifests() -> impl Strategy<Value = Manifest> {
        let logger = (any::<String>(), any::<u64>())
            .prop_map(|(directory, first_sequence)| LoggerFiles { directory, first_sequence });
        let number = || 1..EPOCH_END.get();
        let name = (number(), any::<u32>(), number(), prop::option::of(number()))
            .prop_map(|(g, l, s, e)| LogFileName { generation: g, logger: l, sequence: s, epoch_number: e });
        let opening = any::<u128>().prop_map(OpeningId);
        let earlier = (any::<String>(), name, prop::option::of(1u64..), epochs(), opening).prop_map(
            |(directory, name, valid_bytes, durable_epoch, opening)| EarlierFile {
                directory,
                name,
                valid_bytes,
                durable_epoch,
                opening,
            },
        );
        let ids = (any::<u128>(), any::<u128>(), any::<u128>());
        let numbers = (ids, any::<u64>(), epochs(), epochs(), any::<u64>(), any::<u64>());
        (numbers, vec(logger, 0..4), vec(earlier, 0..4), prop::option::of(checkpoints())).prop_map(
            |(
                (ids, generation, first_epoch, durable_epoch, next, last_of_40),
                loggers,
                earlier,
                checkpoint,
            )| Manifest {
                format: FORMAT_VERSION,
                database: DatabaseId(ids.0),
                opening: OpeningId(ids.1),
                previous_opening: OpeningId(ids.2),
                generation,
                first_epoch,
                durable_epoch,
                next_checkpoint: next,
                loggers,
                earlier,
                checkpoint,
                last_generation_of_40_bits: last_of_40,
            },
        )
    }

    proptest! {
        #[test]
        fn manifests_come_back(manifest in manifests()) {
            prop_assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest));
        }

        #[test]
        fn manifests_of_earlier_formats_come_back_as_they_were(manifest in manifests(), format in 1..FORMAT_VERSION) {
            let bytes = Manifest { format, ..manifest.clone() }.encode();
            let found = Manifest::decode(&bytes).unwrap();
            prop_assert_eq!(found.encode(), bytes);
            let mut expected = Manifest { format, last_generation_of_40_bits: manifest.generation, ..manifest };
            if format < FORMAT_OF_LOG_OPENINGS {
                prop_assert_eq!(found.log_opening(), OpeningId::default());
                expected.earlier.iter_mut().for_each(|file| file.opening = OpeningId::default());
            }
            if format == 1 {
                (expected.opening, expected.previous_opening) = Default::default();
            }
            // What had no place in 40 bits: the first or the last epoch of those that a number stands for.
            let first = |epoch: &mut Epoch| *epoch = Epoch::new(epoch.get() & !15);
            let last = |epoch: &mut Epoch| {
                *epoch = Epoch::new(if epoch.get() < 16 { 0 } else { epoch.get() | 15 });
            };
            first(&mut expected.first_epoch);
            last(&mut expected.durable_epoch);
            expected.earlier.iter_mut().for_each(|file| last(&mut file.durable_epoch));
            if let Some(checkpoint) = &mut expected.checkpoint {
                first(&mut checkpoint.begin_epoch);
                last(&mut checkpoint.end_epoch);
            }
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn damage_is_found(manifest in manifests(), bit: prop::sample::Index, cut: prop::sample::Index) {
            let mut bytes = manifest.encode();
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Manifest::decode(&bytes).is_err());
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Manifest::decode(&bytes[..cut.index(bytes.len())]).is_err());
            bytes.push(0);
            prop_assert!(Manifest::decode(&bytes).is_err());
        }

        #[test]
        fn a_body_that_lies_is_survived(manifest in manifests(), at: prop::sample::Index, value: u8) {
            let mut bytes = manifest.encode();
            let at = HEAD_BYTES + at.index(bytes.len() - HEAD_BYTES);
            bytes[at] = value;
            let checksum = checksum(&bytes);
            bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
            let _ = Manifest::decode(&bytes);
        }
    }
}
