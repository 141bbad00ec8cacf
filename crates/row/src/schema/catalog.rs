//! Schemas as bytes: the payload of a row of the catalog.
//!
//! # Layout
//! All numbers little endian; `name` is a `u16` length and that many bytes of UTF-8.
//! ```text
//! u8 version = 1, or 3 where an order is 2 or 3
//! name of the table
//! u16 columns, each: name, u8 type, u16 parameter of the type, u8 1 if nullable
//! u8 1 if the table invents row ids, otherwise 0 and parts
//! u8 indexes, each: name, u8 1 if unique, parts
//! parts: u16 count, each: u16 column, u8 order: 0 ascending, 1 descending, 2 ascending with nulls last, 3 descending with nulls first
//! ```

use super::{Column, IndexSchema, PartSchema, PrimaryKey, Schema, SchemaError};
use crate::{ColumnType, Order};

const VERSION: u8 = 1;
/// The version of a schema with a key whose nulls have another place, which programs that know the other one alone refuse. Version 2 is that of
/// [histories](super::history).
const MOVED_NULLS_VERSION: u8 = 3;

impl Schema {
    /// Appends the encoded schema.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(if self.moves_nulls() { MOVED_NULLS_VERSION } else { VERSION });
        put_name(out, &self.name);
        put_u16(out, self.columns.len());
        self.columns.iter().for_each(|column| put_column(out, column));
        match &self.primary_key {
            PrimaryKey::RowId => out.push(1),
            PrimaryKey::Columns(parts) => {
                out.push(0);
                put_parts(out, parts);
            }
        }
        out.push(self.indexes.len() as u8); // at most INDEXES_MAX
        for index in &self.indexes {
            put_name(out, index.name());
            out.push(u8::from(index.is_unique()));
            put_parts(out, index.parts());
        }
    }

    /// Returns the schema that is encoded by exactly these bytes.
    ///
    /// # Errors
    /// `Encoding` if the bytes are no schema; every other variant if they are one that is not valid.
    pub fn decode(bytes: &[u8]) -> Result<Self, SchemaError> {
        let mut reader = Reader::new(bytes);
        let version = reader.u8()?;
        if ![VERSION, MOVED_NULLS_VERSION].contains(&version) {
            return Err(no_schema("unknown version"));
        }
        let name = reader.name()?;
        let columns = (0..reader.u16()?).map(|_| reader.column()).collect::<Result<Vec<_>, _>>()?;
        let primary_key =
            if reader.flag()? { PrimaryKey::RowId } else { PrimaryKey::Columns(reader.parts()?) };
        let indexes = (0..reader.u8()?).map(|_| reader.index()).collect::<Result<Vec<_>, _>>()?;
        reader.end()?;
        if matches!(&primary_key, PrimaryKey::Columns(parts) if parts.is_empty()) {
            return Err(no_schema("a primary key without columns"));
        }
        let schema = Self::checked(name, columns, primary_key, indexes)?;
        // A schema has one encoding.
        if schema.moves_nulls() != (version == MOVED_NULLS_VERSION) {
            return Err(no_schema("an order of another version"));
        }
        Ok(schema)
    }

    /// Returns whether a key has a column whose nulls have another place than its order says by default.
    fn moves_nulls(&self) -> bool {
        let of_indexes = self.indexes.iter().flat_map(IndexSchema::parts);
        self.key_parts().iter().chain(of_indexes).any(|part| part.order.moves_nulls())
    }
}

impl ColumnType {
    const fn code(self) -> (u8, u16) {
        match self {
            Self::Bool => (0, 0),
            Self::I8 => (1, 0),
            Self::I16 => (2, 0),
            Self::I32 => (3, 0),
            Self::I64 => (4, 0),
            Self::U8 => (5, 0),
            Self::U16 => (6, 0),
            Self::U32 => (7, 0),
            Self::U64 => (8, 0),
            Self::F32 => (9, 0),
            Self::F64 => (10, 0),
            Self::Decimal { scale } => (11, scale as u16),
            Self::Timestamp => (12, 0),
            Self::FixedText { len_max } => (13, len_max),
            Self::FixedBytes { len } => (14, len),
            Self::Text => (15, 0),
            Self::Bytes => (16, 0),
            Self::I128 => (17, 0),
            Self::U128 => (18, 0),
        }
    }

    fn of_code(code: u8, parameter: u16) -> Option<Self> {
        Some(match (code, parameter) {
            (11, scale) => Self::Decimal { scale: u8::try_from(scale).ok()? },
            (13, len_max) => Self::FixedText { len_max },
            (14, len) => Self::FixedBytes { len },
            (0, 0) => Self::Bool,
            (1, 0) => Self::I8,
            (2, 0) => Self::I16,
            (3, 0) => Self::I32,
            (4, 0) => Self::I64,
            (5, 0) => Self::U8,
            (6, 0) => Self::U16,
            (7, 0) => Self::U32,
            (8, 0) => Self::U64,
            (9, 0) => Self::F32,
            (10, 0) => Self::F64,
            (12, 0) => Self::Timestamp,
            (15, 0) => Self::Text,
            (16, 0) => Self::Bytes,
            (17, 0) => Self::I128,
            (18, 0) => Self::U128,
            _ => return None,
        })
    }
}

impl Order {
    const fn code(self) -> u8 {
        match self {
            Self::Ascending => 0,
            Self::Descending => 1,
            Self::AscendingNullsLast => 2,
            Self::DescendingNullsFirst => 3,
        }
    }

    const fn of_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Ascending,
            1 => Self::Descending,
            2 => Self::AscendingNullsLast,
            3 => Self::DescendingNullsFirst,
            _ => return None,
        })
    }
}

/// Lengths and counts here are bounded by the checks of a schema.
pub(super) const fn no_schema(reason: &'static str) -> SchemaError {
    SchemaError::Encoding { reason }
}

pub(super) fn put_u16(out: &mut Vec<u8>, number: usize) {
    debug_assert!(number <= usize::from(u16::MAX));
    out.extend_from_slice(&(number as u16).to_le_bytes());
}

fn put_name(out: &mut Vec<u8>, name: &str) {
    put_u16(out, name.len());
    out.extend_from_slice(name.as_bytes());
}

pub(super) fn put_column(out: &mut Vec<u8>, column: &Column) {
    put_name(out, &column.name);
    let (code, parameter) = column.column_type.code();
    out.push(code);
    out.extend_from_slice(&parameter.to_le_bytes());
    out.push(u8::from(column.nullable));
}

fn put_parts(out: &mut Vec<u8>, parts: &[PartSchema]) {
    put_u16(out, parts.len());
    for part in parts {
        put_u16(out, part.column);
        out.push(part.order.code());
    }
}

/// Takes an encoded schema apart.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Checks that nothing is left.
    pub(super) fn end(&self) -> Result<(), SchemaError> {
        if self.rest.is_empty() { Ok(()) } else { Err(no_schema("bytes after the end")) }
    }

    /// Returns the bytes behind their length.
    pub(super) fn with_len(&mut self) -> Result<&'a [u8], SchemaError> {
        let len = self.take().map(u32::from_le_bytes)? as usize;
        self.bytes(len)
    }

    fn bytes(&mut self, len: usize) -> Result<&'a [u8], SchemaError> {
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(no_schema("it ends too early"))?;
        self.rest = rest;
        Ok(bytes)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], SchemaError> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>().ok_or(no_schema("it ends too early"))?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn u8(&mut self) -> Result<u8, SchemaError> {
        self.take().map(|[byte]| byte)
    }

    pub(super) fn u64(&mut self) -> Result<u64, SchemaError> {
        self.take().map(u64::from_le_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, SchemaError> {
        self.take().map(u16::from_le_bytes)
    }

    pub(super) fn flag(&mut self) -> Result<bool, SchemaError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(no_schema("a flag that is neither 0 nor 1")),
        }
    }

    fn name(&mut self) -> Result<String, SchemaError> {
        let len = usize::from(self.u16()?);
        let bytes = self.bytes(len)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| no_schema("a name that is not UTF-8"))
    }

    pub(super) fn column(&mut self) -> Result<Column, SchemaError> {
        let name = self.name()?;
        let (code, parameter) = (self.u8()?, self.u16()?);
        let column_type = ColumnType::of_code(code, parameter).ok_or(no_schema("an unknown column type"))?;
        Ok(Column { name, column_type, nullable: self.flag()? })
    }

    fn index(&mut self) -> Result<IndexSchema, SchemaError> {
        let (name, unique) = (self.name()?, self.flag()?);
        Ok(IndexSchema::of_parts(name, self.parts()?, unique))
    }

    fn parts(&mut self) -> Result<Vec<PartSchema>, SchemaError> {
        (0..self.u16()?)
            .map(|_| {
                let column = usize::from(self.u16()?);
                let order = Order::of_code(self.u8()?).ok_or(no_schema("an unknown order"))?;
                Ok(PartSchema { column, order })
            })
            .collect()
    }
}
