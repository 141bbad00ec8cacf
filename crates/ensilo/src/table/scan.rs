//! Scans of a table in the order of its primary key.

use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::Silo;
use ensilo_engine::{Direction, Engine, ReadOf, RowRef, SnapshotOf, Store};
use ensilo_row::{AsKeyRange, Columns, KeyBuf, KeyPrefix, Row};

use super::{
    Bounds, Cursor, Found, OwnedScan, ReadAhead, ReadOwned, Rows, ScanFlow, ScanRange, Table, key_and_columns,
};
use crate::catalog::table_core::TableCore;
use crate::long_values::{Nothing, wanted_by};
use crate::row_words::{RowWords, key_of_bytes};
use crate::transaction::{Inner, ReadTransaction, WriteTransaction};
use crate::unknown_value::{Decoded, KnownRows, or_key};
use crate::{Result, maintain, queue};

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

    /// Returns a scan of the rows with primary keys in `range`, whose bounds are given as keys are everywhere, with `&str` for
    /// texts: `"a".."b"`, `(7, "a")..`.
    #[inline]
    pub fn range(&self, range: impl AsKeyRange<T::Key>) -> Scan<'_, T, T, E> {
        self.scan_within(Bounds::range(&range))
    }

    /// Returns a scan of the rows with primary keys that begin with these columns, each as a whole: `(a,)`, `(a, b)`, and so
    /// on. Texts that begin with "A" are a range: `"A".."B"`.
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

    /// Ends the scan after its first row, unless it has no rows at all.
    #[inline]
    fn limit_to_first(mut self) -> Self {
        self.range = self.range.limited(1);
        self
    }

    /// Reads only these columns of each row: only the words that hold them.
    #[inline]
    pub fn columns<D: Columns<T>>(self) -> Scan<'h, T, D, E> {
        Scan { table: self.table, range: self.range, columns: PhantomData }
    }

    /// Returns a cursor, which gives the primary key and the columns of one row at a time: the transaction can be used
    /// for other things in between.
    pub fn cursor(self) -> Cursor<Self, E> {
        Cursor::new(self)
    }

    /// Returns an iterator over the primary keys and the columns of the rows. As long as it lasts the transaction cannot
    /// be used for anything else: that is what [`Scan::cursor`] is for.
    ///
    /// ```
    /// # use ensilo::{Database, Row};
    /// # #[derive(Row)] #[row(table = "account")] struct Account { #[row(key)] id: u32, balance: i64 }
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = Database::in_memory()?;
    /// # let accounts = db.table::<Account>()?;
    /// db.read(|tx| {
    ///     for row in accounts.range(10..20).reverse().iter(tx) {
    ///         let (id, account) = row?;
    ///         println!("{id}: {}", account.balance);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok(()) }
    /// ```
    pub fn iter<'x, 't, Tx: ReadTransaction<'t, E>>(self, tx: &'x mut Tx) -> Rows<'x, 't, Tx, Self, E> {
        Rows::new(self, tx)
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
        self.run(tx, |key, columns| each(key, columns).into_flow())
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
        self.run_found(tx, |key, columns, raw| each(Found::new(table, key, raw), columns).into_flow())
    }

    /// Returns the primary key and the columns of the first row, or `None`.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`].
    #[inline]
    pub fn first<'t>(self, tx: &mut impl ReadTransaction<'t, E>) -> Result<Option<(T::Key, C)>> {
        let mut first = None;
        self.limit_to_first().run(tx, |key, columns| {
            first = Some((key, columns));
            ControlFlow::Break(())
        })?;
        Ok(first)
    }

    /// Returns the primary key and the columns of the last row, or `None`: the first one in the other direction.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`].
    #[inline]
    pub fn last<'t>(mut self, tx: &mut impl ReadTransaction<'t, E>) -> Result<Option<(T::Key, C)>> {
        self.range.turn();
        self.first(tx)
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
        self.limit_to_first().run_found(tx, |key, columns, raw| {
            first = Some((Found::new(table, key, raw), columns));
            ControlFlow::Break(())
        })?;
        Ok(first)
    }

    /// Deletes the first row that no other open transaction has taken, and returns its primary key and its
    /// columns; `None` if there is none. With [`Scan::reverse`] it is the last such row.
    ///
    /// So a table is a queue: any number of consumers take rows beside each other, and beside producers that
    /// insert, without conflicts between them. It is what
    /// `DELETE ... ORDER BY ... LIMIT 1 RETURNING ... FOR UPDATE SKIP LOCKED` is in SQL.
    /// [`Table::watch`] waits for rows to come.
    ///
    /// A row is *taken* from this call until its transaction has ended. If that commits, the row is gone.
    /// If it does not, because of an error, a panic or a conflict, because its session was dropped or because
    /// the process ended, the row is there again for the next consumer. Nobody waits for a row that is taken,
    /// so consumers cannot block each other; a consumer that works on a row inside of its transaction for
    /// minutes keeps it from the others for minutes. Only this method heeds it: other statements read, change
    /// and delete such a row as any other, and one of two transactions that change it aborts at its commit.
    ///
    /// With [`Scan::limit`] it looks at so many rows at most, those that are passed over among them. The cost
    /// grows with the rows that are passed over: all that stand before the one that is taken and that other
    /// transactions have taken.
    ///
    /// ```
    /// # use ensilo::{Database, Error, Row, Table};
    /// # #[derive(Row)] #[row(table = "job")] struct Job { #[row(key)] id: u64, text: String }
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = Database::in_memory()?;
    /// # let jobs: Table<Job> = db.create_table()?;
    /// # db.transact(|tx| { for id in 1..=2 { jobs.insert(tx, &Job { id, text: String::new() })?; } Ok(()) })?;
    /// let mut session = db.begin()?;
    /// let first = jobs.scan().take_first(&mut session)?;
    /// assert_eq!(first.map(|(id, _)| id), Some(1));
    /// // Another consumer passes it over, and finds nothing after the second one.
    /// let others = db.transact(|tx| Ok([jobs.scan().take_first(tx)?, jobs.scan().take_first(tx)?]))?;
    /// assert_eq!(others.map(|taken| taken.map(|(id, _)| id)), [Some(2), None]);
    /// // Unless the first one gives its row up.
    /// session.rollback()?;
    /// assert!(db.transact(|tx| jobs.scan().take_first(tx))?.is_some());
    /// # Ok(()) }
    /// ```
    ///
    /// # Giving a row back
    /// A consumer that undoes its own take, by an error, ends its own wait as well and finds the same row
    /// again. To give a row back for later it does not return an error: it inserts the row again in the same
    /// transaction, with a later time and a counter, and commits. The example `job_queue` does so. A table
    /// without a key of its own gives a row that is inserted again a new [`RowId`](crate::RowId), so a queue
    /// should have a key.
    ///
    /// # Long work
    /// In a closure of [`Database::transact`](crate::Database::transact) the work may run more than once: it
    /// should be short there, and rows that others write are best read last. For long work, a consumer takes
    /// the row with a [`Session`](crate::Session), works between the statements, and records the result
    /// shortly before the commit. If that ends with a conflict, the row is there again.
    ///
    /// # Durability
    /// With [`Durability::Visible`](crate::Durability::Visible), or before its [`Ticket`](crate::Ticket) is
    /// stored, a crash gives a row back though its transaction has committed: its work is then done again.
    /// Effects outside the database belong behind an answer with
    /// [`Durability::Stored`](crate::Durability::Stored). A crash between that answer and such an effect
    /// leaves the effect out, so what has to happen is better recorded in a table by the same transaction.
    ///
    /// # Isolation
    /// The row that is returned is read and deleted serializably, like by [`Table::get`] and
    /// [`Table::delete`]. That it is the first is not protected, nor is `None`: the transaction does not
    /// depend on the rows that it has passed over, and commits also if one of them is there again, or if a
    /// row has come before this one meanwhile. It sees its own writes. Over [`ermia`](crate::ermia) it passes
    /// over rows that were inserted or changed since it began; where there are no others, it ends with
    /// [`Error::Aborted`](crate::Error::Aborted), and the next attempt finds them.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`]. [`Error::UnknownValue`](crate::Error::UnknownValue) where the first row has a value that
    /// the program's types do not have: the row stays where it is and is met again, until somebody takes it who knows the value, or
    /// deletes it.
    pub fn take_first<'t>(self, tx: &mut impl WriteTransaction<'t, E>) -> Result<Option<(T::Key, C)>> {
        tx.statement(|inner| {
            let table = (&*self.table.core, wanted_by::<T, C>());
            queue::take_first(inner, table, self.range, |key, row| {
                key_and_columns::<T, C>(key.as_bytes(), row)
            })
        })
    }

    /// Deletes the rows, and returns how many there were. A transaction holds all that it deletes: with
    /// [`Scan::limit`] very many rows are deleted by several.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`].
    pub fn delete<'t>(self, tx: &mut impl WriteTransaction<'t, E>) -> Result<usize> {
        let core = &self.table.core;
        tx.statement(|inner| {
            core.check(inner.local)?;
            let mut rows = Vec::new();
            self.range.run_found_rows(
                inner,
                (core, Nothing),
                |key, _| key_of_bytes(key),
                |raw, key| {
                    rows.push((key, raw));
                    ControlFlow::Continue(())
                },
            )?;
            maintain::delete_rows(inner, core, &rows)
        })
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
            let each = |()| {
                count += 1;
                ControlFlow::Continue(())
            };
            self.range.run_rows(inner, (core, Nothing), |_, _| (), each)?;
            Ok(count)
        })
    }

    /// Returns the table, and what of it the scan goes through.
    pub(crate) fn into_parts(self) -> (&'h Arc<TableCore<E::Store>>, ScanRange) {
        (&self.table.core, self.range)
    }

    /// Calls `each` with every row.
    #[inline]
    fn run<'t>(
        self,
        tx: &mut impl ReadTransaction<'t, E>,
        mut each: impl FnMut(T::Key, C) -> ControlFlow<()>,
    ) -> Result<()> {
        let core = &self.table.core;
        tx.statement(|inner| {
            core.check(inner.local)?;
            let mut rows = KnownRows::default();
            self.range.run_rows(inner, (core, wanted_by::<T, C>()), decode::<T, C>, |decoded| {
                rows.pass(decoded, |(key, columns)| each(key, columns))
            })?;
            rows.end(core)
        })
    }

    /// Calls `each` with every row, and a handle that is good for writing.
    #[inline]
    fn run_found<'t>(
        self,
        tx: &mut impl ReadTransaction<'t, E>,
        mut each: impl FnMut(T::Key, C, E::Found) -> ControlFlow<()>,
    ) -> Result<()> {
        let core = &self.table.core;
        tx.statement(|inner| {
            core.check(inner.local)?;
            let mut rows = KnownRows::default();
            self.range.run_found_rows(
                inner,
                (core, wanted_by::<T, C>()),
                decode::<T, C>,
                |raw, decoded| rows.pass(decoded, |(key, columns)| each(key, columns, raw)),
            )?;
            rows.end(core)
        })
    }
}

#[allow(private_interfaces, private_bounds, reason = "sealed: callers cannot name this trait")]
impl<T: Row, C: Columns<T>, E: Engine> ReadAhead<E> for Scan<'_, T, C, E> {
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
        let core = &self.table.core;
        core.check(inner.local)?;
        let mut rows = KnownRows::default();
        let decode =
            |key: &[u8], row: RowRef<'_>| decode::<T, C>(key, row).map(|row| (key_of_bytes(key), row));
        self.range.limited(len).run_rows(inner, (core, wanted_by::<T, C>()), decode, |decoded| {
            rows.pass(decoded, |(key, row)| {
                each(key, row);
                ControlFlow::Continue(())
            })
        })?;
        rows.end(core)
    }

    fn into_owned(self) -> OwnedScan<impl ReadOwned<E, (T::Key, C)>> {
        let table = self.table.clone();
        OwnedScan {
            table: table.core.store.id(),
            range: self.range,
            read: move |inner: &mut Inner<'_, SnapshotOf<'static, E>>,
                        range,
                        len,
                        each: &mut dyn FnMut(KeyBuf, (T::Key, C))| {
                Scan::<T, C, E> { table: &table, range, columns: PhantomData }.read_ahead(inner, len, each)
            },
        }
    }
}

/// Decodes a row's key, and the columns that are wanted.
#[inline]
fn decode<T: Row, C: Columns<T>>(key: &[u8], row: RowRef<'_>) -> Decoded<(T::Key, C)> {
    or_key(key_and_columns::<T, C>(key, &RowWords(row)), key)
}

impl<T: Row, C, E: Engine> Clone for Scan<'_, T, C, E> {
    fn clone(&self) -> Self {
        Scan { table: self.table, range: self.range.clone(), columns: PhantomData }
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
