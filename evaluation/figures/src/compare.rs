//! What `ensilo compare` measured: single runs in a file, and what follows from them.
//!
//! Other databases are not known here, only what they did: so the page has their section whether or not the program was built with them.

mod told;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use told::{section_of, text_of};

use crate::error::FiguresError;
use crate::page::Section;
use crate::store::write_whole;

/// The file in the directory of results.
pub const FILE_NAME: &str = "compare.csv";

/// A run of a database under a workload. The names are those of the file's columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PeerRun {
    /// The workload.
    pub workload: String,
    /// When transactions were answered.
    pub setting: String,
    /// Client threads, each with one transaction at a time.
    pub workers: usize,
    /// The database.
    pub peer: String,
    /// What its transactions were isolated from.
    pub isolation: String,
    /// Rows that were loaded.
    pub rows: u64,
    /// The number of the run, from 1.
    pub run: usize,
    /// Seconds that were counted.
    pub seconds: f64,
    /// Transactions that committed.
    pub committed: u64,
    /// Attempts that were undone and made again.
    pub aborted: u64,
    /// Transactions a second.
    pub transactions_per_second: f64,
    /// The median of the time from the start of a transaction to its answer, in microseconds.
    pub latency_us_p50: f64,
    /// What 99 of 100 do not exceed.
    pub latency_us_p99: f64,
    /// Checks of consistency after the run.
    pub checks: usize,
    /// Those that did not hold.
    pub checks_failed: usize,
    /// When it ended, in UTC. Empty, like what follows, in tables from before these columns.
    #[serde(default)]
    pub measured_at: String,
    /// The user's command.
    #[serde(default)]
    pub command: String,
    /// The program in words.
    #[serde(default)]
    pub program: String,
    /// The machine in words.
    #[serde(default)]
    pub machine: String,
}

impl PeerRun {
    /// Whether it and `other` are of the same database under the same workload, setting and number of clients.
    pub fn is_of_point(&self, other: &Self) -> bool {
        let point = |run: &Self| (run.workload.clone(), run.setting.clone(), run.workers, run.peer.clone());
        point(self) == point(other)
    }
}

/// The runs that a directory of results has, none if there is no such file.
///
/// # Errors
/// [`FiguresError::File`] if there is one that cannot be read.
pub fn read_runs(directory: &Path) -> Result<Vec<PeerRun>, FiguresError> {
    let path = directory.join(FILE_NAME);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let runs = csv::Reader::from_path(&path).and_then(|mut reader| reader.deserialize().collect());
    runs.map_err(|error| FiguresError::file(&path)(error.into()))
}

/// Writes the runs and their plots to a directory of results.
///
/// # Errors
/// [`FiguresError::File`] and [`FiguresError::Plot`].
pub fn write_runs(directory: &Path, runs: &[PeerRun]) -> Result<(), FiguresError> {
    let mut table = csv::Writer::from_writer(Vec::new());
    for run in runs {
        table.serialize(run).unwrap_or_else(|error| unreachable!("written to memory: {error}"));
    }
    let bytes = table.into_inner().unwrap_or_else(|error| unreachable!("written to memory: {error}"));
    write_whole(&directory.join(FILE_NAME), &bytes)?;
    for (name, svg) in told::plots_of(runs)? {
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
