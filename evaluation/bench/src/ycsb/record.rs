//! The table: records of an 8-byte key and a value.
//!
//! Values of the usual 100 bytes are a column of fixed width, which is overwritten in place word by word. Values of any
//! other length are a column of variable length.

use ensilo::{Columns, KeyedRow, Row};

/// A row of a YCSB table, and its value alone as columns to read and to overwrite.
pub(super) trait Record: KeyedRow<Key = u64> {
    /// The value.
    type Value: Columns<Self> + AsRef<[u8]> + AsMut<[u8]>;

    /// A row with a value of `len` bytes that `fill` makes.
    fn new(key: u64, len: usize, fill: impl FnOnce(&mut [u8])) -> Self;

    /// A value of `len` bytes that `fill` makes.
    fn value(len: usize, fill: impl FnOnce(&mut [u8])) -> Self::Value;
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

/// The bytes of both kinds of values.
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

value_bytes!(Value100, ValueAny);
