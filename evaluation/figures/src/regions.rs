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
use crate::files::write_whole;
use crate::page::Section;

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
/// [`FiguresError::File`] if the file cannot be read or has no runs.
pub fn read_runs(path: &Path) -> Result<Vec<RegionRun>, FiguresError> {
    let runs = csv::Reader::from_path(path).and_then(|mut table| table.deserialize().collect());
    let runs: Vec<_> = runs.map_err(|error| FiguresError::file(path)(error.into()))?;
    if runs.is_empty() {
        let nothing = std::io::Error::new(std::io::ErrorKind::InvalidData, "there are no runs in it");
        return Err(FiguresError::file(path)(nothing));
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
    for (number, svg) in (1..).zip(rendering::plots_of(runs)?) {
        files.push((format!("{NAME}-{number}.svg"), svg.into_bytes()));
    }
    let write = |(name, content): (String, Vec<u8>)| {
        let path = directory.join(name);
        write_whole(&path, &content).map(|()| path)
    };
    files.into_iter().map(write).collect()
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
