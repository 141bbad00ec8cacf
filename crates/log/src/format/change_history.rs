//! From where on the log has every change as a whole row, and which log files are kept for that alone: the file
//! `CHANGES` in the directory of a database.
//!
//! # Layout
//! ```text
//! changes := magic "ENSILOCH" | format u32 | crc u32 | bytes u64 | body
//! body    := database 16 bytes | history 16 bytes | list of opening 16 bytes | list of ended | first epoch
//!            | list of kept file
//! ended   := opening 16 bytes | last epoch
//! kept    := text directory | text name | valid bytes, 0 for "up to the seal" | durable epoch | opening 16 bytes
//!            | largest epoch | bytes
//! ```
//! As in the manifest, numbers without a width are varints, a list is preceded by its length, and a text is its
//! length in bytes and UTF-8.
//!
//! # Crash
//! It is replaced like the manifest, and before the manifest that it goes with: it counts with a manifest of one of
//! its openings, and no other.

use ensilo_epoch::Epoch;

use super::cursor::{Decoder, Malformed};
use super::epoch_width::EpochWidth;
use super::file_name::LogFileName;
use super::framed::{Framed, check_head, list, text};
use super::identity::{DatabaseId, OpeningId};
use super::manifest::EarlierFile;
use super::preamble::HeaderError;

const MAGIC: [u8; 8] = *b"ENSILOCH";
const FORMAT: u32 = 4;

/// From where on the log has every change as a whole row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangeHistory {
    pub(crate) database: DatabaseId,
    /// The opening that began to keep all changes. Another history is not continued by this one: positions in it mean
    /// nothing here.
    pub(crate) history: OpeningId,
    /// The openings whose manifests this goes with: the current one, and the one before while that is replaced.
    pub(crate) openings: Vec<OpeningId>,
    /// The earlier openings of this history, as far as positions of theirs may be good still, with the last epoch of each that counts. A position of
    /// another opening, or a later one, is of a past that this database does not have: of a copy of its files, or of epochs that were given up.
    pub(crate) ended: Vec<(OpeningId, Epoch)>,
    /// Every entry of this epoch and of later ones that counts is in the files that are kept, or that the manifest
    /// names, and is a put or a deletion.
    pub(crate) first_epoch: Epoch,
    /// The log files that only readers of changes need, or that the manifest before names as well.
    pub(crate) kept: Vec<KeptFile>,
}

/// A log file that is kept for readers of changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptFile {
    pub(crate) file: EarlierFile,
    /// No entry that counts has a later epoch.
    pub(crate) largest_epoch: Epoch,
    /// How many bytes it takes, about.
    pub(crate) bytes: u64,
}

impl ChangeHistory {
    /// Returns the bytes of the file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = Framed::new();
        body.raw(&self.database.0.to_le_bytes());
        body.raw(&self.history.0.to_le_bytes());
        body.list(&self.openings, |body, opening| body.raw(&opening.0.to_le_bytes()));
        body.list(&self.ended, |body, (opening, last)| {
            body.raw(&opening.0.to_le_bytes());
            body.numbers(&[last.get()]);
        });
        body.numbers(&[self.first_epoch.get()]);
        body.list(&self.kept, |body, KeptFile { file, largest_epoch, bytes }| {
            body.text(&file.directory);
            body.text(&file.name.to_string());
            body.numbers(&[file.valid_bytes.unwrap_or(0), file.durable_epoch.get()]);
            body.raw(&file.opening.0.to_le_bytes());
            body.numbers(&[largest_epoch.get(), *bytes]);
        });
        body.finish(MAGIC, FORMAT)
    }

    /// Returns what these bytes say, which are a whole file.
    pub(crate) fn decode(bytes: &[u8]) -> Result<ChangeHistory, HeaderError> {
        let (format, body) = check_head(MAGIC, bytes)?;
        if format != FORMAT {
            return Err(HeaderError::Fields);
        }
        decode_body(Decoder::new(body)).map_err(|_| HeaderError::Fields)
    }
}

fn decode_body(mut decoder: Decoder<'_>) -> Result<ChangeHistory, Malformed> {
    let history = ChangeHistory {
        database: DatabaseId(u128::from_le_bytes(decoder.array()?)),
        history: opening(&mut decoder)?,
        openings: list(&mut decoder, opening)?,
        ended: list(&mut decoder, |decoder| Ok((opening(decoder)?, epoch(decoder)?)))?,
        first_epoch: epoch(&mut decoder)?,
        kept: list(&mut decoder, |decoder| {
            let file = EarlierFile {
                directory: text(decoder)?,
                name: LogFileName::parse(&text(decoder)?).ok_or(Malformed::Text)?,
                valid_bytes: Some(decoder.varint()?).filter(|&bytes| bytes != 0),
                durable_epoch: epoch(decoder)?,
                opening: opening(decoder)?,
            };
            Ok(KeptFile { file, largest_epoch: epoch(decoder)?, bytes: decoder.varint()? })
        })?,
    };
    if decoder.is_empty() { Ok(history) } else { Err(Malformed::Surplus) }
}

fn opening(decoder: &mut Decoder<'_>) -> Result<OpeningId, Malformed> {
    Ok(OpeningId(u128::from_le_bytes(decoder.array()?)))
}

fn epoch(decoder: &mut Decoder<'_>) -> Result<Epoch, Malformed> {
    EpochWidth::Bits44.first(decoder.varint()?).ok_or(Malformed::Number)
}

#[cfg(test)]
mod tests {
    use super::super::epoch_width::EPOCH_END;
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn epochs() -> impl Strategy<Value = Epoch> {
        (0..EPOCH_END.get()).prop_map(Epoch::new)
    }

    fn kept() -> impl Strategy<Value = KeptFile> {
        let number = || 1..EPOCH_END.get();
        let name = (number(), any::<u32>(), number(), prop::option::of(number()))
            .prop_map(|(g, l, s, e)| LogFileName { generation: g, logger: l, sequence: s, epoch_number: e });
        let place = (any::<String>(), name, prop::option::of(1u64..));
        (place, epochs(), any::<u128>(), epochs(), any::<u64>()).prop_map(
            |((directory, name, valid_bytes), durable_epoch, opening, largest_epoch, bytes)| {
                let opening = OpeningId(opening);
                let file = EarlierFile { directory, name, valid_bytes, durable_epoch, opening };
                KeptFile { file, largest_epoch, bytes }
            },
        )
    }

    proptest! {
        #[test]
        fn histories_come_back_and_damage_is_found(
            ids: (u128, u128),
            openings in vec(any::<u128>(), 0..3),
            ended in vec((any::<u128>(), epochs()), 0..3),
            first_epoch in epochs(),
            kept in vec(kept(), 0..4),
            bit: prop::sample::Index,
        ) {
            let history = ChangeHistory {
                database: DatabaseId(ids.0),
                history: OpeningId(ids.1),
                openings: openings.into_iter().map(OpeningId).collect(),
                ended: ended.into_iter().map(|(opening, last)| (OpeningId(opening), last)).collect(),
                first_epoch,
                kept,
            };
            let mut bytes = history.encode();
            prop_assert_eq!(ChangeHistory::decode(&bytes), Ok(history));
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(ChangeHistory::decode(&bytes).is_err());
        }
    }
}
