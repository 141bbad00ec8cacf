//! Rows in the order of a secondary index: what the scans of static and of dynamic tables are made of.
//!
//! An entry holds the primary key of its row. Entries are read in batches, and the rows of a batch are looked
//! up with interleaved descents. The batches grow, so that a scan that stops early has read little.

use std::ops::ControlFlow;

use ensilo_engine::{Read, RowRef, Store};
use ensilo_row::KeyBuf;

use super::ScanRange;
use crate::Result;
use crate::catalog::index_core::IndexCore;
use crate::catalog::table_core::TableCore;
use crate::long_values::{RowForm, Wants};
use crate::row_words::{RowWords, key_of_bytes, primary_key_of};
use crate::transaction::Inner;

const FIRST_BATCH_LEN: usize = 16;
const BATCH_LEN_MAX: usize = 256;

/// A scan of a table's rows by one of its indexes. See the module's documentation.
pub(crate) struct ByIndex<'i, S, W> {
    pub(crate) table: &'i TableCore<S>,
    pub(crate) index: &'i IndexCore<S>,
    /// Of the entries that are left.
    pub(crate) range: ScanRange,
    /// The columns that the rows are read for.
    pub(crate) wanted: W,
}

/// What was read of the entries at once: so many primary keys, and the last entry's key if others may follow.
struct Batch {
    len: usize,
    last: Option<KeyBuf>,
}

impl<S: Store, W: Wants> ByIndex<'_, S, W> {
    /// Calls `each` with the rows of the entries that `is_wanted`, given an entry's key and the primary key
    /// in it, says yes to.
    ///
    /// # Errors
    /// Those of every statement on an index.
    pub(crate) fn run<Raw: Read<Store = S>, R>(
        self,
        inner: &mut Inner<'_, Raw>,
        is_wanted: impl FnMut(&KeyBuf, &KeyBuf) -> bool,
        decode: impl Fn(&KeyBuf, &RowWords<'_>) -> R,
        mut each: impl FnMut(R) -> ControlFlow<()>,
    ) -> Result<()> {
        let (table, index, wanted) = (self.table, self.index, self.wanted);
        self.run_batches(inner, is_wanted, |inner, keys| {
            let mut flow = ControlFlow::Continue(());
            let mut missing = None;
            inner.get_many(
                &table.store,
                table.form(wanted),
                keys,
                |at, row| decode(&keys[at], &RowWords(row)),
                |at, row| {
                    flow = match row {
                        Some(row) => each(row),
                        None => {
                            missing = Some(at);
                            ControlFlow::Break(())
                        }
                    };
                    flow
                },
            )?;
            match missing {
                Some(at) => Err(inner.inconsistent(index.store.id(), keys[at].as_bytes())),
                None => Ok(flow),
            }
        })
    }

    /// Reads the rows of the entries that `is_wanted` says yes to, and then calls `each` with these and with the entries' keys, until it
    /// breaks.
    ///
    /// # Errors
    /// Those of every statement on an index.
    pub(crate) fn read_with_entry_keys<Raw: Read<Store = S>, R>(
        self,
        inner: &mut Inner<'_, Raw>,
        is_wanted: impl Fn(&KeyBuf, &KeyBuf) -> bool,
        decode: impl Fn(&KeyBuf, &RowWords<'_>) -> R,
        mut each: impl FnMut(KeyBuf, R) -> ControlFlow<()>,
    ) -> Result<()> {
        let (mut entry_keys, mut rows) = (Vec::new(), Vec::new());
        let note = |entry_key: &KeyBuf, key: &KeyBuf| {
            let is_wanted = is_wanted(entry_key, key);
            if is_wanted {
                entry_keys.push(entry_key.clone());
            }
            is_wanted
        };
        self.run(inner, note, decode, |row| {
            rows.push(row);
            ControlFlow::Continue(())
        })?;
        _ = entry_keys.into_iter().zip(rows).try_for_each(|(entry_key, row)| each(entry_key, row));
        Ok(())
    }

    /// Calls `each` with the rows of all entries and handles that are good for reading and writing.
    ///
    /// # Errors
    /// Those of every statement on an index.
    pub(crate) fn run_found<Raw: Read<Store = S>, R>(
        self,
        inner: &mut Inner<'_, Raw>,
        decode: impl Fn(&KeyBuf, &RowWords<'_>) -> R,
        mut each: impl FnMut(Raw::Found, R) -> ControlFlow<()>,
    ) -> Result<()> {
        let (table, index, wanted) = (self.table, self.index, self.wanted);
        self.run_batches(
            inner,
            |_, _| true,
            |inner, keys| {
                let mut found = std::mem::take(&mut inner.local.found);
                found.clear();
                inner.find_many(&table.store, keys, |_, raw| found.push(raw))?;
                let mut flow = ControlFlow::Continue(());
                for (key, raw) in keys.iter().zip(&found) {
                    let Some(raw) = *raw else {
                        return Err(inner.inconsistent(index.store.id(), key.as_bytes()));
                    };
                    let decode = |row: RowRef<'_>| decode(key, &RowWords(row));
                    flow = each(raw, inner.read(table.form(wanted), raw, || Ok(key.clone()), decode)?);
                    if flow.is_break() {
                        break;
                    }
                }
                inner.local.found = found;
                Ok(flow)
            },
        )
    }

    /// Calls `look_up` with the primary keys of one batch of entries after the other, until it breaks.
    fn run_batches<Raw: Read<Store = S>>(
        mut self,
        inner: &mut Inner<'_, Raw>,
        mut is_wanted: impl FnMut(&KeyBuf, &KeyBuf) -> bool,
        mut look_up: impl FnMut(&mut Inner<'_, Raw>, &[KeyBuf]) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        self.table.check(inner.local)?;
        inner.check_index(self.table, self.index)?;
        let mut batch_len = FIRST_BATCH_LEN;
        while self.range.limit > 0 {
            inner.local.check_control()?;
            let mut keys = std::mem::take(&mut inner.local.keys);
            let batch =
                self.read_entries(inner, batch_len.min(self.range.limit), &mut is_wanted, &mut keys)?;
            let flow = look_up(inner, &keys[..batch.len])?;
            inner.local.keys = keys;
            let Some(last) = batch.last.filter(|_| flow.is_continue()) else { break };
            self.range.pass(last, batch.len);
            batch_len = (batch_len * 2).min(BATCH_LEN_MAX);
        }
        Ok(())
    }

    /// Reads the primary keys of at most `len` entries into `keys`.
    fn read_entries<Raw: Read<Store = S>>(
        &self,
        inner: &mut Inner<'_, Raw>,
        len: usize,
        is_wanted: &mut impl FnMut(&KeyBuf, &KeyBuf) -> bool,
        keys: &mut Vec<KeyBuf>,
    ) -> Result<Batch> {
        let mut batch = Batch { len: 0, last: None };
        let Some(bounds) = self.range.bounds.as_slices() else { return Ok(batch) };
        if keys.len() < len {
            keys.resize_with(len, KeyBuf::new);
        }
        let mut seen = 0;
        inner.scan_to_read(
            &self.index.store,
            RowForm::STORED,
            bounds,
            self.range.direction,
            |entry_key, entry| (key_of_bytes(entry_key), primary_key_of(entry)),
            |(entry_key, key)| {
                seen += 1;
                if is_wanted(&entry_key, &key) {
                    keys[batch.len] = key;
                    batch.len += 1;
                }
                if batch.len < len && seen < BATCH_LEN_MAX {
                    return ControlFlow::Continue(());
                }
                batch.last = Some(entry_key);
                ControlFlow::Break(())
            },
        )?;
        Ok(batch)
    }
}
