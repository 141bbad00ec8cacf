//! A secondary index as all handles to it share it, and when it can be read.

use std::fmt;
use std::sync::Arc;

use ensilo_engine::Store;
use ensilo_row::{IndexSchema, KEY_LEN_MAX, KeyBuf};
use ensilo_sync::atomic::Ordering;
use ensilo_sync::unchecked::AtomicU64;

use crate::error::{Name, NameInTable, TooLong};
use crate::local::Local;
use crate::{Error, Result};

/// What `accepts` holds once the table or index was dropped: the id of no database.
pub(super) const DROPPED: u64 = 0;

/// What `accepts` holds once the schema of the table was changed: the id of no database either.
pub(super) const CHANGED: u64 = u64::MAX;

/// What an index's `ready_from` holds while no transaction may read it: epochs that none shows.
///
/// Leaves it when all entries are there (`mark_ready`), or, if it was [`BROKEN`] before, when they cannot be
/// made.
const BUILDING: u64 = u64::MAX;
/// Leaves it when the index is made anew: for [`ANNOUNCED`].
const BROKEN: u64 = u64::MAX - 1;
/// Of an index that writers are about to keep: a new one, or a broken one while what it has of entries is removed. Until then they
/// read what they write in its columns. Leaves it for [`BUILDING`], or back for [`BROKEN`].
const ANNOUNCED: u64 = u64::MAX - 2;

/// The largest epoch that a transaction may show.
pub(crate) const EPOCH_SHOWN_MAX: u64 = ANNOUNCED - 1;

/// Whether an index can be read, and whether writes maintain it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum IndexState {
    /// Every row has its entry, and transactions read it.
    Ready,
    /// It is being built, and cannot be read yet. Writes maintain it, or are about to.
    Building,
    /// Its entries could not be made of the rows when the database was opened. Writes do not keep it, and
    /// reading it is an error: [`Error::IndexBroken`] says what to do.
    Broken,
}

/// A secondary index.
pub(crate) struct IndexCore<S> {
    accepts: AtomicU64,
    /// Transactions that show this epoch, or later ones, may read the index: it is complete there.
    ready_from: AtomicU64,
    pub(crate) store: Arc<S>,
    pub(crate) name: Arc<str>,
    pub(crate) schema: IndexSchema,
    /// Its place among the indexes that the table was created with; `None` for one that was made later.
    pub(crate) declared: Option<usize>,
}

impl<S: Store> IndexCore<S> {
    /// Makes an index that no transaction reads yet.
    pub(crate) fn new(database: u64, schema: IndexSchema, store: Arc<S>, declared: Option<usize>) -> Self {
        IndexCore {
            accepts: AtomicU64::new(database),
            ready_from: AtomicU64::new(BUILDING),
            store,
            name: schema.name().into(),
            schema,
            declared,
        }
    }

    /// Returns the index as it is after a change of its table's schema, with the same entries.
    pub(super) fn changed(&self, database: u64, schema: IndexSchema, declared: Option<usize>) -> Self {
        let changed = Self::new(database, schema, Arc::clone(&self.store), declared);
        // Acquire: [index-ready]. Who gets the new one sees what the old one has seen.
        changed.mark_ready(self.ready_from.load(Ordering::Acquire));
        changed
    }

    /// Checks whether a transaction of this worker that shows `epoch_shown` may read the index, which is one
    /// of `table`.
    ///
    /// # Errors
    /// [`Error::UnknownIndex`] when it was dropped or belongs to another database, [`Error::IndexNotReady`],
    /// [`Error::IndexBroken`].
    #[inline]
    pub(crate) fn check<F>(&self, table: &Arc<str>, local: &Local<F>, epoch_shown: u64) -> Result<()> {
        if self.accepts.load(Ordering::Relaxed) != local.database {
            return Err(self.unknown(table));
        }
        // Acquire: [index-ready] a transaction that may read the index sees all of its entries.
        match self.ready_from.load(Ordering::Acquire) {
            ready_from if ready_from <= epoch_shown => Ok(()),
            BROKEN => Err(Error::IndexBroken(self.in_table(table))),
            _ => Err(Error::IndexNotReady(self.in_table(table))),
        }
    }

    /// Returns whether the index is one of this database, and not dropped.
    #[inline]
    pub(crate) fn accepts(&self, database: u64) -> bool {
        // Relaxed: who misses the drop learns of it from the store itself.
        self.accepts.load(Ordering::Relaxed) == database
    }

    /// Returns whether the index can be read, and whether writes maintain it.
    pub(crate) fn state(&self) -> IndexState {
        // Acquire: [index-ready].
        match self.ready_from.load(Ordering::Acquire) {
            BUILDING | ANNOUNCED => IndexState::Building,
            BROKEN => IndexState::Broken,
            _ => IndexState::Ready,
        }
    }

    /// Returns whether all rows have their entries, so that a missing one is an inconsistency.
    pub(crate) fn is_ready(&self) -> bool {
        self.state() == IndexState::Ready
    }

    /// Returns whether writers keep the index, or are about to.
    pub(super) fn is_or_will_be_kept(&self) -> bool {
        // Relaxed: as in `is_kept`.
        self.ready_from.load(Ordering::Relaxed) != BROKEN
    }

    /// Returns whether writers are to keep the index.
    pub(crate) fn is_kept(&self) -> bool {
        // Relaxed: changed and asked under the lock of changes to the catalog, or before any transaction.
        !matches!(self.ready_from.load(Ordering::Relaxed), BROKEN | ANNOUNCED)
    }

    /// Lets transactions that show `epoch` or later ones read the index.
    pub(crate) fn mark_ready(&self, epoch: u64) {
        // Release: [index-ready] after the last entry was committed.
        self.ready_from.store(epoch, Ordering::Release);
    }

    // Relaxed, in these three: nobody reads entries because of it.

    /// Refuses the index to transactions: its entries cannot be made.
    pub(crate) fn mark_broken(&self) {
        self.ready_from.store(BROKEN, Ordering::Relaxed);
    }

    /// Says that writers are about to keep the index.
    pub(crate) fn mark_announced(&self) {
        self.ready_from.store(ANNOUNCED, Ordering::Relaxed);
    }

    /// Says that an index gets its entries.
    pub(crate) fn mark_building(&self) {
        self.ready_from.store(BUILDING, Ordering::Relaxed);
    }

    pub(crate) fn mark_dropped(&self) {
        self.accepts.store(DROPPED, Ordering::Relaxed);
    }

    /// Refuses the index to the handles that there are: the schema of its table is about to change.
    pub(super) fn mark_changed(&self) {
        self.accepts.store(CHANGED, Ordering::Relaxed);
    }

    /// Takes [`mark_changed`](Self::mark_changed) back.
    pub(super) fn mark_unchanged(&self, database: u64) {
        self.accepts.store(database, Ordering::Relaxed);
    }

    #[cold]
    fn in_table(&self, table: &Arc<str>) -> NameInTable {
        NameInTable::new(&**table, &*self.name)
    }

    #[cold]
    fn unknown(&self, table: &Arc<str>) -> Error {
        match self.accepts.load(Ordering::Relaxed) {
            CHANGED => Error::TableChanged(Name::new(&**table)),
            _ => Error::UnknownIndex(self.in_table(table)),
        }
    }
}

/// Checks whether the key of a table or an index is short enough.
///
/// # Errors
/// [`Error::KeyTooLong`].
#[inline(always)]
pub(crate) fn check_key_len(name: &Arc<str>, key: &KeyBuf) -> Result<()> {
    if key.len() <= KEY_LEN_MAX { Ok(()) } else { Err(key_too_long(name, key.len())) }
}

#[cold]
fn key_too_long(name: &Arc<str>, len_bytes: usize) -> Error {
    Error::KeyTooLong(TooLong::new(Arc::clone(name), len_bytes, KEY_LEN_MAX))
}

impl<S: Store> fmt::Debug for IndexCore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index")
            .field("name", &self.name)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
