//! Rows that were written before the schema of their table was changed.
//!
//! A change leaves the rows as they are. The epoch in which a row was committed says of which schema it is, and a statement that reads an
//! older row decodes it as if it were of the schema as it is. What is written is always of that.
//!
//! # Invariants
//! - O1: rows of epochs before that of a change are of an older schema, all others are of the new one. The change sees to it
//!   ([`change_schema`](crate::catalog::change_schema)): between the last transaction that may write older rows and the first one that
//!   writes newer ones the epoch goes on.
//! - O2: an older row is replaced as a whole, and never patched: a patch would give its older words a new epoch.

mod rewrite;

use std::sync::Arc;

use ensilo_engine::{RawRow, Read, RowRef};
use ensilo_epoch::Epoch;
use ensilo_row::{RowBuf, Schema, SchemaHistory, Words};
use ensilo_sync::atomic::AtomicU64;

pub use self::rewrite::RewrittenRows;
use crate::Result;
use crate::catalog::table_core::TableCore;
use crate::long_values::is_written_whole;
use crate::row_words::{RowWords, whole};
use crate::transaction::Inner;

/// The schemas that a table had before, at least one.
pub(crate) struct OlderRows {
    schema: Arc<Schema>,
    pub(crate) history: SchemaHistory,
    /// The epoch since which rows are of the schema as it is.
    since: Epoch,
}

/// A row of more bytes is *long*: what scratch memory took for it goes back when the transaction has ended.
pub(crate) const LONG_ROW_BYTES: usize = 1 << 20;

/// Room for an older row as one of the schema as it is, which is used again for the next one.
#[derive(Debug, Default)]
pub(crate) struct ConvertedRow {
    pub(crate) row: RowBuf,
    words: Vec<AtomicU64>,
    /// Whether the last row that was read is none of its older schema. Of a read that has succeeded it was whole.
    pub(crate) is_malformed: bool,
    /// Whether there was a long row since the room was shrunk.
    pub(crate) has_held_long: bool,
}

/// Returns a row as one of the schema as it is, where the table has `older` ones; `converted` is the room for it.
#[inline(always)]
pub(crate) fn in_schema<'r>(
    older: Option<&OlderRows>,
    row: RowRef<'r>,
    converted: &'r mut ConvertedRow,
) -> RowRef<'r> {
    match older {
        Some(older) if older.has(row) => older.convert(row, converted),
        _ => row,
    }
}

/// Returns whether the row is of an older schema.
#[inline(always)]
pub(crate) fn is_older<Raw: Read>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    found: Raw::Found,
) -> Result<bool> {
    match &table.older {
        None => Ok(false),
        Some(older) => inner.read_stored(found, |row| older.has(row)),
    }
}

/// Returns whether the row is replaced as a whole, whatever changes: one of an older schema, or one whose long values come back.
#[inline(always)]
pub(crate) fn is_replaced_whole<Raw: Read>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    found: Raw::Found,
) -> Result<bool> {
    Ok(is_older(inner, table, found)? || is_written_whole(inner, table, found)?)
}

impl ConvertedRow {
    /// Returns the row.
    pub(crate) fn as_row(&mut self) -> RowRef<'_> {
        as_row(&self.row, &mut self.words)
    }

    /// Gives back the memory beyond that of a row of so many bytes.
    pub(crate) fn shrink_to(&mut self, len_bytes: usize) {
        self.row.shrink_to(len_bytes);
        self.words.clear();
        self.words.shrink_to(len_bytes.div_ceil(8));
        self.has_held_long = false;
    }
}

/// Returns the row as one that the transaction has written itself; `words` is the room for it.
fn as_row<'r>(row: &RowBuf, words: &'r mut Vec<AtomicU64>) -> RowRef<'r> {
    words.clear();
    words.extend(row.words().iter().copied().map(AtomicU64::new));
    RawRow::new(words, row.len_bytes()).uncommitted()
}

impl OlderRows {
    /// Returns `None` for a table whose schema was never changed.
    pub(crate) fn new(schema: &Arc<Schema>, history: SchemaHistory) -> Option<Box<Self>> {
        if history.is_empty() {
            return None;
        }
        let since = Epoch::new(history.since());
        Some(Box::new(OlderRows { schema: Arc::clone(schema), history, since }))
    }

    /// Returns the epoch since which rows are of the schema as it is.
    pub(crate) fn since(&self) -> Epoch {
        self.since
    }

    /// Returns whether the row is of an older schema.
    #[inline]
    pub(crate) fn has(&self, row: RowRef<'_>) -> bool {
        row.epoch() < self.since
    }

    /// Returns an older row as one of the schema as it is.
    #[cold]
    fn convert<'r>(&self, row: RowRef<'_>, converted: &'r mut ConvertedRow) -> RowRef<'r> {
        if converted.row.len_bytes() > LONG_ROW_BYTES {
            converted.shrink_to(LONG_ROW_BYTES);
        }
        let ConvertedRow { row: out, words, is_malformed, has_held_long } = converted;
        *is_malformed = self.history.convert(&self.schema, row.epoch().get(), &RowWords(row), out).is_err();
        if *is_malformed {
            // It was torn, and will be read again. A row that no decoder takes, in case that it was not.
            out.clear();
        }
        *has_held_long |= out.capacity_bytes() > LONG_ROW_BYTES;
        as_row(out, words)
    }

    /// Makes `converted` the row of this epoch as one of the schema as it is, and says `true`; `false` if it is one.
    pub(crate) fn convert_stored(&self, epoch: Epoch, row: &impl Words, converted: &mut RowBuf) -> bool {
        if epoch >= self.since {
            return false;
        }
        whole(self.history.convert(&self.schema, epoch.get(), row, converted));
        true
    }
}
