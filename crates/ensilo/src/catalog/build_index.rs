//! Building an index on a table that others are writing to.
//!
//! Timeline:
//! ```text
//! announce       writers that begin from here on read what they write in the columns of the index
//!   | wait       until the transactions that began before have ended: those may add to numbers that they have not read
//! introduce      writers that begin from here on keep the index; nobody reads it
//!   | wait       until the transactions that began before have ended: those did not keep it
//! fill           small transactions add the entries of the rows that are there
//!   | wait       over an engine that reads as of the begin, until the transactions that began before have ended: those do not see all entries
//! finish         transactions may read it; snapshots as soon as they show a point in time after the last entry
//! ```
//! Filling and writers may meet at a row: each is a serializable transaction that reads the row and writes
//! its entry, so one of them comes first, and the other sees that the entry is there. Where transactions are not
//! serializable the filling writes the row as well, as it is: otherwise a writer that does not see the entry would
//! leave it there.
//!
//! In a unique index a key has one entry, of the row that came first; a writer with a duplicate key is
//! refused, also while the index is built. But a row that was there before has no entry yet, so another row
//! of the same key may get the entry first. If both are still there when the filling comes to the one
//! without, the index cannot be built and is removed again. If that one has been deleted or changed before,
//! the other's entry has stayed (M3 of `maintain`), and the index is as good as any. Two old rows of the same
//! key end in the same two ways.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use ensilo_engine::{Direction, Engine, Failpoint, TransactionOf, Write};
use ensilo_row::{IndexSchema, KeyBuf};

use super::AlsoWrites;
use super::index_core::{IndexCore, check_key_len};
use super::table_core::TableCore;
use crate::durability::Durability;
use crate::long_values::RowForm;
use crate::maintain::{copy_row, put_copied_row, stored_index_key};
use crate::outcome::Visible;
use crate::row_words::{key_of_bytes, primary_key_of};
use crate::shared::DatabaseShared;
use crate::shortage::Shortage;
use crate::transaction::Inner;
use crate::{Result, attempt};

/// How often a single row is tried before others have their turn: with pauses, and as old as the first attempt.
const RETRIES_OF_ONE: u32 = 100;

/// The most rows that one transaction adds entries for.
const BATCH_LEN_MAX: usize = 128;

impl<E: Engine> DatabaseShared<E> {
    /// Creates an index on a table that exists.
    pub(crate) fn create_index(
        &self,
        table: &Arc<TableCore<E::Store>>,
        schema: IndexSchema,
        also: AlsoWrites<'_, E>,
    ) -> Result<()> {
        self.check_may_change()?;
        self.load_whole(table)?;
        let index = self.announce_index(table, schema)?;
        let built = self
            .wait_for_older_transactions()
            .and_then(|()| {
                self.introduce_index(table, &index);
                self.wait_for_introduction()
            })
            .and_then(|()| {
                E::reached(Failpoint::IndexIntroduced);
                self.fill_index(table, &index)
            })
            .and_then(|()| {
                E::reached(Failpoint::IndexFilled);
                self.finish_index(table, &index, also)
            });
        if built.is_err() {
            self.abandon_index(table, &index);
        }
        built.map_err(|error| self.explain(error))
    }

    /// Waits until writers keep an index. Of values that rows had before, the index has neither entries nor deletions: a transaction that finds none
    /// there has to come after those that have changed such rows without the index.
    pub(super) fn wait_for_introduction(&self) -> Result<()> {
        self.wait_for_older_transactions()?;
        self.engine.fence_serial_order();
        Ok(())
    }

    /// Waits, after the last entry was added, until no transaction reads as of before that: it would not see all entries.
    fn wait_until_entries_are_seen(&self) -> Result<()> {
        if TransactionOf::<'_, E>::READS_AS_OF_BEGIN { self.wait_for_older_transactions() } else { Ok(()) }
    }

    /// Adds the entries of all rows, while writers keep the index. All transactions that are under way afterwards see them.
    pub(super) fn fill_index(&self, table: &TableCore<E::Store>, index: &IndexCore<E::Store>) -> Result<()> {
        let mut after: Option<KeyBuf> = None;
        let mut batch_len = BATCH_LEN_MAX;
        let mut shortage = Shortage::default();
        loop {
            let retries = if batch_len == 1 { RETRIES_OF_ONE } else { 0 };
            let filled = attempt::run(self, attempt::RetryPolicy::internal(retries), &mut |_| (), |tx| {
                table.check(tx.inner.local)?;
                fill_batch::<E>(&mut tx.inner, table, index, after.as_ref(), batch_len)
            });
            E::reached(Failpoint::IndexRowsDone);
            match filled {
                Ok(Visible { value: Some(last), .. }) => {
                    after = Some(last);
                    shortage = Shortage::default();
                    batch_len = (batch_len * 2).min(BATCH_LEN_MAX);
                }
                Ok(Visible { value: None, .. }) => return self.wait_until_entries_are_seen(),
                // Fewer rows meet fewer writers; with one row some attempt gets through.
                Err(undone) if undone.is_conflict() => batch_len = (batch_len / 2).max(1),
                Err(undone)
                    if undone.is_out_of_memory() && shortage.ends_by(self, || self.free_memory_of_all()) => {}
                Err(undone) => return self.answer(Err(undone), Durability::Stored),
            }
        }
    }
}

/// Adds the entries of at most `len` rows after the key `after`; returns the last one's key, or `None` when
/// there were none.
fn fill_batch<E: Engine>(
    inner: &mut Inner<'_, TransactionOf<'_, E>>,
    table: &TableCore<E::Store>,
    index: &IndexCore<E::Store>,
    after: Option<&KeyBuf>,
    len: usize,
) -> Result<Option<KeyBuf>> {
    let low = after.map_or(Bound::Unbounded, |key| Bound::Excluded(key.as_bytes()));
    let mut rows = Vec::with_capacity(len);
    inner.scan(
        &table.store,
        RowForm::STORED,
        (low, Bound::Unbounded),
        Direction::Forward,
        |key, _| key_of_bytes(key),
        |found, key| {
            rows.push((key, found));
            if rows.len() == len { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        },
    )?;
    E::reached(Failpoint::IndexRowsRead);
    let mut entry_key = KeyBuf::new();
    for (key, found) in &rows {
        copy_row(inner, table, *found)?;
        if !TransactionOf::<'_, E>::IS_SERIALIZABLE {
            put_copied_row(inner, table, key, *found)?;
        }
        stored_index_key(table, index, key, &inner.local.before, &mut entry_key);
        add_entry(inner, table, index, key, &entry_key)?;
    }
    Ok(rows.pop().map(|(key, _)| key))
}

/// Adds an entry, unless a writer was here first.
fn add_entry<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    index: &IndexCore<Raw::Store>,
    key: &KeyBuf,
    entry_key: &KeyBuf,
) -> Result<()> {
    check_key_len(&index.name, entry_key)?;
    inner.local.entry.set_bytes(key.as_bytes());
    if inner.insert_entry(&index.store, entry_key)? {
        return Ok(());
    }
    match inner.get(&index.store, RowForm::STORED, entry_key, primary_key_of)? {
        Some(other) if other != *key => Err(table.duplicate(Some(index), entry_key.as_bytes())),
        _ => Ok(()),
    }
}
