//! The entries of a write set: which records a transaction will write, and how.
//!
//! Keys and rows stand in vectors of the transaction; an entry has their places there.

use std::ptr::NonNull;

use ensilo_sync::atomic::{AtomicU64, Ordering};

use crate::record::RecordPtr;
use crate::store::Store;
use crate::tid::TidWord;

/// Up to this many writes a walk over them is cheaper than a map.
pub(super) const WALKED_MAX: usize = 8;

/// Where a key stands in the transaction's key bytes, if it was kept.
#[derive(Copy, Clone, Debug)]
pub(super) struct KeySpan {
    pub(super) start: u32,
    pub(super) len: u32,
}

impl KeySpan {
    /// A key that was not kept: of what a scan has read that nothing is written to.
    pub(super) const NOT_KEPT: KeySpan = KeySpan { start: u32::MAX, len: 0 };

    #[inline]
    pub(super) fn is_kept(self) -> bool {
        self.start != u32::MAX
    }

    /// Returns the key among all `keys` of its transaction.
    #[inline]
    pub(super) fn of(self, keys: &[u8]) -> &[u8] {
        &keys[self.start as usize..][..self.len as usize]
    }
}

/// Where a row, or the pairs of a patch, stand in the transaction's row words.
#[derive(Copy, Clone, Debug)]
pub(super) struct RowSpan {
    pub(super) start: u32,
    /// Bytes of a row, or pairs of a patch.
    pub(super) len: u32,
}

impl RowSpan {
    /// Returns the words of a patch, each with its index in the row; `rows` are all row words of its transaction.
    #[inline]
    pub(super) fn patch_words(self, rows: &[AtomicU64]) -> impl ExactSizeIterator<Item = (usize, u64)> {
        let (pairs, _) = rows[self.start as usize..][..2 * self.len as usize].as_chunks();
        // Relaxed: these words are the worker's own.
        pairs
            .iter()
            .map(|[index, word]| (index.load(Ordering::Relaxed) as usize, word.load(Ordering::Relaxed)))
    }
}

/// What happens to a record at commit.
#[derive(Copy, Clone, Debug)]
pub(super) enum RecordChange {
    /// Single words are overwritten; the span holds pairs of index and word.
    Patch(RowSpan),
    /// Numbers of the row are added to, whatever they are by then; see [`addition`](super::addition). The span holds the additions, and room for a patch.
    Add(RowSpan),
    /// The row is replaced, or inserted where the record is absent.
    Put(RowSpan),
    /// The row already stands in this transaction's own placeholder, which comes to life.
    Placed,
    /// The record is deleted.
    Delete,
    /// An own insert that was deleted again: the key stays absent.
    Cancelled,
}

impl RecordChange {
    /// Returns whether the key exists for the transaction after this change of its own.
    pub(super) fn leaves_a_row(self) -> bool {
        match self {
            RecordChange::Patch(_) | RecordChange::Add(_) | RecordChange::Put(_) | RecordChange::Placed => {
                true
            }
            RecordChange::Delete | RecordChange::Cancelled => false,
        }
    }
}

/// A record that will be written.
#[derive(Copy, Clone, Debug)]
pub(super) struct WriteEntry {
    pub(super) record: RecordPtr,
    /// The version that this transaction saw, and replaces. Of additions, a version that was there before, by which only
    /// [`Contention`](super::contention::Contention) goes.
    pub(super) observed: TidWord,
    pub(super) change: RecordChange,
    pub(super) key: KeySpan,
    /// Where the record stands in the read set, for handles to it.
    pub(super) entry: u32,
    /// Whether this transaction put the record into the tree as a placeholder.
    pub(super) is_created: bool,
    /// Set while committing: what the install does.
    pub(super) plan: InstallPlan,
}

/// A store that is in use by a running transaction, which keeps it from being freed.
#[derive(Copy, Clone, Debug)]
pub(super) struct StorePtr(NonNull<Store>);

// SAFETY: a store is shared by all threads; the pointer is followed only within the transaction that made it.
unsafe impl Send for StorePtr {}

impl StorePtr {
    pub(super) fn new(store: &Store) -> Self {
        StorePtr(NonNull::from(store))
    }

    /// Returns the store.
    ///
    /// # Safety
    /// The transaction that made this pointer is still running.
    pub(super) unsafe fn get<'a>(self) -> &'a Store {
        // SAFETY: a store outlives every transaction that is pinned when it is dropped (see Silo::drop_store).
        unsafe { self.0.as_ref() }
    }
}

/// What a write does at its install. See [`commit::plan`](super::commit) for which write gets which.
#[derive(Copy, Clone, Debug)]
pub(super) enum InstallPlan {
    /// Nothing is decided: no commit is under way.
    Open,
    /// The record comes to life with the row that it has.
    MakeLive,
    /// The record stays the placeholder that it is.
    Leave,
    /// The record is deleted. This is room for the version that it had, if a snapshot may read that.
    Delete(Option<KeptVersion>),
    /// The new words are written over those of the record, with room for the old version as for a deletion.
    Overwrite(Option<KeptVersion>),
    /// Another record takes its place in the tree of that store.
    Replace(RecordPtr, StorePtr),
}

/// What stands for a superseded version beside the record in the tree. Only `previous` links lead to it.
#[derive(Copy, Clone, Debug)]
pub(super) enum KeptVersion {
    /// A copy of the record.
    Copy(RecordPtr),
    /// A copy in the reserve beside the memory limit.
    ReserveCopy(RecordPtr),
    /// A mark: the deleted record keeps the row.
    Mark(RecordPtr),
}

impl KeptVersion {
    pub(super) fn record(self) -> RecordPtr {
        let (KeptVersion::Copy(record) | KeptVersion::ReserveCopy(record) | KeptVersion::Mark(record)) = self;
        record
    }

    pub(super) fn size_bytes(self) -> usize {
        self.record().size_bytes()
    }
}
