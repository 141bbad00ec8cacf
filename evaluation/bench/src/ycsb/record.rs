//! The table: records of an 8-byte key and a value.
//!
//! Values of the usual 100 bytes are a column of fixed width, which is overwritten in place word by word. Values of any
//! other length are a column of variable length. Records with secondary indexes have fields beside the value, one for each index that
//! there may be: every write of the value changes all of them, and with them the entries of the indexes.

use ensilo::{Columns, KeyedRow, Row};

use super::value;

/// A row of a YCSB table, and its value alone as columns to read and to overwrite.
pub(super) trait Record: KeyedRow<Key = u64> {
    /// The value.
    type Value: Columns<Self> + AsRef<[u8]> + AsMut<[u8]>;

    /// A row with a value of `len` bytes that `fill` makes.
    fn new(key: u64, len: usize, fill: impl FnOnce(&mut [u8])) -> Self;

    /// A value of `len` bytes that `fill` makes.
    fn value(len: usize, fill: impl FnOnce(&mut [u8])) -> Self::Value;

    /// Makes the columns beside the value fit it, after it was changed. The default is that there are none.
    #[inline]
    fn settle(_columns: &mut Self::Value) {}

    /// Whether the columns beside the value fit it.
    fn is_settled(_columns: &Self::Value) -> bool {
        true
    }
}

/// The length of [`Record100`]'s values.
pub(super) const FIXED_LEN: usize = 100;

#[derive(Debug, Row)]
#[row(table = "usertable")]
pub(super) struct Record100 {
    #[row(key)]
    key: u64,
    value: [u8; FIXED_LEN],
}

#[derive(Debug, Columns)]
#[columns(of = Record100)]
pub(super) struct Value100 {
    value: [u8; FIXED_LEN],
}

#[derive(Debug, Row)]
#[row(table = "usertable")]
pub(super) struct RecordAny {
    #[row(key)]
    key: u64,
    value: Vec<u8>,
}

#[derive(Debug, Columns)]
#[columns(of = RecordAny)]
pub(super) struct ValueAny {
    value: Vec<u8>,
}

/// Columns beside the value of a record with secondary indexes.
pub(super) const FIELDS: usize = 4;

/// The names of the indexes, with the columns that they are over.
pub(super) const INDEXES: [(&str, &str); FIELDS] =
    [("by_field0", "field0"), ("by_field1", "field1"), ("by_field2", "field2"), ("by_field3", "field3")];

#[derive(Debug, Row)]
#[row(table = "usertable")]
pub(super) struct RecordIndexed {
    #[row(key)]
    key: u64,
    field0: u64,
    field1: u64,
    field2: u64,
    field3: u64,
    value: Vec<u8>,
}

#[derive(Debug, Columns)]
#[columns(of = RecordIndexed)]
pub(super) struct ValueIndexed {
    field0: u64,
    field1: u64,
    field2: u64,
    field3: u64,
    value: Vec<u8>,
}

impl Record for RecordIndexed {
    type Value = ValueIndexed;

    fn new(key: u64, len: usize, fill: impl FnOnce(&mut [u8])) -> Self {
        let ValueIndexed { field0, field1, field2, field3, value } = Self::value(len, fill);
        Self { key, field0, field1, field2, field3, value }
    }

    fn value(len: usize, fill: impl FnOnce(&mut [u8])) -> ValueIndexed {
        let mut value = vec![0; len];
        fill(&mut value);
        let [field0, field1, field2, field3] = value::fields(&value);
        ValueIndexed { field0, field1, field2, field3, value }
    }

    fn settle(columns: &mut ValueIndexed) {
        [columns.field0, columns.field1, columns.field2, columns.field3] = value::fields(&columns.value);
    }

    fn is_settled(columns: &ValueIndexed) -> bool {
        let ValueIndexed { field0, field1, field2, field3, value } = columns;
        [*field0, *field1, *field2, *field3] == value::fields(value)
    }
}

impl Record for Record100 {
    type Value = Value100;

    #[inline]
    fn new(key: u64, len: usize, fill: impl FnOnce(&mut [u8])) -> Self {
        let Value100 { value } = Self::value(len, fill);
        Self { key, value }
    }

    #[inline]
    fn value(len: usize, fill: impl FnOnce(&mut [u8])) -> Value100 {
        debug_assert_eq!(len, FIXED_LEN);
        let mut value = [0; FIXED_LEN];
        fill(&mut value);
        Value100 { value }
    }
}

impl Record for RecordAny {
    type Value = ValueAny;

    fn new(key: u64, len: usize, fill: impl FnOnce(&mut [u8])) -> Self {
        let ValueAny { value } = Self::value(len, fill);
        Self { key, value }
    }

    fn value(len: usize, fill: impl FnOnce(&mut [u8])) -> ValueAny {
        let mut value = vec![0; len];
        fill(&mut value);
        ValueAny { value }
    }
}

/// The bytes of all kinds of values.
macro_rules! value_bytes {
    ($($columns:ty),+) => {
        $(
            impl AsRef<[u8]> for $columns {
                #[inline]
                fn as_ref(&self) -> &[u8] {
                    &self.value
                }
            }

            impl AsMut<[u8]> for $columns {
                #[inline]
                fn as_mut(&mut self) -> &mut [u8] {
                    &mut self.value
                }
            }
        )+
    };
}

value_bytes!(Value100, ValueAny, ValueIndexed);
