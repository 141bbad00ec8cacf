//! Scans of a table in the order of its primary key.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{ControlFlow, RangeBounds};

use crate::Silo;
use ensilo_engine::{Direction, Engine, RowRef};
use ensilo_row::{Columns, Key, KeyBuf, KeyPrefix, Malformed, Row};

use super::{Bounds, Found, ScanFlow, ScanRange, Table};
use crate::Result;
use crate::row_words::{RowWords, whole};
use crate::transaction::ReadTransaction;

/// A scan of a table in the order of its primary key, to be narrowed and then run in a transaction.
///
/// It sees the transaction's own writes. In a [`Transaction`](crate::Transaction) the whole range that it
/// went through is protected against phantoms (Silo (SOSP 2013) §4.6): if rows came or went in the range, or
/// close to it, the transaction aborts at its commit. Inserts of other transactions count even if they have
/// not committed or were undone. Of two transactions that scan one range and insert into it, both may abort.
///
/// ```
/// # use ensilo::{Database, Row, Table};
/// # #[derive(Row)] #[row(table = "line")] struct Line { #[row(key)] order: u32, #[row(key)] number: u8, amount: i64 }
/// # fn main() -> ensilo::Result<()> {
/// # let db = Database::in_memory()?;
/// # let lines: Table<Line> = db.create_table()?;
/// # db.transact(|tx| { for number in 0..5 { lines.insert(tx, &Line { order: 7, number, amount: 10 })?; } Ok(()) })?;
/// let (sum, last) = db.transact(|tx| {
///     let mut sum = 0;
///     lines.prefix((7,)).for_each(tx, |_key, line| sum += line.amount)?;
///     let last = lines.range((7, 0)..=(7, 3)).reverse().first(tx)?;
///     Ok((sum, last.map(|(key, _)| key)))
/// })?;
/// assert_eq!((sum, last), (50, Some((7, 3))));
/// # Ok(()) }
/// ```
#[must_use = "a scan does nothing until it is run in a transaction"]
pub struct Scan<'h, T: Row, C = T, E: Engine = Silo> {
    table: &'h Table<T, E>,
    range: ScanRange,
    columns: PhantomData<fn() -> C>,
}

impl<T: Row, E: Engine> Table<T, E> {
    /// Returns a scan of all rows.
    pub fn scan(&self) -> Scan<'_, T, T, E> {
        self.scan_within(Bounds::ALL)
    }

    /// Returns a scan of the rows with primary keys in `range`.
    #[inline]
    pub fn range(&self, range: impl RangeBounds<T::Key>) -> Scan<'_, T, T, E> {
        self.scan_within(Bounds::range(&range, |key, bytes| key.encode(bytes)))
    }

    /// Returns a scan of the rows with primary keys that begin with these columns: `(a,)`, `(a, b)`, and so
    /// on.
    #[inline]
    pub fn prefix(&self, prefix: impl KeyPrefix<T::Key>) -> Scan<'_, T, T, E> {
        let mut bytes = KeyBuf::new();
        prefix.append_prefix(&mut bytes);
        self.scan_within(Bounds::prefix(bytes))
    }

    #[inline]
    fn scan_within(&self, bounds: Bounds) -> Scan<'_, T, T, E> {
        Scan { table: self, range: ScanRange::new(bounds), columns: PhantomData }
    }
}

impl<'h, T: Row, C: Columns<T>, E: Engine> Scan<'h, T, C, E> {
    /// Scans from the last row to the first.
    #[inline]
    pub fn reverse(mut self) -> Self {
        self.range.direction = Direction::Reverse;
        self
    }

    /// Ends the scan after at most `limit` rows. The range behind the last one is not protected against
    /// changes.
    #[inline]
    pub fn limit(mut self, limit: usize) -> Self {
        self.range.limit = limit;
        self
    }

    /// Reads only these columns of each row: only the words that hold them.
    #[inline]
    pub fn columns<D: Columns<T>>(self) -> Scan<'h, T, D, E> {
        Scan { table: self.table, range: self.range, columns: PhantomData }
    }

    /// Calls `each` with the primary key and the columns of every row, until it returns
    /// [`ControlFlow::Break`].
    ///
    /// # Errors
    /// Those of every statement, see [`Table`].
    #[inline]
    pub fn for_each<'t, F: ScanFlow>(
        self,
        tx: &mut impl ReadTransaction<'t, E>,
        mut each: impl FnMut(T::Key, C) -> F,
    ) -> Result<()> {
        self.run::<false>(tx, |key, columns, _| each(key, columns).into_flow())
    }

    /// Calls `each` with every row and its columns, until it returns [`ControlFlow::Break`]. The row can be
    /// changed after the scan without another look-up.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`].
    #[inline]
    pub fn for_each_found<'t, F: ScanFlow>(
        self,
        tx: &mut impl ReadTransaction<'t, E>,
        mut each: impl FnMut(Found<'h, 't, T, E>, C) -> F,
    ) -> Result<()> {
        let table = self.table;
        self.run::<true>(tx, |key, columns, raw| each(Found::new(table, key, raw), columns).into_flow())
    }

    /// Returns the primary key and the columns of the first row, or `None`.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`].
    #[inline]
    pub fn first<'t>(self, tx: &mut impl ReadTransaction<'t, E>) -> Result<Option<(T::Key, C)>> {
        let mut first = None;
        self.limit(1).run::<false>(tx, |key, columns, _| {
            first = Some((key, columns));
            ControlFlow::Break(())
        })?;
        Ok(first)
    }

    /// Returns the first row and its columns, or `None`. The row can be changed without another look-up.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`].
    #[inline]
    pub fn first_found<'t>(
        self,
        tx: &mut impl ReadTransaction<'t, E>,
    ) -> Result<Option<(Found<'h, 't, T, E>, C)>> {
        let table = self.table;
        let mut first = None;
        self.limit(1).run::<true>(tx, |key, columns, raw| {
            first = Some((Found::new(table, key, raw), columns));
            ControlFlow::Break(())
        })?;
        Ok(first)
    }

    /// Returns the primary keys and columns of all rows.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`].
    pub fn collect<'t>(self, tx: &mut impl ReadTransaction<'t, E>) -> Result<Vec<(T::Key, C)>> {
        let mut rows = Vec::new();
        self.for_each(tx, |key, columns| rows.push((key, columns)))?;
        Ok(rows)
    }

    /// Returns the columns of all rows.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`].
    pub fn rows<'t>(self, tx: &mut impl ReadTransaction<'t, E>) -> Result<Vec<C>> {
        let mut rows = Vec::new();
        self.for_each(tx, |_, columns| rows.push(columns))?;
        Ok(rows)
    }

    /// Returns the number of rows.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`].
    pub fn count<'t>(self, tx: &mut impl ReadTransaction<'t, E>) -> Result<usize> {
        let core = &self.table.core;
        tx.statement(|inner| {
            core.check(inner.local)?;
            let mut count = 0;
            let each = |_, ()| {
                count += 1;
                ControlFlow::Continue(())
            };
            self.range.run(inner, &core.store, false, |_, _| (), each)?;
            Ok(count)
        })
    }

    /// Calls `each` with every row, and a handle that is good for writing if `MAY_WRITE` says so.
    #[inline]
    fn run<'t, const MAY_WRITE: bool>(
        self,
        tx: &mut impl ReadTransaction<'t, E>,
        mut each: impl FnMut(T::Key, C, E::Found) -> ControlFlow<()>,
    ) -> Result<()> {
        let core = &self.table.core;
        tx.statement(|inner| {
            core.check(inner.local)?;
            let decode = |key: &[u8], row: RowRef<'_>| -> std::result::Result<_, Malformed> {
                let key = T::Key::decode(key)?;
                let columns = C::decode(&key, &RowWords(row))?;
                Ok((key, columns))
            };
            let each = |raw, decoded| {
                let (key, columns) = whole(decoded);
                each(key, columns, raw)
            };
            self.range.run(inner, &core.store, MAY_WRITE, decode, each)
        })
    }
}

impl<T: Row, C, E: Engine> fmt::Debug for Scan<'_, T, C, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan")
            .field("table", &self.table.name())
            .field("bounds", &self.range.bounds)
            .finish_non_exhaustive()
    }
}
