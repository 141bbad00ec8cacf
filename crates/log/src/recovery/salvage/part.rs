//! Reading what is valid of a part of a checkpoint.

use std::path::Path;

use ensilo_disk::Disk;

use super::rows::Gathering;
use super::{RecordKey, UnreadableRecords};
use crate::format::{
    BlockCodec, BlockDamage, BlockEnd, CheckpointPart, FILE_HEADER_BYTES, FileIdentity, Malformed,
    SealedHeader, Source, Write,
};
use crate::recovery::error::{OpenError, ReplayError};
use crate::recovery::replay::record;
use crate::recovery::scan::each_block_beyond;

/// Gathers the records of all valid blocks. Returns the places where there is no valid block.
pub(super) fn read_part(
    disk: &dyn Disk,
    path: &Path,
    identity: &FileIdentity,
    part: &CheckpointPart,
    gathering: &Gathering,
) -> Result<Vec<UnreadableRecords>, OpenError> {
    let end = FILE_HEADER_BYTES as u64;
    let mut reading = Reading { path, gathering, records: 0, last: None, end, unreadable: Vec::new() };
    if disk.exists(path).map_err(OpenError::io("look for", path))? {
        let file = disk.open_read(path).map_err(OpenError::io("open", path))?;
        let len = file.len_bytes().map_err(OpenError::io("read", path))?;
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
    gathering: &'r Gathering,
    /// Records of this part that were read.
    records: u64,
    last: Option<RecordKey>,
    /// The end of the last valid block.
    end: u64,
    unreadable: Vec<UnreadableRecords>,
}

impl Reading<'_> {
    /// Takes a valid block. One that makes no sense within is as good as damaged.
    fn take(&mut self, sealed: &SealedHeader, payload: &[u8], raw: &mut Vec<u8>) -> Result<(), ReplayError> {
        let is_end = sealed.header.end != BlockEnd::None;
        let records = match sealed.raw(payload, raw) {
            Ok(_) if is_end => Vec::new(),
            Ok(raw) => match records_of(raw) {
                Ok(records) => records,
                Err(_) => return Ok(()),
            },
            // The others would be lost for nothing.
            Err(damage @ BlockDamage::CompressionUnsupported) => {
                return Err(ReplayError::Refused(damage.to_string()));
            }
            Err(_) => return Ok(()),
        };
        let key_of = |write: &Write<'_>| RecordKey { table: write.table, key: write.key.to_vec() };
        self.note_gap(sealed.header.offset, records.first().map(key_of));
        self.end = sealed.end_offset();
        if let Some(last) = records.last() {
            self.last = Some(key_of(last));
            self.records += records.len() as u64;
        }
        self.gathering.take_records(&records);
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

    fn finish(mut self, part: &CheckpointPart) -> Vec<UnreadableRecords> {
        self.note_gap(part.bytes, None);
        if let [only] = &mut self.unreadable[..] {
            only.records = Some(part.records.saturating_sub(self.records));
        }
        self.unreadable
    }
}

/// All records of a block.
fn records_of(raw: &[u8]) -> Result<Vec<Write<'_>>, Malformed> {
    let mut source = Source::new(raw);
    let table = source.varint_u32()?;
    let mut records = Vec::new();
    while !source.is_empty() {
        records.push(record(&mut source, table)?);
    }
    Ok(records)
}
