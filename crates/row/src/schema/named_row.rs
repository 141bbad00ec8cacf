//! Dynamic rows to and from serde, by the names of their columns.
//!
//! A row is a map: the name of each column, and its value. A value is what it is in formats that describe themselves, such as JSON:
//! ```text
//! null, bool, integers, text    as they are
//! floats                        as they are; in formats for people "NaN", "inf" and "-inf"
//! decimal, timestamp            text: "12.50", "2024-02-29T12:00:00.000000Z"
//! bytes                         in formats for people text, two hexadecimal digits a byte after "0x"; otherwise bytes
//! ```
//! The type of the column says what text is meant. A NaN with another sign or payload than [`f64::NAN`] has no text, and is an error.

use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, Unexpected, Visitor};
use serde::ser::{Error as _, SerializeMap};
use serde::{Deserializer, Serialize, Serializer};

use super::{Column, Schema};
use crate::column::parse_decimal_units;
use crate::{ColumnType, Value};

impl Schema {
    /// Returns a row, one value per column, as something that serde serializes: a map by the names of the columns.
    ///
    /// # Panics
    /// When it is serialized and there are more or fewer values than columns.
    pub fn named_row<'a>(&'a self, row: &'a [Value]) -> impl Serialize + 'a {
        NamedRow { schema: self, row }
    }

    /// Returns what deserializes a row, one value per column, from a map by the names of the columns, in a format that describes itself.
    /// Nullable columns may be missing; a name that no column has, or a second value of one, is an error, as is a value that does not
    /// fit its column.
    pub fn row_seed<'de>(&self) -> impl DeserializeSeed<'de, Value = Vec<Value>> + '_ {
        RowSeed { schema: self }
    }

    /// Returns a row as a JSON object by the names of the columns.
    ///
    /// # Errors
    /// If a float is a NaN with another sign or payload than [`f64::NAN`].
    ///
    /// # Panics
    /// If there are more or fewer values than columns.
    #[cfg(feature = "json")]
    pub fn row_to_json(&self, row: &[Value]) -> Result<String, crate::JsonError> {
        Ok(serde_json::to_string(&self.named_row(row))?)
    }

    /// Returns the row that a JSON object is. Nullable columns may be missing.
    ///
    /// # Errors
    /// If the text is no JSON object, has a name that no column has, or one twice, or a value that does not fit its column.
    ///
    /// ```
    /// use ensilo_row::{ColumnType, Schema, Value};
    ///
    /// let schema = Schema::builder("account")
    ///     .column("id", ColumnType::U32)
    ///     .column("balance", ColumnType::Decimal { scale: 2 })
    ///     .nullable("note", ColumnType::Text)
    ///     .build()?;
    /// let row = schema.row_from_json(r#"{"id": 7, "balance": "12.5"}"#)?;
    /// assert_eq!(row, [Value::Unsigned(7), Value::Decimal { units: 1250, scale: 2 }, Value::Null]);
    /// assert_eq!(schema.row_to_json(&row)?, r#"{"id":7,"balance":"12.50","note":null}"#);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "json")]
    pub fn row_from_json(&self, text: &str) -> Result<Vec<Value>, crate::JsonError> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let row = self.row_seed().deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(row)
    }
}

struct NamedRow<'a> {
    schema: &'a Schema,
    row: &'a [Value],
}

impl Serialize for NamedRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let columns = &self.schema.columns;
        assert_eq!(self.row.len(), columns.len(), "a row has one value for each column");
        let mut map = serializer.serialize_map(Some(columns.len()))?;
        for (column, value) in columns.iter().zip(self.row) {
            map.serialize_entry(&column.name, value)?;
        }
        map.end()
    }
}

/// Decimals and timestamps are text. In formats for people, such as JSON, bytes are text as well, two hexadecimal digits a byte after `0x`, and so
/// are floats that are no numbers: `NaN`, `inf` and `-inf`. A NaN with another sign or payload than [`f64::NAN`] is an error there.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(value) => serializer.serialize_i64(*value),
            Self::Unsigned(value) => serializer.serialize_u64(*value),
            Self::Int128(value) => serializer.serialize_i128(*value),
            Self::Unsigned128(value) => serializer.serialize_u128(*value),
            Self::Float32(value) if !serializer.is_human_readable() || is_text_of_f32(*value) => {
                serializer.serialize_f32(*value)
            }
            Self::Float32(value) if value.is_finite() => serializer.serialize_f64(f64::from(*value)),
            Self::Float64(value) if value.is_finite() || !serializer.is_human_readable() => {
                serializer.serialize_f64(*value)
            }
            Self::Float32(value) if value.is_nan() && value.to_bits() != f32::NAN.to_bits() => {
                Err(S::Error::custom(OTHER_NAN))
            }
            Self::Float64(value) if value.is_nan() && value.to_bits() != f64::NAN.to_bits() => {
                Err(S::Error::custom(OTHER_NAN))
            }
            Self::Bytes(bytes) if !serializer.is_human_readable() => serializer.serialize_bytes(bytes),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Decimal { .. }
            | Self::Timestamp(_)
            | Self::Bytes(_)
            | Self::Float32(_)
            | Self::Float64(_) => serializer.collect_str(self),
        }
    }
}

/// Returns whether the shortest text of the float is read as the same when it is read as an `f64` first.
fn is_text_of_f32(value: f32) -> bool {
    value
        .to_string()
        .parse::<f64>()
        .is_ok_and(|wide| value.is_finite() && (wide as f32).to_bits() == value.to_bits())
}

const OTHER_NAN: &str = "a NaN with another sign or payload than the usual one has no text";

struct RowSeed<'a> {
    schema: &'a Schema,
}

impl<'de> DeserializeSeed<'de> for RowSeed<'_> {
    type Value = Vec<Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Value>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RowSeed<'_> {
    type Value = Vec<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a row of table `{}` as a map by the names of its columns", self.schema.name)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<Value>, A::Error> {
        let schema = self.schema;
        let mut row: Vec<Option<Value>> = vec![None; schema.columns.len()];
        while let Some(name) = map.next_key::<String>()? {
            let no_column =
                || A::Error::custom(format_args!("table `{}` has no column `{name}`", schema.name));
            let index = schema.column(&name).ok_or_else(no_column)?;
            let value = map.next_value_seed(ValueSeed { column: &schema.columns[index] })?;
            if row[index].replace(value).is_some() {
                return Err(A::Error::custom(format_args!("column `{name}` has two values")));
            }
        }
        let or_null = |(value, column): (Option<Value>, &Column)| match value {
            Some(value) => Ok(value),
            None if column.nullable => Ok(Value::Null),
            None => Err(A::Error::custom(format_args!("column `{}` has no value", column.name))),
        };
        row.into_iter().zip(&schema.columns).map(or_null).collect()
    }
}

/// Reads the value of a column.
#[derive(Clone, Copy)]
struct ValueSeed<'a> {
    column: &'a Column,
}

impl ValueSeed<'_> {
    /// Returns the value, if it fits the column.
    fn checked<E: serde::de::Error>(self, value: Value) -> Result<Value, E> {
        self.column.check(&value).map_err(E::custom)?;
        Ok(value)
    }

    /// Returns the float nearest to this one that the column can hold; `None` if there is none, or it holds no floats.
    fn float(self, value: f64) -> Option<Value> {
        match self.column.column_type {
            ColumnType::F32 if value.is_nan() => Some(Value::Float32(f32::NAN)),
            ColumnType::F32 => {
                let narrow = value as f32;
                (narrow.is_finite() == value.is_finite()).then_some(Value::Float32(narrow))
            }
            ColumnType::F64 => Some(Value::Float64(value)),
            _ => None,
        }
    }

    /// Returns the integer, as a float where the column holds floats and one of them is this number.
    fn integer_or_float(self, value: i128) -> Value {
        let magnitude = value.unsigned_abs();
        let significant = magnitude.unbounded_shr(magnitude.trailing_zeros());
        let digits = if self.column.column_type == ColumnType::F32 {
            f32::MANTISSA_DIGITS
        } else {
            f64::MANTISSA_DIGITS
        };
        self.float(value as f64).filter(|_| significant >> digits == 0).unwrap_or_else(|| integer(value))
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.column.column_type {
            // Only so does JSON give more than 64 bits of a number.
            ColumnType::I128 if !self.column.nullable => deserializer.deserialize_i128(self),
            ColumnType::U128 if !self.column.nullable => deserializer.deserialize_u128(self),
            ColumnType::I128 | ColumnType::U128 => deserializer.deserialize_option(self),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Column { name, column_type, .. } = self.column;
        match column_type {
            ColumnType::Decimal { .. } => {
                write!(f, "text such as \"12.50\" for column `{name}` of type {column_type}")
            }
            ColumnType::Timestamp => {
                write!(f, "text such as \"2024-02-29T12:00:00Z\" for column `{name}` of type {column_type}")
            }
            ColumnType::FixedBytes { .. } | ColumnType::Bytes => {
                write!(f, "text such as \"0x00ff\" for column `{name}` of type {column_type}")
            }
            _ => write!(f, "a value for column `{name}` of type {column_type}"),
        }
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        self.checked(Value::Null)
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<Value, E> {
        self.checked(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.column.column_type {
            ColumnType::I128 => deserializer.deserialize_i128(self),
            ColumnType::U128 => deserializer.deserialize_u128(self),
            _ => deserializer.deserialize_any(self),
        }
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Value, E> {
        self.checked(Value::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        self.visit_i128(value.into())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        self.visit_i128(value.into())
    }

    fn visit_i128<E: serde::de::Error>(self, value: i128) -> Result<Value, E> {
        self.checked(self.integer_or_float(value))
    }

    fn visit_u128<E: serde::de::Error>(self, value: u128) -> Result<Value, E> {
        match i128::try_from(value) {
            Ok(value) => self.visit_i128(value),
            Err(_) => self.checked(Value::Unsigned128(value)),
        }
    }

    fn visit_f32<E: serde::de::Error>(self, value: f32) -> Result<Value, E> {
        self.checked(Value::Float32(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        let value = self.float(value).ok_or_else(|| E::invalid_type(Unexpected::Float(value), &self))?;
        self.checked(value)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        let invalid = || E::invalid_value(Unexpected::Str(text), &self);
        let value = match self.column.column_type {
            ColumnType::Text | ColumnType::FixedText { .. } => Value::Text(text.to_owned()),
            ColumnType::Decimal { scale } => {
                Value::Decimal { units: parse_decimal_units(text, scale).map_err(E::custom)?, scale }
            }
            ColumnType::Timestamp => Value::Timestamp(text.parse().map_err(E::custom)?),
            ColumnType::Bytes | ColumnType::FixedBytes { .. } => {
                Value::Bytes(bytes_of_hex(text).ok_or_else(invalid)?)
            }
            ColumnType::F32 | ColumnType::F64 => {
                let value = special_float(text).and_then(|value| self.float(value));
                value.ok_or_else(invalid)?
            }
            _ => return Err(E::invalid_type(Unexpected::Str(text), &self)),
        };
        self.checked(value)
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Value, E> {
        self.checked(Value::Bytes(bytes.to_vec()))
    }
}

/// Returns the integer in the shortest of the kinds that can hold it.
fn integer(value: i128) -> Value {
    match (u64::try_from(value), i64::try_from(value)) {
        (Ok(value), _) => Value::Unsigned(value),
        (_, Ok(value)) => Value::Int(value),
        _ => Value::Int128(value),
    }
}

fn special_float(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "inf" => Some(f64::INFINITY),
        "-inf" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.strip_prefix("0x")?.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    if rest.is_empty() { bytes.collect() } else { None }
}
