//! Where in a table the rows lie that have expired by now, and how one of them is removed.

use std::ops::Bound;
use std::sync::Arc;

use ensilo_engine::{Engine, RowRef, Store, TransactionOf};
use ensilo_row::{Column, ColumnType, KeyBuf, PartSchema, Schema, Timestamp, Value};

use super::{ExpiryCore, ExpiryOptions};
use crate::catalog::index_core::IndexCore;
use crate::catalog::table_core::TableCore;
use crate::error::{Name, NameInTable};
use crate::long_values::Nothing;
use crate::queue;
use crate::row_pass::{FoundRow, PassTarget};
use crate::row_words::key_of_bytes;
use crate::shared::DatabaseShared;
use crate::table::{Bounds, ScanRange};
use crate::transaction::Inner;
use crate::{Error, Result};

/// The rows of a table that have expired at one moment, in the order of their times.
pub(super) struct Target<S> {
    table: Arc<TableCore<S>>,
    /// The index that they are found by; the primary key if there is none.
    index: Option<Arc<IndexCore<S>>>,
    range: ScanRange,
}

impl<E: Engine> DatabaseShared<E> {
    /// Returns the rows that have expired by now.
    ///
    /// # Errors
    /// [`Error::UnknownTable`], [`Error::UnknownColumn`], [`Error::InvalidOption`], [`Error::Closed`].
    pub(super) fn expired(&self, expiry: &ExpiryCore) -> Result<Target<E::Store>> {
        let table = self.table_core(&expiry.table)?;
        let options = &expiry.options;
        let unknown = || Error::UnknownColumn(NameInTable::new(&*table.name, &*options.column));
        let number = table.schema.column(&options.column).ok_or_else(unknown)?;
        let times = Times::of(&table.schema, number, options)?;
        let (index, part) = ordered_by(&table, number)?;
        let range = range_of(&table, index.as_deref(), part, times)?;
        Ok(Target { table, index, range })
    }
}

impl<E: Engine> PassTarget<E> for Target<E::Store> {
    fn look(&self, inner: &mut Inner<'_, TransactionOf<'_, E>>, len: usize) -> Result<Vec<FoundRow>> {
        let found = |key: &[u8], _: RowRef<'_>| FoundRow { key: key_of_bytes(key), is_to_change: true };
        queue::look_ahead(inner, &self.table, self.index.as_deref(), &self.range.limited(len), found)
    }

    /// Deletes the row that was found there, and returns whether it has: not one that has gone meanwhile or has another time, nor one
    /// that another transaction has taken out of the table as a queue.
    fn change(&self, inner: &mut Inner<'_, TransactionOf<'_, E>>, key: &KeyBuf) -> Result<bool> {
        let range = ScanRange::new(Bounds::only(key.clone()));
        let taken = match self.index.as_deref() {
            None => queue::take_first(inner, (&self.table, Nothing), range, |_, _| Ok(())),
            Some(index) => {
                let table = (&*self.table, index, Nothing);
                queue::take_first_by_index(inner, table, range, |_, _| true, |_, _| Ok(()))
            }
        };
        Ok(taken?.is_some())
    }

    fn continue_after(&mut self, key: KeyBuf) {
        self.range.continue_after(key);
    }
}

/// The times of rows that have expired, as values of their column: from the oldest that it has to the last one. None if `last` is none.
#[derive(Debug, PartialEq)]
struct Times {
    oldest: Value,
    last: Option<Value>,
}

impl Times {
    /// Returns the times that have passed in this column.
    ///
    /// # Errors
    /// [`Error::InvalidOption`].
    fn of(schema: &Schema, number: usize, options: &ExpiryOptions) -> Result<Self> {
        let column = &schema.columns()[number];
        let micros = options.last_expired_micros()?;
        match column.column_type {
            ColumnType::Timestamp if options.fits_timestamps() => {
                Ok(Self::within((i64::MIN.into(), i64::MAX.into()), micros, timestamp_of))
            }
            ColumnType::Timestamp => Err(refused(schema, column, "counts microseconds, and needs no unit")),
            other => match (integers_of(other), options.count(micros)) {
                (None, _) => Err(refused(schema, column, "is neither a timestamp nor an integer")),
                (Some(_), None) => Err(refused(schema, column, MISSING_UNIT)),
                (Some(integers), Some(last)) => Ok(Self::within(integers, last, Value::Int128)),
            },
        }
    }

    /// Returns the times up to `last` of a column that has these.
    fn within((least, largest): (i128, i128), last: i128, value: impl Fn(i128) -> Value) -> Self {
        let last = (last >= least).then(|| value(last.min(largest)));
        Times { oldest: value(least), last }
    }
}

/// Returns the timestamp of so many microseconds, the nearest there is.
fn timestamp_of(micros: i128) -> Value {
    let micros = i64::try_from(micros).unwrap_or(if micros < 0 { i64::MIN } else { i64::MAX });
    Value::Timestamp(Timestamp::from_micros(micros))
}

const MISSING_UNIT: &str = "is an integer: say by `ExpiryOptions::unit` what it counts";

/// Returns the least and the largest integer of a type, as far as an `i128` has them; `None` if it is no type of integers.
const fn integers_of(column_type: ColumnType) -> Option<(i128, i128)> {
    let bits = 8 * column_type.width();
    match column_type {
        ColumnType::I8 | ColumnType::I16 | ColumnType::I32 | ColumnType::I64 | ColumnType::I128 => {
            Some((i128::MIN >> (128 - bits), i128::MAX >> (128 - bits)))
        }
        ColumnType::U8 | ColumnType::U16 | ColumnType::U32 | ColumnType::U64 => Some((0, (1 << bits) - 1)),
        ColumnType::U128 => Some((0, i128::MAX)),
        _ => None,
    }
}

/// Returns what orders the rows by this column: an index, or the primary key, and the column's part in it.
///
/// # Errors
/// [`Error::InvalidOption`] when nothing does.
fn ordered_by<S: Store>(
    table: &TableCore<S>,
    column: usize,
) -> Result<(Option<Arc<IndexCore<S>>>, PartSchema)> {
    let begins_with = |parts: &[PartSchema]| parts.first().copied().filter(|part| part.column == column);
    if let Some(part) = begins_with(table.schema.key_parts()) {
        return Ok((None, part));
    }
    let indexes = table.indexes.snapshot().into_iter();
    let suitable = indexes.filter_map(|index| Some((begins_with(index.schema.parts())?, index)));
    // One that cannot be read says so when it is.
    let best = suitable.max_by_key(|(_, index)| index.is_ready());
    let (part, index) = best.ok_or_else(|| {
        let column = &table.schema.columns()[column];
        refused(
            &table.schema,
            column,
            "is not the first column of an index: make one by `Database::create_index`",
        )
    })?;
    Ok((Some(index), part))
}

/// Returns the keys of the rows with these times, or those of their entries, from the oldest time on. Nulls are not among them.
fn range_of<S: Store>(
    table: &TableCore<S>,
    index: Option<&IndexCore<S>>,
    part: PartSchema,
    times: Times,
) -> Result<ScanRange> {
    let Some(last) = times.last else { return Ok(ScanRange::new(Bounds::ALL).limited(0)) };
    let encode = |value| {
        let mut key = KeyBuf::new();
        let encoded = match index {
            None => table.schema.encode_key_prefix(&[value], &mut key),
            Some(index) => table.schema.encode_index_prefix(&index.schema, &[value], &mut key),
        };
        encoded.map(|()| Bound::Included(key)).map_err(|error| Error::from_row(error, &table.name))
    };
    let (oldest, last) = (encode(times.oldest)?, encode(last)?);
    let is_descending = part.order.is_descending();
    let (low, high) = if is_descending { (last, oldest) } else { (oldest, last) };
    let mut range = ScanRange::new(Bounds::new(low, high).of_prefixes());
    if is_descending {
        range.turn();
    }
    Ok(range)
}

fn refused(schema: &Schema, column: &Column, why: &str) -> Error {
    let text =
        format!("column {} of table {}, by which rows are to expire, {why}", column.name, schema.name());
    Error::InvalidOption(Name::new(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_the_bounds_of_their_type() {
        assert_eq!(integers_of(ColumnType::I8), Some((i8::MIN.into(), i8::MAX.into())));
        assert_eq!(integers_of(ColumnType::I64), Some((i64::MIN.into(), i64::MAX.into())));
        assert_eq!(integers_of(ColumnType::I128), Some((i128::MIN, i128::MAX)));
        assert_eq!(integers_of(ColumnType::U32), Some((0, u32::MAX.into())));
        assert_eq!(integers_of(ColumnType::U64), Some((0, u64::MAX.into())));
        assert_eq!(integers_of(ColumnType::U128), Some((0, i128::MAX)));
        assert_eq!(integers_of(ColumnType::F64), None);
        assert_eq!(integers_of(ColumnType::Text), None);
    }

    #[test]
    fn times_beyond_those_of_the_column_are_all_or_none() {
        let of_u8 = |last| Times::within((0, 255), last, Value::Int128).last;
        assert_eq!(of_u8(-1), None);
        assert_eq!(of_u8(0), Some(Value::Int128(0)));
        assert_eq!(of_u8(1000), Some(Value::Int128(255)));
    }
}
