//! Columns that are one number.

use super::{Decimal, RowId, Timestamp};
use crate::words::put_bits;
use crate::{ColumnType, ColumnValue, KeyBuf, KeyReader, Malformed, Slot, Words};

/// Makes types columns of one number, by their column type, its width, their bits as a row holds them, and the value of such bits.
macro_rules! scalar_columns {
    ($([$($generics:tt)*] $type:ty, $column_type:expr, $width:literal, |$value:ident| $to:expr, |$bits:ident| $of:expr;)+) => {$(
        impl $($generics)* ColumnValue for $type {
            const TYPE: ColumnType = $column_type;
            const IS_SUMMABLE: bool = Self::TYPE.is_summable();
            const KEY_LEN: Option<usize> = Some($width);
            const KEY_IS_WORD: bool = true;

            #[inline(always)]
            fn read(row: &impl Words, slot: Slot) -> Result<Self, Malformed> {
                let $bits = row.aligned_bits(slot.offset(), $width);
                $of
            }

            #[inline(always)]
            fn write(&self, words: &mut [u64], slot: Slot) {
                let $value = *self;
                put_bits(words, slot.offset(), $width, $to);
            }

            #[inline(always)]
            fn is_same(&self, other: &Self) -> bool {
                let bits = |$value: Self| -> u64 { $to };
                bits(*self) == bits(*other)
            }

            #[inline(always)]
            fn value_key_bits(&self) -> u64 {
                let $value = *self;
                Self::TYPE.ordered_bits($to)
            }

            #[inline(always)]
            fn encode_value_key(&self, key: &mut KeyBuf) {
                key.append_part((self.value_key_bits() << (64 - 8 * $width)).to_be_bytes(), $width);
            }

            #[inline(always)]
            fn decode_value_key(key: &mut KeyReader<'_>) -> Result<Self, Malformed> {
                let $bits = Self::TYPE.bits_of_ordered(key.take_bits::<$width>()?);
                $of
            }
        }
    )+};
}

scalar_columns! {
    [] bool, ColumnType::Bool, 1, |it| u64::from(it), |bits| if bits <= 1 { Ok(bits == 1) } else { Err(Malformed) };
    [] u8, ColumnType::U8, 1, |it| u64::from(it), |bits| Ok(bits as u8);
    [] u16, ColumnType::U16, 2, |it| u64::from(it), |bits| Ok(bits as u16);
    [] u32, ColumnType::U32, 4, |it| u64::from(it), |bits| Ok(bits as u32);
    [] u64, ColumnType::U64, 8, |it| it, |bits| Ok(bits);
    [] i8, ColumnType::I8, 1, |it| u64::from(it.cast_unsigned()), |bits| Ok(bits as i8);
    [] i16, ColumnType::I16, 2, |it| u64::from(it.cast_unsigned()), |bits| Ok(bits as i16);
    [] i32, ColumnType::I32, 4, |it| u64::from(it.cast_unsigned()), |bits| Ok(bits as i32);
    [] i64, ColumnType::I64, 8, |it| it.cast_unsigned(), |bits| Ok(bits.cast_signed());
    [] f32, ColumnType::F32, 4, |it| u64::from(it.to_bits()), |bits| Ok(f32::from_bits(bits as u32));
    [] f64, ColumnType::F64, 8, |it| it.to_bits(), |bits| Ok(f64::from_bits(bits));
    [<const SCALE: u8>] Decimal<SCALE>, ColumnType::Decimal { scale: Self::CHECKED_SCALE }, 8,
        |it| it.scaled().cast_unsigned(), |bits| Ok(Self::from_scaled(bits.cast_signed()));
    [] Timestamp, ColumnType::Timestamp, 8, |it| it.micros().cast_unsigned(), |bits| Ok(Self::from_micros(bits.cast_signed()));
    [] RowId, ColumnType::U64, 8, |it| it.get(), |bits| Ok(RowId(bits));
}
