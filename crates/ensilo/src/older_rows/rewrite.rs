//! Writing older rows anew, as rows of the schema as it is.
//!
//! It is a pass over the table ([`RowPass`]): a look finds which rows are older, without depending on them, and each of these is then read and put in its own
//! place, as a whole (O2).

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ensilo_engine::{Abort, AbortReason, Engine, Store, TransactionOf};
use ensilo_row::KeyBuf;

use super::is_older;
use crate::catalog::table_core::TableCore;
use crate::database::Database;
use crate::maintain::{copy_row, put_copied_row};
use crate::outcome::Visible;
use crate::queue;
use crate::row_pass::{FoundRow, PassTarget, RowPass};
use crate::row_words::key_of_bytes;
use crate::table::{Bounds, ScanRange};
use crate::transaction::Inner;
use crate::{Error, Result};

/// So long it rests at most between two transactions.
const REST_MAX: Duration = Duration::from_millis(100);

/// What has come of rows of an older version of their table, so far or in the end.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RewrittenRows {
    /// How many rows of the table were looked at. Those that others write meanwhile may be passed over.
    pub looked_at: u64,
    /// How many of them were older, and were written anew.
    pub rewritten: u64,
    /// How many stay as they are until the next call: because others were using them all the time, or for the reason that the error in the end says.
    pub postponed: u64,
}

impl<E: Engine> Database<E> {
    /// Writes all rows of a table anew that are of older columns, as rows of those that the table has now, and returns when that is stored. A table whose
    /// columns were never changed has none.
    ///
    /// It is not needed: older rows are read as ever, and each becomes a row of the new columns when it is written the next time. But until then its
    /// reads cost more, all of the row being read and converted whatever is asked for, and what was in columns that were dropped is still in the files. It leaves them with
    /// the next checkpoint; but not as long as the [change feed](Database::changes) keeps log files from before, nor where rows were postponed.
    ///
    /// ```
    /// use ensilo::{ColumnType, Database, SchemaChange};
    ///
    /// # #[derive(ensilo::Row)] #[row(table = "account")] struct Account { #[row(key)] id: u32, balance: i64 }
    /// # fn main() -> ensilo::Result<()> {
    /// let db = Database::in_memory()?;
    /// # let accounts = db.table::<Account>()?;
    /// # db.transact(|tx| (0..300).try_for_each(|id| accounts.insert(tx, &Account { id, balance: 1 }).map(drop)))?;
    /// db.change_table("account", &SchemaChange::new().add("level", ColumnType::U8, 1u8))?;
    /// let background = std::thread::spawn(move || db.rewrite_older_rows("account"));
    /// let rows = background.join().expect("it does not panic")?;
    /// assert_eq!((rows.rewritten, rows.postponed), (300, 0));
    /// # Ok(()) }
    /// ```
    ///
    /// Other requests go first: it works by transactions of 128 rows at most, and fewer after a conflict, and rests after each for as long as that has taken,
    /// up to 100 ms. A row that others keep using stays, and is counted, but for one that a [prepared](crate::Session::prepare) transaction is to write; those
    /// who write it make it a new one anyway. Who changes or reads such a row at the same time may meet a conflict and be tried again, as beside every other
    /// writer; a session, such as one whose transaction has [taken](crate::generic::Scan::take_first) the row, has to do that by itself.
    ///
    /// For consumers of the [change feed](Database::changes) a row that is written anew is a change to the same values. A crash leaves some rows rewritten and
    /// others not, and the next call goes on. The table keeps note of the columns that it had.
    ///
    /// # Errors
    /// Those of [`Database::transact`]; [`Error::UnknownTable`]; [`Error::TableChanged`] when the table is changed or truncated meanwhile: call it again.
    ///
    /// [`Error::RowTooLarge`], after all other rows, when one is longer than a row may be with what the new columns add. [`Error::RowUnreadable`] when one cannot
    /// be read: where it had left memory and cannot be read back from the disk, this ends the pass, and the rows behind it stay as they are; where its
    /// bytes are none of its older columns, which is damage, it stays, the others are rewritten, and the error names it. [`Error::Aborted`] when rows cannot
    /// even be looked at, because another transaction keeps one of them locked: this ends the pass, too.
    ///
    /// What was rewritten before an error is stored when it is returned.
    pub fn rewrite_older_rows(&self, table: &str) -> Result<RewrittenRows> {
        self.rewrite_older_rows_while(table, |_| true)
    }

    /// Like [`Database::rewrite_older_rows`], and calls `goes_on` after each transaction with what has come of it so far: to show how far it is, or to end it
    /// by `false`. [`TableStatistics::records`](crate::TableStatistics::records) says how many rows the table has.
    ///
    /// # Errors
    /// As [`Database::rewrite_older_rows`].
    pub fn rewrite_older_rows_while(
        &self,
        table: &str,
        mut goes_on: impl FnMut(&RewrittenRows) -> bool,
    ) -> Result<RewrittenRows> {
        if self.shared.read_only().is_some() {
            return Err(Error::ReadOnly);
        }
        let level = self.shared.level_here(None)?;
        let table = self.table_core(table)?;
        let mut rows = RewrittenRows::default();
        if table.older.is_none() {
            return Ok(rows);
        }
        let mut pass = RowPass::new(OlderRowsOf { table, range: ScanRange::new(Bounds::ALL) });
        let outcome = loop {
            let begin = Instant::now();
            match pass.step(&self.shared) {
                Ok(step) => {
                    rows.looked_at += step.looked_at;
                    rows.rewritten += step.changed;
                    rows.postponed += u64::from(step.is_postponed);
                    if !goes_on(&rows) || !step.may_have_more {
                        break pass.failure.take().map_or(Ok(()), Err);
                    }
                }
                Err(error) => break Err(error),
            }
            thread::sleep(begin.elapsed().min(REST_MAX));
        };
        // Also what was written before an error is stored when that is returned.
        let stored = self.shared.answer(Ok(Visible { value: rows, epoch: pass.epoch }), level);
        outcome.and(stored)
    }
}

/// The rows of a table that are left.
struct OlderRowsOf<S: Store> {
    table: Arc<TableCore<S>>,
    range: ScanRange,
}

impl<E: Engine> PassTarget<E> for OlderRowsOf<E::Store> {
    fn look(&self, inner: &mut Inner<'_, TransactionOf<'_, E>>, len: usize) -> Result<Vec<FoundRow>> {
        let older = self.table.older.as_deref();
        queue::look_ahead(inner, &self.table, None, &self.range.limited(len), |key, row| {
            let is_to_change = older.is_some_and(|older| older.has(row));
            FoundRow { key: key_of_bytes(key), is_to_change }
        })
    }

    fn change(&self, inner: &mut Inner<'_, TransactionOf<'_, E>>, key: &KeyBuf) -> Result<bool> {
        let Some(found) = inner.find_to_write(&self.table.store, key)? else { return Ok(false) };
        if !is_older(inner, &self.table, found)? {
            return Ok(false);
        }
        inner.local.converted.is_malformed = false;
        copy_row(inner, &self.table, found)?;
        if inner.local.converted.is_malformed {
            // It would become a row without values.
            let table = self.table.store.id();
            return Err(inner.lost(Abort::new(AbortReason::RowUnreadable, table, key.as_bytes())));
        }
        put_copied_row(inner, &self.table, key, found).map(|()| true)
    }

    fn continue_after(&mut self, key: KeyBuf) {
        self.range.continue_after(key);
    }
}
