//! Encoded keys as people read them.

use std::fmt::Write as _;

use super::{Column, IndexSchema, PartSchema, PrimaryKey, Schema};
use crate::{Key, KeyReader, Malformed, RowId, Value};

/// So many characters of a text are shown.
const TEXT_LEN_MAX: usize = 64;

impl Schema {
    /// Returns an encoded key as `column = value` for each of its columns, with commas between: the primary key, or that of
    /// an entry of `index`. Texts stand in quotes, and the end of a long one is left out.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are no such key.
    pub fn shown_key(&self, index: Option<&IndexSchema>, key: &[u8]) -> Result<String, Malformed> {
        let mut reader = KeyReader::new(key);
        let mut shown = String::new();
        let parts = match (index, self.primary_key()) {
            (Some(index), _) => self.index_key_parts(index),
            (None, PrimaryKey::Columns(parts)) => parts.clone(),
            (None, PrimaryKey::RowId) => Vec::new(),
        };
        for PartSchema { column, order } in parts {
            // An entry of a unique index has none of the primary key's columns.
            if index.is_some() && reader.rest().is_empty() {
                break;
            }
            let Column { name, .. } = &self.columns[column];
            append(&mut shown, name, &self.columns[column].decode_key_part(order, &mut reader)?);
        }
        if self.primary_key() == &PrimaryKey::RowId && !reader.rest().is_empty() {
            append(&mut shown, "row id", &RowId::take(&mut reader)?.into());
        }
        reader.finish().map(|()| shown)
    }
}

fn append(shown: &mut String, name: &str, value: &Value) {
    if !shown.is_empty() {
        shown.push_str(", ");
    }
    // Writing to a string cannot fail.
    _ = match value {
        Value::Text(text) => match text.char_indices().nth(TEXT_LEN_MAX) {
            Some((end, _)) => write!(shown, "{name} = {:?}..", &text[..end]),
            None => write!(shown, "{name} = {text:?}"),
        },
        value => write!(shown, "{name} = {value}"),
    };
}

#[cfg(test)]
mod tests {
    use crate::{ColumnType, KeyBuf, Order, RowBuf, RowId, Schema, Value};

    fn keys(schema: &Schema, row: &[Value]) -> Vec<String> {
        let (mut key, mut stored, mut entry) = (KeyBuf::new(), RowBuf::new(), KeyBuf::new());
        schema.encode_insert_key(row, || RowId(5), &mut key).unwrap();
        schema.encode_row(row, &mut stored).unwrap();
        let mut shown = vec![schema.shown_key(None, key.as_bytes()).unwrap()];
        for index in schema.indexes() {
            schema.index_key(index, key.as_bytes(), &stored, &mut entry).unwrap();
            shown.push(schema.shown_key(Some(index), entry.as_bytes()).unwrap());
        }
        shown
    }

    #[test]
    fn keys_are_shown_by_their_columns() {
        let builder = || {
            Schema::builder("t")
                .column("id", ColumnType::U32)
                .column("name", ColumnType::Text)
                .nullable("age", ColumnType::I8)
                .index("by_age", [("age", Order::Descending)])
                .unique_index("by_name", [("name", Order::Ascending)])
        };
        let row = [7u32.into(), "a \"b\"".into(), Value::Null];
        let with_key = builder().key([("id", Order::Ascending)]).build().unwrap();
        assert_eq!(keys(&with_key, &row), ["id = 7", "age = null, id = 7", r#"name = "a \"b\"""#]);
        let with_row_id = builder().build().unwrap();
        assert_eq!(keys(&with_row_id, &row), ["row id = 5", "age = null, row id = 5", r#"name = "a \"b\"""#]);
        let long = keys(&with_key, &[7u32.into(), "x".repeat(70).into(), (-3i8).into()]);
        assert_eq!(long[1..], ["age = -3, id = 7".to_owned(), format!("name = \"{}\"..", "x".repeat(64))]);
        assert!(with_key.shown_key(None, &[1, 2]).is_err());
        assert!(with_key.shown_key(None, &[0, 0, 0, 1, 2]).is_err());
    }
}
