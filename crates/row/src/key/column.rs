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
    /// The least value first; null after every value.
    AscendingNullsLast,
    /// The greatest value first; null before every value.
    DescendingNullsFirst,
}

impl Order {
    /// Returns whether the greatest value comes first.
    #[inline]
    pub const fn is_descending(self) -> bool {
        matches!(self, Self::Descending | Self::DescendingNullsFirst)
    }

    /// Returns whether null has another place than in [`Ascending`](Self::Ascending) or [`Descending`](Self::Descending): such a column has to
    /// be one that may be null.
    #[inline]
    pub const fn moves_nulls(self) -> bool {
        matches!(self, Self::AscendingNullsLast | Self::DescendingNullsFirst)
    }

    /// Returns the byte that stands for null, before a descending column is inverted.
    #[inline]
    pub(crate) const fn null_tag(self) -> u8 {
        if self.moves_nulls() { NULL_LAST } else { NULL_FIRST }
    }

    /// Returns the byte that stands for null in a key.
    #[inline]
    pub const fn null_byte(self) -> u8 {
        if self.is_descending() { !self.null_tag() } else { self.null_tag() }
    }
}

/// The byte before a value of a column that may be null.
pub(crate) const NOT_NULL: u8 = 1;
/// Null before every value.
const NULL_FIRST: u8 = 0;
/// Null behind every value.
pub(crate) const NULL_LAST: u8 = 2;

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

/// A Rust type that can be one column of a key: every [`ColumnValue`], [`Reverse`] of one for a descending column, and
/// [`NullsLast`](crate::NullsLast) for one whose nulls come last, or first in descending order.
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
