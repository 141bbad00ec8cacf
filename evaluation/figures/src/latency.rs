//! How long an answer takes that waits for the disk, and how many there are, from one client to many: `ensilo figures run latency`.
//!
//! Ensilo under transfers, other databases beside it where the caller has them, and the disk's own write and sync. This is no experiment of
//! a paper: its runs are made within this program, as `ensilo compare` makes them, and its table and section are made as for that.

mod measure;
mod rendering;

use std::path::Path;

pub use measure::{LatencyOptions, LatencyRun, Measured, OtherDatabases, measure_latency};
pub use rendering::text_of;

use crate::compare::{PeerRun, read_table, write_table};
use crate::error::FiguresError;
use crate::files::write_whole;
use crate::page::Section;
use crate::redraw::Rendered;

/// What a user calls it.
pub const NAME: &str = "latency";
/// What it shows, in one line.
pub const TITLE: &str = "How long an answer from disk takes, by the number of clients";
/// The file in the directory of results.
const FILE_NAME: &str = "latency.csv";

/// Sees whether the directory of results has runs already, which new ones replace only if `replaces`.
///
/// # Errors
/// [`FiguresError::WouldReplace`]; [`FiguresError::File`].
pub fn make_way(directory: &Path, replaces: bool) -> Result<(), FiguresError> {
    let runs = read_table(&directory.join(FILE_NAME))?.len();
    if runs > 0 && !replaces {
        return Err(FiguresError::WouldReplace(directory.to_owned(), vec![format!("{NAME}: {runs} runs")]));
    }
    Ok(())
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
    let plots = (1..).zip(rendering::plots_of(runs)?);
    Ok(plots.map(|(number, svg)| (format!("{NAME}-{number}.svg"), svg)).collect())
}

/// What is said and drawn of a directory's runs; `None` if it has none.
///
/// # Errors
/// [`FiguresError::File`], [`FiguresError::Table`] and [`FiguresError::Plot`].
pub(crate) fn rendered_in(directory: &Path) -> Result<Option<Rendered>, FiguresError> {
    let runs = read_table(&directory.join(FILE_NAME))?;
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
    let runs = read_table(&directory.join(FILE_NAME))?;
    if runs.is_empty() { Ok(None) } else { rendering::section_of(&runs).map(Some) }
}
