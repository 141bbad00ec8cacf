//! One column of a key, ascending or descending.

use std::cmp::Reverse;

use super::{KeyBuf, KeyReader};
use crate::{ColumnType, ColumnValue, Malformed};

/// The order of a column in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// The least value first; null before every value.
    Ascending,
    /// The greatest value first; null after every value.
    Descending,
}

/// What a column of a Rust key type is, to compare with a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyPart {
    /// Its type.
    pub column_type: ColumnType,
    /// Whether it may be null.
    pub nullable: bool,
    /// Its order.
    pub order: Order,
}

/// A Rust type that can be one column of a key: every [`ColumnValue`], and [`Reverse`] of one for a descending column.
pub trait KeyColumn: Clone + 'static {
    /// What it is.
    const PART: KeyPart;
    /// The bytes it takes in every key, if always as many.
    const KEY_LEN: Option<usize>;
    /// Whether its encoding is the `KEY_LEN <= 8` low bytes of [`key_bits`](Self::key_bits), big endian.
    const IS_WORD: bool;

    /// Its encoding as a number, where [`IS_WORD`](Self::IS_WORD).
    fn key_bits(&self) -> u64;

    /// Appends its encoding.
    fn encode_key(&self, key: &mut KeyBuf);

    /// Takes it from an encoded key.
    ///
    /// # Errors
    /// [`Malformed`] if no value has that encoding.
    fn decode_key(key: &mut KeyReader<'_>) -> Result<Self, Malformed>;
}

impl<T: ColumnValue> KeyColumn for T {
    const PART: KeyPart = KeyPart { column_type: T::TYPE, nullable: T::NULLABLE, order: Order::Ascending };
    const KEY_LEN: Option<usize> = T::KEY_LEN;
    const IS_WORD: bool = T::KEY_IS_WORD;

    #[inline(always)]
    fn key_bits(&self) -> u64 {
        self.value_key_bits()
    }

    #[inline(always)]
    fn encode_key(&self, key: &mut KeyBuf) {
        self.encode_value_key(key);
    }

    #[inline(always)]
    fn decode_key(key: &mut KeyReader<'_>) -> Result<Self, Malformed> {
        T::decode_value_key(key)
    }
}

impl<T: ColumnValue> KeyColumn for Reverse<T> {
    const PART: KeyPart = KeyPart { column_type: T::TYPE, nullable: T::NULLABLE, order: Order::Descending };
    const KEY_LEN: Option<usize> = T::KEY_LEN;
    const IS_WORD: bool = T::KEY_IS_WORD;

    #[inline(always)]
    fn key_bits(&self) -> u64 {
        match T::KEY_LEN {
            Some(len) if len < 8 => !self.0.value_key_bits() & ((1 << (len * 8)) - 1),
            _ => !self.0.value_key_bits(),
        }
    }

    #[inline]
    fn encode_key(&self, key: &mut KeyBuf) {
        self.0.encode_value_key_descending(key);
    }

    #[inline]
    fn decode_key(key: &mut KeyReader<'_>) -> Result<Self, Malformed> {
        key.descending(T::decode_value_key).map(Reverse)
    }
}
