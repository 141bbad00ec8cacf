//! Scans of a table in the order of a secondary index.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{ControlFlow, RangeBounds};

use crate::Silo;
use ensilo_engine::{Direction, Engine, Read, ReadOf};
use ensilo_row::{Columns, Key, KeyBuf, KeyPrefix, Row};

use super::by_index::ByIndex;
use super::{Bounds, Flow, Found, Index, ScanFlow};
use crate::Result;
use crate::row_words::{RowWords, primary_key_of, whole};
use crate::transaction::{Inner, ReadTransaction};

/// A scan through a secondary index, to be narrowed and then run in a transaction. As to isolation it is like
/// [`Scan`](super::Scan).
///
/// # Errors
/// Its methods return the errors of every statement, see [`Table`](super::Table), and
/// [`Error::UnknownIndex`](crate::Error::UnknownIndex) when the index was dropped,
/// [`Error::IndexNotReady`](crate::Error::IndexNotReady) while it is built, or in a snapshot that is older than it,
/// [`Error::IndexBroken`](crate::Error::IndexBroken).
#[must_use = "a scan does nothing until it is run in a transaction"]
pub struct IndexScan<'h, T: Row, K: Key, C = T, E: Engine = Silo> {
    index: &'h Index<T, K, E>,
    bounds: Bounds,
    direction: Direction,
    limit: usize,
    columns: PhantomData<fn() -> C>,
}

impl<T: Row, K: Key, E: Engine> Index<T, K, E> {
    /// A scan of all rows in the order of the index.
    pub fn scan(&self) -> IndexScan<'_, T, K, T, E> {
        IndexScan::new(self, Bounds::ALL)
    }

    /// A scan of the rows whose indexed columns lie in `range`.
    #[inline]
    pub fn range(&self, range: impl RangeBounds<K>) -> IndexScan<'_, T, K, T, E> {
        IndexScan::new(self, Bounds::range(&range, |key, bytes| key.encode(bytes)).of_prefixes())
    }

    /// A scan of the rows whose indexed columns begin with these: `(a,)`, `(a, b)`, and so on.
    #[inline]
    pub fn prefix(&self, prefix: impl KeyPrefix<K>) -> IndexScan<'_, T, K, T, E> {
        let mut bytes = KeyBuf::new();
        prefix.append_prefix(&mut bytes);
        IndexScan::new(self, Bounds::prefix(bytes))
    }

    /// A scan of the rows with exactly these indexed columns: at most one if the index is unique and none of them is null.
    #[inline]
    pub fn equal(&self, key: &K) -> IndexScan<'_, T, K, T, E> {
        let mut bytes = KeyBuf::new();
        key.encode(&mut bytes);
        IndexScan::new(self, Bounds::prefix(bytes))
    }

    /// The first row with these indexed columns, or `None`: the row, if the index is unique.
    ///
    /// # Errors
    /// As [`IndexScan::for_each`].
    #[inline]
    pub fn get<'t>(&self, tx: &mut impl ReadTransaction<'t, E>, key: &K) -> Result<Option<T>> {
        self.equal(key).first(tx)
    }
}

impl<'h, T: Row, K: Key, E: Engine> IndexScan<'h, T, K, T, E> {
    #[inline]
    fn new(index: &'h Index<T, K, E>, bounds: Bounds) -> Self {
        IndexScan { index, bounds, direction: Direction::Forward, limit: usize::MAX, columns: PhantomData }
    }
}

impl<'h, T: Row, K: Key, C: Columns<T>, E: Engine> IndexScan<'h, T, K, C, E> {
    /// From the last entry to the first.
    #[inline]
    pub fn reverse(mut self) -> Self {
        self.direction = Direction::Reverse;
        self
    }

    /// At most `limit` rows.
    #[inline]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Only these columns of each row.
    #[inline]
    pub fn columns<D: Columns<T>>(self) -> IndexScan<'h, T, K, D, E> {
        let IndexScan { index, bounds, direction, limit, columns: _ } = self;
        IndexScan { index, bounds, direction, limit, columns: PhantomData }
    }

    /// Calls `each` with the columns of every row, until it returns [`ControlFlow::Break`].
    ///
    /// # Errors
    /// See [`IndexScan`].
    #[inline]
    pub fn for_each<'t, F: ScanFlow>(
        self,
        tx: &mut impl ReadTransaction<'t, E>,
        mut each: impl FnMut(C) -> F,
    ) -> Result<()> {
        self.run_rows(tx, |_, columns, _| each(columns).into_flow())
    }

    /// Calls `each` with every row, to be changed after the scan without looking it up, and its columns, until it returns
    /// [`ControlFlow::Break`].
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
        self.run_rows(tx, |key, columns, raw| each(Found::new(table, key, raw), columns).into_flow())
    }

    /// Calls `each` with the primary key of every row, until it returns [`ControlFlow::Break`]. The rows are not looked up.
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
            self.check(inner)?;
            let Some(bounds) = self.bounds.as_slices().filter(|_| self.limit > 0) else { return Ok(()) };
            let mut flow = Flow::new(self.limit, inner.local);
            let outcome = inner.raw.scan_to_read(
                &self.index.core.store,
                bounds,
                self.direction,
                |_, entry| T::Key::decode(primary_key_of(entry).as_bytes()),
                |_, key| flow.after(each(whole(key)).into_flow()),
            );
            outcome.map_err(|abort| inner.lost(abort))?;
            flow.end()
        })
    }

    /// The primary keys of all rows. The rows are not looked up.
    ///
    /// # Errors
    /// See [`IndexScan`].
    pub fn primary_keys<'t>(self, tx: &mut impl ReadTransaction<'t, E>) -> Result<Vec<T::Key>> {
        let mut keys = Vec::new();
        self.for_each_primary_key(tx, |key| keys.push(key))?;
        Ok(keys)
    }

    /// The columns of all rows.
    ///
    /// # Errors
    /// See [`IndexScan`].
    pub fn collect<'t>(self, tx: &mut impl ReadTransaction<'t, E>) -> Result<Vec<C>> {
        let mut rows = Vec::new();
        self.for_each(tx, |columns| rows.push(columns))?;
        Ok(rows)
    }

    /// The columns of the first row.
    ///
    /// # Errors
    /// See [`IndexScan`].
    #[inline]
    pub fn first<'t>(self, tx: &mut impl ReadTransaction<'t, E>) -> Result<Option<C>> {
        let mut first = None;
        self.limit(1).for_each(tx, |columns| first = Some(columns))?;
        Ok(first)
    }

    /// The first row, to be changed without looking it up, and its columns.
    ///
    /// # Errors
    /// See [`IndexScan`].
    #[inline]
    pub fn first_found<'t>(
        self,
        tx: &mut impl ReadTransaction<'t, E>,
    ) -> Result<Option<(Found<'h, 't, T, E>, C)>> {
        let mut first = None;
        self.limit(1).for_each_found(tx, |found, columns| first = Some((found, columns)))?;
        Ok(first)
    }

    /// How many rows there are. They are not looked up.
    ///
    /// # Errors
    /// See [`IndexScan`].
    pub fn count<'t>(self, tx: &mut impl ReadTransaction<'t, E>) -> Result<usize> {
        let mut count = 0;
        self.for_each_primary_key(tx, |_| count += 1)?;
        Ok(count)
    }

    fn check<Raw: ReadOf<E>>(&self, inner: &Inner<'_, Raw>) -> Result<()> {
        let table = &self.index.table.core;
        table.check(inner.local)?;
        self.index.core.check(&table.name, inner.local, inner.epoch_shown)
    }

    fn run_rows<'t>(
        self,
        tx: &mut impl ReadTransaction<'t, E>,
        mut each: impl FnMut(T::Key, C, E::Found) -> ControlFlow<()>,
    ) -> Result<()> {
        let IndexScan { index, bounds, direction, limit, .. } = self;
        let scan = ByIndex { table: &index.table.core, index: &index.core, bounds, direction, limit };
        let decode = |key: &KeyBuf, row: &RowWords<'_>| {
            let key = T::Key::decode(key.as_bytes())?;
            let columns = C::decode(&key, row)?;
            Ok((key, columns))
        };
        tx.statement(|inner| {
            scan.run(inner, |_, _| true, decode, |raw, (key, columns)| each(key, columns, raw))
        })
    }
}

impl<T: Row, K: Key, C, E: Engine> fmt::Debug for IndexScan<'_, T, K, C, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexScan")
            .field("index", &self.index.name())
            .field("bounds", &self.bounds)
            .finish_non_exhaustive()
    }
}
