//! Where the time of TPC-C's workers goes, by part of the engine: ERMIA's figure 11.
//!
//! No run of `ensilo bench` tells this. `cargo xtask regions --csv FILE` builds a program in which parts of the engines are marked, runs it and
//! writes the shares of each run into a file, which is drawn and judged here.

mod claims;
mod rendering;

use std::path::{Path, PathBuf};

use ensilo_bench::report::RegionRun;

pub use rendering::text_of;

use crate::error::FiguresError;
use crate::files::{read_rows, write_whole};
use crate::page::Section;
use crate::redraw::Rendered;

/// What it is called among the figures.
pub(crate) const NAME: &str = "ermia-11";

/// Its runs in a directory of results.
const FILE_NAME: &str = "ermia-11.csv";

/// The system whose figure it is, as it is in the paper: with a log.
const SYSTEM: &str = "ermia-snapshot";
const STORAGE: &str = "log";

/// Returns the runs of a file, one at least.
///
/// # Errors
/// [`FiguresError::File`] if the file cannot be read; [`FiguresError::Table`] if it is no such table or has no runs.
pub fn read_runs(path: &Path) -> Result<Vec<RegionRun>, FiguresError> {
    let runs: Vec<_> = read_rows(path)?;
    if runs.is_empty() {
        return Err(FiguresError::table(path)("there are no runs in it".to_owned()));
    }
    Ok(runs)
}

/// Writes the runs and their plots to a directory of results, whose page has them from then on.
///
/// # Errors
/// [`FiguresError::File`] and [`FiguresError::Plot`].
pub fn keep_runs(directory: &Path, runs: &[RegionRun]) -> Result<Vec<PathBuf>, FiguresError> {
    let mut table = csv::Writer::from_writer(Vec::new());
    for run in runs {
        table.serialize(run).unwrap_or_else(|error| unreachable!("written to memory: {error}"));
    }
    let bytes = table.into_inner().unwrap_or_else(|error| unreachable!("written to memory: {error}"));
    let mut files = vec![(FILE_NAME.to_owned(), bytes)];
    files.extend(files_of(runs)?.into_iter().map(|(name, svg)| (name, svg.into_bytes())));
    let write = |(name, content): (String, Vec<u8>)| {
        let path = directory.join(name);
        write_whole(&path, &content).map(|()| path)
    };
    files.into_iter().map(write).collect()
}

/// The plots by the names of their files.
fn files_of(runs: &[RegionRun]) -> Result<Vec<(String, String)>, FiguresError> {
    let plots = (1..).zip(rendering::plots_of(runs)?);
    Ok(plots.map(|(number, svg)| (format!("{NAME}-{number}.svg"), svg)).collect())
}

/// What is said and drawn of a directory's runs; `None` if it has none.
///
/// # Errors
/// [`FiguresError::File`], [`FiguresError::Table`] and [`FiguresError::Plot`].
pub(crate) fn rendered_in(directory: &Path) -> Result<Option<Rendered>, FiguresError> {
    let path = directory.join(FILE_NAME);
    if !path.exists() {
        return Ok(None);
    }
    let runs = read_runs(&path)?;
    Ok(Some(Rendered { text: text_of(&runs), plots: files_of(&runs)? }))
}

/// Returns the section of a directory's runs, if it has any.
///
/// # Errors
/// [`FiguresError::File`] and [`FiguresError::Plot`].
pub(crate) fn section_in(directory: &Path) -> Result<Option<Section>, FiguresError> {
    let path = directory.join(FILE_NAME);
    if !path.exists() {
        return Ok(None);
    }
    rendering::section_of(&read_runs(&path)?).map(Some)
}

#[cfg(test)]
mod tests;
