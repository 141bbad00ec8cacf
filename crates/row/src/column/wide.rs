//! Columns that are one number of two words.

use crate::words::put_wide;
use crate::{ColumnType, ColumnValue, KeyBuf, KeyReader, Malformed, Slot, Words};

/// Makes integers of 16 bytes columns, by their column type and the value of their bits.
macro_rules! wide_columns {
    ($($type:ty, $column_type:expr, |$bits:ident| $of:expr;)+) => {$(
        impl ColumnValue for $type {
            const TYPE: ColumnType = $column_type;
            const KEY_LEN: Option<usize> = Some(16);

            #[inline(always)]
            fn read(row: &impl Words, slot: Slot) -> Result<Self, Malformed> {
                let $bits = row.wide_bits(slot.offset());
                Ok($of)
            }

            #[inline(always)]
            fn write(&self, words: &mut [u64], slot: Slot) {
                put_wide(words, slot.offset(), *self as u128);
            }

            #[inline(always)]
            fn encode_value_key(&self, key: &mut KeyBuf) {
                key.append_array(Self::TYPE.ordered_wide(*self as u128).to_be_bytes());
            }

            #[inline(always)]
            fn decode_value_key(key: &mut KeyReader<'_>) -> Result<Self, Malformed> {
                let $bits = Self::TYPE.ordered_wide(u128::from_be_bytes(key.take()?));
                Ok($of)
            }
        }
    )+};
}

wide_columns! {
    u128, ColumnType::U128, |bits| bits;
    i128, ColumnType::I128, |bits| bits.cast_signed();
}
