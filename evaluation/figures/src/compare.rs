//! What `ensilo compare` measured: single runs in a file, and what follows from them.
//!
//! Other databases are not known here, only what they did: so the page has their section whether or not the program was built with them.

mod picture;
mod rendering;
mod run;

use std::path::Path;

pub use picture::picture_of;
pub(crate) use rendering::{facts_of, is_own};
pub use rendering::{section_of, text_of};
pub use run::{FILE_NAME, PeerRun, RunSubject};

use crate::error::FiguresError;
use crate::files::write_whole;
use crate::page::Section;

/// The runs that a directory of results has, none if there is no such file.
///
/// # Errors
/// [`FiguresError::File`] if there is one that cannot be read.
pub fn read_runs(directory: &Path) -> Result<Vec<PeerRun>, FiguresError> {
    read_table(&directory.join(FILE_NAME))
}

/// The runs of a table, none if there is no such file.
///
/// # Errors
/// [`FiguresError::File`] if there is one that cannot be read.
pub(crate) fn read_table(path: &Path) -> Result<Vec<PeerRun>, FiguresError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let runs = csv::Reader::from_path(path).and_then(|mut reader| reader.deserialize().collect());
    runs.map_err(|error| FiguresError::file(path)(error.into()))
}

/// Draws [`picture_of`] the runs in the table `runs`, and writes it to `picture`.
///
/// # Errors
/// [`FiguresError::File`]; [`FiguresError::Plot`], also if the table has no runs of the workload.
pub fn write_picture(runs: &Path, workload: &str, picture: &Path) -> Result<(), FiguresError> {
    write_whole(picture, picture_of(&read_table(runs)?, workload)?.as_bytes())
}

/// Writes runs as a table.
///
/// # Errors
/// [`FiguresError::File`].
pub(crate) fn write_table(path: &Path, runs: &[PeerRun]) -> Result<(), FiguresError> {
    let mut table = csv::Writer::from_writer(Vec::new());
    for run in runs {
        table.serialize(run).unwrap_or_else(|error| unreachable!("written to memory: {error}"));
    }
    let bytes = table.into_inner().unwrap_or_else(|error| unreachable!("written to memory: {error}"));
    write_whole(path, &bytes)
}

/// Writes the runs and their plots to a directory of results.
///
/// # Errors
/// [`FiguresError::File`] and [`FiguresError::Plot`].
pub fn write_runs(directory: &Path, runs: &[PeerRun]) -> Result<(), FiguresError> {
    write_table(&directory.join(FILE_NAME), runs)?;
    for (name, svg) in rendering::plots_of(runs)? {
        write_whole(&directory.join(format!("compare-{name}.svg")), svg.as_bytes())?;
    }
    Ok(())
}

/// The section of a directory's runs, if it has any.
///
/// # Errors
/// [`FiguresError::File`] and [`FiguresError::Plot`].
pub(crate) fn section_in(directory: &Path) -> Result<Option<Section>, FiguresError> {
    let runs = read_runs(directory)?;
    if runs.is_empty() { Ok(None) } else { section_of(&runs).map(Some) }
}
