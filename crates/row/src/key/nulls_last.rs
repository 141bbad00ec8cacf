//! Columns of keys whose nulls have another place than in ascending and descending order.

use std::cmp::{Ordering, Reverse};

use super::column::{NOT_NULL, NULL_LAST};
use super::{KeyBuf, KeyColumn, KeyPart, KeyReader, Order};
use crate::{ColumnValue, Malformed};

/// A column that may be null, in a key where null comes after every value; [`Reverse`] of it is one in descending order where null comes
/// before every value.
///
/// `T` is an `Option`, or another column that may be null. Rows declare it as `#[row(key, nulls_last)]`, and in an index as
/// `columns(field nulls_last)`; `desc nulls_first` is the reverse.
///
/// ```
/// use std::cmp::Reverse;
///
/// use ensilo_row::{Key, KeyBuf, NullsLast};
///
/// fn key(key: &impl Key) -> Vec<u8> {
///     let mut bytes = KeyBuf::new();
///     key.encode(&mut bytes);
///     bytes.as_bytes().to_vec()
/// }
/// assert!(key(&NullsLast(Some(7u8))) < key(&NullsLast(None::<u8>)));
/// assert!(key(&Reverse(NullsLast(None::<u8>))) < key(&Reverse(NullsLast(Some(7u8)))));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NullsLast<T>(pub T);

impl<T: ColumnValue> NullsLast<T> {
    /// Appends the encoding of a value in this order.
    #[doc(hidden)]
    #[inline]
    pub fn encode_value(value: &T, key: &mut KeyBuf) {
        if value.is_null() {
            key.append_array([NULL_LAST]);
        } else {
            value.encode_value_key(key);
        }
    }

    /// Appends the encoding of a value in the reverse order.
    #[doc(hidden)]
    #[inline]
    pub fn encode_value_descending(value: &T, key: &mut KeyBuf) {
        let start = key.len();
        Self::encode_value(value, key);
        key.invert_from(start);
    }
}

impl<T: Ord> Ord for NullsLast<Option<T>> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.is_none().cmp(&other.0.is_none()).then_with(|| self.0.cmp(&other.0))
    }
}

impl<T: Ord> PartialOrd for NullsLast<Option<T>> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

const fn part_of<T: ColumnValue>(order: Order) -> KeyPart {
    assert!(T::NULLABLE, "the place of nulls is that of a column that may be null");
    KeyPart { column_type: T::TYPE, nullable: true, order }
}

impl<T: ColumnValue> KeyColumn for NullsLast<T> {
    const PART: KeyPart = part_of::<T>(Order::AscendingNullsLast);
    const KEY_LEN: Option<usize> = None;
    const IS_WORD: bool = false;

    #[inline(always)]
    fn key_bits(&self) -> u64 {
        0
    }

    #[inline]
    fn encode_key(&self, key: &mut KeyBuf) {
        Self::encode_value(&self.0, key);
    }

    #[inline]
    fn decode_key(key: &mut KeyReader<'_>) -> Result<Self, Malformed> {
        let mut behind_tag = *key;
        match behind_tag.take()? {
            [NOT_NULL] => T::decode_value_key(key).map(NullsLast),
            [NULL_LAST] => {
                *key = behind_tag;
                T::decode_value_key(&mut KeyReader::new(&[Order::Ascending.null_tag()])).map(NullsLast)
            }
            _ => Err(Malformed),
        }
    }
}

impl<T: ColumnValue> KeyColumn for Reverse<NullsLast<T>> {
    const PART: KeyPart = part_of::<T>(Order::DescendingNullsFirst);
    const KEY_LEN: Option<usize> = None;
    const IS_WORD: bool = false;

    #[inline(always)]
    fn key_bits(&self) -> u64 {
        0
    }

    #[inline]
    fn encode_key(&self, key: &mut KeyBuf) {
        NullsLast::encode_value_descending(&self.0.0, key);
    }

    #[inline]
    fn decode_key(key: &mut KeyReader<'_>) -> Result<Self, Malformed> {
        key.descending(NullsLast::decode_key).map(Reverse)
    }
}
