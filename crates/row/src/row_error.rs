//! What can be wrong with a row or key that a caller gives.

use std::fmt;

use crate::{ColumnType, KEY_LEN_MAX, ROW_LEN_MAX};

/// Why a row or key was refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RowError {
    /// The row has more or fewer values than the schema has columns, or the key than the key.
    ValueCount {
        /// How many are needed.
        expected: usize,
        /// How many were given.
        found: usize,
    },
    /// The schema has no column with this index.
    UnknownColumn {
        /// The index that was given.
        column: usize,
        /// The table.
        table: String,
    },
    /// The value has another type than the column.
    WrongType {
        /// The column's name.
        column: String,
        /// The column's type.
        expected: ColumnType,
        /// What was given.
        found: &'static str,
    },
    /// The value has the right kind but is too large, too small or too precise for the column.
    OutOfRange {
        /// The column's name.
        column: String,
        /// The column's type.
        expected: ColumnType,
    },
    /// Null in a column that is not nullable.
    Null {
        /// The column's name.
        column: String,
    },
    /// Text is longer than its column, or bytes are not as many as their column has.
    WrongLength {
        /// The column's name.
        column: String,
        /// The column's type.
        expected: ColumnType,
        /// The length that was given, in bytes.
        len: usize,
    },
    /// An update would change a key column.
    KeyColumn {
        /// The column's name.
        column: String,
    },
    /// The row is longer than [`ROW_LEN_MAX`].
    RowTooLarge {
        /// Its length in bytes.
        len: usize,
    },
    /// The key is longer than [`KEY_LEN_MAX`].
    KeyTooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// The stored row or key is not one of this schema.
    Malformed,
}

impl From<crate::Malformed> for RowError {
    fn from(_: crate::Malformed) -> Self {
        Self::Malformed
    }
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ValueCount { expected, found } => {
                write!(f, "{found} values were given for {expected} columns; give one for each")
            }
            Self::UnknownColumn { column, table } => {
                write!(f, "table `{table}` has no column number {column}; ask its schema for the columns")
            }
            Self::WrongType { column, expected, found } => {
                write!(f, "column `{column}` is {expected}, the value is {found}; convert the value")
            }
            Self::OutOfRange { column, expected } => {
                write!(
                    f,
                    "the value does not fit column `{column}` of type {expected} without loss; round or check it first"
                )
            }
            Self::Null { column } => write!(f, "column `{column}` is not nullable; give it a value"),
            Self::WrongLength { column, expected, len } => {
                write!(
                    f,
                    "a value of {len} bytes does not fit column `{column}` of type {expected}; cut or pad it"
                )
            }
            Self::KeyColumn { column } => {
                write!(
                    f,
                    "column `{column}` is part of the primary key; delete the row and insert it under its new key"
                )
            }
            Self::RowTooLarge { len } => {
                write!(
                    f,
                    "a row of {len} bytes is longer than the limit of {ROW_LEN_MAX}; split it over several rows"
                )
            }
            Self::KeyTooLong { len } => {
                write!(
                    f,
                    "a key of {len} bytes is longer than the limit of {KEY_LEN_MAX}; use shorter key columns"
                )
            }
            Self::Malformed => crate::Malformed.fmt(f),
        }
    }
}

impl std::error::Error for RowError {}
