//! A schema as constants: what `#[derive(Row)]` writes down, before a [`Schema`](crate::Schema) is made of it.

use crate::key_len::{index_key_len_min, primary_key_len_min};
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
    /// Returns the same description, if its keys can fit.
    ///
    /// # Panics
    /// If a key or index key is longer than [`KEY_LEN_MAX`] whatever the values, or says where nulls of a column come that has none; in a constant,
    /// that is a compile error.
    pub const fn checked(self) -> Self {
        let key_len = primary_key_len_min(self.columns, self.key);
        assert!(key_len <= KEY_LEN_MAX, "the key columns of this row take more than KEY_LEN_MAX bytes");
        self.check_nulls(self.key);
        let mut index = 0;
        while index < self.indexes.len() {
            let IndexDescription { parts, unique, .. } = self.indexes[index];
            let len = index_key_len_min(self.columns, self.key, parts, unique);
            assert!(
                len <= KEY_LEN_MAX,
                "the columns of an index of this row take more than KEY_LEN_MAX bytes"
            );
            self.check_nulls(parts);
            index += 1;
        }
        self
    }

    const fn check_nulls(self, parts: &[(usize, Order)]) {
        let mut part = 0;
        while part < parts.len() {
            let (column, order) = parts[part];
            assert!(
                self.columns[column].nullable || !order.moves_nulls(),
                "`nulls_last` and `nulls_first` are for columns that may be null"
            );
            part += 1;
        }
    }
}
