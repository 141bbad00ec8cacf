//! Rows of a file with a JSON object in each line.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Columns, InputError, Place, RowParts, Target};
use crate::contents::value_text::is_quoted;

pub(super) struct JsonRows {
    columns: Arc<Columns>,
    file: BufReader<Box<dyn Read>>,
    line: u64,
    text: String,
}

/// The fields of an object in their order, with the text of their values: as numbers of JSON's usual reader large
/// integers would be others.
struct Fields<'t>(Vec<(String, &'t RawValue)>);

impl JsonRows {
    pub(super) fn new(columns: Arc<Columns>, file: Box<dyn Read>) -> Self {
        JsonRows { columns, file: BufReader::new(file), line: 0, text: String::new() }
    }

    /// Returns the next object and its line. Empty lines count for nothing.
    pub(super) fn next(&mut self) -> Result<Option<(Place, RowParts)>, InputError> {
        loop {
            self.line += 1;
            self.text.clear();
            let read = self.file.read_line(&mut self.text);
            let bytes =
                read.map_err(|error| InputError::in_line(self.line, format!("cannot be read: {error}")))?;
            if bytes == 0 {
                return Ok(None);
            }
            if !self.text.trim().is_empty() {
                return self.row().map(|parts| Some((Place::Line(self.line), parts)));
            }
        }
    }

    fn row(&self) -> Result<RowParts, InputError> {
        let line = self.line;
        let Fields(fields) = serde_json::from_str(&self.text)
            .map_err(|error| InputError::in_line(line, format!("no JSON object: {error}")))?;
        let (mut parts, mut known) = (self.columns.no_parts(), Vec::with_capacity(fields.len()));
        for (name, value) in fields {
            let target =
                self.columns.find_new(&name, &known).map_err(|why| InputError::in_line(line, why))?;
            known.push(target);
            let put = self.put(target, value.get(), &mut parts);
            put.map_err(|why| InputError::in_column(Place::Line(line), &name, why))?;
        }
        Ok(parts)
    }

    fn put(&self, target: Target, value: &str, parts: &mut RowParts) -> Result<(), String> {
        match value.as_bytes().first() {
            _ if value == "null" => self.columns.put(target, None, parts),
            Some(b'"') => {
                let text: String = serde_json::from_str(value).map_err(|error| error.to_string())?;
                self.columns.put(target, Some(&text), parts)
            }
            Some(b'{' | b'[') => Err("an object or a list is no value of a column".to_owned()),
            _ if is_quoted(self.columns.type_of(target)) => {
                Err(format!("{value} is no {}: those are strings", self.columns.type_of(target)))
            }
            _ => self.columns.put(target, Some(value), parts),
        }
    }
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a field for each column")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Fields(fields))
    }
}
