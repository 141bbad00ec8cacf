//! In which order the files of a replay are read, and how far everything in them has come.
//!
//! Readers go on, a chunk at a time, where the oldest entries are to be expected: the checkpoint comes first, then the logs of all loggers side
//! by side. So what is on its way to be applied lies within a few epochs, but for what readers have before them in a log of one logger:
//! each has a file, one of every four threads reads, and what the later files have is folded behind what the earlier ones have.
//!
//! # Terms
//! - **frontier** of a file: what is not sent yet of it has no earlier entry. A block says which epochs were durable when it was written:
//!   their entries had been written by then. It is zero for a part of a checkpoint, and later than every epoch when a file is at its end.
//! - **frontier** of a chunk: the least one of all files before it is sent. No chunk that is sent later has an earlier entry.
//! - **frontier** of a worker: that of its last chunk. What it applies from then on is not earlier, so that all before the least one of all
//!   workers was applied.
//!
//! # Memory ordering
//! | edge | from | to | what it carries |
//! |---|---|---|---|
//! | frontier | [`WorkerFrontiers::set`] Release | [`WorkerFrontiers::least`] Acquire | what a worker has applied before |

use std::sync::{Mutex, MutexGuard, PoisonError};

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;
use ensilo_sync::CachePadded;
use ensilo_sync::atomic::{AtomicU64, Ordering};

use super::reader::Reading;
use crate::format::{BLOCK_HEADER_BYTES, BlockClaim, BlockCodec, FILE_HEADER_BYTES};
use crate::recovery::replay_file::ReplayFile;

/// The files of a replay, of each of which at most one reader reads at a time.
pub(super) struct ReadOrder {
    files: Mutex<Vec<FileState>>,
}

struct FileState {
    frontier: Epoch,
    /// `None` while a reader has it, and when the file is at its end.
    reading: Option<Reading>,
}

impl ReadOrder {
    /// Returns the order for `files`, of which those with the same frontier are read in the order in which they stand.
    pub(super) fn new(disk: &dyn Disk, files: &[ReplayFile]) -> ReadOrder {
        let state = |file: &ReplayFile| {
            let frontier = first_frontier(disk, file).unwrap_or_default();
            FileState { frontier, reading: Some(Reading::default()) }
        };
        ReadOrder { files: Mutex::new(files.iter().map(state).collect()) }
    }

    /// Takes the file that is to be read on, unless others have all that are left. Its number comes with it.
    pub(super) fn take(&self) -> Option<(usize, Reading)> {
        let mut files = self.lock();
        let waiting = files.iter_mut().enumerate().filter(|(_, file)| file.reading.is_some());
        let (number, file) = waiting.min_by_key(|(_, file)| file.frontier)?;
        Some((number, file.reading.take()?))
    }

    /// Gives a file back after all that was read of it was sent.
    pub(super) fn put_back(&self, number: usize, frontier: Epoch, reading: Reading) {
        let file = &mut self.lock()[number];
        file.frontier = file.frontier.max(frontier);
        file.reading = Some(reading);
    }

    /// Takes note that a file is at its end.
    pub(super) fn end(&self, number: usize) {
        self.lock()[number].frontier = Epoch::MAX;
    }

    /// Returns the least frontier of all files.
    pub(super) fn frontier(&self) -> Epoch {
        self.lock().iter().map(|file| file.frontier).min().unwrap_or(Epoch::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<FileState>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the frontier of a file of which nothing was read: what its first block says, if that is whole. A file that is damaged there, or cannot be
/// read, is read early, so that its reader reports it before others are folded without what it has.
fn first_frontier(disk: &dyn Disk, file: &ReplayFile) -> Option<Epoch> {
    if file.is_checkpoint() {
        return None;
    }
    let offset = FILE_HEADER_BYTES as u64;
    let open = disk.open_read(&file.path).ok()?;
    let mut head = [0; BLOCK_HEADER_BYTES];
    open.read_at(offset, &mut head).ok()?;
    let len_bytes = open.len_bytes().ok()?;
    let is_possible = |claim: &BlockClaim| claim.offset == offset && claim.end_offset() <= len_bytes;
    let claim = BlockClaim::read(&head).ok().filter(is_possible)?;
    let mut block = vec![0; claim.bytes];
    open.read_at(offset, &mut block).ok()?;
    BlockCodec::new(&file.identity).check(&block, offset).ok()?;
    Some(claim.frontier(file.identity.epochs))
}

/// How far each worker has come.
pub(super) struct WorkerFrontiers(Vec<CachePadded<AtomicU64>>);

impl WorkerFrontiers {
    pub(super) fn new(workers: usize) -> WorkerFrontiers {
        WorkerFrontiers((0..workers).map(|_| CachePadded::new(AtomicU64::new(0))).collect())
    }

    /// Sets that of a worker, which has applied all that it got before.
    pub(super) fn set(&self, worker: usize, frontier: Epoch) {
        // Release: [frontier] who folds after reading it has all that this worker has applied.
        self.0[worker].store(frontier.get(), Ordering::Release);
    }

    /// Returns the least one.
    pub(super) fn least(&self) -> Epoch {
        // Acquire: [frontier].
        let frontiers = self.0.iter().map(|frontier| frontier.load(Ordering::Acquire));
        Epoch::new(frontiers.min().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_frontier_is_that_of_the_last_worker() {
        let frontiers = WorkerFrontiers::new(3);
        for (worker, frontier, least) in [(0, 7, 0), (2, 5, 0), (1, 6, 5), (2, u64::MAX, 6)] {
            frontiers.set(worker, Epoch::new(frontier));
            assert_eq!(frontiers.least(), Epoch::new(least));
        }
    }
}
