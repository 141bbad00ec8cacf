//! Secondary indexes of tables over several instances.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use ensilo::row::{Key, KeyBuf, KeyPrefix, KeyedRow};

use super::error::IslandError;
use super::reader::IslandRead;
use super::scan::IslandScan;
use super::table::{IslandTable, encoded_key};

/// A secondary index of an [`IslandTable`] over columns of the Rust types `K`. Each instance has one of its own rows: a look-up asks all of them,
/// unless the table is replicated.
pub struct IslandIndex<'t, T: KeyedRow, K: Key> {
    table: &'t IslandTable<T>,
    /// Among those that the row type declares.
    number: usize,
    keys: PhantomData<fn(K) -> K>,
}

impl<'t, T: KeyedRow, K: Key> IslandIndex<'t, T, K> {
    pub(super) fn open(table: &'t IslandTable<T>, name: &str) -> Result<Self, IslandError> {
        let (schema, columns) = (T::schema(), T::schema().columns());
        let unfit =
            |what: &str| IslandError::Unfit(format!("table {} has no index {name}{what}", schema.name()));
        let number =
            schema.indexes().iter().position(|index| index.name() == name).ok_or_else(|| unfit(""))?;
        let fits = schema.indexes()[number].parts().iter().map(|part| {
            let column = &columns[part.column];
            (column.column_type, column.nullable, part.order)
        });
        if fits.ne(K::PARTS.iter().map(|part| (part.column_type, part.nullable, part.order))) {
            return Err(unfit(" with columns of these types"));
        }
        Ok(IslandIndex { table, number, keys: PhantomData })
    }

    /// Returns a scan of all rows in the order of the index.
    pub fn scan(&self) -> IslandScan<'t, T> {
        self.scan_within((Bound::Unbounded, Bound::Unbounded))
    }

    /// Returns a scan of the rows with indexed columns in `range`.
    pub fn range(&self, range: impl RangeBounds<K>) -> IslandScan<'t, T> {
        self.scan_within((range.start_bound().map(encoded_key), range.end_bound().map(encoded_key)))
    }

    /// Returns a scan of the rows with indexed columns that begin with these: `(a,)`, `(a, b)`, and so on.
    pub fn prefix(&self, prefix: impl KeyPrefix<K>) -> IslandScan<'t, T> {
        let mut key = KeyBuf::new();
        prefix.append_prefix(&mut key);
        let key = key.as_bytes().to_vec();
        self.scan_within((Bound::Included(key.clone()), Bound::Included(key)))
    }

    /// Returns a scan of the rows with exactly these indexed columns.
    pub fn equal(&self, key: &K) -> IslandScan<'t, T> {
        let key = encoded_key(key);
        self.scan_within((Bound::Included(key.clone()), Bound::Included(key)))
    }

    /// Returns the first row with these indexed columns, or `None`.
    ///
    /// # Errors
    /// See [`IslandTable`].
    pub fn get(&self, tx: &mut impl IslandRead, key: &K) -> Result<Option<T>, IslandError> {
        self.equal(key).first(tx)
    }

    fn scan_within(&self, ends: (Bound<Vec<u8>>, Bound<Vec<u8>>)) -> IslandScan<'t, T> {
        IslandScan::new(self.table, ends).of_prefixes().by_index(self.number)
    }
}

impl<T: KeyedRow, K: Key> fmt::Debug for IslandIndex<'_, T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IslandIndex").field("table", self.table).field("number", &self.number).finish()
    }
}
