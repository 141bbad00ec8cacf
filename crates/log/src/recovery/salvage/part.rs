//! Reading what is valid of a part of a checkpoint.

use std::path::{Path, PathBuf};

use ensilo_disk::{Checksum, Disk};

use super::rows::{RecordKey, RowCollector};
use crate::format::{
    BlockCodec, BlockEnd, BlockError, CheckpointPart, Decoder, FILE_HEADER_BYTES, FileIdentity, FileRole,
    Malformed, SealedHeader, Write,
};
use crate::recovery::block_writes::BlockWrites;
use crate::recovery::error::{OpenError, ReplayError};
use crate::recovery::file_access::{exists, open};
use crate::recovery::scan::each_block_beyond;

/// Records of a checkpoint that cannot be read where they stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableRecords {
    /// The part of the checkpoint.
    pub file: PathBuf,
    /// Where in it nothing can be read.
    pub offset: u64,
    /// Where it can be read again, or ends.
    pub end: u64,
    /// How many there are, 0 if what cannot be read is no record; `None` if this is not the only such place
    /// in the file.
    pub records: Option<u64>,
    /// The last record in the file before them.
    pub after: Option<RecordKey>,
    /// The first record in the file after them.
    pub before: Option<RecordKey>,
}

/// Whether what was read is of the part that the manifest describes. Other parts with the same identity are
/// in a copy of the database that has gone on by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// It is that part, and all of it was read.
    Proved,
    /// Not all of it can be read, and what can be read does not contradict the manifest.
    Unknown,
    /// It is another part.
    Other,
}

/// Gathers the records of all valid blocks. Returns the places where there is none, and of which part they are.
pub(super) fn read_part(
    disk: &dyn Disk,
    path: &Path,
    identity: &FileIdentity,
    part: &CheckpointPart,
    collector: &RowCollector,
) -> Result<(Vec<UnreadableRecords>, Origin), OpenError> {
    let mut reading = Reading {
        path,
        role: identity.file,
        collector,
        records: 0,
        last: None,
        end: FILE_HEADER_BYTES as u64,
        unreadable: Vec::new(),
        digest: Checksum::default(),
        ended: None,
        is_too_long: false,
    };
    if exists(disk, path)? {
        let (file, len) = open(disk, path)?;
        reading.is_too_long = len > part.bytes;
        let (codec, start) = (BlockCodec::new(identity), FILE_HEADER_BYTES as u64);
        let mut outcome = Ok(());
        let mut raw = Vec::new();
        each_block_beyond(&*file, &codec, start, len.min(part.bytes), &mut |sealed, payload| {
            outcome = reading.take(sealed, payload, &mut raw);
            outcome.is_ok()
        })
        .map_err(OpenError::io("read", path))?;
        outcome.map_err(|error| OpenError::Replay { file: path.to_path_buf(), error })?;
    }
    Ok(reading.finish(part))
}

/// How far a part is read.
struct Reading<'r> {
    path: &'r Path,
    role: FileRole,
    collector: &'r RowCollector,
    /// Records of this part that were read.
    records: u64,
    last: Option<RecordKey>,
    /// The end of the last valid block.
    end: u64,
    unreadable: Vec<UnreadableRecords>,
    /// Over the checksums of all valid blocks.
    digest: Checksum,
    /// Where the block that ends the part ends, and how many records it says that the part has.
    ended: Option<(u64, Option<u64>)>,
    /// Whether the file is longer than the manifest says.
    is_too_long: bool,
}

impl Reading<'_> {
    /// Takes a valid block. One that makes no sense within is as good as damaged.
    fn take(&mut self, sealed: &SealedHeader, payload: &[u8], raw: &mut Vec<u8>) -> Result<(), ReplayError> {
        let is_end = sealed.header.end != BlockEnd::None;
        let records = match sealed.raw(payload, raw) {
            Ok(raw) if is_end => {
                self.ended = Some((sealed.end_offset(), Decoder::new(raw).varint().ok()));
                Vec::new()
            }
            Ok(raw) => match records_of(self.role, sealed, raw) {
                Ok(records) => records,
                Err(_) => return Ok(()),
            },
            // The others would be lost for nothing.
            Err(corruption @ BlockError::CompressionUnsupported) => {
                return Err(ReplayError::Refused(corruption.to_string()));
            }
            Err(_) => return Ok(()),
        };
        let key_of = |write: &Write<'_>| RecordKey { table: write.table, key: write.key.to_vec() };
        self.note_gap(sealed.header.offset, records.first().map(key_of));
        self.end = sealed.end_offset();
        self.digest.update(&sealed.checksum().to_le_bytes());
        if let Some(last) = records.last() {
            self.last = Some(key_of(last));
            self.records += records.len() as u64;
        }
        self.collector.take_records(&records);
        Ok(())
    }

    /// Notes what lies between the last valid block and `offset`, if anything does.
    fn note_gap(&mut self, offset: u64, before: Option<RecordKey>) {
        if offset > self.end {
            let (file, after) = (self.path.to_path_buf(), self.last.clone());
            let place =
                UnreadableRecords { file, offset: self.end, end: offset, records: None, after, before };
            self.unreadable.push(place);
        }
    }

    fn finish(mut self, part: &CheckpointPart) -> (Vec<UnreadableRecords>, Origin) {
        self.note_gap(part.bytes, None);
        let origin = self.origin(part);
        if let [only] = &mut self.unreadable[..] {
            only.records = Some(part.records.saturating_sub(self.records));
        }
        (self.unreadable, origin)
    }

    fn origin(&self, part: &CheckpointPart) -> Origin {
        let is_ended = self.ended == Some((part.bytes, Some(part.records)));
        if !self.unreadable.is_empty() {
            let is_other = self.is_too_long || self.ended.is_some() && !is_ended;
            return if is_other { Origin::Other } else { Origin::Unknown };
        }
        let digest = self.digest.value();
        match is_ended && (self.records, digest) == (part.records, part.digest) {
            true => Origin::Proved,
            false => Origin::Other,
        }
    }
}

/// Returns all records of a block.
fn records_of<'b>(role: FileRole, sealed: &SealedHeader, raw: &'b [u8]) -> Result<Vec<Write<'b>>, Malformed> {
    let mut writes = BlockWrites::new(role, sealed, raw);
    std::iter::from_fn(|| writes.next_write().transpose()).collect()
}
