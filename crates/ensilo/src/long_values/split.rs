//! Making short rows of those that are to be written.

use std::mem;
use std::ops::Range;

use ensilo_disk::Checksum;
use ensilo_engine::{Read, RowRef, Write};
use ensilo_row::{KEY_LEN_MAX, KeyBuf, LongValue, Malformed, ROW_LEN_MAX, RowBuf, Words};

use super::pieces::load_pieces;
use super::store::LongValues;
use super::{INLINE_LEN_MAX, PIECE_LEN, SUFFIX_LEN, Wanted};
use crate::Result;
use crate::catalog::table_core::TableCore;
use crate::row_words::{RowWords, whole};
use crate::transaction::Inner;

/// What is to be done to pieces beside the short row in `local.row`.
#[derive(Debug, Default)]
pub(crate) struct Split {
    /// The row with all values that are written.
    pub(super) whole: RowBuf,
    pub(super) written: Vec<WrittenValue>,
    /// What goes.
    pub(super) deleted: Vec<LongValue>,
}

/// A long value that is written.
#[derive(Debug)]
pub(super) struct WrittenValue {
    column: usize,
    /// Where its bytes lie in the whole row.
    pub(super) range: Range<usize>,
    pub(super) value: LongValue,
    /// What lies under its number.
    pub(super) before: Option<LongValue>,
}

/// A long value of the row that is there; the column of one that was written before a change of the schema is unknown.
type ValueBefore = (Option<usize>, LongValue);

impl Split {
    /// Makes `local.row` what it was before.
    pub(crate) fn take_back<Raw: Read>(&mut self, inner: &mut Inner<'_, Raw>) {
        if !self.written.is_empty() {
            mem::swap(&mut self.whole, &mut inner.local.row);
        }
    }
}

/// Makes the row in `local.row`, which is to be inserted, a short one.
///
/// # Errors
/// [`Error::RowTooLarge`](crate::Error::RowTooLarge).
#[inline(always)]
pub(crate) fn before_insert<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    key: &KeyBuf,
) -> Result<Option<Box<Split>>> {
    match &table.long {
        Some(long) if inner.local.row.len_bytes() > INLINE_LEN_MAX => split(inner, table, long, key, &[]),
        _ => Ok(None),
    }
}

/// Makes the row in `local.row`, which is to take the place of the one that was found, a short one.
///
/// # Errors
/// [`Error::RowTooLarge`](crate::Error::RowTooLarge).
#[inline(always)]
pub(crate) fn before_change<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    key: &KeyBuf,
    found: Raw::Found,
) -> Result<Option<Box<Split>>> {
    match &table.long {
        Some(long) if long.store.is_used() || inner.local.row.len_bytes() > INLINE_LEN_MAX => {
            let before = values_of(inner, table, long, found)?;
            split(inner, table, long, key, &before)
        }
        _ => Ok(None),
    }
}

/// Returns the long values of a row that is to be deleted.
#[inline(always)]
pub(crate) fn before_delete<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    key: &KeyBuf,
    found: Raw::Found,
) -> Result<Vec<LongValue>> {
    match &table.long {
        Some(long) if long.store.is_used() => {
            let before = values_of(inner, table, long, found)?;
            let values: Vec<_> = before.into_iter().map(|(_, value)| value).collect();
            load_pieces(inner, &long.store, key, values.iter().copied())?;
            Ok(values)
        }
        _ => Ok(Vec::new()),
    }
}

/// Returns whether a change of the row that was found has to write it as a whole: it has long values, and they are to lie in it.
pub(crate) fn is_written_whole<Raw: Read>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    found: Raw::Found,
) -> Result<bool> {
    match &table.long {
        Some(long) if table.keeps_long_inline() => {
            values_of(inner, table, long, found).map(|values| !values.is_empty())
        }
        _ => Ok(false),
    }
}

/// Returns the long values of a row that was found, as it is stored. Of one that cannot be read none is known, so that it can be replaced and deleted.
fn values_of<Raw: Read>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    long: &LongValues<Raw::Store>,
    found: Raw::Found,
) -> Result<Vec<ValueBefore>> {
    let decode = |row: RowRef<'_>| match &table.older {
        Some(older) if older.has(row) => {
            let values = older.history.long_values(row.epoch().get(), &RowWords(row))?;
            Ok(values.into_iter().map(|value| (None, value)).collect())
        }
        _ => values_in(long, &RowWords(row)),
    };
    inner
        .read_stored(found, decode)
        .map(|values: std::result::Result<_, Malformed>| values.unwrap_or_default())
}

/// Returns the long values of a row of the schema as it is.
fn values_in<S>(long: &LongValues<S>, row: &impl Words) -> std::result::Result<Vec<ValueBefore>, Malformed> {
    let mut values = Vec::new();
    for &(column, slot) in &long.columns {
        if slot.has_long_value(row) {
            values.extend(slot.long_value(row)?.map(|value| (Some(column), value)));
        }
    }
    Ok(values)
}

#[cold]
fn split<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    long: &LongValues<Raw::Store>,
    key: &KeyBuf,
    before: &[ValueBefore],
) -> Result<Option<Box<Split>>> {
    let is_inline = long.store.keeps_inline || key.len() + SUFFIX_LEN > KEY_LEN_MAX;
    if is_inline {
        join(inner, table, key)?;
    }
    let row = &inner.local.row;
    let kept = whole(values_in(long, row));
    let elsewhere: usize = kept.iter().map(|(_, value)| value.bytes_elsewhere()).sum();
    if row.len_bytes() + elsewhere > ROW_LEN_MAX {
        return Err(table.row_too_large(row.len_bytes() + elsewhere));
    }
    let mut split = Split::default();
    if !is_inline {
        split.written = written_values(long, row, before);
    }
    split.deleted =
        before.iter().map(|(_, value)| *value).filter(|value| !split.needs(value, &kept)).collect();
    load_pieces(inner, &long.store, key, split.all())?;
    if !split.written.is_empty() {
        mem::swap(&mut split.whole, &mut inner.local.row);
        split.shorten(long, &mut inner.local.row);
    }
    let has_work = !split.written.is_empty() || !split.deleted.is_empty();
    Ok(has_work.then(|| Box::new(split)))
}

/// Makes the row in `local.row` one that has all of its values in itself.
fn join<Raw: Read>(inner: &mut Inner<'_, Raw>, table: &TableCore<Raw::Store>, key: &KeyBuf) -> Result<()> {
    let form = table.form(Wanted::All);
    if !form.lacks_values(&inner.local.row) {
        return Ok(());
    }
    let short = mem::take(&mut inner.local.row);
    let mut joined = RowBuf::new();
    let outcome = inner.assemble(form, key, &short, &mut joined);
    inner.local.row = joined;
    outcome
}

/// Returns the values of the row that are to leave it. Each has the number of the one that it replaces, or one that none has.
fn written_values<S>(long: &LongValues<S>, row: &RowBuf, before: &[ValueBefore]) -> Vec<WrittenValue> {
    let mut free = (0..).filter(|number| before.iter().all(|(_, value)| value.number != *number));
    let mut written = Vec::new();
    for &(column, slot) in &long.columns {
        if slot.has_long_value(row) {
            continue;
        }
        let (start, end) = whole(slot.variable_range(row));
        if end - start > INLINE_LEN_MAX {
            let before = before.iter().find(|(of, _)| *of == Some(column)).map(|(_, value)| *value);
            let number = before.map_or_else(|| free.next().unwrap_or(u16::MAX), |value| value.number);
            let value =
                LongValue { len_bytes: (end - start) as u32, checksum: checksum(row, start..end), number };
            written.push(WrittenValue { column, range: start..end, value, before });
        }
    }
    written
}

fn checksum(row: &RowBuf, range: Range<usize>) -> u32 {
    let (mut checksum, mut bytes) = (Checksum::default(), [0; PIECE_LEN]);
    for start in range.clone().step_by(PIECE_LEN) {
        let part = &mut bytes[..(range.end - start).min(PIECE_LEN)];
        row.copy_bytes(start, part);
        checksum.update(part);
    }
    checksum.value()
}

impl Split {
    /// Returns whether pieces under the number of this value are there afterwards.
    fn needs(&self, value: &LongValue, kept: &[ValueBefore]) -> bool {
        kept.iter().any(|(_, kept)| kept.number == value.number)
            || self.written.iter().any(|written| written.value.number == value.number)
    }

    /// Returns all values of which something is written or deleted.
    fn all(&self) -> impl Iterator<Item = LongValue> {
        let of_written =
            self.written.iter().flat_map(|written| [written.value].into_iter().chain(written.before));
        of_written.chain(self.deleted.iter().copied())
    }

    /// Makes `short` the whole row without the values that leave it.
    fn shorten<S>(&self, long: &LongValues<S>, short: &mut RowBuf) {
        short.begin_variables(&self.whole, long.fixed_len);
        for &(column, slot) in &long.columns {
            match self.written.iter().find(|written| written.column == column) {
                Some(written) => short.append_long_value(slot, written.value),
                None => whole(short.append_variable_of(slot, &self.whole)),
            }
        }
    }
}
