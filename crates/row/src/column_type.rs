//! The types that a column can have.

use std::fmt;

/// The type of a column, apart from whether it may be null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ColumnType {
    /// `bool`.
    Bool,
    /// `i8`.
    I8,
    /// `i16`.
    I16,
    /// `i32`.
    I32,
    /// `i64`.
    I64,
    /// `u8`.
    U8,
    /// `u16`.
    U16,
    /// `u32`.
    U32,
    /// `u64`.
    U64,
    /// `i128`.
    I128,
    /// `u128`.
    U128,
    /// `f32`, in IEEE 754 total order.
    F32,
    /// `f64`, in IEEE 754 total order.
    F64,
    /// [`Decimal`](crate::Decimal): an `i64` that counts units of `10^-scale`.
    Decimal {
        /// Digits after the point, at most 18.
        scale: u8,
    },
    /// [`Timestamp`](crate::Timestamp): an `i64` of microseconds since 1970-01-01 UTC.
    Timestamp,
    /// [`Text`](crate::Text): text of a bounded length, stored in the fixed part of the row.
    FixedText {
        /// The most bytes of UTF-8 that it holds.
        len_max: u16,
    },
    /// `[u8; N]`: exactly that many bytes.
    FixedBytes {
        /// How many.
        len: u16,
    },
    /// `String`: UTF-8 of any length.
    Text,
    /// `Vec<u8>`: bytes of any length.
    Bytes,
}

impl ColumnType {
    /// Returns whether it is an integer of up to 64 bits.
    pub const fn is_number(self) -> bool {
        matches!(
            self,
            Self::I8 | Self::I16 | Self::I32 | Self::I64 | Self::U8 | Self::U16 | Self::U32 | Self::U64
        )
    }

    /// Returns whether it is a number of up to 64 bits that another one can be added to: an integer or a decimal.
    pub const fn is_summable(self) -> bool {
        self.is_number() || matches!(self, Self::Decimal { .. })
    }

    /// Returns whether it is a [summable](Self::is_summable) number that may be negative.
    pub const fn has_negative_sums(self) -> bool {
        self.is_signed() || matches!(self, Self::Decimal { .. })
    }

    /// Returns the width in bytes (1, 2, 4 or 8) of a type that is stored as one aligned number, otherwise 0.
    pub const fn scalar_width(self) -> u32 {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::Decimal { .. } | Self::Timestamp => 8,
            Self::I128 | Self::U128 => 0,
            Self::FixedText { .. } | Self::FixedBytes { .. } | Self::Text | Self::Bytes => 0,
        }
    }

    /// Returns whether `other` has all values of this type, so that a column of this type can become one of `other`.
    pub const fn widens_to(self, other: Self) -> bool {
        match (self, other) {
            (Self::Bool, Self::Bool)
            | (Self::Timestamp, Self::Timestamp)
            | (Self::F32 | Self::F64, Self::F64) => true,
            (Self::F32, Self::F32) | (Self::Text, Self::Text) | (Self::Bytes, Self::Bytes) => true,
            (Self::Decimal { scale: from }, Self::Decimal { scale: to }) => from == to,
            (Self::FixedText { len_max: from }, Self::FixedText { len_max: to }) => from <= to,
            (Self::FixedBytes { len: from }, Self::FixedBytes { len: to }) => from == to,
            (Self::FixedText { .. }, Self::Text) | (Self::FixedBytes { .. }, Self::Bytes) => true,
            (from, to) if from.is_any_integer() && to.is_any_integer() => {
                let (is_signed, was_signed) = (to.has_negatives(), from.has_negatives());
                let is_wider = from.number_width() < to.number_width();
                is_wider && (is_signed || !was_signed)
                    || from.number_width() == to.number_width() && is_signed == was_signed
            }
            _ => false,
        }
    }

    const fn has_negatives(self) -> bool {
        self.is_signed() || matches!(self, Self::I128)
    }

    const fn is_any_integer(self) -> bool {
        self.is_integer() || self.is_wide()
    }

    /// Returns whether it is a number of 16 bytes, which lies in two words.
    pub const fn is_wide(self) -> bool {
        matches!(self, Self::I128 | Self::U128)
    }

    /// Returns the width in bytes of a number, otherwise 0.
    pub(crate) const fn number_width(self) -> u32 {
        if self.is_wide() { 16 } else { self.scalar_width() }
    }

    /// Returns whether the length of the value is known only by the row.
    pub const fn is_variable(self) -> bool {
        matches!(self, Self::Text | Self::Bytes)
    }

    /// Returns the bytes that a column takes in the fixed part of a row: its number, its inline text or bytes, or the
    /// end offset of its variable bytes.
    pub const fn width(self) -> u32 {
        match self {
            Self::FixedText { len_max } => text_prefix_len(len_max) + len_max as u32,
            Self::FixedBytes { len } => len as u32,
            Self::Text | Self::Bytes => 4,
            number => number.number_width(),
        }
    }

    pub(crate) const fn is_integer(self) -> bool {
        self.is_signed() || matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::U64)
    }

    pub(crate) const fn is_signed(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    /// Returns the bytes of the length that stands before inline text, otherwise 0.
    pub(crate) const fn prefix_len(self) -> usize {
        match self {
            Self::FixedText { len_max } => text_prefix_len(len_max) as usize,
            _ => 0,
        }
    }

    /// Returns the bits of a number, as the row holds them, turned so that unsigned order is the order of the type:
    /// the sign bit is inverted, and of a negative float all other bits too.
    #[inline(always)]
    pub(crate) const fn ordered_bits(self, bits: u64) -> u64 {
        self.flip(bits, bits)
    }

    /// Returns the inverse of [`ordered_bits`](Self::ordered_bits): a float was negative if the turned sign bit is
    /// clear.
    #[inline(always)]
    pub(crate) const fn bits_of_ordered(self, ordered: u64) -> u64 {
        self.flip(ordered, !ordered)
    }

    /// Inverts what the order of the type needs: the sign bit, or all bits of a float if the sign bit is set in `sign_of`.
    #[inline(always)]
    const fn flip(self, bits: u64, sign_of: u64) -> u64 {
        let width = self.scalar_width() * 8;
        let sign = 1 << (width - 1);
        match self {
            Self::F32 | Self::F64 if sign_of & sign != 0 => bits ^ (u64::MAX >> (64 - width)),
            Self::Bool | Self::U8 | Self::U16 | Self::U32 | Self::U64 => bits,
            _ => bits ^ sign,
        }
    }

    /// Returns the bits of a number of 16 bytes turned so that unsigned order is the order of the type, and back.
    #[inline(always)]
    pub(crate) const fn ordered_wide(self, bits: u128) -> u128 {
        if matches!(self, Self::I128) { bits ^ 1 << 127 } else { bits }
    }

    /// Returns the fewest bytes that a non-null value takes in a key.
    pub(crate) const fn key_len_min(self) -> u32 {
        match self {
            Self::FixedText { .. } | Self::Text | Self::Bytes => 1,
            fixed => fixed.width(),
        }
    }
}

/// Returns the bytes of the length that stands before inline text: one where that suffices.
pub(crate) const fn text_prefix_len(len_max: u16) -> u32 {
    if len_max <= 255 { 1 } else { 2 }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("bool"),
            Self::I8 => f.write_str("i8"),
            Self::I16 => f.write_str("i16"),
            Self::I32 => f.write_str("i32"),
            Self::I64 => f.write_str("i64"),
            Self::U8 => f.write_str("u8"),
            Self::U16 => f.write_str("u16"),
            Self::U32 => f.write_str("u32"),
            Self::U64 => f.write_str("u64"),
            Self::I128 => f.write_str("i128"),
            Self::U128 => f.write_str("u128"),
            Self::F32 => f.write_str("f32"),
            Self::F64 => f.write_str("f64"),
            Self::Decimal { scale } => write!(f, "decimal({scale})"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::FixedText { len_max } => write!(f, "text({len_max})"),
            Self::FixedBytes { len } => write!(f, "bytes({len})"),
            Self::Text => f.write_str("text"),
            Self::Bytes => f.write_str("bytes"),
        }
    }
}
