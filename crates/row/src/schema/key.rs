//! Dynamic keys.

use super::{IndexSchema, PartSchema, PrimaryKey, Schema};
use crate::{ColumnType, Key, KeyBuf, KeyReader, Malformed, RowError, RowId, Value};

/// How errors name the key of a table without key columns.
const ROW_ID: &str = "row id";

impl Schema {
    /// Makes `out` the primary key with these values, one per key column in key order; a row id is one integer.
    ///
    /// # Errors
    /// `ValueCount`, `WrongType`, `OutOfRange`, `Null`, `WrongLength`, `KeyTooLong`.
    pub fn encode_key(&self, key: &[Value], out: &mut KeyBuf) -> Result<(), RowError> {
        // A row id is one value.
        let expected = self.key_parts().len().max(1);
        if key.len() != expected {
            return Err(RowError::ValueCount { expected, found: key.len() });
        }
        self.encode_key_prefix(key, out)
    }

    /// Makes `out` the first columns of the primary key: where a scan by prefix begins.
    ///
    /// # Errors
    /// As [`encode_key`](Self::encode_key), `ValueCount` if there are too many.
    pub fn encode_key_prefix(&self, key: &[Value], out: &mut KeyBuf) -> Result<(), RowError> {
        out.clear();
        match (self.primary_key(), key) {
            (PrimaryKey::Columns(parts), _) => self.append_parts(parts, key, out)?,
            (PrimaryKey::RowId, []) => {}
            (PrimaryKey::RowId, [value]) => row_id_of(value)?.append(out),
            (PrimaryKey::RowId, _) => return Err(RowError::ValueCount { expected: 1, found: key.len() }),
        }
        out.check_len()
    }

    /// Makes `out` the key to insert a row under: its key columns or, where the table has none, what `row_id` invents.
    ///
    /// # Errors
    /// As [`encode_key`](Self::encode_key); `row` is to have a value for every column of the table.
    pub fn encode_insert_key(
        &self,
        row: &[Value],
        row_id: impl FnOnce() -> RowId,
        out: &mut KeyBuf,
    ) -> Result<(), RowError> {
        if row.len() != self.columns.len() {
            return Err(RowError::ValueCount { expected: self.columns.len(), found: row.len() });
        }
        out.clear();
        match self.primary_key() {
            PrimaryKey::RowId => row_id().append(out),
            PrimaryKey::Columns(parts) => {
                for part in parts {
                    self.columns[part.column].append_key_part(&row[part.column], part.order, out)?;
                }
            }
        }
        out.check_len()
    }

    /// Makes `out` the values of the primary key, in key order; a row id is one `Unsigned`.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are no key of this table.
    pub fn decode_key(&self, key: &[u8], out: &mut Vec<Value>) -> Result<(), Malformed> {
        out.clear();
        let mut reader = KeyReader::new(key);
        match self.primary_key() {
            PrimaryKey::RowId => out.push(RowId::take(&mut reader)?.into()),
            PrimaryKey::Columns(parts) => {
                for part in parts {
                    out.push(self.columns[part.column].decode_key_part(part.order, &mut reader)?);
                }
            }
        }
        reader.finish()
    }

    /// Makes `out` the first columns of an index key: the place of a value in the index, or where a scan of it begins.
    /// The other columns of the primary key may follow those of the index, see
    /// [`complete_index_key`](Self::complete_index_key).
    ///
    /// # Errors
    /// As [`encode_key`](Self::encode_key).
    pub fn encode_index_prefix(
        &self,
        index: &IndexSchema,
        values: &[Value],
        out: &mut KeyBuf,
    ) -> Result<(), RowError> {
        out.clear();
        self.append_parts(&self.index_key_parts(index), values, out)?;
        out.check_len()
    }

    fn append_parts(&self, parts: &[PartSchema], values: &[Value], out: &mut KeyBuf) -> Result<(), RowError> {
        if values.len() > parts.len() {
            return Err(RowError::ValueCount { expected: parts.len(), found: values.len() });
        }
        for (part, value) in parts.iter().zip(values) {
            self.columns[part.column].append_key_part(value, part.order, out)?;
        }
        Ok(())
    }
}

/// Returns the row id that a value names.
fn row_id_of(value: &Value) -> Result<RowId, RowError> {
    let (column, expected) = (ROW_ID.to_owned(), ColumnType::U64);
    let Some(id) = value.integer() else {
        return Err(RowError::WrongType { column, expected, found: value.kind() });
    };
    match u64::try_from(id.bits) {
        Ok(bits) if !id.is_negative => Ok(RowId(bits)),
        _ => Err(RowError::OutOfRange { column, expected }),
    }
}
