//! A table and an index as all handles to them share them.

use std::fmt;
use std::sync::Arc;

use ensilo_row::{IndexSchema, KEY_LEN_MAX, KeyBuf, ROW_LEN_MAX, Schema};
use ensilo_sync::atomic::Ordering;
use ensilo_sync::unchecked::AtomicU64;
use ensilo_txn::Store;

use super::index_set::IndexSetCell;
use crate::error::{DuplicateKey, MissingRow, Name, TooLong};
use crate::transaction::Inner;
use crate::{Error, Result};

/// What `accepts` holds once the table or index was dropped: the id of no database.
const DROPPED: u64 = 0;

/// What an index's `ready_from` holds while it is built: an epoch that no transaction shows.
const NEVER: u64 = u64::MAX;

/// A table.
pub(crate) struct TableCore {
    /// The database whose transactions may use the table; 0 once it was dropped.
    accepts: AtomicU64,
    pub(crate) store: Arc<Store>,
    /// The secondary indexes that writers keep.
    pub(crate) indexes: IndexSetCell,
    pub(crate) name: Arc<str>,
    /// As it was created: indexes that were made later are not in it, and some that are may have been dropped.
    pub(crate) schema: Arc<Schema>,
}

/// A secondary index.
pub(crate) struct IndexCore {
    accepts: AtomicU64,
    /// Transactions that show this epoch, or later ones, may read the index: it is complete there.
    ready_from: AtomicU64,
    pub(crate) store: Arc<Store>,
    pub(crate) name: Arc<str>,
    pub(crate) schema: IndexSchema,
    /// Its place among the indexes that the table was created with; `None` for one that was made later.
    pub(crate) declared: Option<usize>,
}

impl TableCore {
    pub(crate) fn new(database: u64, name: Arc<str>, schema: Schema, store: Arc<Store>) -> Self {
        TableCore {
            accepts: AtomicU64::new(database),
            store,
            indexes: IndexSetCell::default(),
            name,
            schema: Arc::new(schema),
        }
    }

    /// Whether the transaction may use the table.
    ///
    /// # Errors
    /// [`Error::UnknownTable`] when it was dropped or belongs to another database.
    #[inline(always)]
    pub(crate) fn check<Raw>(&self, transaction: &Inner<'_, Raw>) -> Result<()> {
        // Relaxed: who misses the drop is told so by the store itself, and retries.
        if self.accepts.load(Ordering::Relaxed) == transaction.local.database {
            return Ok(());
        }
        Err(self.unknown())
    }

    /// Whether the key fits an index.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`].
    #[inline(always)]
    pub(crate) fn check_key(&self, key: &KeyBuf) -> Result<()> {
        if key.len() <= KEY_LEN_MAX { Ok(()) } else { Err(key_too_long(&self.name, key.len())) }
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.accepts.load(Ordering::Relaxed) == DROPPED
    }

    /// Refuses the table to all statements that begin from now on.
    pub(crate) fn mark_dropped(&self) {
        self.accepts.store(DROPPED, Ordering::Relaxed);
    }

    #[cold]
    pub(crate) fn unknown(&self) -> Error {
        if self.is_dropped() {
            return Error::UnknownTable(Name::new(&*self.name));
        }
        Error::UnknownTable(Name::new(format!("{} in this transaction's database", self.name)))
    }

    #[cold]
    pub(crate) fn duplicate(&self, index: Option<&IndexCore>, key: &[u8]) -> Error {
        let index = index.map(|index| Arc::clone(&index.name));
        Error::DuplicateKey(DuplicateKey::new(Arc::clone(&self.name), index, key))
    }

    #[cold]
    pub(crate) fn missing(&self, key: &[u8]) -> Error {
        Error::MissingRow(MissingRow::new(Arc::clone(&self.name), key))
    }

    #[cold]
    pub(crate) fn row_too_large(&self, len_bytes: usize) -> Error {
        Error::RowTooLarge(TooLong::new(Arc::clone(&self.name), len_bytes, ROW_LEN_MAX))
    }
}

impl IndexCore {
    /// An index that no transaction reads yet.
    pub(crate) fn new(
        database: u64,
        schema: IndexSchema,
        store: Arc<Store>,
        declared: Option<usize>,
    ) -> Self {
        IndexCore {
            accepts: AtomicU64::new(database),
            ready_from: AtomicU64::new(NEVER),
            store,
            name: schema.name().into(),
            schema,
            declared,
        }
    }

    /// Whether the transaction may read the index.
    ///
    /// # Errors
    /// [`Error::UnknownIndex`] when it was dropped or belongs to another database, [`Error::IndexNotReady`].
    #[inline]
    pub(crate) fn check<Raw>(&self, transaction: &Inner<'_, Raw>) -> Result<()> {
        if self.accepts.load(Ordering::Relaxed) != transaction.local.database {
            return Err(Error::UnknownIndex(Name::new(&*self.name)));
        }
        // Acquire: [index-ready] who may read the index sees all of its entries.
        if self.ready_from.load(Ordering::Acquire) > transaction.epoch_shown {
            return Err(Error::IndexNotReady(Name::new(&*self.name)));
        }
        Ok(())
    }

    /// Whether all rows have their entries, so that a missing one is not a matter of time.
    pub(crate) fn is_ready(&self) -> bool {
        // Acquire: [index-ready].
        self.ready_from.load(Ordering::Acquire) != NEVER
    }

    /// Lets transactions that show `epoch` or later ones read the index.
    pub(crate) fn mark_ready(&self, epoch: u64) {
        // Release: [index-ready] after the last entry was committed.
        self.ready_from.store(epoch, Ordering::Release);
    }

    pub(crate) fn mark_dropped(&self) {
        self.accepts.store(DROPPED, Ordering::Relaxed);
    }

    /// Whether the key fits an index.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`].
    #[inline]
    pub(crate) fn check_key(&self, key: &KeyBuf) -> Result<()> {
        if key.len() <= KEY_LEN_MAX { Ok(()) } else { Err(key_too_long(&self.name, key.len())) }
    }
}

#[cold]
fn key_too_long(name: &Arc<str>, len_bytes: usize) -> Error {
    Error::KeyTooLong(TooLong::new(Arc::clone(name), len_bytes, KEY_LEN_MAX))
}

impl fmt::Debug for TableCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("name", &self.name)
            .field("is_dropped", &self.is_dropped())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for IndexCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index")
            .field("name", &self.name)
            .field("is_ready", &self.is_ready())
            .finish_non_exhaustive()
    }
}
