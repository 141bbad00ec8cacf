//! The threads that read ahead of those that replay.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Mutex, PoisonError};

use ensilo_disk::{Checksum, Disk};
use ensilo_epoch::Epoch;

use crate::format::{BlockEnd, EpochWidth};
use crate::recovery::block_stream::{BlockStream, Chunk, Next};
use crate::recovery::corruption::CorruptionKind;
use crate::recovery::error::OpenError;
use crate::recovery::file_access::open;
use crate::recovery::log_file::misnamed;
use crate::recovery::replay_file::{Extent, ReplayFile};

/// A chunk on its way from the reader to a worker.
pub(super) struct ReadChunk {
    pub(super) file: usize,
    pub(super) chunk: Chunk,
}

/// Reads files and sends their blocks, by what the headers claim; checksums and contents are checked by the
/// receiver.
pub(super) struct Reader<'d> {
    disk: &'d dyn Disk,
    files: &'d [ReplayFile],
    /// The file that the next thread without one reads.
    next: AtomicUsize,
    /// Chunks that were used, and can be again.
    spare: Mutex<Receiver<Chunk>>,
}

impl<'d> Reader<'d> {
    pub(super) fn new(
        disk: &'d dyn Disk,
        files: &'d [ReplayFile],
        spare: Mutex<Receiver<Chunk>>,
    ) -> Reader<'d> {
        Reader { disk, files, next: AtomicUsize::new(0), spare }
    }

    /// Reads files that no other thread reads until there are no more, or until `is_over`.
    pub(super) fn read_files(
        &self,
        work: &SyncSender<ReadChunk>,
        is_over: impl Fn() -> bool,
    ) -> Result<(), OpenError> {
        // Relaxed: the numbers need only differ.
        while let number = self.next.fetch_add(1, Ordering::Relaxed)
            && let Some(file) = self.files.get(number)
            && !is_over()
        {
            self.read_file(number, file, work, &is_over)?;
        }
        Ok(())
    }

    /// Returns a chunk to read into.
    fn chunk(&self) -> Chunk {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).try_recv().unwrap_or_default()
    }

    fn read_file(
        &self,
        number: usize,
        replayed: &ReplayFile,
        work: &SyncSender<ReadChunk>,
        is_over: &impl Fn() -> bool,
    ) -> Result<(), OpenError> {
        let path = &replayed.path;
        let (file, len) = open(self.disk, path)?;
        let limit = match replayed.extent {
            Extent::Bytes(bytes) | Extent::Part { bytes, .. } => bytes,
            Extent::Seal => len,
        };
        if limit > len {
            return Err(replayed.corruption(Some(len), CorruptionKind::NoEnd));
        }
        let mut stream = BlockStream::new(&*file, limit);
        let mut digest = Checksum::default();
        let (mut end, mut last_entry) = (BlockEnd::None, Epoch::default());
        while end == BlockEnd::None && !is_over() {
            let mut chunk = self.chunk();
            match stream.next(&mut chunk).map_err(OpenError::io("read", path))? {
                Next::Blocks => {
                    if replayed.is_checkpoint() {
                        chunk.blocks().for_each(|(_, block)| digest.update(&block[4..8]));
                    }
                    end = chunk.end;
                    last_entry = last_entry.max(last_entry_of(&chunk, replayed.identity.epochs));
                    if work.send(ReadChunk { file: number, chunk }).is_err() {
                        // All workers are gone: they have panicked, which the scope of the threads passes on.
                        return Ok(());
                    }
                }
                Next::Stopped(error) => {
                    return Err(replayed.corruption(Some(stream.offset()), CorruptionKind::Block(error)));
                }
                Next::End => break,
            }
        }
        if is_over() {
            return Ok(());
        }
        check_end(replayed, end, stream.offset(), digest.value())?;
        match replayed.unproved_name.and_then(|name| misnamed(name, replayed.identity.epochs, last_entry)) {
            Some(kind) => Err(replayed.corruption(None, kind)),
            None => Ok(()),
        }
    }
}

/// Returns the last epoch of an entry in these blocks, as their headers say.
fn last_entry_of(chunk: &Chunk, epochs: EpochWidth) -> Epoch {
    chunk.blocks().map(|(claim, _)| claim.last_entry(epochs)).max().unwrap_or_default()
}

/// Checks whether the blocks of a file ended where and how they have to.
fn check_end(file: &ReplayFile, end: BlockEnd, offset: u64, found: u32) -> Result<(), OpenError> {
    let is_right = match file.extent {
        Extent::Bytes(bytes) => offset == bytes,
        Extent::Seal => end == BlockEnd::Seal,
        Extent::Part { bytes, digest, .. } => {
            if end == BlockEnd::Part && offset == bytes && digest != found {
                return Err(file.corruption(None, CorruptionKind::NotAsInstalled));
            }
            end == BlockEnd::Part && offset == bytes
        }
    };
    if is_right { Ok(()) } else { Err(file.corruption(Some(offset), CorruptionKind::NoEnd)) }
}
