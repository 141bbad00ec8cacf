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
use crate::files::{read_rows, write_whole};
use crate::page::Section;
use crate::redraw::Rendered;

/// The runs that a directory of results has, none if there is no such file.
///
/// # Errors
/// [`FiguresError::File`] or [`FiguresError::Table`] if there is one that cannot be read.
pub fn read_runs(directory: &Path) -> Result<Vec<PeerRun>, FiguresError> {
    read_table(&directory.join(FILE_NAME))
}

/// The runs of a table, none if there is no such file.
///
/// # Errors
/// [`FiguresError::File`] or [`FiguresError::Table`] if there is one that cannot be read.
pub(crate) fn read_table(path: &Path) -> Result<Vec<PeerRun>, FiguresError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    read_rows(path)
}

/// Draws [`picture_of`] the runs in the table `runs`, and writes it to `picture`.
///
/// # Errors
/// [`FiguresError::File`] and [`FiguresError::Table`]; [`FiguresError::Plot`], also if the table has no runs of the workload.
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
    for (name, svg) in files_of(runs)? {
        write_whole(&directory.join(name), svg.as_bytes())?;
    }
    Ok(())
}

/// The plots by the names of their files.
fn files_of(runs: &[PeerRun]) -> Result<Vec<(String, String)>, FiguresError> {
    let plots = rendering::plots_of(runs)?.into_iter();
    Ok(plots.map(|(name, svg)| (format!("compare-{name}.svg"), svg)).collect())
}

/// What is said and drawn of a directory's runs; `None` if it has none.
///
/// # Errors
/// [`FiguresError::File`], [`FiguresError::Table`] and [`FiguresError::Plot`].
pub(crate) fn rendered_in(directory: &Path) -> Result<Option<Rendered>, FiguresError> {
    let runs = read_runs(directory)?;
    if runs.is_empty() {
        Ok(None)
    } else {
        Ok(Some(Rendered { text: text_of(&runs), plots: files_of(&runs)? }))
    }
}

/// The section of a directory's runs, if it has any.
///
/// # Errors
/// [`FiguresError::File`] and [`FiguresError::Plot`].
pub(crate) fn section_in(directory: &Path) -> Result<Option<Section>, FiguresError> {
    let runs = read_runs(directory)?;
    if runs.is_empty() { Ok(None) } else { section_of(&runs).map(Some) }
}
