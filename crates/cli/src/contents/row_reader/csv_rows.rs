//! Rows of a CSV file.

use std::io::Read;
use std::sync::Arc;

use csv::{ErrorKind, StringRecord};

use super::{Columns, InputError, Place, RowParts, Target};
use crate::contents::row_format::{CSV_ESCAPE, CSV_NULL};
use crate::contents::value_text::{may_be_empty, shown};

pub(super) struct CsvRows {
    columns: Arc<Columns>,
    reader: csv::Reader<Box<dyn Read>>,
    /// What the fields of a record are.
    targets: Vec<Target>,
    record: StringRecord,
}

impl CsvRows {
    pub(super) fn new(columns: Arc<Columns>, file: Box<dyn Read>) -> Result<Self, InputError> {
        let mut reader = csv::Reader::from_reader(file);
        let mut targets = Vec::new();
        for name in reader.headers().map_err(input_error)? {
            let target = columns.find_new(name, &targets).map_err(|why| InputError::in_line(1, why))?;
            targets.push(target);
        }
        if targets.is_empty() {
            return Err(InputError::in_line(1, "the names of the columns are missing"));
        }
        Ok(CsvRows { columns, reader, targets, record: StringRecord::new() })
    }

    /// Returns the next record and the line where it begins.
    pub(super) fn next(&mut self) -> Result<Option<(Place, RowParts)>, InputError> {
        if !self.reader.read_record(&mut self.record).map_err(input_error)? {
            return Ok(None);
        }
        let line = self.record.position().map_or(0, csv::Position::line);
        let mut parts = self.columns.no_parts();
        for (&target, field) in self.targets.iter().zip(&self.record) {
            let put =
                self.value_of(target, field).and_then(|text| self.columns.put(target, text, &mut parts));
            put.map_err(|why| InputError::in_column(Place::Line(line), self.columns.name(target), why))?;
        }
        Ok(Some((Place::Line(line), parts)))
    }

    /// Returns the text of a field; `None` for null.
    fn value_of<'f>(&self, target: Target, field: &'f str) -> Result<Option<&'f str>, String> {
        // Other programs write null so, and no value of these types is empty.
        let is_empty_null = field.is_empty() && !may_be_empty(self.columns.type_of(target));
        if field == CSV_NULL || is_empty_null {
            return Ok(None);
        }
        match field.strip_prefix(CSV_ESCAPE) {
            None => Ok(Some(field)),
            Some(escaped) if escaped.starts_with(CSV_ESCAPE) => Ok(Some(escaped)),
            Some(_) => Err(format!("{} begins with a single backslash: write two", shown(field))),
        }
    }
}

fn input_error(error: csv::Error) -> InputError {
    let place = error.position().map(|position| Place::Line(position.line()));
    let why = match error.kind() {
        ErrorKind::Io(error) => format!("cannot be read: {error}"),
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} fields, and the first line has {expected_len}")
        }
        ErrorKind::Utf8 { .. } => "a field is not in UTF-8".to_owned(),
        _ => error.to_string(),
    };
    InputError { place, column: None, why }
}
