//! What schemas are made of: columns, and the parts that they have in keys.

use crate::{ColumnType, Order};

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub column_type: ColumnType,
    /// Whether it may be null.
    pub nullable: bool,
}

/// A column's part in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartSchema {
    /// The column's index in [`Schema::columns`](crate::Schema::columns).
    pub column: usize,
    /// Its order in the key.
    pub order: Order,
}

/// What identifies a row.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PrimaryKey {
    /// Columns, in key order.
    Columns(Vec<PartSchema>),
    /// A number that the table invents; a `u64`, big endian, in keys.
    RowId,
}
