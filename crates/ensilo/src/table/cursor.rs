//! Scans that give one row at a time, with other statements of the transaction in between.
//!
//! A cursor reads rows ahead, in batches that grow. What was read ahead counts only in the transaction that has read it,
//! and as long as that has not written since: afterwards the cursor goes on behind the row that it gave last, by a scan
//! that sees the writes. So each row is what a scan that begins with it would give.

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;

use ensilo_engine::Engine;
use ensilo_row::KeyBuf;

use self::sealed::ReadAhead;
use super::ScanRange;
use crate::local::{CursorUse, TransactionStep};
use crate::transaction::ReadTransaction;
use crate::{Result, Silo};

/// How many rows are read at once at first, where nothing is written in between, and at most.
const FIRST_BATCH_LEN: usize = 8;
const BATCH_LEN_MAX: usize = 256;

/// A scan that gives one row at a time. [`Scan::cursor`](crate::Scan::cursor),
/// [`IndexScan::cursor`](crate::IndexScan::cursor) and [`DynamicScan::cursor`](crate::DynamicScan::cursor) make one.
///
/// Between two rows the transaction may do anything else: look up rows of other tables, change or delete the row that
/// came last, or any other. The cursor sees that: a row that is deleted before its turn does not come, one that is
/// inserted behind the last one does. So a loop that moves rows forward, in the order of the scan, meets them again.
///
/// ```
/// # use ensilo::{Database, Row};
/// # #[derive(Row)] #[row(table = "account")] struct Account { #[row(key)] id: u32, owner: u32, balance: i64 }
/// # #[derive(Row)] #[row(table = "owner")] struct Owner { #[row(key)] id: u32, is_gone: bool }
/// # fn main() -> ensilo::Result<()> {
/// # let db = Database::in_memory()?;
/// # let (accounts, owners) = (db.table::<Account>()?, db.table::<Owner>()?);
/// # db.transact(|tx| { for id in 0..9 { owners.insert(tx, &Owner { id, is_gone: id % 2 == 0 })?;
/// #     accounts.insert(tx, &Account { id, owner: id, balance: 1 })?; } Ok(()) })?;
/// let deleted = db.transact(|tx| {
///     let mut deleted = 0;
///     let mut cursor = accounts.scan().cursor();
///     while let Some((id, account)) = cursor.next(tx)? {
///         if owners.get(tx, account.owner)?.is_none_or(|owner| owner.is_gone) {
///             accounts.delete(tx, id)?;
///             deleted += 1;
///         }
///     }
///     Ok(deleted)
/// })?;
/// assert_eq!(deleted, 5);
/// # Ok(()) }
/// ```
///
/// # Isolation
/// As that of the scan. Up to 256 rows are read before their turn, and count as read.
///
/// A cursor can be used in one transaction after the other: it goes on behind the last row that it gave in those that have committed. What
/// it gave in one that was undone, by a conflict or an error, it gives again: so a closure that is run again gets the same rows,
/// unless others have changed them. It belongs to one transaction at a time: in another one, begun while the first is under way or prepared, it gives
/// the same rows again. What belongs together is what one transaction has read.
///
/// ```
/// # use ensilo::{Database, Row};
/// # #[derive(Row)] #[row(table = "visit")] struct Visit { #[row(key)] id: u32, is_counted: bool }
/// # fn main() -> ensilo::Result<()> {
/// # let db = Database::in_memory()?;
/// # let visits = db.table::<Visit>()?;
/// # db.transact(|tx| (0..2500).try_for_each(|id| visits.insert(tx, &Visit { id, is_counted: false }).map(drop)))?;
/// let mut cursor = visits.scan().cursor();
/// // A thousand rows in each transaction, beside others that change them.
/// while db.transact(|tx| {
///     for _ in 0..1000 {
///         let Some((id, _)) = cursor.next(tx)? else { return Ok(false) };
///         visits.update(tx, id, |visit: &mut Visit| visit.is_counted = true)?;
///     }
///     Ok(true)
/// })? {}
/// # assert_eq!(db.transact(|tx| Ok(visits.scan().rows(tx)?.iter().filter(|visit| visit.is_counted).count()))?, 2500);
/// # Ok(()) }
/// ```
#[must_use = "a cursor reads nothing before it is asked for a row"]
pub struct Cursor<S: ReadAhead<E>, E: Engine = Silo> {
    scan: S,
    /// What it comes back to if the transaction that has used it last was undone.
    last_use: Option<LastUse>,
    /// What was read ahead: rows, and their keys in the order of the scan.
    rows: VecDeque<(KeyBuf, S::Row)>,
    /// When that was read.
    read_at: Option<TransactionStep>,
    batch_len: usize,
}

/// The transaction that has used a cursor last, and what was left of the scan when that began.
struct LastUse {
    transaction: CursorUse,
    range: ScanRange,
}

impl<S: ReadAhead<E>, E: Engine> Cursor<S, E> {
    pub(crate) fn new(scan: S) -> Self {
        Cursor { scan, last_use: None, rows: VecDeque::new(), read_at: None, batch_len: FIRST_BATCH_LEN }
    }

    /// Returns the next row, as the scan gives it: with its primary key from a [`Scan`](crate::Scan), an
    /// [`IndexScan`](crate::IndexScan) or a [`DynamicScan`](crate::DynamicScan). `None` is the end.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`](crate::Table), and, for an index, those of
    /// [`IndexScan`](crate::IndexScan).
    pub fn next<'t>(&mut self, tx: &mut impl ReadTransaction<'t, E>) -> Result<Option<S::Row>> {
        tx.statement(|inner| {
            self.enter(inner.local.cursor_use());
            let now = inner.local.transaction_step();
            if self.read_at != Some(now) {
                self.begin_anew();
            }
            let len = self.batch_len.min(self.scan.range().limit);
            if self.rows.is_empty() && len > 0 {
                let rows = &mut self.rows;
                let read = self.scan.read_ahead(inner, len, |key, row| rows.push_back((key, row)));
                if let Err(error) = read
                    && (rows.is_empty() || inner.is_ended_by(&error))
                {
                    rows.clear();
                    return Err(error);
                }
                // What cannot be read behind these rows is met again when it is their turn.
                self.read_at = Some(now);
                self.batch_len = (self.batch_len * 2).min(BATCH_LEN_MAX);
            }
            Ok(self.rows.pop_front().map(|(key, row)| {
                self.pass(key);
                row
            }))
        })
    }

    /// Begins to be used in a transaction, unless it was used there before: behind what it gave in those that have committed.
    fn enter(&mut self, current: &CursorUse) {
        if let Some(last) = &self.last_use {
            if last.transaction.is(current) {
                return;
            }
            if !last.transaction.has_committed() {
                self.scan.range().clone_from(&last.range);
            }
        }
        self.last_use = Some(LastUse { transaction: current.clone(), range: self.scan.range().clone() });
    }

    /// Gives up what was read ahead.
    fn begin_anew(&mut self) {
        if self.read_at.take().is_some() {
            self.batch_len = 1;
        }
        self.rows.clear();
    }

    /// Goes on behind this row.
    fn pass(&mut self, key: KeyBuf) {
        self.scan.range().pass(key, 1);
    }
}

/// The rows of a scan, for `for` loops that do nothing else with the transaction. [`Scan::iter`](crate::Scan::iter) and
/// [`IndexScan::iter`](crate::IndexScan::iter) make one.
///
/// After an error there is nothing more to come.
pub struct Rows<'x, 't, Tx, S: ReadAhead<E>, E: Engine = Silo> {
    tx: &'x mut Tx,
    /// `None` after an error.
    cursor: Option<Cursor<S, E>>,
    transaction: PhantomData<&'t ()>,
}

impl<'x, 't, Tx: ReadTransaction<'t, E>, S: ReadAhead<E>, E: Engine> Rows<'x, 't, Tx, S, E> {
    pub(crate) fn new(scan: S, tx: &'x mut Tx) -> Self {
        Rows { tx, cursor: Some(Cursor::new(scan)), transaction: PhantomData }
    }
}

impl<'t, Tx: ReadTransaction<'t, E>, S: ReadAhead<E>, E: Engine> Iterator for Rows<'_, 't, Tx, S, E> {
    type Item = Result<S::Row>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.cursor.as_mut()?.next(self.tx);
        if row.is_err() {
            self.cursor = None;
        }
        row.transpose()
    }
}

impl<S: ReadAhead<E> + fmt::Debug, E: Engine> fmt::Debug for Cursor<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("scan", &self.scan).finish_non_exhaustive()
    }
}

impl<Tx, S: ReadAhead<E> + fmt::Debug, E: Engine> fmt::Debug for Rows<'_, '_, Tx, S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("cursor", &self.cursor).finish_non_exhaustive()
    }
}

pub(crate) mod sealed {
    use ensilo_engine::{Engine, ReadOf, SnapshotOf, TableId};
    use ensilo_row::KeyBuf;

    use crate::Result;
    use crate::table::ScanRange;
    use crate::transaction::Inner;

    /// A scan that a cursor or a stream can be made of.
    #[allow(private_interfaces, private_bounds, reason = "sealed: callers cannot name this trait")]
    pub trait ReadAhead<E: Engine> {
        /// What it gives for each row.
        type Row;

        fn range(&mut self) -> &mut ScanRange;

        /// Passes the first `len` rows to `each`, with their keys in the order of the scan, up to one that cannot be read.
        fn read_ahead<Raw: ReadOf<E>>(
            &self,
            inner: &mut Inner<'_, Raw>,
            len: usize,
            each: impl FnMut(KeyBuf, Self::Row),
        ) -> Result<()>;

        /// Returns the scan with handles of its own, to be run by pieces in a snapshot.
        fn into_owned(self) -> OwnedScan<impl ReadOwned<E, Self::Row>>;
    }

    /// What a scan reads, and how: a function with handles of its own.
    #[allow(private_interfaces, reason = "sealed: callers cannot name it")]
    #[derive(Debug)]
    pub struct OwnedScan<F> {
        /// The table whose rows it gives.
        pub(crate) table: TableId,
        pub(crate) range: ScanRange,
        pub(crate) read: F,
    }

    /// Does in a snapshot what [`ReadAhead::read_ahead`] does, for the scan of this range.
    #[allow(private_bounds, reason = "sealed: callers cannot name this trait")]
    pub trait ReadOwned<E: Engine, R>:
        Fn(&mut Inner<'_, SnapshotOf<'static, E>>, ScanRange, usize, &mut dyn FnMut(KeyBuf, R)) -> Result<()>
        + Send
        + Sync
        + 'static
    {
    }

    impl<E: Engine, R, F> ReadOwned<E, R> for F where
        F: Fn(
                &mut Inner<'_, SnapshotOf<'static, E>>,
                ScanRange,
                usize,
                &mut dyn FnMut(KeyBuf, R),
            ) -> Result<()>
            + Send
            + Sync
            + 'static
    {
    }
}
