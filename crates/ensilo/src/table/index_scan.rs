//! Scans of a table in the order of a secondary index.

use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;

use crate::Silo;
use ensilo_engine::{Direction, Engine, ReadOf, SnapshotOf, Store};
use ensilo_row::{AsKey, AsKeyRange, Columns, Key, KeyBuf, KeyPrefix, Row};

use super::by_index::ByIndex;
use super::{
    Bounds, Cursor, Found, Index, OwnedScan, ReadAhead, ReadOwned, Rows, ScanFlow, ScanRange, key_and_columns,
};
use crate::long_values::{Nothing, wanted_by};
use crate::row_words::{RowWords, primary_key_of};
use crate::transaction::{Inner, ReadTransaction, WriteTransaction};
use crate::unknown_value::{Decoded, KnownRows, or_key};
use crate::{Result, maintain, queue};

/// A scan of a table in the order of a secondary index, to be narrowed and then run in a transaction. As to
/// isolation it is like [`Scan`](super::Scan).
///
/// # Errors
/// Its methods return the errors of every statement, see [`Table`](super::Table), and
/// [`Error::UnknownIndex`](crate::Error::UnknownIndex) when the index was dropped,
/// [`Error::IndexNotReady`](crate::Error::IndexNotReady) while it is built, or in a snapshot that is older
/// than it, [`Error::IndexBroken`](crate::Error::IndexBroken).
#[must_use = "a scan does nothing until it is run in a transaction"]
pub struct IndexScan<'h, T: Row, K: Key, C = T, E: Engine = Silo> {
    index: &'h Index<T, K, E>,
    range: ScanRange,
    columns: PhantomData<fn() -> C>,
}

impl<T: Row, K: Key, E: Engine> Index<T, K, E> {
    /// Returns a scan of all rows in the order of the index.
    pub fn scan(&self) -> IndexScan<'_, T, K, T, E> {
        IndexScan::new(self, Bounds::ALL)
    }

    /// Returns a scan of the rows with indexed columns in `range`.
    #[inline]
    pub fn range(&self, range: impl AsKeyRange<K>) -> IndexScan<'_, T, K, T, E> {
        IndexScan::new(self, Bounds::range(&range).of_prefixes())
    }

    /// Returns a scan of the rows with indexed columns that begin with these, each as a whole: `(a,)`, `(a, b)`, and so on. Texts that
    /// begin with "A" are a range: `"A".."B"`.
    #[inline]
    pub fn prefix(&self, prefix: impl KeyPrefix<K>) -> IndexScan<'_, T, K, T, E> {
        let mut bytes = KeyBuf::new();
        prefix.append_prefix(&mut bytes);
        IndexScan::new(self, Bounds::prefix(bytes))
    }

    /// Returns a scan of the rows with exactly these indexed columns: at most one if the index is unique and
    /// none of them is null.
    #[inline]
    pub fn equal(&self, key: impl AsKey<K>) -> IndexScan<'_, T, K, T, E> {
        let mut bytes = KeyBuf::new();
        key.append_key(&mut bytes);
        IndexScan::new(self, Bounds::prefix(bytes))
    }

    /// Returns the first row with these indexed columns, or `None`. If the index is unique, that is the only
    /// one. Its primary key comes with it by `equal(key).first(tx)`.
    ///
    /// # Errors
    /// As [`IndexScan::for_each`].
    #[inline]
    pub fn get<'t>(&self, tx: &mut impl ReadTransaction<'t, E>, key: impl AsKey<K>) -> Result<Option<T>> {
        Ok(self.equal(key).first(tx)?.map(|(_, row)| row))
    }
}

impl<'h, T: Row, K: Key, E: Engine> IndexScan<'h, T, K, T, E> {
    #[inline]
    fn new(index: &'h Index<T, K, E>, bounds: Bounds) -> Self {
        IndexScan { index, range: ScanRange::new(bounds), columns: PhantomData }
    }
}

impl<'h, T: Row, K: Key, C: Columns<T>, E: Engine> IndexScan<'h, T, K, C, E> {
    /// Scans from the last entry to the first.
    #[inline]
    pub fn reverse(mut self) -> Self {
        self.range.direction = Direction::Reverse;
        self
    }

    /// Ends the scan after at most `limit` rows.
    #[inline]
    pub fn limit(mut self, limit: usize) -> Self {
        self.range.limit = limit;
        self
    }

    /// Ends the scan after its first row, unless it has no rows at all.
    #[inline]
    fn limit_to_first(mut self) -> Self {
        self.range = self.range.limited(1);
        self
    }

    /// Reads only these columns of each row.
    #[inline]
    pub fn columns<D: Columns<T>>(self) -> IndexScan<'h, T, K, D, E> {
        IndexScan { index: self.index, range: self.range, columns: PhantomData }
    }

    /// Returns a cursor, which gives the primary key and the columns of one row at a time: the transaction can be used
    /// for other things in between.
    pub fn cursor(self) -> Cursor<Self, E> {
        Cursor::new(self)
    }

    /// Returns an iterator over the primary keys and the columns of the rows. As long as it lasts the transaction cannot
    /// be used for anything else: that is what [`IndexScan::cursor`] is for.
    pub fn iter<'x, 't, Tx: ReadTransaction<'t, E>>(self, tx: &'x mut Tx) -> Rows<'x, 't, Tx, Self, E> {
        Rows::new(self, tx)
    }

    /// Calls `each` with the primary key and the columns of every row, until it returns
    /// [`ControlFlow::Break`].
    ///
    /// # Errors
    /// See [`IndexScan`].
    #[inline]
    pub fn for_each<'t, F: ScanFlow>(
        self,
        tx: &mut impl ReadTransaction<'t, E>,
        mut each: impl FnMut(T::Key, C) -> F,
    ) -> Result<()> {
        let scan = self.by_index(wanted_by::<T, C>());
        let table = scan.table;
        tx.statement(|inner| {
            let mut rows = KnownRows::default();
            let each = |decoded: Decoded<(_, C)>| {
                rows.pass(decoded, |(key, columns)| each(key, columns).into_flow())
            };
            scan.run(inner, |_, _| true, decode::<T, C>, each)?;
            rows.end(table)
        })
    }

    /// Calls `each` with every row and its columns, until it returns [`ControlFlow::Break`]. The row can be
    /// changed after the scan without another look-up.
    ///
    /// # Errors
    /// See [`IndexScan`].
    #[inline]
    pub fn for_each_found<'t, F: ScanFlow>(
        self,
        tx: &mut impl ReadTransaction<'t, E>,
        mut each: impl FnMut(Found<'h, 't, T, E>, C) -> F,
    ) -> Result<()> {
        let table = &self.index.table;
        let scan = self.by_index(wanted_by::<T, C>());
        tx.statement(|inner| {
            let mut rows = KnownRows::default();
            scan.run_found(inner, decode::<T, C>, |raw, decoded| {
                rows.pass(decoded, |(key, columns)| each(Found::new(table, key, raw), columns).into_flow())
            })?;
            rows.end(&table.core)
        })
    }

    /// Calls `each` with the primary key of every row, until it returns [`ControlFlow::Break`]. Only the
    /// index is read, not the rows.
    ///
    /// # Errors
    /// See [`IndexScan`].
    #[inline]
    pub fn for_each_primary_key<'t, F: ScanFlow>(
        self,
        tx: &mut impl ReadTransaction<'t, E>,
        mut each: impl FnMut(T::Key) -> F,
    ) -> Result<()> {
        tx.statement(|inner| {
            let table = &self.index.table.core;
            table.check(inner.local)?;
            inner.check_index(table, &self.index.core)?;
            let mut keys = KnownRows::default();
            self.range.run(
                inner,
                &self.index.core.store,
                |_, entry| {
                    let key = primary_key_of(entry);
                    or_key(T::Key::decode(key.as_bytes()), key.as_bytes())
                },
                |key| keys.pass(key, |key| each(key).into_flow()),
            )?;
            keys.end(table)
        })
    }

    /// Returns the primary keys of all rows. Only the index is read, not the rows.
    ///
    /// # Errors
    /// See [`IndexScan`].
    pub fn primary_keys<'t>(self, tx: &mut impl ReadTransaction<'t, E>) -> Result<Vec<T::Key>> {
        let mut keys = Vec::new();
        self.for_each_primary_key(tx, |key| keys.push(key))?;
        Ok(keys)
    }

    /// Returns the primary keys and columns of all rows.
    ///
    /// # Errors
    /// See [`IndexScan`].
    pub fn collect<'t>(self, tx: &mut impl ReadTransaction<'t, E>) -> Result<Vec<(T::Key, C)>> {
        let mut rows = Vec::new();
        self.for_each(tx, |key, columns| rows.push((key, columns)))?;
        Ok(rows)
    }

    /// Returns the columns of all rows.
    ///
    /// # Errors
    /// See [`IndexScan`].
    pub fn rows<'t>(self, tx: &mut impl ReadTransaction<'t, E>) -> Result<Vec<C>> {
        let mut rows = Vec::new();
        self.for_each(tx, |_, columns| rows.push(columns))?;
        Ok(rows)
    }

    /// Returns the primary key and the columns of the first row, or `None`.
    ///
    /// # Errors
    /// See [`IndexScan`].
    #[inline]
    pub fn first<'t>(self, tx: &mut impl ReadTransaction<'t, E>) -> Result<Option<(T::Key, C)>> {
        let mut first = None;
        self.limit_to_first().for_each(tx, |key, columns| first = Some((key, columns)))?;
        Ok(first)
    }

    /// Returns the primary key and the columns of the last row, or `None`: the first one in the other direction.
    ///
    /// # Errors
    /// See [`IndexScan`].
    #[inline]
    pub fn last<'t>(mut self, tx: &mut impl ReadTransaction<'t, E>) -> Result<Option<(T::Key, C)>> {
        self.range.turn();
        self.first(tx)
    }

    /// Returns the first row and its columns, or `None`. The row can be changed without another look-up.
    ///
    /// # Errors
    /// See [`IndexScan`].
    #[inline]
    pub fn first_found<'t>(
        self,
        tx: &mut impl ReadTransaction<'t, E>,
    ) -> Result<Option<(Found<'h, 't, T, E>, C)>> {
        let mut first = None;
        self.limit_to_first().for_each_found(tx, |found, columns| first = Some((found, columns)))?;
        Ok(first)
    }

    /// Deletes the first row that no other open transaction has taken, and returns its primary key and its columns;
    /// `None` if there is none. The first is that of the first entry. All else is as with
    /// [`Scan::take_first`](super::Scan::take_first), which also says how a row is given back for later and
    /// where long work belongs. A row that was taken by its primary key is passed over here, too, and the
    /// other way round.
    ///
    /// # Errors
    /// See [`IndexScan`].
    pub fn take_first<'t>(self, tx: &mut impl WriteTransaction<'t, E>) -> Result<Option<(T::Key, C)>> {
        let IndexScan { index, range, .. } = self;
        let (table, index) = (&*index.table.core, &*index.core);
        tx.statement(|inner| {
            let decode = |key: &KeyBuf, row: &RowWords<'_>| key_and_columns::<T, C>(key.as_bytes(), row);
            queue::take_first_by_index(inner, (table, index, wanted_by::<T, C>()), range, |_, _| true, decode)
        })
    }

    /// Deletes the rows, and returns how many there were. A transaction holds all that it deletes: with
    /// [`IndexScan::limit`] very many rows are deleted by several.
    ///
    /// # Errors
    /// See [`IndexScan`].
    pub fn delete<'t>(self, tx: &mut impl WriteTransaction<'t, E>) -> Result<usize> {
        let scan = self.by_index(Nothing);
        let table = scan.table;
        tx.statement(|inner| {
            let mut rows = Vec::new();
            scan.run_found(
                inner,
                |key, _| key.clone(),
                |raw, key| {
                    rows.push((key, raw));
                    ControlFlow::Continue(())
                },
            )?;
            maintain::delete_rows(inner, table, &rows)
        })
    }

    /// Returns the number of rows. Only the index is read, not the rows.
    ///
    /// # Errors
    /// See [`IndexScan`].
    pub fn count<'t>(self, tx: &mut impl ReadTransaction<'t, E>) -> Result<usize> {
        let (table, index) = (&self.index.table.core, &self.index.core);
        tx.statement(|inner| {
            table.check(inner.local)?;
            inner.check_index(table, index)?;
            let mut count = 0;
            let each = |()| {
                count += 1;
                ControlFlow::Continue(())
            };
            self.range.run(inner, &index.store, |_, _| (), each)?;
            Ok(count)
        })
    }

    fn by_index<W>(self, wanted: W) -> ByIndex<'h, E::Store, W> {
        let IndexScan { index, range, .. } = self;
        ByIndex { table: &index.table.core, index: &index.core, range, wanted }
    }
}

#[allow(private_interfaces, private_bounds, reason = "sealed: callers cannot name this trait")]
impl<T: Row, K: Key, C: Columns<T>, E: Engine> ReadAhead<E> for IndexScan<'_, T, K, C, E> {
    type Row = (T::Key, C);

    fn range(&mut self) -> &mut ScanRange {
        &mut self.range
    }

    fn read_ahead<Raw: ReadOf<E>>(
        &self,
        inner: &mut Inner<'_, Raw>,
        len: usize,
        mut each: impl FnMut(KeyBuf, (T::Key, C)),
    ) -> Result<()> {
        let (table, index) = (&self.index.table.core, &self.index.core);
        let scan = ByIndex { table, index, range: self.range.limited(len), wanted: wanted_by::<T, C>() };
        let mut rows = KnownRows::default();
        scan.read_with_entry_keys(
            inner,
            |_, _| true,
            decode::<T, C>,
            |entry_key, decoded| {
                rows.pass(decoded, |row| {
                    each(entry_key, row);
                    ControlFlow::Continue(())
                })
            },
        )?;
        rows.end(table)
    }

    fn into_owned(self) -> OwnedScan<impl ReadOwned<E, (T::Key, C)>> {
        let index = self.index.clone();
        OwnedScan {
            table: index.table.core.store.id(),
            range: self.range,
            read: move |inner: &mut Inner<'_, SnapshotOf<'static, E>>,
                        range,
                        len,
                        each: &mut dyn FnMut(KeyBuf, (T::Key, C))| {
                IndexScan::<T, K, C, E> { index: &index, range, columns: PhantomData }
                    .read_ahead(inner, len, each)
            },
        }
    }
}

impl<T: Row, K: Key, C, E: Engine> Clone for IndexScan<'_, T, K, C, E> {
    fn clone(&self) -> Self {
        IndexScan { index: self.index, range: self.range.clone(), columns: PhantomData }
    }
}

/// Decodes the key of an entry's row, and the columns that are wanted.
#[inline]
fn decode<T: Row, C: Columns<T>>(key: &KeyBuf, row: &RowWords<'_>) -> Decoded<(T::Key, C)> {
    or_key(key_and_columns::<T, C>(key.as_bytes(), row), key.as_bytes())
}

impl<T: Row, K: Key, C, E: Engine> fmt::Debug for IndexScan<'_, T, K, C, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexScan")
            .field("index", &self.index.name())
            .field("bounds", &self.range.bounds)
            .finish_non_exhaustive()
    }
}
