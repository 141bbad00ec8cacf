//! Invented primary keys: ids that no other row of the database has, without a counter that all workers share.
//!
//! A worker takes a block of ids from the database and hands them out one by one. The block stays with the worker; what is left of it when
//! the worker goes is never used. Ids of one worker rise, ids of two workers lie in different blocks, hence in
//! different nodes of the table's tree.

use std::ops::Range;
use std::sync::Arc;

use ensilo_row::RowId;
use ensilo_sync::atomic::Ordering;
use ensilo_sync::unchecked::AtomicU64;

const BLOCK_LEN: u64 = 4096;

/// Where the workers of a database take their blocks from.
#[derive(Debug, Default)]
pub(crate) struct RowIdSource {
    blocks_taken: AtomicU64,
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
}

impl RowIds {
    pub(crate) fn new(source: Arc<RowIdSource>) -> Self {
        RowIds { source, left: 0..0 }
    }

    /// An id that nobody has had. The first one of a database is 1.
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
        // Relaxed: the blocks need only differ.
        let first = self.source.blocks_taken.fetch_add(1, Ordering::Relaxed) * BLOCK_LEN + 1;
        self.left = first..first + BLOCK_LEN;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

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
}
