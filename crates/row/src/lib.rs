//! Internal to `ensilo`, not to be used by itself: column types, schemas, the formats of keys and rows.
//!
//! A table has a [`Schema`]. Its rows are stored in two parts: the primary key, encoded by the [key codec](Key) so that
//! the index orders it, and the other columns, encoded as a sequence of 64-bit words that a reader may look at while a
//! writer overwrites them ([`Words`]). Both encodings are one for all users:
//!
//! - Static rows are Rust structs with `#[derive(Row)]` ([`Row`]); every offset is a constant. A part of the columns is a
//!   struct with `#[derive(Columns)]` ([`Columns`]): reading it loads only its words, and if its columns have a fixed
//!   width, so does writing it.
//! - Dynamic rows are slices of [`Value`], encoded and decoded by the schema at run time (`Schema::encode_row` and its
//!   neighbours). They produce the same bytes.
//!
//! This crate is pure: it holds no table and takes no lock. `docs/row-format.md` describes both encodings byte by byte.

#![forbid(unsafe_code)]

mod column;
mod column_type;
mod description;
mod key;
mod key_len;
mod layout;
mod limits;
mod long_value;
mod malformed;
mod row;
mod row_buf;
mod row_error;
mod schema;
mod value;
mod words;

pub use column::{ColumnValue, Decimal, DecimalError, RowId, Text, TextError, Timestamp, TimestampError};
#[cfg(feature = "json")]
pub use column::{Json, JsonError};
pub use column_type::ColumnType;
pub use description::{IndexDescription, RowDescription};
#[doc(hidden)]
pub use key::TextColumn;
pub use key::{
    AsKey, AsKeyColumn, AsKeyRange, GivenAs, Key, KeyBuf, KeyColumn, KeyPart, KeyPrefix, KeyReader,
    NullsLast, Order,
};
pub use layout::{ColumnSpec, Layout, Slot, place, window, window_len};
pub use limits::{FIXED_LEN_MAX, INDEXES_MAX, KEY_LEN_MAX, NAME_LEN_MAX, ROW_LEN_MAX};
pub use long_value::LongValue;
pub use malformed::Malformed;
pub use row::{AutoKey, Columns, HasColumn, IsType, KeyedRow, Row, rewrite_row, touched_indexes};
pub use row_buf::RowBuf;
pub use row_error::RowError;
pub use schema::{
    Column, IndexSchema, PartSchema, PrimaryKey, Schema, SchemaBuilder, SchemaChange, SchemaError,
    SchemaHistory,
};
pub use value::Value;
pub use words::{WordPatch, WordSlice, Words};
