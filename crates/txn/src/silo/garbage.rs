//! Garbage: what the commits of a worker have replaced or deleted, until nobody can reach it any more.
//!
//! Whose it is, and when it goes, says [`collect`](super::collect).

use ensilo_engine::WorkerCounters;
use ensilo_epoch::{Epoch, RetireList};

use super::key_bytes::KeyBytes;
use super::variant::Variant;
use super::write_set::KeptVersion;
use crate::record::RecordPtr;
use crate::tid::TidWord;

/// What this worker's commits left behind.
#[derive(Debug, Default)]
pub(crate) struct Garbage {
    pub(super) versions: RetireList<Retired>,
    /// Deleted records that are to leave their trees.
    pub(super) unhooks: RetireList<Unhook>,
    /// Those that could not: they leave when no snapshot needs them.
    pub(super) late_unhooks: RetireList<Unhook>,
    /// Deleted records that have left their trees, and stand in the index of those for snapshots.
    pub(super) deleted: RetireList<Unhook>,
    /// Records outside of slabs that are to be freed by the memory horizon.
    pub(super) retired: RetireList<RecordPtr>,
}

impl Garbage {
    pub(crate) fn is_empty(&self) -> bool {
        self.versions.is_empty()
            && !self.has_unhooks()
            && self.late_unhooks.is_empty()
            && self.deleted.is_empty()
            && self.retired.is_empty()
    }

    /// Returns whether something can be taken out of a tree now.
    #[inline]
    pub(crate) fn has_unhooks(&self) -> bool {
        !self.unhooks.is_empty()
    }

    /// Takes over a record that was replaced in the tree by a commit of the snapshot interval of `epoch`.
    #[inline]
    pub(super) fn keep_replaced<V: Variant>(
        &mut self,
        epoch: Epoch,
        record: RecordPtr,
        counters: &WorkerCounters,
    ) {
        if V::COLLECTS {
            counters.version_kept(record.size_bytes());
            self.versions.push(epoch, Retired::Replaced(record));
        }
    }
}

/// A version that a snapshot may still need.
#[derive(Debug)]
pub(super) enum Retired {
    /// A version that stood beside the tree.
    Kept(KeptVersion),
    /// A record that once stood in the tree.
    Replaced(RecordPtr),
}

impl Retired {
    /// Starts to load what freeing it looks at.
    pub(super) fn prefetch(&self) {
        match self {
            Retired::Kept(version) => version.record().prefetch_header(),
            Retired::Replaced(record) => record.prefetch_header(),
        }
    }
}

/// A deleted record that is to leave the tree if it still carries `word`, or has left it.
#[derive(Debug)]
pub(super) struct Unhook {
    pub(super) record: RecordPtr,
    pub(super) word: TidWord,
    pub(super) key: KeyBytes,
}
