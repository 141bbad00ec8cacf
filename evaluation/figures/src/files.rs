//! Files in a directory of results.

use std::fs;
use std::path::Path;

use crate::error::FiguresError;

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
