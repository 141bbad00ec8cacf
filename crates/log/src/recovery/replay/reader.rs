//! The threads that read ahead of those that replay.

use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Mutex, PoisonError};

use ensilo_disk::{Checksum, Disk};
use ensilo_epoch::Epoch;

use super::order::ReadOrder;
use crate::format::{BlockEnd, FILE_HEADER_BYTES};
use crate::recovery::block_stream::{BlockStream, Chunk, Next};
use crate::recovery::corruption::CorruptionKind;
use crate::recovery::error::OpenError;
use crate::recovery::file_access::{OpenFile, open};
use crate::recovery::log_file::misnamed;
use crate::recovery::replay_file::{Extent, ReplayFile};

/// A chunk on its way from the reader to a worker.
pub(super) struct ReadChunk {
    pub(super) file: usize,
    pub(super) chunk: Chunk,
    /// Neither it nor what is sent after it has an entry of an earlier epoch.
    pub(super) frontier: Epoch,
}

/// Reads files and sends their blocks, by what the headers claim; checksums and contents are checked by the
/// receiver.
pub(super) struct Reader<'d> {
    disk: &'d dyn Disk,
    files: &'d [ReplayFile],
    order: ReadOrder,
    /// Chunks that were used, and can be again.
    spare: Mutex<Receiver<Chunk>>,
}

/// How far a file was read.
pub(super) struct Reading {
    /// The file and where it has to end, once it was opened.
    open: Option<OpenFile>,
    offset: u64,
    /// What the last block ends.
    end: BlockEnd,
    last_entry: Epoch,
    /// Of the checksums, in a part of a checkpoint.
    digest: Checksum,
}

impl Default for Reading {
    fn default() -> Self {
        let (end, last_entry) = (BlockEnd::None, Epoch::default());
        Reading { open: None, offset: FILE_HEADER_BYTES as u64, end, last_entry, digest: Checksum::default() }
    }
}

impl<'d> Reader<'d> {
    pub(super) fn new(
        disk: &'d dyn Disk,
        files: &'d [ReplayFile],
        spare: Mutex<Receiver<Chunk>>,
    ) -> Reader<'d> {
        Reader { disk, files, order: ReadOrder::new(disk, files), spare }
    }

    /// Reads files until there are no more that no other thread reads, or until `is_over`.
    pub(super) fn read_files(
        &self,
        work: &SyncSender<ReadChunk>,
        is_over: impl Fn() -> bool,
    ) -> Result<(), OpenError> {
        while !is_over()
            && let Some((number, mut reading)) = self.order.take()
        {
            let file = &self.files[number];
            let Some(chunk) = self.read_chunk(file, &mut reading)? else {
                reading.check_end(file)?;
                self.order.end(number);
                continue;
            };
            let frontier = reading.take_claims(file, &chunk);
            let chunk = ReadChunk { file: number, chunk, frontier: self.order.frontier() };
            if work.send(chunk).is_err() {
                // All workers are gone: they have panicked, which the scope of the threads passes on, or never started.
                return Ok(());
            }
            self.order.put_back(number, frontier, reading);
        }
        Ok(())
    }

    /// Reads what comes next in a file, if that is not at its end.
    fn read_chunk(&self, replayed: &ReplayFile, reading: &mut Reading) -> Result<Option<Chunk>, OpenError> {
        let (file, limit) = match &mut reading.open {
            Some(open) => open,
            closed => closed.insert(open_to_limit(self.disk, replayed)?),
        };
        if reading.end != BlockEnd::None {
            return Ok(None);
        }
        let mut chunk =
            self.spare.lock().unwrap_or_else(PoisonError::into_inner).try_recv().unwrap_or_default();
        let mut stream = BlockStream::starting_at(&**file, reading.offset, *limit);
        let next = stream.next(&mut chunk).map_err(OpenError::io("read", &replayed.path))?;
        reading.offset = stream.offset();
        match next {
            Next::Blocks => Ok(Some(chunk)),
            Next::Stopped(error) => {
                Err(replayed.corruption(Some(reading.offset), CorruptionKind::Block(error)))
            }
            Next::End => Ok(None),
        }
    }
}

impl Reading {
    /// Takes in what the blocks of the next chunk claim. Returns the file's frontier behind it.
    fn take_claims(&mut self, file: &ReplayFile, chunk: &Chunk) -> Epoch {
        self.end = chunk.end;
        let (epochs, is_checkpoint) = (file.identity.epochs, file.is_checkpoint());
        let mut frontier = Epoch::default();
        for (claim, block) in chunk.blocks() {
            self.last_entry = self.last_entry.max(claim.last_entry(epochs));
            if is_checkpoint {
                self.digest.update(&block[4..8]);
            } else {
                frontier = claim.frontier(epochs);
            }
        }
        frontier
    }

    /// Checks whether the blocks of a file ended where and how they have to, and as its name says.
    fn check_end(&self, file: &ReplayFile) -> Result<(), OpenError> {
        let Reading { end, offset, .. } = *self;
        let is_right = match file.extent {
            Extent::Bytes(bytes) => offset == bytes,
            Extent::Seal => end == BlockEnd::Seal,
            Extent::Part { bytes, digest, .. } => {
                if end == BlockEnd::Part && offset == bytes && digest != self.digest.value() {
                    return Err(file.corruption(None, CorruptionKind::NotAsInstalled));
                }
                end == BlockEnd::Part && offset == bytes
            }
        };
        if !is_right {
            return Err(file.corruption(Some(offset), CorruptionKind::NoEnd));
        }
        match file.unproved_name.and_then(|name| misnamed(name, file.identity.epochs, self.last_entry)) {
            Some(kind) => Err(file.corruption(None, kind)),
            None => Ok(()),
        }
    }
}

/// Opens a file, and returns where it has to end.
fn open_to_limit(disk: &dyn Disk, replayed: &ReplayFile) -> Result<OpenFile, OpenError> {
    let (file, len) = open(disk, &replayed.path)?;
    let limit = match replayed.extent {
        Extent::Bytes(bytes) | Extent::Part { bytes, .. } => bytes,
        Extent::Seal => len,
    };
    if limit > len {
        return Err(replayed.corruption(Some(len), CorruptionKind::NoEnd));
    }
    Ok((file, limit))
}
