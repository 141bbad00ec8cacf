//! Rows from files: see [`RowFormat`] for what these look like.

mod csv_rows;
mod json_rows;
#[cfg(feature = "parquet")]
mod parquet_rows;

use std::fmt;
use std::sync::Arc;

use ensilo::{ColumnType, RowId, Schema, Value};

use self::csv_rows::CsvRows;
use self::json_rows::JsonRows;
#[cfg(feature = "parquet")]
use self::parquet_rows::ParquetRows;
use super::description::row_id_column;
use super::input_file::InputFile;
use super::row_format::RowFormat;
use super::value_text::{parse, shown};

/// Reads the rows of a table, one after the other.
pub(super) struct RowReader {
    columns: Arc<Columns>,
    rows: Rows,
}

enum Rows {
    Csv(CsvRows),
    Json(JsonRows),
    #[cfg(feature = "parquet")]
    Parquet(ParquetRows),
}

/// A row of a file.
#[derive(Debug)]
pub(super) struct ReadRow {
    pub(super) place: Place,
    /// The row id that it had, if the file says so.
    pub(super) row_id: Option<RowId>,
    pub(super) values: Vec<Value>,
}

/// Where in a file a row is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// Of a text the line where it begins, from 1 on.
    Line(u64),
    /// Of others its number, from 1 on.
    #[cfg(feature = "parquet")]
    Row(u64),
}

/// Why a file has no row where it should.
#[derive(Debug)]
pub(super) struct InputError {
    /// `None` where the file as a whole is concerned.
    place: Option<Place>,
    /// The column.
    column: Option<String>,
    why: String,
}

/// The columns that a file may have.
struct Columns {
    schema: Schema,
    /// The column with row ids.
    row_id: Option<String>,
}

/// A column of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    RowId,
    Column(usize),
}

/// The values of a row on the way to be complete.
struct RowParts {
    row_id: Option<RowId>,
    values: Vec<Option<Value>>,
}

impl RowReader {
    /// Reads the beginning of a file with rows of a table.
    ///
    /// # Errors
    /// What the first line of a CSV file has that is not as it should be.
    pub(super) fn new(format: RowFormat, schema: &Schema, file: InputFile) -> Result<Self, InputError> {
        let has_row_ids = schema.key_parts().is_empty();
        let row_id = has_row_ids.then(|| row_id_column(schema));
        let columns = Arc::new(Columns { schema: schema.clone(), row_id });
        let rows = match format {
            RowFormat::Csv => Rows::Csv(CsvRows::new(Arc::clone(&columns), Box::new(file))?),
            RowFormat::Jsonl => Rows::Json(JsonRows::new(Arc::clone(&columns), Box::new(file))),
            #[cfg(feature = "parquet")]
            RowFormat::Parquet => Rows::Parquet(ParquetRows::new(Arc::clone(&columns), file)?),
        };
        Ok(RowReader { columns, rows })
    }

    /// Returns the next row; `None` behind the last one.
    ///
    /// # Errors
    /// Where and why there is none. Nothing more is to be read then.
    pub(super) fn next(&mut self) -> Result<Option<ReadRow>, InputError> {
        let read = match &mut self.rows {
            Rows::Csv(rows) => rows.next()?,
            Rows::Json(rows) => rows.next()?,
            #[cfg(feature = "parquet")]
            Rows::Parquet(rows) => rows.next()?,
        };
        read.map(|(place, parts)| self.columns.complete(place, parts)).transpose()
    }
}

impl Columns {
    fn find(&self, name: &str) -> Option<Target> {
        if self.row_id.as_deref() == Some(name) {
            return Some(Target::RowId);
        }
        self.schema.column(name).map(Target::Column)
    }

    /// Finds the columns of a file by their names.
    ///
    /// # Errors
    /// Why a name is not right.
    fn find_new(&self, name: &str, known: &[Target]) -> Result<Target, String> {
        let target = self
            .find(name)
            .ok_or_else(|| format!("table {} has no column {}", shown(self.schema.name()), shown(name)))?;
        if known.contains(&target) {
            return Err(format!("column {} comes twice", shown(name)));
        }
        Ok(target)
    }

    fn name(&self, target: Target) -> &str {
        match target {
            Target::RowId => self.row_id.as_deref().unwrap_or_default(),
            Target::Column(column) => &self.schema.columns()[column].name,
        }
    }

    fn type_of(&self, target: Target) -> ColumnType {
        match target {
            Target::RowId => ColumnType::U64,
            Target::Column(column) => self.schema.columns()[column].column_type,
        }
    }

    fn is_nullable(&self, target: Target) -> bool {
        match target {
            Target::RowId => false,
            Target::Column(column) => self.schema.columns()[column].nullable,
        }
    }

    fn no_parts(&self) -> RowParts {
        RowParts { row_id: None, values: vec![None; self.schema.columns().len()] }
    }

    /// Puts a value where it belongs; `None` is null.
    ///
    /// # Errors
    /// Why the column cannot have it.
    fn put(&self, target: Target, text: Option<&str>, parts: &mut RowParts) -> Result<(), String> {
        let value = text.map_or(Ok(Value::Null), |text| parse(text, self.type_of(target)))?;
        self.put_value(target, value, parts)
    }

    /// Puts a value of the right type where it belongs.
    ///
    /// # Errors
    /// Why the column cannot have it.
    fn put_value(&self, target: Target, value: Value, parts: &mut RowParts) -> Result<(), String> {
        if matches!(value, Value::Null) && !self.is_nullable(target) {
            return Err("null, and the column is not nullable".to_owned());
        }
        match (target, value) {
            (Target::Column(column), value) => parts.values[column] = Some(value),
            (Target::RowId, Value::Unsigned(id)) => parts.row_id = Some(RowId(id)),
            (Target::RowId, _) => unreachable!("a row id is an u64"),
        }
        Ok(())
    }

    /// Makes a row of its parts: columns that the file has not are null.
    fn complete(&self, place: Place, parts: RowParts) -> Result<ReadRow, InputError> {
        let of_column = |(value, column): (Option<Value>, &ensilo::Column)| match value {
            Some(value) => Ok(value),
            None if column.nullable => Ok(Value::Null),
            None => {
                Err(InputError::in_column(place, &column.name, "it is missing, and not nullable".to_owned()))
            }
        };
        let values = parts.values.into_iter().zip(self.schema.columns()).map(of_column);
        Ok(ReadRow { place, row_id: parts.row_id, values: values.collect::<Result<_, _>>()? })
    }
}

impl InputError {
    fn in_line(line: u64, why: impl fmt::Display) -> Self {
        InputError { place: Some(Place::Line(line)), column: None, why: why.to_string() }
    }

    fn in_column(place: Place, column: &str, why: String) -> Self {
        InputError { place: Some(place), column: Some(column.to_owned()), why }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(f, "line {line}"),
            #[cfg(feature = "parquet")]
            Place::Row(row) => write!(f, "row {row}"),
        }
    }
}

/// `line 17, column "balance": "x" is no i64`
impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place {
            place.fmt(f)?;
            if let Some(column) = &self.column {
                write!(f, ", column {}", shown(column))?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.why)
    }
}
