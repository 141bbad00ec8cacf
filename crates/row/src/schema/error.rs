//! What can be wrong with a schema.

use std::fmt;

use super::check::PRIMARY_KEY;
use crate::ColumnType;
use crate::limits::{COLUMNS_MAX, FIXED_LEN_MAX, INDEXES_MAX, KEY_LEN_MAX, NAME_LEN_MAX};

/// Why a schema was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaError {
    /// A name is empty or longer than [`NAME_LEN_MAX`].
    BadName {
        /// What it would name: `table`, `column` or `index`.
        of: &'static str,
        /// The name.
        name: String,
    },
    /// Two columns have one name.
    DuplicateColumn {
        /// The name.
        column: String,
    },
    /// Two indexes have one name.
    DuplicateIndex {
        /// The name.
        index: String,
    },
    /// A key or index names a column that the table does not have.
    UnknownColumn {
        /// The table.
        table: String,
        /// The name.
        column: String,
    },
    /// A key or index names a column twice.
    RepeatedColumn {
        /// `primary key` or the name of the index.
        key: String,
        /// The column.
        column: String,
    },
    /// A key or index says where nulls come of a column that may not be null.
    NoNulls {
        /// `primary key` or the name of the index.
        key: String,
        /// The column.
        column: String,
    },
    /// An index without columns.
    EmptyIndex {
        /// Its name.
        index: String,
    },
    /// The keys would be longer than [`KEY_LEN_MAX`] whatever their values.
    KeyTooLong {
        /// `primary key` or the name of the index.
        key: String,
        /// The least length in bytes.
        len: usize,
    },
    /// The fixed columns take more than [`FIXED_LEN_MAX`].
    RowTooLarge {
        /// Their length in bytes.
        len: usize,
    },
    /// More columns than a table can have.
    TooManyColumns {
        /// How many.
        count: usize,
    },
    /// More than [`INDEXES_MAX`] indexes.
    TooManyIndexes {
        /// How many.
        count: usize,
    },
    /// A decimal with more than 18 digits after the point.
    BadScale {
        /// The column.
        column: String,
        /// The digits.
        scale: u8,
    },
    /// A change would drop or change a column of the primary key or of an index.
    ColumnInKey {
        /// `primary key` or the name of the index.
        key: String,
        /// The column.
        column: String,
    },
    /// A change would give a column a type that has not all values of the one before.
    NotWider {
        /// The column.
        column: String,
        /// Its type.
        from: ColumnType,
        /// The type that it was to have.
        to: ColumnType,
    },
    /// The value that rows are to have in a new column does not fit it.
    BadValue {
        /// The column.
        column: String,
        /// What is wrong.
        problem: String,
    },
    /// An order of columns leaves one out.
    BadOrder {
        /// The column.
        column: String,
    },
    /// The bytes are no encoded schema.
    Encoding {
        /// What is wrong with them.
        reason: &'static str,
    },
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadName { of, name } => {
                write!(f, "`{name}` cannot name a {of}; use 1 to {NAME_LEN_MAX} bytes")
            }
            Self::DuplicateColumn { column } => write!(f, "two columns are named `{column}`; rename one"),
            Self::DuplicateIndex { index } => write!(f, "two indexes are named `{index}`; rename one"),
            Self::UnknownColumn { table, column } => {
                write!(f, "table `{table}` has no column `{column}`; name one of its columns")
            }
            Self::RepeatedColumn { key, column } => {
                write!(f, "`{key}` names column `{column}` twice; name it once")
            }
            Self::NoNulls { key, column } => {
                write!(
                    f,
                    "`{key}` says where nulls come, and column `{column}` has none; use Ascending or Descending"
                )
            }
            Self::EmptyIndex { index } => write!(f, "index `{index}` has no columns; name at least one"),
            Self::KeyTooLong { key, len } => {
                write!(
                    f,
                    "keys of `{key}` take at least {len} bytes, the limit is {KEY_LEN_MAX}; use fewer or shorter columns"
                )
            }
            Self::RowTooLarge { len } => {
                write!(
                    f,
                    "the fixed columns take {len} bytes, the limit is {FIXED_LEN_MAX}; use variable columns"
                )
            }
            Self::TooManyColumns { count } => {
                write!(f, "{count} columns are more than the limit of {COLUMNS_MAX}; split the table")
            }
            Self::TooManyIndexes { count } => {
                write!(f, "{count} indexes are more than the limit of {INDEXES_MAX}; drop some")
            }
            Self::BadScale { column, scale } => {
                write!(f, "decimal column `{column}` has {scale} digits after the point; use at most 18")
            }
            Self::ColumnInKey { key, column } if key == PRIMARY_KEY => {
                write!(
                    f,
                    "column `{column}` is part of the primary key, which stays; copy the rows into another table"
                )
            }
            Self::ColumnInKey { key, column } => {
                write!(
                    f,
                    "column `{column}` is part of the index `{key}`; drop the index first, and make it anew"
                )
            }
            Self::NotWider { column, from, to } => {
                write!(
                    f,
                    "column `{column}` is {from}, and {to} has not all of its values; add a column of that type"
                )
            }
            Self::BadValue { column, problem } => {
                write!(f, "column `{column}` cannot be added with that value: {problem}")
            }
            Self::BadOrder { column } => {
                write!(f, "the order of columns leaves `{column}` out; name every column once, or drop it")
            }
            Self::Encoding { reason } => write!(f, "the bytes are no encoded schema: {reason}"),
        }
    }
}

impl std::error::Error for SchemaError {}
