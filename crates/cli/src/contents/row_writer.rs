//! Rows to files: see [`RowFormat`] for what these look like.

use std::fmt;
use std::io::{self, BufWriter, Write};

use ensilo::Value;

#[cfg(feature = "parquet")]
use super::parquet::ParquetWriter;
use super::row_format::{CSV_ESCAPE, CSV_NULL, FileColumn, RowFormat};
use super::value_text::{UnknownType, Written, written};

/// Writes rows, one after the other.
pub(super) enum RowWriter<W: Write + Send> {
    Csv(Box<csv::Writer<W>>),
    Json {
        /// `"name":` of each column.
        names: Vec<String>,
        output: BufWriter<W>,
    },
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetWriter<W>>),
}

/// Why rows could not be written.
#[derive(Debug)]
pub(super) enum WriteError {
    /// The file takes no more.
    Io(io::Error),
    /// A value has a type that this version does not know.
    UnknownType,
}

impl<W: Write + Send> RowWriter<W> {
    /// Begins a file with these columns.
    pub(super) fn new(format: RowFormat, columns: &[FileColumn], output: W) -> Result<Self, WriteError> {
        let names = columns.iter().map(|column| column.name.as_str());
        match format {
            RowFormat::Csv => {
                let mut writer = csv::Writer::from_writer(output);
                writer.write_record(names)?;
                Ok(RowWriter::Csv(Box::new(writer)))
            }
            RowFormat::Jsonl => {
                let names = names.map(|name| json_string(name) + ":").collect();
                Ok(RowWriter::Json { names, output: BufWriter::new(output) })
            }
            #[cfg(feature = "parquet")]
            RowFormat::Parquet => Ok(RowWriter::Parquet(Box::new(ParquetWriter::new(columns, output)?))),
        }
    }

    /// Writes a row: a value for each column.
    pub(super) fn row<'v>(&mut self, values: impl IntoIterator<Item = &'v Value>) -> Result<(), WriteError> {
        match self {
            RowWriter::Csv(writer) => {
                for value in values {
                    writer.write_field(csv_field(value)?)?;
                }
                writer.write_record(None::<&[u8]>)?;
            }
            RowWriter::Json { names, output } => {
                let mut before = "{";
                for (name, value) in names.iter().zip(values) {
                    write!(output, "{before}{name}{}", json_value(value)?)?;
                    before = ",";
                }
                output.write_all(if before == "{" { b"{}\n" } else { b"}\n" })?;
            }
            #[cfg(feature = "parquet")]
            RowWriter::Parquet(writer) => writer.row(values)?,
        }
        Ok(())
    }

    /// Writes what is left, and returns the file.
    pub(super) fn finish(self) -> Result<W, WriteError> {
        match self {
            RowWriter::Csv(writer) => writer.into_inner().map_err(|error| error.into_error().into()),
            RowWriter::Json { output, .. } => output.into_inner().map_err(|error| error.into_error().into()),
            #[cfg(feature = "parquet")]
            RowWriter::Parquet(writer) => writer.finish(),
        }
    }
}

fn csv_field(value: &Value) -> Result<String, WriteError> {
    Ok(match written(value)? {
        Written::Null => CSV_NULL.to_owned(),
        Written::Bare(text) | Written::Quoted(text) if text.starts_with(CSV_ESCAPE) => {
            format!("{CSV_ESCAPE}{text}")
        }
        Written::Bare(text) | Written::Quoted(text) => text,
    })
}

/// Returns a value as JSON.
pub(super) fn json_value(value: &Value) -> Result<String, WriteError> {
    Ok(match written(value)? {
        Written::Null => "null".to_owned(),
        Written::Bare(text) => text,
        Written::Quoted(text) => json_string(&text),
    })
}

fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        WriteError::Io(error)
    }
}

impl From<csv::Error> for WriteError {
    fn from(error: csv::Error) -> Self {
        WriteError::Io(error.into())
    }
}

impl From<UnknownType> for WriteError {
    fn from(_: UnknownType) -> Self {
        WriteError::UnknownType
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Io(error) => error.fmt(f),
            WriteError::UnknownType => {
                f.write_str("there is a value of a type that this version cannot write")
            }
        }
    }
}
