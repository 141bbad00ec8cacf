//! Looking into a file.

use std::path::Path;

use ensilo_disk::{Disk, File};

use super::block_writes::BlockWrites;
use super::corruption::{CorruptPlace, CorruptionKind, DataLoss};
use super::error::OpenError;
use super::file_names::{MANIFEST, MANIFEST_COPY};
use super::forgiving::ForgivingDisk;
use super::log_file::open_with_head;
use super::manifest_file::{kind_of, read_file};
use super::scan::each_block;
use crate::format::{
    BlockCodec, BlockEnd, BlockError, FILE_HEADER_BYTES, FileHeader, FileRole, HeaderError, Manifest,
    ManifestError, SealedHeader, Write,
};

/// What comes next in a file.
#[derive(Debug)]
#[non_exhaustive]
pub enum Dumped<'a> {
    /// The file is a manifest, and this is all of it.
    Manifest(&'a Manifest),
    /// The header of a log file or a checkpoint's part.
    Header(&'a FileHeader),
    /// A block; what is in it follows.
    Block(&'a SealedHeader),
    /// A write of a transaction. Those with the same TID that follow each other are one transaction's.
    Write(&'a Write<'a>),
    /// A record of a checkpoint, as the put that it stands for.
    Record(&'a Write<'a>),
    /// Something is wrong with the block at this offset.
    Corruption {
        /// Where.
        offset: u64,
        /// What.
        kind: CorruptionKind,
    },
    /// There are no more blocks: the file ends here, or nothing was written from here on.
    End {
        /// Where.
        offset: u64,
    },
}

/// Shows what is in a file of a database, which may be open. Ends at the first place where there is no valid
/// block. A log file that was cut is shown as damaged at its end.
///
/// # Errors
/// [`OpenError`] when the system fails, or the file has no header that makes sense.
pub fn dump(disk: &dyn Disk, path: &Path, out: &mut dyn FnMut(Dumped<'_>)) -> Result<(), OpenError> {
    let disk = &ForgivingDisk::new(disk);
    let ((file, len), head) = open_with_head(disk, path)?;
    let corrupt = |kind| OpenError::corrupt(path, Some(0), kind, DataLoss::Everything);
    match FileHeader::decode(&head) {
        Ok(header) => {
            out(Dumped::Header(&header));
            let out = &mut |dumped: Dumped<'_>| out(named(disk, path, dumped));
            dump_blocks(&*file, len, &header, out).map_err(OpenError::io("read", path))
        }
        Err(error) => match Manifest::decode(&read_file(disk, path)?) {
            Ok(manifest) => {
                out(Dumped::Manifest(&manifest));
                Ok(())
            }
            // Neither begins as a file of its kind does: the name says which it was.
            Err(ManifestError::Head(HeaderError::Magic))
                if !path.ends_with(MANIFEST) && !path.ends_with(MANIFEST_COPY) =>
            {
                Err(corrupt(CorruptionKind::Header(error)))
            }
            Err(error) => Err(corrupt(kind_of(error))),
        },
    }
}

/// Returns `dumped`, but for a block of which not all could be read: then the first place that could not.
fn named<'a>(disk: &ForgivingDisk<'_>, path: &Path, dumped: Dumped<'a>) -> Dumped<'a> {
    let Dumped::Corruption { offset, kind: CorruptionKind::Block(_) } = dumped else { return dumped };
    let unread = disk.failures_in(path).into_iter();
    let place =
        |CorruptPlace { offset, kind, .. }: CorruptPlace| Some(Dumped::Corruption { offset: offset?, kind });
    unread.filter(|failure| failure.end() > offset).find_map(place).unwrap_or(dumped)
}

pub(super) fn dump_blocks(
    file: &dyn File,
    len: u64,
    header: &FileHeader,
    out: &mut dyn FnMut(Dumped<'_>),
) -> std::io::Result<()> {
    let codec = BlockCodec::new(&header.identity);
    let mut reserved_bytes = header.reserved_bytes;
    let (mut end, mut malformed) = (BlockEnd::None, None);
    let (offset, stopped) =
        each_block(file, &codec, FILE_HEADER_BYTES as u64, len, &mut |sealed, payload| {
            end = sealed.header.end;
            reserved_bytes = reserved_bytes.max(sealed.header.reserved_bytes.unwrap_or_default());
            malformed =
                dump_block(header, sealed, payload, out).err().map(|kind| (sealed.header.offset, kind));
            malformed.is_none()
        })?;
    let corruption = match stopped {
        _ if malformed.is_some() => malformed,
        Some(error @ BlockError::Checksum) => Some((offset, CorruptionKind::Block(error))),
        _ if end == BlockEnd::None && len < reserved_bytes => {
            Some((len, CorruptionKind::Cut { reserved_bytes }))
        }
        None | Some(BlockError::Empty) => None,
        Some(error) => Some((offset, CorruptionKind::Block(error))),
    };
    out(match corruption {
        Some((offset, kind)) => Dumped::Corruption { offset, kind },
        None => Dumped::End { offset },
    });
    Ok(())
}

fn dump_block(
    header: &FileHeader,
    sealed: &SealedHeader,
    payload: &[u8],
    out: &mut dyn FnMut(Dumped<'_>),
) -> Result<(), CorruptionKind> {
    out(Dumped::Block(sealed));
    let mut scratch = Vec::new();
    let raw = sealed.raw(payload, &mut scratch).map_err(CorruptionKind::Block)?;
    let role = header.identity.file;
    let mut writes = BlockWrites::new(role, sealed, raw);
    while let Some(write) = writes.next_write().map_err(CorruptionKind::Entry)? {
        out(match role {
            FileRole::Log { .. } => Dumped::Write(&write),
            FileRole::Checkpoint { .. } => Dumped::Record(&write),
        });
    }
    Ok(())
}
