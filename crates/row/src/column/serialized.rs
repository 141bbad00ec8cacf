//! The crate's own types of columns, to and from serde.
//!
//! In formats for people, such as JSON, decimals and timestamps are text. In others, they are the integers that they are stored as.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Decimal, RowId, Text, Timestamp};

impl<const N: usize> Serialize for Text<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Text that is too long is an error.
impl<'de, const N: usize> Deserialize<'de> for Text<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Parsed::new("text"))
    }
}

/// The number.
impl Serialize for RowId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for RowId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(Self)
    }
}

/// Text such as `12.50`, or in formats for programs the number of units.
impl<const SCALE: u8> Serialize for Decimal<SCALE> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_i64(self.scaled())
        }
    }
}

/// Numbers that are no text are errors in formats for people, since most programs read them as floats.
impl<'de, const SCALE: u8> Deserialize<'de> for Decimal<SCALE> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_str(Parsed::new("a decimal as text"))
        } else {
            i64::deserialize(deserializer).map(Self::from_scaled)
        }
    }
}

/// Text as RFC 3339 has it, or in formats for programs the microseconds since 1970-01-01 UTC.
impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_i64(self.micros())
        }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_str(Parsed::new("a timestamp as text"))
        } else {
            i64::deserialize(deserializer).map(Self::from_micros)
        }
    }
}

/// Reads what text says.
struct Parsed<T> {
    what: &'static str,
    value: PhantomData<T>,
}

impl<T> Parsed<T> {
    const fn new(what: &'static str) -> Self {
        Self { what, value: PhantomData }
    }
}

impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for Parsed<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<T, E> {
        let text =
            std::str::from_utf8(bytes).map_err(|_| E::invalid_value(Unexpected::Bytes(bytes), &self))?;
        self.visit_str(text)
    }
}
