//! Tables of static rows: every method of their handles compiles to direct calls of the engine.
//!
//! One file a kind of statement: point reads here, `write`, `add`, `many`, `scan`, and `index` for reads through
//! secondary indexes; `found` is a row that a statement has found, to be read or changed without looking it
//! up again.

mod add;
mod bounds;
mod by_index;
mod change_found;
mod cursor;
mod found;
mod index;
mod index_scan;
mod many;
mod scan;
mod write;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::Silo;
use ensilo_engine::{Engine, RowRef};
use ensilo_row::{AsKey, Columns, Key, KeyBuf, Malformed, Row};

pub use bounds::ScanFlow;
pub(crate) use bounds::{Bounds, Flow, ROWS_PER_LOOK, ScanRange};
pub(crate) use by_index::ByIndex;
pub(crate) use cursor::sealed::{OwnedScan, ReadAhead, ReadOwned};
pub use cursor::{Cursor, Rows};
pub use found::Found;
pub use index::Index;
pub use index_scan::IndexScan;
pub use scan::Scan;
pub(crate) use write::check_row_id;

use crate::catalog::index_core::check_key_len;
use crate::catalog::table_core::TableCore;
use crate::long_values::{Nothing, wanted_by};
use crate::row_words::RowWords;
use crate::transaction::ReadTransaction;
use crate::{Arrivals, Result};

/// A table with rows of the Rust type `T`.
///
/// This is a handle: it is cheap to clone, can be used from any thread, and is not tied to a transaction. It
/// does not keep the database open: when the last [`Database`](crate::Database) is dropped, that is closed.
/// [`Database::create_table`](crate::Database::create_table) and
/// [`Database::open_table`](crate::Database::open_table) make one.
///
/// Every method takes the transaction that it is a statement of. In a [`Transaction`](crate::Transaction)
/// statements are serializable: what they read is validated when it commits. In a
/// [`Snapshot`](crate::Snapshot) they show one recent point of the serial order. Keys are given by value or
/// by reference, with `&str` for the texts in them: see [`AsKey`].
///
/// # Errors
/// Besides the errors that a method names, every statement may return
/// [`Error::Aborted`](crate::Error::Aborted) (return it from the closure; the request is run again),
/// [`Error::OutOfMemory`](crate::Error::OutOfMemory),
/// [`Error::TransactionTooLarge`](crate::Error::TransactionTooLarge),
/// [`Error::UnknownTable`](crate::Error::UnknownTable) when the table was dropped or belongs to another
/// database than the transaction, [`Error::TableChanged`](crate::Error::TableChanged) when its columns were changed, or it was truncated, since the
/// handle was made (open it again), and, for keys with text or bytes,
/// [`Error::KeyTooLong`](crate::Error::KeyTooLong); when it reads a row,
/// [`Error::UnknownValue`](crate::Error::UnknownValue).
pub struct Table<T: Row, E: Engine = Silo> {
    pub(crate) core: Arc<TableCore<E::Store>>,
    /// Whether the indexes that `T` declares are numbered as those that the table was created with.
    numbers_agree: bool,
    rows: PhantomData<fn(T, E) -> T>,
}

impl<T: Row, E: Engine> Table<T, E> {
    pub(crate) fn new(core: Arc<TableCore<E::Store>>) -> Self {
        let numbers_agree = core.schema.indexes() == T::schema().indexes();
        Table { core, numbers_agree, rows: PhantomData }
    }

    /// Returns the table's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Watches the table, to wait for rows to come: see [`Arrivals`].
    ///
    /// # Errors
    /// [`Error::UnknownTable`](crate::Error::UnknownTable) when the table was dropped,
    /// [`Error::Closed`](crate::Error::Closed).
    pub fn watch(&self) -> Result<Arrivals> {
        Arrivals::of(&self.core)
    }

    /// Returns the row with this primary key, or `None`.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`].
    #[inline]
    pub fn get<'t>(
        &self,
        tx: &mut impl ReadTransaction<'t, E>,
        key: impl AsKey<T::Key>,
    ) -> Result<Option<T>> {
        self.get_columns::<T>(tx, key)
    }

    /// Returns some columns of the row with this primary key, or `None`. Only the words that hold them are
    /// read.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`].
    #[inline]
    pub fn get_columns<'t, C: Columns<T>>(
        &self,
        tx: &mut impl ReadTransaction<'t, E>,
        key: impl AsKey<T::Key>,
    ) -> Result<Option<C>> {
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            let bytes = self.encode(&key)?;
            let decode = |row: RowRef<'_>| C::decode(&key.as_key(), &RowWords(row));
            let columns = inner.get_in(&self.core, &bytes, wanted_by::<T, C>(), decode)?;
            columns.map(|columns| self.core.known(columns, bytes.as_bytes())).transpose()
        })
    }

    /// Returns whether there is a row with this primary key.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`].
    #[inline]
    pub fn contains<'t>(
        &self,
        tx: &mut impl ReadTransaction<'t, E>,
        key: impl AsKey<T::Key>,
    ) -> Result<bool> {
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            let bytes = self.encode(&key)?;
            Ok(inner.get_in(&self.core, &bytes, Nothing, |_| ())?.is_some())
        })
    }

    /// Returns what was decoded from the whole row with this primary key.
    ///
    /// # Errors
    /// [`Error::UnknownValue`](crate::Error::UnknownValue).
    #[inline(always)]
    fn known<R>(&self, decoded: Result<R, Malformed>, key: &T::Key) -> Result<R> {
        decoded.or_else(|Malformed| Err(self.core.unknown_value(self.encode(key)?.as_bytes())))
    }

    /// Returns the encoded key.
    #[inline(always)]
    fn encode(&self, key: &impl AsKey<T::Key>) -> Result<KeyBuf> {
        let mut bytes = KeyBuf::new();
        self.encode_into(key, &mut bytes)?;
        Ok(bytes)
    }

    #[inline(always)]
    fn encode_into(&self, key: &impl AsKey<T::Key>, bytes: &mut KeyBuf) -> Result<()> {
        bytes.clear();
        key.append_key(bytes);
        // A key type of fixed length was checked at compile time.
        if T::Key::FIXED_LEN.is_some() { Ok(()) } else { check_key_len(&self.core.name, bytes) }
    }
}

/// Decodes the primary key of a row, and the columns that are wanted.
#[inline]
fn key_and_columns<T: Row, C: Columns<T>>(key: &[u8], row: &RowWords<'_>) -> Result<(T::Key, C), Malformed> {
    let key = T::Key::decode(key)?;
    let columns = C::decode(&key, row)?;
    Ok((key, columns))
}

impl<T: Row, E: Engine> Clone for Table<T, E> {
    fn clone(&self) -> Self {
        Table { core: Arc::clone(&self.core), numbers_agree: self.numbers_agree, rows: PhantomData }
    }
}

impl<T: Row, E: Engine> fmt::Debug for Table<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.fmt(f)
    }
}
