//! Invented primary keys: ids that no other row of the database has, without a counter that all workers
//! share.
//!
//! A worker takes a block of ids from the database and hands them out one by one. The block stays with the
//! worker; what is left of it when the worker goes is never used. Ids of one worker rise, ids of two workers
//! lie in different blocks, hence in different nodes of the table's tree.
//!
//! # Reopening
//! The rows with the largest ids may be gone when a database is opened again, so the ids that were handed out
//! cannot be found in the tables. They follow from the epochs: the ids of epoch `e` are those from `e * 2^16`
//! on, [`BLOCKS_PER_EPOCH`] blocks, and an id is handed out only when the global epoch has come to its own.
//! Whoever commits a row with it then does so in this epoch or a later one; and an opening begins in an epoch
//! after every one on disk, and with that epoch's ids. Where ids go faster than epochs, the epoch is moved
//! on: by one while transactions run, and at once at an opening that finds rows with larger ids, as rows of another database
//! may have ([`DynamicTable::insert_with_row_id`](crate::DynamicTable)). A database in memory is not opened again, and does without.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use ensilo_epoch::{Epoch, Epochs};
use ensilo_row::RowId;
use ensilo_sync::atomic::Ordering;
use ensilo_sync::unchecked::AtomicU64;

const BLOCK_LEN: u64 = 4096;

/// Rows that come from elsewhere have smaller ids, so that those that follow leave half of all epochs to come.
pub(crate) const ROW_ID_END: RowId = RowId(1 << 59);

/// The blocks that are of one epoch.
const BLOCKS_PER_EPOCH: u64 = 16;

/// Where the workers of a database take their blocks from.
#[derive(Debug, Default)]
pub(crate) struct RowIdSource {
    blocks_taken: AtomicU64,
    /// Of a database that may be opened again.
    epochs: OnceLock<Arc<Epochs>>,
}

/// The ids that one worker has left.
#[derive(Debug)]
pub(crate) struct RowIds {
    source: Arc<RowIdSource>,
    left: Range<u64>,
}

impl RowIdSource {
    /// Sees to it that all ids handed out from now on are larger than `id`.
    pub(crate) fn pass_over(&self, id: RowId) {
        // Relaxed: no id has been handed out yet.
        self.blocks_taken.fetch_max(id.0.div_ceil(BLOCK_LEN), Ordering::Relaxed);
    }

    /// Begins with the ids of the present epoch, which is later than every one on disk, and from now on keeps
    /// to the epochs. These begin with that of the ids that were passed over, if it is a later one: rows from another database may
    /// be years ahead. Nobody has pinned an epoch yet.
    pub(crate) fn follow(&self, epochs: &Arc<Epochs>) {
        let first = epochs.global_epoch().get() * BLOCKS_PER_EPOCH;
        // Relaxed: no id has been handed out yet.
        let passed_over = self.blocks_taken.fetch_max(first, Ordering::Relaxed);
        epochs.skip_to(Epoch::new(passed_over / BLOCKS_PER_EPOCH));
        let _ = self.epochs.set(Arc::clone(epochs));
    }

    /// Takes a block, and returns its number.
    fn take(&self) -> u64 {
        // Relaxed: the blocks need only differ.
        let block = self.blocks_taken.fetch_add(1, Ordering::Relaxed);
        if let Some(epochs) = self.epochs.get() {
            let last_before = Epoch::new((block / BLOCKS_PER_EPOCH).saturating_sub(1));
            // At the last epoch it ends as well: nothing commits any more.
            while epochs.global_epoch() <= last_before && epochs.advance_past(epochs.global_epoch()) {}
        }
        block
    }
}

impl RowIds {
    pub(crate) fn new(source: Arc<RowIdSource>) -> Self {
        RowIds { source, left: 0..0 }
    }

    /// Returns an id that was never returned before. The first one of a database in memory is 1.
    #[inline]
    pub(crate) fn next(&mut self) -> RowId {
        if self.left.is_empty() {
            self.take_block();
        }
        let id = self.left.start;
        self.left.start += 1;
        RowId(id)
    }

    #[cold]
    fn take_block(&mut self) {
        let first = self.source.take() * BLOCK_LEN + 1;
        self.left = first..first + BLOCK_LEN;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use crate::Silo;
    use ensilo_engine::{Engine, EngineOptions};
    use ensilo_epoch::Advance;

    use super::*;

    /// Epochs that nobody else moves on.
    fn epochs_from(first_epoch: Epoch) -> Arc<Epochs> {
        let mut options = EngineOptions::default();
        options.epochs.first_epoch = first_epoch;
        options.epochs.advance = Advance::Manual;
        Arc::clone(<Silo>::start(options).epochs())
    }

    #[test]
    fn two_workers_never_get_the_same_id() {
        let source = Arc::new(RowIdSource::default());
        let mut workers = [RowIds::new(Arc::clone(&source)), RowIds::new(source)];
        let mut seen = HashSet::new();
        for round in 0..20_000 {
            assert!(seen.insert(workers[round % 2].next().0));
        }
        assert_eq!(seen.iter().min(), Some(&1));
    }

    #[test]
    fn ids_follow_the_epochs() {
        let mut first_epoch = Epoch::new(1000);
        let mut last = 0;
        for ids in [1, 3 * BLOCKS_PER_EPOCH * BLOCK_LEN, 10, 1] {
            let epochs = epochs_from(first_epoch);
            let source = Arc::new(RowIdSource::default());
            source.follow(&epochs);
            let mut worker = RowIds::new(source);
            for _ in 0..ids {
                let id = worker.next().0;
                assert!(id > last, "{id} after {last}");
                last = id;
            }
            // A commit of the present epoch is the latest on disk.
            first_epoch = Epoch::new(epochs.global_epoch().get() + 1);
        }
    }

    #[test]
    fn ids_that_are_ahead_of_the_epochs_move_them_on() {
        let epochs = epochs_from(Epoch::new(0));
        let source = Arc::new(RowIdSource::default());
        let known = RowId((1 << 42) * BLOCKS_PER_EPOCH * BLOCK_LEN + 7);
        source.pass_over(known);
        source.follow(&epochs);
        let mut worker = RowIds::new(source);
        let mut last = known;
        for _ in 0..3 * BLOCKS_PER_EPOCH * BLOCK_LEN {
            let id = worker.next();
            assert!(id > last, "{id:?} after {last:?}");
            last = id;
        }
        assert!(epochs.global_epoch() >= Epoch::new((1 << 42) + 2), "{}", epochs.global_epoch());
    }
}
