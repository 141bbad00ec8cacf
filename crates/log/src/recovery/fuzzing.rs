//! The readers of one file, for the oracles in `verification/oracles`: what they find is held against what
//! `docs/format.md` says.
//!
//! They are compiled with the feature `fuzzing` alone, and are not part of the interface of this crate.

use std::io;
use std::path::PathBuf;

use ensilo_disk::File;
use ensilo_epoch::Epoch;

use super::block_stream::{BlockStream, Chunk, Next};
use super::corruption::DataLoss;
use super::dump::{Dumped, dump_blocks};
use super::error::OpenError;
use super::file_check::{CheckedFile, Expected, check_blocks};
use super::replay::{Applier, Replay};
use super::replay_file::{Extent, ReplayFile};
use super::scan::{Needed, needed_up_to, scan};
use crate::format::{BlockCodec, BlockEnd, ChangeHistory, FILE_HEADER_BYTES, FileHeader, FileIdentity};

/// What a scan of a log file says.
#[derive(Debug, Clone, Copy)]
pub struct Scanned {
    /// The end of the last block that counts.
    pub valid_end: u64,
    /// What that block ends.
    pub end: BlockEnd,
    /// The last mark that counts, and the end of its block.
    pub mark: Option<(Epoch, u64)>,
    /// No entry that counts has a later epoch.
    pub last_entry: Epoch,
    /// How long the file was made, as its blocks say.
    pub reserved_bytes: u64,
    /// Whether there is any valid block.
    pub has_blocks: bool,
}

/// Scans a log file.
///
/// # Errors
/// Those of reading it.
pub fn scan_file(file: &dyn File, identity: &FileIdentity) -> io::Result<Scanned> {
    let found = scan(file, &BlockCodec::new(identity))?;
    let (valid_end, end, mark) = (found.valid_end, found.end, found.mark);
    let (last_entry, reserved_bytes) = (found.last_entry, found.reserved_bytes);
    let has_blocks = found.evidence.has_blocks;
    Ok(Scanned { valid_end, end, mark, last_entry, reserved_bytes, has_blocks })
}

/// Reads a history of changes, and returns it as it would be written; `None` if these bytes are none.
#[must_use]
pub fn change_history_again(bytes: &[u8]) -> Option<Vec<u8>> {
    ChangeHistory::decode(bytes).ok().map(|history| history.encode())
}

/// Returns how much of a log file a backup takes for everything up to `epoch`; `None` if it is too short.
///
/// # Errors
/// Those of reading it.
pub fn needed_bytes(file: &dyn File, identity: &FileIdentity, epoch: Epoch) -> io::Result<Option<u64>> {
    match needed_up_to(file, &BlockCodec::new(identity), epoch)?.0 {
        Needed::To(end) | Needed::Whole(end) => Ok(Some(end)),
        Needed::TooShort => Ok(None),
    }
}

/// Shows what is in a file with this header.
///
/// # Errors
/// Those of reading it.
pub fn dump_file(file: &dyn File, header: &FileHeader, out: &mut dyn FnMut(Dumped<'_>)) -> io::Result<()> {
    dump_blocks(file, file.len_bytes()?, header, out)
}

/// Checks a file with this header: of which so many bytes are valid, or that ends with such a block, or that
/// is as a crash may have left it.
///
/// # Errors
/// Those of reading it.
pub fn check_file(
    file: &dyn File,
    header: &FileHeader,
    valid_bytes: Option<u64>,
    end: BlockEnd,
) -> io::Result<CheckedFile> {
    let expected = match (valid_bytes, end) {
        (Some(bytes), _) => Expected::Bytes(bytes),
        (None, BlockEnd::None) => Expected::Written,
        (None, end) => Expected::End(end),
    };
    check_blocks(file, &header.identity, header.reserved_bytes, expected, &Vec::new)
}

/// Replays the first `valid_bytes` bytes of a file. Returns how far it came.
///
/// # Errors
/// [`OpenError`] at the first place that cannot be replayed.
pub fn apply_file<R: Replay>(
    file: &dyn File,
    header: &FileHeader,
    valid_bytes: u64,
    target: &R,
) -> Result<u64, OpenError> {
    let replayed = ReplayFile {
        path: PathBuf::new(),
        identity: header.identity,
        extent: Extent::Bytes(valid_bytes),
        first_epoch: Epoch::default(),
        last_epoch: Epoch::MAX,
        unproved_name: None,
        bytes: valid_bytes,
        loss: DataLoss::Everything,
    };
    let mut applier = Applier::new(target);
    let (mut stream, mut chunk) =
        (BlockStream::starting_at(file, FILE_HEADER_BYTES as u64, valid_bytes), Chunk::default());
    while let Next::Blocks = stream.next(&mut chunk).map_err(OpenError::io("read", &replayed.path))? {
        applier.apply_chunk(&replayed, &chunk, Epoch::default())?;
        if chunk.end != BlockEnd::None {
            break;
        }
    }
    Ok(stream.offset())
}
