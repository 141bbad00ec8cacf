//! A schema as constants: what `#[derive(Row)]` writes down, before a [`Schema`](crate::Schema) is made of it.

use crate::{ColumnSpec, KEY_LEN_MAX, Order};

/// A table's schema as constants.
#[derive(Clone, Copy, Debug)]
pub struct RowDescription {
    /// The name of the table.
    pub table: &'static str,
    /// The names of the columns.
    pub names: &'static [&'static str],
    /// The columns, in the same order.
    pub columns: &'static [ColumnSpec],
    /// The columns of the primary key, in key order; none if the table invents row ids.
    pub key: &'static [(usize, Order)],
    /// The secondary indexes.
    pub indexes: &'static [IndexDescription],
}

/// A secondary index as constants.
#[derive(Clone, Copy, Debug)]
pub struct IndexDescription {
    /// Its name.
    pub name: &'static str,
    /// Its columns, in key order.
    pub parts: &'static [(usize, Order)],
    /// Whether no two rows may have the same values in its columns.
    pub unique: bool,
}

impl RowDescription {
    /// The same description, if its keys can fit.
    ///
    /// # Panics
    /// If a key or index key is longer than [`KEY_LEN_MAX`] whatever the values; in a constant, that is a compile error.
    pub const fn checked(self) -> Self {
        let key_len = key_len_min(self.columns, self.key);
        assert!(key_len <= KEY_LEN_MAX, "the key columns of this row take more than KEY_LEN_MAX bytes");
        let mut index = 0;
        while index < self.indexes.len() {
            let len = key_len_min(self.columns, self.indexes[index].parts) + key_len;
            assert!(
                len <= KEY_LEN_MAX,
                "the columns of an index of this row take more than KEY_LEN_MAX bytes"
            );
            index += 1;
        }
        self
    }
}

const fn key_len_min(columns: &[ColumnSpec], parts: &[(usize, Order)]) -> usize {
    let mut len = 0;
    let mut part = 0;
    while part < parts.len() {
        let column = columns[parts[part].0];
        len += if column.nullable { 1 } else { column.column_type.key_len_min() as usize };
        part += 1;
    }
    len
}
