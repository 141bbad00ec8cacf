//! The schemas that a table has had: by them rows are read that were written before a change.
//!
//! A change of the schema leaves the rows as they are. It has a place in time, the *epoch since which rows are of the new schema*, so that the
//! epoch in which a row was committed says what it is. Rows become those of the new schema when they are written the next time.
//!
//! # Layout
//! What the catalog holds of a table is its schema, or, if that was changed:
//! ```text
//! u8 version = 2
//! u32 length of the schema, and the schema (version 1 or 3)
//! u16 older schemas, oldest first, each:
//!   u64 the epoch since which rows are of a later one
//!   u16 columns, each as in a schema, and u8 1 if it is part of the primary key
//!   u16 sources, one for each column of the schema as it is, each
//!     u8 0 and u16 column of the older schema, or
//!     u8 1, u32 length and a row with nothing but the value
//! ```
//! Numbers are little endian.

use super::catalog::{Reader, no_schema, put_column, put_u16};
use super::change::SchemaChange;
use super::older_rows::{OlderRows, Source};
use super::{Column, PrimaryKey, Schema, SchemaError};
use crate::limits::{COLUMNS_MAX, FIXED_LEN_MAX};
use crate::{LongValue, Malformed, RowBuf, Value, WordSlice, Words};

const VERSION: u8 = 2;

/// Every epoch is smaller.
const EPOCH_END: u64 = 1 << 44;

/// The schemas that a table had before the one that it has.
#[derive(Clone, Debug, Default)]
pub struct SchemaHistory {
    /// Oldest first, so that their ends ascend.
    older: Vec<Older>,
}

/// A schema that the table had before.
#[derive(Clone, Debug)]
struct Older {
    /// The epoch since which rows are of a later one.
    until: u64,
    rows: OlderRows,
}

impl SchemaHistory {
    /// Returns the epoch since which rows are of the schema as it is; 0 if it was never changed.
    pub fn since(&self) -> u64 {
        self.older.last().map_or(0, |older| older.until)
    }

    /// Returns how many schemas the table had before.
    pub fn len(&self) -> usize {
        self.older.len()
    }

    /// Returns whether the schema was never changed.
    pub fn is_empty(&self) -> bool {
        self.older.is_empty()
    }

    /// Returns `schema` after a change, and the history with it. Rows are of the new schema since `epoch`.
    ///
    /// # Errors
    /// As [`Schema::with_change`].
    ///
    /// # Panics
    /// If the epoch is not later than that of the change before.
    pub fn changed(
        &self,
        schema: &Schema,
        change: &SchemaChange,
        epoch: u64,
    ) -> Result<(Schema, Self), SchemaError> {
        assert!(epoch > self.since(), "a change comes after the one before");
        let changed = schema.changed(change)?;
        let followed =
            |older: &Older| Older { until: older.until, rows: older.rows.followed_by(&changed.sources) };
        let mut older: Vec<_> = self.older.iter().map(followed).collect();
        older.push(Older { until: epoch, rows: OlderRows::of(schema, changed.sources) });
        Ok((changed.schema, Self { older }))
    }

    /// Makes `out` the row of `schema` that a row of this epoch is, which is before [`since`](Self::since).
    ///
    /// It may be longer than a row may be that is stored.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are no row of the schema of that epoch; never a panic, whatever the words.
    ///
    /// # Panics
    /// If the row is of the schema as it is.
    pub fn convert(
        &self,
        schema: &Schema,
        epoch: u64,
        row: &impl Words,
        out: &mut RowBuf,
    ) -> Result<(), Malformed> {
        self.rows_of(epoch).convert(schema, row, out)
    }

    /// Returns the long values that a row of this epoch has, which is before [`since`](Self::since), also those in columns that were dropped.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are no row of the schema of that epoch.
    ///
    /// # Panics
    /// If the row is of the schema as it is.
    #[doc(hidden)]
    pub fn long_values(&self, epoch: u64, row: &impl Words) -> Result<Vec<LongValue>, Malformed> {
        self.rows_of(epoch).long_values(row)
    }

    /// Returns what rows of this epoch are.
    fn rows_of(&self, epoch: u64) -> &OlderRows {
        &self.older[self.older.partition_point(|older| older.until <= epoch)].rows
    }

    /// Appends the schema with its history.
    pub fn encode(&self, schema: &Schema, out: &mut Vec<u8>) {
        if self.is_empty() {
            return schema.encode(out);
        }
        out.push(VERSION);
        put_with_len(out, |out| schema.encode(out));
        put_u16(out, self.older.len());
        for older in &self.older {
            out.extend_from_slice(&older.until.to_le_bytes());
            put_u16(out, older.rows.columns().len());
            for (column, in_key) in older.rows.columns() {
                put_column(out, column);
                out.push(u8::from(*in_key));
            }
            put_u16(out, older.rows.sources().len());
            for (source, column) in older.rows.sources().iter().zip(&schema.columns) {
                put_source(out, source, column);
            }
        }
    }

    /// Returns the schema and the history that are encoded by exactly these bytes.
    ///
    /// # Errors
    /// As [`Schema::decode`].
    pub fn decode(bytes: &[u8]) -> Result<(Schema, Self), SchemaError> {
        let Some((&VERSION, rest)) = bytes.split_first() else {
            return Ok((Schema::decode(bytes)?, Self::default()));
        };
        let mut reader = Reader::new(rest);
        let schema = Schema::decode(reader.with_len()?)?;
        let older = (0..reader.u16()?).map(|_| read_older(&mut reader, &schema)).collect::<Result<_, _>>()?;
        reader.end()?;
        let history = Self { older };
        if !history.older.is_sorted_by(|one, next| one.until < next.until) {
            return Err(no_schema("older schemas out of order"));
        }
        Ok((schema, history))
    }
}

fn read_older(reader: &mut Reader<'_>, schema: &Schema) -> Result<Older, SchemaError> {
    let until = reader.u64()?;
    let columns = (0..reader.u16()?).map(|_| Ok((reader.column()?, reader.flag()?)));
    let columns = columns.collect::<Result<Vec<_>, SchemaError>>()?;
    let len: u64 = columns.iter().map(|(column, _)| u64::from(column.column_type.width())).sum();
    if until >= EPOCH_END || columns.len() > COLUMNS_MAX || len > FIXED_LEN_MAX as u64 {
        return Err(no_schema("an older schema that is none"));
    }
    if usize::from(reader.u16()?) != schema.columns.len() {
        return Err(no_schema("an older schema with too few or too many sources"));
    }
    let sources = schema.columns.iter().map(|column| read_source(reader, column));
    let rows = OlderRows::new(columns, sources.collect::<Result<_, _>>()?);
    rows.check(schema)?;
    Ok(Older { until, rows })
}

fn put_source(out: &mut Vec<u8>, source: &Source, column: &Column) {
    match source {
        Source::Column(at) => {
            out.push(0);
            put_u16(out, *at);
        }
        Source::Value(value) => {
            out.push(1);
            put_with_len(out, |out| put_value(out, value, column));
        }
    }
}

fn read_source(reader: &mut Reader<'_>, column: &Column) -> Result<Source, SchemaError> {
    Ok(match reader.flag()? {
        false => Source::Column(usize::from(reader.u16()?)),
        true => Source::Value(value_of(reader.with_len()?, column)?),
    })
}

/// Appends what `put` appends, after its length.
fn put_with_len(out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    put(out);
    let len = (out.len() - start - 4) as u32; // far below 4 GiB: a schema, or a row
    out[start..start + 4].copy_from_slice(&len.to_le_bytes());
}

/// Appends a value as a row that has nothing else.
fn put_value(out: &mut Vec<u8>, value: &Value, column: &Column) {
    let mut row = RowBuf::new();
    let encoded = alone(column).and_then(|schema| {
        let fits = schema.encode_row(std::slice::from_ref(value), &mut row);
        fits.map_err(|_| no_schema("a value that does not fit its column"))
    });
    debug_assert!(encoded.is_ok(), "the change was checked with this value");
    let start = out.len();
    out.resize(start + row.len_bytes(), 0);
    row.copy_bytes(0, &mut out[start..]);
}

fn value_of(bytes: &[u8], column: &Column) -> Result<Value, SchemaError> {
    let words: Vec<u64> = bytes.chunks(8).map(word_of).collect();
    let mut values = Vec::new();
    let decoded = alone(column)?.decode_row(&[0; 8], &WordSlice::new(&words, bytes.len()), &mut values);
    match (decoded, values.pop()) {
        (Ok(()), Some(value)) => Ok(value),
        _ => Err(no_schema("a value that is none")),
    }
}

fn word_of(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Returns the schema of a table that has nothing but this column.
fn alone(column: &Column) -> Result<Schema, SchemaError> {
    Schema::checked("value".to_owned(), vec![column.clone()], PrimaryKey::RowId, Vec::new())
}
