//! Values of a type that is known at run time only.

use std::cmp::Ordering;
use std::fmt;

use crate::Timestamp;
use crate::column::{decimal_magnitude, power_of_ten};

/// One value of a dynamic row.
///
/// Decoding gives signed integer columns as `Int`, unsigned ones (row ids too) as `Unsigned`, and those of 128 bits as `Int128` and
/// `Unsigned128`. Encoding takes any of them, and any float or decimal, for a column that holds the same number without loss; of a NaN, the same sign and payload.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Value {
    /// No value.
    Null,
    /// `bool`.
    Bool(bool),
    /// `i8` to `i64`.
    Int(i64),
    /// `u8` to `u64`.
    Unsigned(u64),
    /// `i128`.
    Int128(i128),
    /// `u128`.
    Unsigned128(u128),
    /// `f32`.
    Float32(f32),
    /// `f64`.
    Float64(f64),
    /// `Decimal`: `units * 10^-scale`.
    Decimal {
        /// How many units.
        units: i64,
        /// Digits after the point.
        scale: u8,
    },
    /// `Timestamp`.
    Timestamp(Timestamp),
    /// Text, of bounded length or any.
    Text(String),
    /// Bytes, of fixed length or any.
    Bytes(Vec<u8>),
}

impl Value {
    /// Returns what kind of value it is, for messages.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a bool",
            Self::Int(_) | Self::Unsigned(_) | Self::Int128(_) | Self::Unsigned128(_) => "an integer",
            Self::Float32(_) => "an f32",
            Self::Float64(_) => "an f64",
            Self::Decimal { .. } => "a decimal",
            Self::Timestamp(_) => "a timestamp",
            Self::Text(_) => "text",
            Self::Bytes(_) => "bytes",
        }
    }

    /// Returns the order of two values of one column: null first, floats in IEEE 754 total order, the others by
    /// value. Values of different kinds are ordered by kind.
    pub fn total_cmp(&self, other: &Self) -> Ordering {
        if let (Some(left), Some(right)) = (self.integer(), other.integer()) {
            return left.cmp(&right);
        }
        match (self, other) {
            (Self::Bool(left), Self::Bool(right)) => left.cmp(right),
            (Self::Float32(left), Self::Float32(right)) => left.total_cmp(right),
            (Self::Float64(left), Self::Float64(right)) => left.total_cmp(right),
            (
                Self::Decimal { units: left, scale: left_scale },
                Self::Decimal { units: right, scale: right_scale },
            ) => compare_decimals((*left, *left_scale), (*right, *right_scale)),
            (Self::Timestamp(left), Self::Timestamp(right)) => left.cmp(right),
            (Self::Text(left), Self::Text(right)) => left.cmp(right),
            (Self::Bytes(left), Self::Bytes(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    /// Returns the number that an integer of any type is.
    pub(crate) const fn integer(&self) -> Option<Integer> {
        Some(match self {
            Self::Int(value) => Integer::of_signed(*value as i128),
            Self::Int128(value) => Integer::of_signed(*value),
            Self::Unsigned(value) => Integer { is_negative: false, bits: *value as u128 },
            Self::Unsigned128(value) => Integer { is_negative: false, bits: *value },
            _ => return None,
        })
    }

    const fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Int(_) | Self::Unsigned(_) | Self::Int128(_) | Self::Unsigned128(_) => 2,
            Self::Float32(_) => 3,
            Self::Float64(_) => 4,
            Self::Decimal { .. } => 5,
            Self::Timestamp(_) => 6,
            Self::Text(_) => 7,
            Self::Bytes(_) => 8,
        }
    }
}

/// A number of either sign in 128 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Integer {
    pub(crate) is_negative: bool,
    /// In two's complement.
    pub(crate) bits: u128,
}

impl Integer {
    const fn of_signed(value: i128) -> Self {
        Self { is_negative: value < 0, bits: value.cast_unsigned() }
    }
}

impl Ord for Integer {
    fn cmp(&self, other: &Self) -> Ordering {
        other.is_negative.cmp(&self.is_negative).then(self.bits.cmp(&other.bits))
    }
}

impl PartialOrd for Integer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares by value, then (`1.0` and `1.00`) by scale.
fn compare_decimals(left: (i64, u8), right: (i64, u8)) -> Ordering {
    let aligned =
        |(units, scale): (i64, u8), other: u8| i128::from(units) * power_of_ten(other.saturating_sub(scale));
    aligned(left, right.1).cmp(&aligned(right, left.1)).then(left.1.cmp(&right.1))
}

/// Equal values have equal encodings: -0.0 differs from 0.0, and a NaN equals itself.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.total_cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Unsigned(value) => value.fmt(f),
            Self::Int128(value) => value.fmt(f),
            Self::Unsigned128(value) => value.fmt(f),
            Self::Float32(value) => value.fmt(f),
            Self::Float64(value) => value.fmt(f),
            Self::Decimal { units, scale } => {
                let sign = if *units < 0 { "-" } else { "" };
                write!(f, "{sign}{}", decimal_magnitude(units.unsigned_abs(), *scale))
            }
            Self::Timestamp(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
            Self::Bytes(value) => {
                f.write_str("0x")?;
                value.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

macro_rules! value_from {
    ($($type:ty => $variant:ident;)+) => {$(
        impl From<$type> for Value {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        }
    )+};
}

value_from! {
    bool => Bool;
    i8 => Int;
    i16 => Int;
    i32 => Int;
    i64 => Int;
    u8 => Unsigned;
    u16 => Unsigned;
    u32 => Unsigned;
    u64 => Unsigned;
    i128 => Int128;
    u128 => Unsigned128;
    f32 => Float32;
    f64 => Float64;
    Timestamp => Timestamp;
    String => Text;
    &str => Text;
    Vec<u8> => Bytes;
}

impl<const N: usize> From<crate::Text<N>> for Value {
    fn from(text: crate::Text<N>) -> Self {
        Self::Text(text.into())
    }
}

impl<const N: usize> From<[u8; N]> for Value {
    fn from(bytes: [u8; N]) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl<const SCALE: u8> From<crate::Decimal<SCALE>> for Value {
    fn from(decimal: crate::Decimal<SCALE>) -> Self {
        Self::Decimal { units: decimal.scaled(), scale: SCALE }
    }
}

impl From<crate::RowId> for Value {
    fn from(id: crate::RowId) -> Self {
        Self::Unsigned(id.get())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
