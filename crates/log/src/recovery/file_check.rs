//! Checking all blocks of one file, also those behind damage.
//!
//! What else a database holds is of no matter here: whether all files are there, and what it means when one
//! is damaged, is known only when all were looked at.

use std::io;
use std::path::Path;

use ensilo_disk::{Disk, File};
use ensilo_epoch::Epoch;

use super::block_writes::BlockWrites;
use super::corruption::{CorruptPlace, Corruption, CorruptionKind, DataLoss};
use super::error::OpenError;
use super::file_access::exists;
use super::forgiving::ForgivingDisk;
use super::log_file::{is_empty_log_file, misnamed, open_with_head};
use super::named_files::SuspectFiles;
use super::replay_file::part_identity;
use super::scan::{each_block, each_block_beyond};
use crate::format::{
    BlockCodec, BlockEnd, BlockError, EarlierFile, FILE_HEADER_BYTES, FileHeader, FileIdentity, FileRole,
    LogFileName, SealedHeader,
};

/// What a file has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// Valid up to its last block, which ends it so.
    End(BlockEnd),
    /// Valid up to here. What comes behind does not count.
    Bytes(u64),
    /// Valid as far as it says itself that it was synced, and as long as it was made. What comes behind may
    /// be as a crash left it.
    Written,
}

/// What a check of one file has found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckedFile {
    /// Valid blocks.
    pub blocks: u64,
    /// Writes of the log, or records of the checkpoint, in them.
    pub writes: u64,
    /// The end of the last of them.
    pub bytes: u64,
    /// No entry of the log in them has a later epoch; 0 without any.
    pub last_entry: Epoch,
    /// What is wrong, and where in the file.
    pub corruptions: Vec<(u64, CorruptionKind)>,
    /// The first place where there is no valid block, as a crash may have left it, and why there is none.
    /// What comes behind does not count.
    pub torn: Option<(u64, BlockError)>,
}

/// Checks a log file, or a part of a checkpoint, by itself: every block and what is in it, also behind
/// damage. `valid_bytes` is how much of it counts, if that is known: what comes behind may be anything. The
/// database may be open.
///
/// # Errors
/// [`OpenError`] when the system fails, or the file has no header that makes sense.
pub fn check_file(disk: &dyn Disk, path: &Path, valid_bytes: Option<u64>) -> Result<CheckedFile, OpenError> {
    let wrong = |kind| OpenError::corrupt(path, Some(0), kind, DataLoss::Everything);
    let disk = &ForgivingDisk::new(disk);
    let ((file, _), head) = open_with_head(disk, path)?;
    let name = LogFileName::of(path);
    let is_open = name.is_some_and(|name| !name.is_sealed());
    let header = match FileHeader::decode(&head) {
        Ok(header) => header,
        // It was made ahead, and a crash came before its header.
        Err(_) if is_open && is_empty_log_file(disk, path)? => {
            return Ok(CheckedFile { torn: Some((0, BlockError::Empty)), ..CheckedFile::default() });
        }
        Err(error) => return Err(wrong(CorruptionKind::Header(error))),
    };
    if name.is_some_and(|name| name.role() != header.identity.file) {
        return Err(wrong(CorruptionKind::OtherFile));
    }
    let expected = match (header.identity.file, valid_bytes) {
        (FileRole::Checkpoint { .. }, _) => Expected::End(BlockEnd::Part),
        (_, Some(bytes)) => Expected::Bytes(bytes),
        (_, None) if name.is_some() && !is_open => Expected::End(BlockEnd::Seal),
        (_, None) => Expected::Written,
    };
    let unread = &|| disk.failures_in(path);
    let mut checked = check_blocks(&*file, &header.identity, header.reserved_bytes, expected, unread)
        .map_err(OpenError::io("read", path))?;
    // What a damaged block held may be what the name says.
    let is_whole = checked.corruptions.is_empty() && valid_bytes.is_none();
    let wrong_name =
        name.filter(|_| is_whole).and_then(|name| misnamed(name, header.identity.epochs, checked.last_entry));
    checked.corruptions.extend(wrong_name.map(|kind| (0, kind)));
    Ok(checked)
}

/// Checks all blocks of the file with this identity and header. `unread` says, when all were read, what of
/// the file could not be.
pub(super) fn check_blocks(
    file: &dyn File,
    identity: &FileIdentity,
    reserved_bytes: u64,
    expected: Expected,
    unread: &dyn Fn() -> Vec<CorruptPlace>,
) -> io::Result<CheckedFile> {
    let len = file.len_bytes()?;
    let limit = if let Expected::Bytes(bytes) = expected { bytes.min(len) } else { len };
    let mut walk = BlockWalk {
        file,
        identity,
        limit,
        found: CheckedFile { bytes: FILE_HEADER_BYTES as u64, ..CheckedFile::default() },
        stops: Vec::new(),
        unread: Vec::new(),
        end: BlockEnd::None,
        synced_to: 0,
        reserved_bytes,
        raw: Vec::new(),
    };
    walk.run()?;
    walk.blame(unread());
    Ok(walk.judge(expected, len))
}

/// A walk over the blocks of a file.
struct BlockWalk<'f> {
    file: &'f dyn File,
    identity: &'f FileIdentity,
    limit: u64,
    found: CheckedFile,
    /// Where there is no valid block, although one could be there.
    stops: Vec<InvalidStretch>,
    /// What could not be read where something counts, or could.
    unread: Vec<(u64, CorruptionKind)>,
    /// What the last block ends.
    end: BlockEnd,
    /// The file was synced up to here, as its blocks say.
    synced_to: u64,
    /// The file was made so long, as its header and its blocks say.
    reserved_bytes: u64,
    raw: Vec<u8>,
}

/// Where there is no valid block, up to where the next one begins.
struct InvalidStretch {
    offset: u64,
    end: u64,
    error: BlockError,
}

impl BlockWalk<'_> {
    /// Walks to the end, over each gap to the next valid block behind it.
    fn run(&mut self) -> io::Result<()> {
        let (file, codec, limit) = (self.file, BlockCodec::new(self.identity), self.limit);
        let mut at = Some(FILE_HEADER_BYTES as u64);
        while let Some(start) = at.take() {
            let (offset, stopped) = each_block(file, &codec, start, limit, &mut |sealed, payload| {
                self.take(sealed, payload);
                true
            })?;
            let Some(error) = stopped else { break };
            each_block_beyond(file, &codec, offset + 1, limit, &mut |sealed, _| {
                at = Some(sealed.header.offset);
                false
            })?;
            self.stops.push(InvalidStretch { offset, end: at.unwrap_or(u64::MAX), error });
        }
        Ok(())
    }

    /// Takes a valid block. What is wrong within it does not keep from the next one.
    fn take(&mut self, sealed: &SealedHeader, payload: &[u8]) {
        self.found.blocks += 1;
        self.found.bytes = sealed.end_offset();
        self.end = sealed.header.end;
        let last_entry = sealed.header.epochs.map_or(Epoch::default(), |(_, last)| last);
        self.found.last_entry = self.found.last_entry.max(last_entry);
        self.synced_to = self.synced_to.max(sealed.header.synced_to);
        self.reserved_bytes = self.reserved_bytes.max(sealed.header.reserved_bytes.unwrap_or_default());
        match count_writes(self.identity, sealed, payload, &mut self.raw) {
            Ok(writes) => self.found.writes += writes,
            Err(kind) => self.found.corruptions.push((sealed.header.offset, kind)),
        }
    }

    /// Puts what could not be read in the place of what follows from it: a stop, if there is no valid block
    /// between both.
    fn blame(&mut self, unread: Vec<CorruptPlace>) {
        let counts_to = if self.end == BlockEnd::None { self.limit } else { self.found.bytes };
        for place in unread.into_iter().filter(|place| place.offset < Some(counts_to)) {
            self.stops.retain(|stop| stop.offset >= place.end() || place.offset >= Some(stop.end));
            self.unread.push((place.offset.unwrap_or_default(), place.kind));
        }
    }

    /// Returns what of all this is corruption.
    fn judge(self, expected: Expected, len: u64) -> CheckedFile {
        let BlockWalk { mut found, stops, unread, end, synced_to, reserved_bytes, .. } = self;
        let is_read = unread.is_empty();
        found.corruptions.extend(unread);
        let is_corruption = |stop: &InvalidStretch| match expected {
            Expected::End(_) | Expected::Bytes(_) => true,
            Expected::Written => stop.offset < synced_to,
        };
        let corruptions = stops.iter().filter(|stop| is_corruption(stop));
        found.corruptions.extend(corruptions.map(|stop| (stop.offset, CorruptionKind::Block(stop.error))));
        // Zeros are what a file that is written has behind its last block.
        let mut torn = stops.iter().filter(|stop| !is_corruption(stop) && stop.error != BlockError::Empty);
        found.torn = torn.next().map(|stop| (stop.offset, stop.error));
        match expected {
            Expected::End(wanted) if is_read && stops.is_empty() && end != wanted => {
                found.corruptions.push((found.bytes, CorruptionKind::NoEnd));
            }
            Expected::Bytes(bytes) if is_read && stops.is_empty() && found.bytes != bytes => {
                found.corruptions.push((found.bytes, CorruptionKind::NoEnd));
            }
            Expected::Written if is_read && end == BlockEnd::None && len < reserved_bytes => {
                found.corruptions.push((len, CorruptionKind::Cut { reserved_bytes }));
            }
            _ => {}
        }
        found.corruptions.sort_by_key(|(offset, _)| *offset);
        found
    }
}

/// Returns how many writes or records a valid block has.
fn count_writes(
    identity: &FileIdentity,
    sealed: &SealedHeader,
    payload: &[u8],
    raw: &mut Vec<u8>,
) -> Result<u64, CorruptionKind> {
    if payload.is_empty() {
        return Ok(0);
    }
    let raw = sealed.raw(payload, raw).map_err(CorruptionKind::Block)?;
    let (mut writes, mut count) = (BlockWrites::new(identity.file, sealed, raw), 0);
    while writes.next_checked()?.is_some() {
        count += 1;
    }
    Ok(count)
}

impl SuspectFiles<'_> {
    /// Returns every corruption of the file in which a replay came upon this one. A replay reads ahead by
    /// what headers claim, and may name a place that a damaged header has led it to.
    pub(super) fn corruptions_of(&self, corruption: &Corruption) -> Result<Vec<Corruption>, OpenError> {
        let checked = self.check_known(&corruption.file)?.unwrap_or_default();
        if checked.corruptions.is_empty() {
            return Ok(vec![corruption.clone()]);
        }
        let found = checked.corruptions.into_iter();
        Ok(found
            .map(|(offset, kind)| Corruption { offset: Some(offset), kind, ..corruption.clone() })
            .collect())
    }

    /// Returns what is in a file, if it is there and one of those that the manifest asks for.
    pub(super) fn check_known(&self, path: &Path) -> Result<Option<CheckedFile>, OpenError> {
        let Some((identity, expected)) = self.expected_file(path) else { return Ok(None) };
        if !exists(self.disk, path)? {
            return Ok(None);
        }
        let file = self.disk.open_read(path).map_err(OpenError::io("open", path))?;
        let unread = &|| self.disk.failures_in(path);
        let checked = check_blocks(&*file, &identity, 0, expected, unread);
        checked.map(Some).map_err(OpenError::io("read", path))
    }

    /// Returns what the file of this path has to be, if it is one of those that the manifest asks for.
    fn expected_file(&self, path: &Path) -> Option<(FileIdentity, Expected)> {
        if let Some(checkpoint) = &self.manifest.checkpoint
            && let Some(part) = self.part_at(path)
        {
            let identity = part_identity(self.manifest, checkpoint.id, part);
            return Some((identity, Expected::End(BlockEnd::Part)));
        }
        let (manifest, name) = (self.manifest, LogFileName::of(path)?);
        let is_this = |file: &&EarlierFile| file.name == name && self.log_path(&file.directory, name) == path;
        let expected = match manifest.earlier.iter().find(is_this) {
            Some(file) => file.valid_bytes.map_or(Expected::End(BlockEnd::Seal), Expected::Bytes),
            None if name.generation != manifest.generation => return None,
            None if name.is_sealed() => Expected::End(BlockEnd::Seal),
            None => Expected::Written,
        };
        Some((manifest.identity_of(name)?, expected))
    }
}
