//! Rows of a Parquet file.

use std::fs::File;
use std::sync::Arc;

use ensilo::{ColumnType, Timestamp, Value};
use parquet::basic::Repetition;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::record::Field;
use parquet::record::reader::RowIter;
use parquet::schema::types::Type;

use super::{Columns, InputError, Place, RowParts, Target};
use crate::contents::input_file::InputFile;
use crate::contents::parquet::parquet_column;
use crate::contents::row_format::FileColumn;
use crate::contents::value_text::shown;

pub(super) struct ParquetRows {
    columns: Arc<Columns>,
    rows: RowIter<'static>,
    /// What the columns of the file are.
    targets: Vec<Target>,
    row: u64,
}

impl ParquetRows {
    /// Reads what describes a file.
    ///
    /// # Errors
    /// Where columns are not as `ensilo dump` writes those of the table.
    pub(super) fn new(columns: Arc<Columns>, file: InputFile) -> Result<Self, InputError> {
        let file: File = file.into_file().ok_or_else(|| of_file("Parquet is read from files alone"))?;
        let reader = SerializedFileReader::new(file).map_err(|error| of_file(error.to_string()))?;
        let mut targets = Vec::new();
        for field in reader.metadata().file_metadata().schema().get_fields() {
            let target = columns.find_new(field.name(), &targets).map_err(of_file)?;
            columns.check_parquet(target, field).map_err(of_file)?;
            targets.push(target);
        }
        Ok(ParquetRows { columns, rows: reader.into_iter(), targets, row: 0 })
    }

    /// Returns the next row and its number.
    pub(super) fn next(&mut self) -> Result<Option<(Place, RowParts)>, InputError> {
        self.row += 1;
        let place = Place::Row(self.row);
        let Some(read) = self.rows.next() else { return Ok(None) };
        let why = |error: parquet::errors::ParquetError| InputError {
            place: Some(place),
            column: None,
            why: format!("cannot be read: {error}"),
        };
        let mut parts = self.columns.no_parts();
        for (&target, (name, field)) in self.targets.iter().zip(read.map_err(why)?.into_columns()) {
            let column_type = self.columns.type_of(target);
            let value = value_of(field, column_type).ok_or_else(|| format!("no {column_type}"));
            let put = value.and_then(|value| self.columns.put_value(target, value, &mut parts));
            put.map_err(|why| InputError::in_column(place, &name, why))?;
        }
        Ok(Some((place, parts)))
    }
}

impl Columns {
    /// Checks that a column of a file is what `ensilo dump` writes for a column of the table, apart from whether it may be null.
    /// Then no value of it is of a type that the library for such files cannot read.
    fn check_parquet(&self, target: Target, found: &Type) -> Result<(), String> {
        let (name, column_type) = (self.name(target).to_owned(), self.type_of(target));
        let nullable = found.get_basic_info().has_repetition()
            && found.get_basic_info().repetition() == Repetition::OPTIONAL;
        let wanted = parquet_column(&FileColumn { name: name.clone(), column_type, nullable });
        let is_wanted = |wanted: &Type| {
            found.is_primitive()
                && found.get_physical_type() == wanted.get_physical_type()
                && found.get_basic_info().repetition() == wanted.get_basic_info().repetition()
                && found.get_basic_info().converted_type() == wanted.get_basic_info().converted_type()
                && found.get_basic_info().logical_type_ref() == wanted.get_basic_info().logical_type_ref()
        };
        match wanted {
            Some(Ok(wanted)) if is_wanted(&wanted) => Ok(()),
            _ => Err(format!("column {} is not what `ensilo dump` writes for {column_type}", shown(&name))),
        }
    }
}

fn of_file(why: impl Into<String>) -> InputError {
    InputError { place: None, column: None, why: why.into() }
}

fn value_of(field: Field, column_type: ColumnType) -> Option<Value> {
    Some(match (column_type, field) {
        (_, Field::Null) => Value::Null,
        (ColumnType::Bool, Field::Bool(value)) => value.into(),
        (ColumnType::I8, Field::Byte(value)) => value.into(),
        (ColumnType::I16, Field::Short(value)) => value.into(),
        (ColumnType::I32, Field::Int(value)) => value.into(),
        (ColumnType::I64, Field::Long(value)) => value.into(),
        (ColumnType::U8, Field::UByte(value)) => value.into(),
        (ColumnType::U16, Field::UShort(value)) => value.into(),
        (ColumnType::U32, Field::UInt(value)) => value.into(),
        (ColumnType::U64, Field::ULong(value)) => value.into(),
        (ColumnType::F32, Field::Float(value)) => value.into(),
        (ColumnType::F64, Field::Double(value)) => value.into(),
        (ColumnType::Decimal { scale }, Field::Decimal(value)) => {
            Value::Decimal { units: units_of(value.data())?, scale }
        }
        (ColumnType::Timestamp, Field::TimestampMicros(micros)) => Timestamp::from_micros(micros).into(),
        (ColumnType::Text | ColumnType::FixedText { .. }, Field::Str(text)) => text.into(),
        (ColumnType::Bytes | ColumnType::FixedBytes { .. }, Field::Bytes(bytes)) => {
            bytes.data().to_vec().into()
        }
        _ => return None,
    })
}

/// Returns a number in two's complement, the first byte of which is the highest.
fn units_of(bytes: &[u8]) -> Option<i64> {
    let is_negative = bytes.first()? & 0x80 != 0;
    let start = if is_negative { -1i128 } else { 0 };
    if bytes.len() > 15 {
        return None;
    }
    i64::try_from(bytes.iter().fold(start, |number, &byte| number << 8 | i128::from(byte))).ok()
}
