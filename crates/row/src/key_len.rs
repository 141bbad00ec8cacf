//! The fewest bytes that keys of given columns take: a table without a single possible key that fits is refused.

use crate::{ColumnSpec, Order};

/// The bytes of a row id in a key.
const ROW_ID_LEN: usize = 8;

/// Returns the fewest bytes of a primary key of these columns, or of a row id if there are none.
pub(crate) const fn primary_key_len_min(columns: &[ColumnSpec], key: &[(usize, Order)]) -> usize {
    if key.is_empty() { ROW_ID_LEN } else { len_min(columns, key, Counted::All) }
}

/// Returns the fewest bytes of an index key of the columns `parts`: with those columns of the primary key `key` (or
/// the row id) that are not among them, unless the index is unique and none of its columns is null.
pub(crate) const fn index_key_len_min(
    columns: &[ColumnSpec],
    key: &[(usize, Order)],
    parts: &[(usize, Order)],
    unique: bool,
) -> usize {
    let rest = primary_key_len_min(columns, key) - len_min(columns, parts, Counted::InKey);
    let with_key = len_min(columns, parts, Counted::All) + rest;
    if !unique {
        return with_key;
    }
    let without_key = len_min(columns, parts, Counted::AllWithValues);
    if has_nullable(columns, parts) && with_key < without_key { with_key } else { without_key }
}

/// What of the columns of a key is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    /// Every column, null where it may be.
    All,
    /// Those that are in the primary key, null where they may be.
    InKey,
    /// Every column, none of them null.
    AllWithValues,
}

const fn len_min(columns: &[ColumnSpec], parts: &[(usize, Order)], counted: Counted) -> usize {
    let mut len = 0;
    let mut part = 0;
    while part < parts.len() {
        let column = columns[parts[part].0];
        let value_len = column.column_type.key_len_min() as usize;
        len += match counted {
            Counted::InKey if !column.in_key => 0,
            Counted::AllWithValues if column.nullable => 1 + value_len,
            _ if column.nullable => 1,
            _ => value_len,
        };
        part += 1;
    }
    len
}

const fn has_nullable(columns: &[ColumnSpec], parts: &[(usize, Order)]) -> bool {
    let mut part = 0;
    while part < parts.len() {
        if columns[parts[part].0].nullable {
            return true;
        }
        part += 1;
    }
    false
}
