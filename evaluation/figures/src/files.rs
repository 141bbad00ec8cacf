//! Files in a directory of results.

use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::error::FiguresError;

/// Reads the rows of a table as CSV.
///
/// # Errors
/// [`FiguresError::File`] if the file cannot be read; [`FiguresError::Table`] if a row is cut short, lacks a column, has one too many, or
/// something else in one than belongs there.
pub(crate) fn read_rows<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, FiguresError> {
    let bytes = fs::read(path).map_err(FiguresError::file(path))?;
    let refused = FiguresError::table(path);
    // Every row ends with a line break, so that a last one that is cut within its last column is noticed too.
    if bytes.last() != Some(&b'\n') {
        return Err(refused("its last line is cut short".to_owned()));
    }
    let rows = csv::Reader::from_reader(&bytes[..]).into_deserialize().collect::<Result<_, _>>();
    rows.map_err(|error| refused(error.to_string()))
}

/// Makes the directories on the way, writes beside, and renames.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> Result<(), FiguresError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(FiguresError::file(parent))?;
    }
    let beside = path.with_extension("new");
    fs::write(&beside, content).map_err(FiguresError::file(&beside))?;
    fs::rename(&beside, path).map_err(FiguresError::file(path))
}

/// A name as part of a file's: `+` stays, so that `MemSilo+NoSS` and `MemSilo` differ.
pub(crate) fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "+-.".contains(c) { c } else { '_' }).collect()
}
