//! The thread that reads ahead of those that replay.

use std::sync::mpsc::{Receiver, SyncSender};

use crc_fast::{CrcAlgorithm, Digest};
use ensilo_disk::Disk;

use super::super::block_stream::{BlockStream, Chunk, Next};
use super::super::error::{Finding, OpenError};
use super::{Extent, ReplayFile, Work};
use crate::format::BlockEnd;

/// Reads files and sends their blocks, by what the headers claim; checksums and contents are checked by whoever receives them.
pub(super) struct Reader<'d> {
    disk: &'d dyn Disk,
    work: SyncSender<Work>,
    /// Chunks that were used, and can be again.
    spare: Receiver<Chunk>,
}

impl<'d> Reader<'d> {
    pub(super) fn new(disk: &'d dyn Disk, work: SyncSender<Work>, spare: Receiver<Chunk>) -> Reader<'d> {
        Reader { disk, work, spare }
    }

    /// Reads all files, or until `is_over`.
    pub(super) fn read_files(
        &self,
        files: &[ReplayFile],
        is_over: impl Fn() -> bool,
    ) -> Result<(), OpenError> {
        for (number, file) in files.iter().enumerate() {
            self.read_file(number, file, &is_over)?;
            if is_over() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn read_file(
        &self,
        number: usize,
        replayed: &ReplayFile,
        is_over: &impl Fn() -> bool,
    ) -> Result<(), OpenError> {
        let path = &replayed.path;
        let file = self.disk.open(path).map_err(OpenError::io("open", path))?;
        let len = file.len_bytes().map_err(OpenError::io("read", path))?;
        let limit = match replayed.extent {
            Extent::Bytes(bytes) | Extent::Part { bytes, .. } => bytes,
            Extent::Seal => len,
        };
        if limit > len {
            return Err(replayed.damage(Some(len), Finding::NoEnd));
        }
        let mut stream = BlockStream::new(&*file, limit);
        let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
        let mut end = BlockEnd::None;
        while end == BlockEnd::None && !is_over() {
            let mut chunk = self.spare.try_recv().unwrap_or_default();
            match stream.next(&mut chunk).map_err(OpenError::io("read", path))? {
                Next::Blocks => {
                    if replayed.is_checkpoint() {
                        chunk.blocks().for_each(|(_, block)| digest.update(&block[4..8]));
                    }
                    end = chunk.end;
                    if self.work.send(Work { file: number, chunk }).is_err() {
                        // All workers are gone: one of them has panicked, which the scope of the threads passes on.
                        return Ok(());
                    }
                }
                Next::Stopped(damage) => {
                    return Err(replayed.damage(Some(stream.offset()), Finding::Block(damage)));
                }
                Next::End => break,
            }
        }
        if is_over() { Ok(()) } else { check_end(replayed, end, stream.offset(), digest.finalize() as u32) }
    }
}

/// Whether the blocks of a file ended where and how they have to.
fn check_end(file: &ReplayFile, end: BlockEnd, offset: u64, found: u32) -> Result<(), OpenError> {
    let is_right = match file.extent {
        Extent::Bytes(bytes) => offset == bytes,
        Extent::Seal => end == BlockEnd::Seal,
        Extent::Part { bytes, digest, .. } => {
            if end == BlockEnd::Part && offset == bytes && digest != found {
                return Err(file.damage(None, Finding::NotAsInstalled));
            }
            end == BlockEnd::Part && offset == bytes
        }
    };
    if is_right { Ok(()) } else { Err(file.damage(Some(offset), Finding::NoEnd)) }
}
