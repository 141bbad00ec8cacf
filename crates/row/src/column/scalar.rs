//! Columns that are one number.

use super::{Decimal, RowId, Timestamp};
use crate::words::put_bits;
use crate::{ColumnType, ColumnValue, KeyBuf, KeyReader, Malformed, Slot, Words};

/// A number's bits as they are stored, and as they are ordered.
trait Scalar: Sized {
    fn to_bits(&self) -> u64;
    fn of_bits(bits: u64) -> Result<Self, Malformed>;
    fn to_ordered(&self) -> u64;
    fn of_ordered(bits: u64) -> Result<Self, Malformed>;
}

macro_rules! unsigned {
    ($($type:ty)+) => {$(
        impl Scalar for $type {
            #[inline(always)]
            fn to_bits(&self) -> u64 {
                u64::from(*self)
            }
            #[inline(always)]
            fn of_bits(bits: u64) -> Result<Self, Malformed> {
                Ok(bits as $type)
            }
            #[inline(always)]
            fn to_ordered(&self) -> u64 {
                u64::from(*self)
            }
            #[inline(always)]
            fn of_ordered(bits: u64) -> Result<Self, Malformed> {
                Ok(bits as $type)
            }
        }
    )+};
}

unsigned!(u8 u16 u32 u64);

macro_rules! signed {
    ($($type:ty, $unsigned:ty;)+) => {$(
        impl Scalar for $type {
            #[inline(always)]
            fn to_bits(&self) -> u64 {
                u64::from(self.cast_unsigned())
            }
            #[inline(always)]
            fn of_bits(bits: u64) -> Result<Self, Malformed> {
                Ok(bits as $type)
            }
            #[inline(always)]
            fn to_ordered(&self) -> u64 {
                u64::from((*self ^ <$type>::MIN).cast_unsigned())
            }
            #[inline(always)]
            fn of_ordered(bits: u64) -> Result<Self, Malformed> {
                Ok(bits as $type ^ <$type>::MIN)
            }
        }
    )+};
}

signed!(i8, u8; i16, u16; i32, u32; i64, u64;);

macro_rules! float {
    ($($type:ty, $unsigned:ty, $signed:ty;)+) => {$(
        impl Scalar for $type {
            #[inline(always)]
            fn to_bits(&self) -> u64 {
                u64::from(<$type>::to_bits(*self))
            }
            #[inline(always)]
            fn of_bits(bits: u64) -> Result<Self, Malformed> {
                Ok(<$type>::from_bits(bits as $unsigned))
            }
            #[inline(always)]
            fn to_ordered(&self) -> u64 {
                let bits = <$type>::to_bits(*self);
                let negative = (bits.cast_signed() >> (<$unsigned>::BITS - 1)).cast_unsigned();
                u64::from(bits ^ (negative | 1 << (<$unsigned>::BITS - 1)))
            }
            #[inline(always)]
            fn of_ordered(bits: u64) -> Result<Self, Malformed> {
                let bits = bits as $unsigned;
                let positive = (bits.cast_signed() >> (<$unsigned>::BITS - 1)).cast_unsigned();
                Ok(<$type>::from_bits(bits ^ (!positive | 1 << (<$unsigned>::BITS - 1))))
            }
        }
    )+};
}

float!(f32, u32, i32; f64, u64, i64;);

impl Scalar for bool {
    #[inline(always)]
    fn to_bits(&self) -> u64 {
        u64::from(*self)
    }

    #[inline(always)]
    fn of_bits(bits: u64) -> Result<Self, Malformed> {
        if bits <= 1 { Ok(bits == 1) } else { Err(Malformed) }
    }

    #[inline(always)]
    fn to_ordered(&self) -> u64 {
        u64::from(*self)
    }

    #[inline(always)]
    fn of_ordered(bits: u64) -> Result<Self, Malformed> {
        Self::of_bits(bits)
    }
}

macro_rules! newtype {
    ($([$($generics:tt)*] $type:ty, $inner:ty, $wrap:expr, $unwrap:expr;)+) => {$(
        impl $($generics)* Scalar for $type {
            #[inline(always)]
            fn to_bits(&self) -> u64 {
                Scalar::to_bits(&$unwrap(*self))
            }
            #[inline(always)]
            fn of_bits(bits: u64) -> Result<Self, Malformed> {
                <$inner as Scalar>::of_bits(bits).map($wrap)
            }
            #[inline(always)]
            fn to_ordered(&self) -> u64 {
                Scalar::to_ordered(&$unwrap(*self))
            }
            #[inline(always)]
            fn of_ordered(bits: u64) -> Result<Self, Malformed> {
                <$inner as Scalar>::of_ordered(bits).map($wrap)
            }
        }
    )+};
}

newtype! {
    [<const SCALE: u8>] Decimal<SCALE>, i64, Self::from_scaled, Self::scaled;
    [] Timestamp, i64, Self::from_micros, Self::micros;
    [] RowId, u64, RowId, RowId::get;
}

macro_rules! scalar_column {
    ($([$($generics:tt)*] $type:ty, $column_type:expr, $width:literal;)+) => {$(
        impl $($generics)* ColumnValue for $type {
            const TYPE: ColumnType = $column_type;
            const KEY_LEN: Option<usize> = Some($width);
            const KEY_IS_WORD: bool = true;

            #[inline(always)]
            fn read(row: &impl Words, slot: Slot) -> Result<Self, Malformed> {
                Scalar::of_bits(row.aligned_bits(slot.offset(), $width))
            }

            #[inline(always)]
            fn write(&self, words: &mut [u64], slot: Slot) {
                put_bits(words, slot.offset(), $width, Scalar::to_bits(self));
            }

            #[inline(always)]
            fn is_same(&self, other: &Self) -> bool {
                Scalar::to_bits(self) == Scalar::to_bits(other)
            }

            #[inline(always)]
            fn value_key_bits(&self) -> u64 {
                self.to_ordered()
            }

            #[inline(always)]
            fn encode_value_key(&self, key: &mut KeyBuf) {
                key.append_part((self.to_ordered() << (64 - 8 * $width)).to_be_bytes(), $width);
            }

            #[inline(always)]
            fn decode_value_key(key: &mut KeyReader<'_>) -> Result<Self, Malformed> {
                Scalar::of_ordered(key.take_bits::<$width>()?)
            }
        }
    )+};
}

scalar_column! {
    [] bool, ColumnType::Bool, 1;
    [] u8, ColumnType::U8, 1;
    [] u16, ColumnType::U16, 2;
    [] u32, ColumnType::U32, 4;
    [] u64, ColumnType::U64, 8;
    [] i8, ColumnType::I8, 1;
    [] i16, ColumnType::I16, 2;
    [] i32, ColumnType::I32, 4;
    [] i64, ColumnType::I64, 8;
    [] f32, ColumnType::F32, 4;
    [] f64, ColumnType::F64, 8;
    [<const SCALE: u8>] Decimal<SCALE>, ColumnType::Decimal { scale: Self::CHECKED_SCALE }, 8;
    [] Timestamp, ColumnType::Timestamp, 8;
    [] RowId, ColumnType::U64, 8;
}
