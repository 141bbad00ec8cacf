//! The forms that rows have in files.
//!
//! A file of either form is UTF-8, and names its columns. Values are those of `value_text.rs`.
//!
//! - CSV begins with a line of column names. Null is `\N`, and a value that begins with a backslash has another one in front. Fields are
//!   quoted where they need to be.
//! - JSON lines have an object for each row. Null is `null`, truth values and numbers are what JSON has for them, and what it has not (NaN and
//!   infinities, decimals, times, bytes) is a string.
//!
//! - Parquet (with the feature of that name) has a type for each column.
//!
//! A table that invents its row ids has another column for them, the first one.

use std::path::Path;

use clap::ValueEnum;
use ensilo::{ColumnType, Schema};
use serde::{Deserialize, Serialize};

use super::description::row_id_column;

/// Null, in CSV.
pub(super) const CSV_NULL: &str = "\\N";

/// What comes before a value that begins with it, in CSV.
pub(super) const CSV_ESCAPE: char = '\\';

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RowFormat {
    /// Comma-separated values, with the names of the columns in the first line
    Csv,
    /// A JSON object in each line
    Jsonl,
    /// Apache Parquet, with a type for each column
    #[cfg(feature = "parquet")]
    Parquet,
}

/// A column of a file.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "parquet"), allow(dead_code, reason = "texts have the names of columns alone"))]
pub(super) struct FileColumn {
    pub(super) name: String,
    pub(super) column_type: ColumnType,
    pub(super) nullable: bool,
}

/// Returns what is written of each row of a table.
pub(super) fn file_columns(schema: &Schema) -> Vec<FileColumn> {
    let has_row_ids = schema.key_parts().is_empty();
    let row_id = has_row_ids.then(|| FileColumn {
        name: row_id_column(schema),
        column_type: ColumnType::U64,
        nullable: false,
    });
    let columns = schema.columns().iter().map(|column| FileColumn {
        name: column.name.clone(),
        column_type: column.column_type,
        nullable: column.nullable,
    });
    row_id.into_iter().chain(columns).collect()
}

impl RowFormat {
    /// Returns the format of files with such a name.
    pub(super) fn of_file(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "csv" => Some(RowFormat::Csv),
            "jsonl" | "ndjson" => Some(RowFormat::Jsonl),
            #[cfg(feature = "parquet")]
            "parquet" => Some(RowFormat::Parquet),
            _ => None,
        }
    }

    /// Returns what names of files with it end with.
    pub(super) const fn extension(self) -> &'static str {
        match self {
            RowFormat::Csv => "csv",
            RowFormat::Jsonl => "jsonl",
            #[cfg(feature = "parquet")]
            RowFormat::Parquet => "parquet",
        }
    }
}
