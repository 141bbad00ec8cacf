//! What a replaying thread does with the blocks that it gets.

use ensilo_epoch::Epoch;

use crate::format::{BlockCodec, BlockEnd, SealedHeader, Write, epoch_of};
use crate::recovery::block_stream::Chunk;
use crate::recovery::block_writes::BlockWrites;
use crate::recovery::corruption::CorruptionKind;
use crate::recovery::error::{OpenError, ReplayError};
use crate::recovery::replay_file::ReplayFile;

/// Takes what is replayed.
///
/// The order is free: writes come in any order and from many threads at once. To say what the rows are in the
/// end:
/// - a put or a delete is a *base* of its key; the base with the largest TID wins; the same put may come
///   twice;
/// - a patch sets single words of the row; each word takes the value of the patch with the largest TID among
///   those with a larger TID than the base; patches with smaller TIDs than the base are of no effect;
/// - a patch without a base is corruption, which only the target of the replay can see, at the end.
///
/// A deletion must be remembered until the end, or an older put would revive the key.
///
/// What comes is roughly in the order of epochs, though, and [`Replay::fold`] says how far everything has come: words that were set before need
/// their TIDs no longer.
pub trait Replay: Sync {
    /// What one thread needs for itself.
    type Worker<'r>
    where
        Self: 'r;

    /// A worker, for the calling thread.
    fn worker(&self) -> Self::Worker<'_>;

    /// Applies writes.
    ///
    /// # Errors
    /// [`ReplayError`], which ends the replay.
    fn apply(&self, worker: &mut Self::Worker<'_>, writes: &[Write<'_>]) -> Result<(), ReplayError>;

    /// Takes note, between two calls of [`Replay::apply`], that all writes of epochs before `frontier` were applied: none of them comes any
    /// more, to no worker. It is mostly later than that of the call before, and may be earlier.
    ///
    /// # Errors
    /// [`ReplayError`], which ends the replay.
    fn fold(&self, _worker: &mut Self::Worker<'_>, _frontier: Epoch) -> Result<(), ReplayError> {
        Ok(())
    }
}

/// So many writes are handed over together.
const BATCH_LEN: usize = 256;

/// Applies the blocks that one thread gets.
pub(crate) struct Applier<'r, R: Replay + 'r> {
    target: &'r R,
    worker: R::Worker<'r>,
    /// The payload of the block, if it was compressed.
    raw: Vec<u8>,
}

impl<'r, R: Replay> Applier<'r, R> {
    pub(crate) fn new(target: &'r R) -> Self {
        Applier { target, worker: target.worker(), raw: Vec::new() }
    }

    /// Says that everything before `frontier` was applied; `file` is what comes next.
    pub(super) fn fold(&mut self, file: &ReplayFile, frontier: Epoch) -> Result<(), OpenError> {
        let folded = self.target.fold(&mut self.worker, frontier);
        folded.map_err(|error| OpenError::Replay { file: file.path.clone(), error })
    }

    /// Applies what counts of these blocks, which have no entry of an epoch before `frontier`. Returns how many writes, or records of a
    /// checkpoint, that is.
    pub(crate) fn apply_chunk(
        &mut self,
        file: &ReplayFile,
        chunk: &Chunk,
        frontier: Epoch,
    ) -> Result<u64, OpenError> {
        let codec = BlockCodec::new(&file.identity);
        let mut applied = 0;
        let mut end = chunk.offset;
        for (_, bytes) in chunk.blocks() {
            let offset = end;
            let corrupt = |kind| file.corruption(Some(offset), kind);
            let at_block = |error| corrupt(CorruptionKind::Block(error));
            let (sealed, payload) = codec.check(bytes, offset).map_err(at_block)?;
            end = sealed.end_offset();
            if payload.is_empty() || is_skipped(file, &sealed) {
                continue;
            }
            // An entry that everybody takes for one that was applied would leave words of others in its place.
            if sealed.header.epochs.is_some_and(|(first, _)| first < frontier) {
                return Err(corrupt(CorruptionKind::Epoch));
            }
            let raw = sealed.raw(&bytes[payload], &mut self.raw).map_err(at_block)?;
            let mut batch = WriteBatch::new(file, self.target, &mut self.worker);
            let mut writes = BlockWrites::new(file.identity.file, &sealed, raw);
            while let Some(write) = writes.next_checked().map_err(corrupt)? {
                let epoch = epoch_of(write.tid);
                if file.is_checkpoint() || epoch >= file.first_epoch && epoch <= file.last_epoch {
                    batch.push(write)?;
                }
            }
            applied += batch.finish()?;
        }
        Ok(applied)
    }
}

/// Returns whether no entry of a block counts. The last block of a part has no records.
fn is_skipped(file: &ReplayFile, sealed: &SealedHeader) -> bool {
    if file.is_checkpoint() {
        return sealed.header.end != BlockEnd::None;
    }
    sealed.header.epochs.is_some_and(|(first, last)| last < file.first_epoch || first > file.last_epoch)
}

/// Writes that are handed over together.
struct WriteBatch<'t, 'r, 'b, R: Replay + 'r> {
    file: &'t ReplayFile,
    target: &'r R,
    worker: &'t mut R::Worker<'r>,
    writes: Vec<Write<'b>>,
    applied: u64,
}

impl<'t, 'r, 'b, R: Replay> WriteBatch<'t, 'r, 'b, R> {
    fn new(file: &'t ReplayFile, target: &'r R, worker: &'t mut R::Worker<'r>) -> Self {
        WriteBatch { file, target, worker, writes: Vec::with_capacity(BATCH_LEN), applied: 0 }
    }

    #[inline]
    fn push(&mut self, write: Write<'b>) -> Result<(), OpenError> {
        self.writes.push(write);
        if self.writes.len() == BATCH_LEN { self.hand_over() } else { Ok(()) }
    }

    fn hand_over(&mut self) -> Result<(), OpenError> {
        self.target
            .apply(self.worker, &self.writes)
            .map_err(|error| OpenError::Replay { file: self.file.path.clone(), error })?;
        self.applied += self.writes.len() as u64;
        self.writes.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<u64, OpenError> {
        self.hand_over()?;
        Ok(self.applied)
    }
}
