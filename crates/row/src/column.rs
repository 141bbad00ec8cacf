//! Rust types as columns.

#[cfg(feature = "chrono")]
mod chrono;
mod decimal;
mod inline;
#[cfg(feature = "jiff")]
mod jiff;
#[cfg(feature = "json")]
mod json;
#[cfg(any(feature = "jiff", feature = "chrono", feature = "time"))]
mod nanoseconds;
mod nullable;
mod row_id;
#[cfg(feature = "rust_decimal")]
mod rust_decimal;
mod scalar;
#[cfg(feature = "serde")]
mod serialized;
#[cfg(any(
    feature = "uuid",
    feature = "jiff",
    feature = "chrono",
    feature = "time",
    feature = "rust_decimal"
))]
mod stored_as;
mod text;
#[cfg(feature = "time")]
mod time;
mod timestamp;
#[cfg(feature = "uuid")]
mod uuid;
mod variable;
mod wide;

use crate::{ColumnType, KeyBuf, KeyReader, Malformed, Slot, Words};

#[cfg(feature = "serde")]
pub(crate) use decimal::parse_units as parse_decimal_units;
pub use decimal::{Decimal, DecimalError};
pub(crate) use decimal::{magnitude as decimal_magnitude, power_of_ten};
#[cfg(feature = "json")]
pub use json::{Json, JsonError};
pub use row_id::RowId;
pub use text::{Text, TextError};
pub use timestamp::{Timestamp, TimestampError};

/// A Rust type that can be a column.
///
/// Implemented for `bool`, the integers up to 128 bits, `f32`, `f64`, [`Decimal`], [`Timestamp`], [`RowId`], [`Text`],
/// `[u8; N]`, `String`, `Vec<u8>`, and `Option` of each of them; `#[derive(ColumnValue)]` implements it for types of a program.
/// Features of the crate `ensilo` add types of other crates.
///
/// All slots are constants where rows are derived: a number is read as one word, one shift and one mask.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the type of a column",
    note = "columns are bool, integers up to 128 bits, f32, f64, Decimal, Timestamp, RowId, Text, [u8; N], String, Vec<u8>, or Option of these",
    note = "a struct with one such field, or an enum without fields, becomes one by `#[derive(ColumnValue)]`"
)]
pub trait ColumnValue: Clone + PartialEq + 'static {
    /// The type of the column.
    const TYPE: ColumnType;
    /// Whether the column may be null.
    const NULLABLE: bool = false;
    /// Whether the column is a number that another one can be added to, and every number that it can hold is a value of this type.
    const IS_SUMMABLE: bool = false;
    /// The bytes it takes in every key, if always as many.
    const KEY_LEN: Option<usize>;
    /// Whether its key encoding is the `KEY_LEN <= 8` low bytes of [`value_key_bits`](Self::value_key_bits), big endian.
    const KEY_IS_WORD: bool = false;

    /// Reads the column from a row of at least the fixed length.
    ///
    /// # Errors
    /// [`Malformed`] if the row's words are no value of this type.
    fn read(row: &impl Words, slot: Slot) -> Result<Self, Malformed>;

    /// Writes what the fixed part of a row holds of the column, apart from the end of a variable column.
    fn write(&self, words: &mut [u64], slot: Slot);

    /// Returns the bytes of a variable column.
    #[inline(always)]
    fn variable_bytes(&self) -> &[u8] {
        &[]
    }

    /// Returns whether it is null.
    #[inline(always)]
    fn is_null(&self) -> bool {
        false
    }

    /// Returns whether both have the same encoding.
    #[inline(always)]
    fn is_same(&self, other: &Self) -> bool {
        self == other
    }

    /// Returns the key encoding as a number, where [`KEY_IS_WORD`](Self::KEY_IS_WORD).
    #[inline(always)]
    fn value_key_bits(&self) -> u64 {
        0
    }

    /// Appends the key encoding.
    fn encode_value_key(&self, key: &mut KeyBuf);

    /// Appends the key encoding for a descending column.
    #[inline]
    fn encode_value_key_descending(&self, key: &mut KeyBuf) {
        let start = key.len();
        self.encode_value_key(key);
        key.invert_from(start);
    }

    /// Takes the value from an encoded key.
    ///
    /// # Errors
    /// [`Malformed`] if no value has that encoding.
    fn decode_value_key(key: &mut KeyReader<'_>) -> Result<Self, Malformed>;
}
