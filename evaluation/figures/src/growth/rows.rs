//! The table of runs: a row for each figure of each run, and for each run that there is not.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::description::{Curve, Measured};
use crate::error::FiguresError;
use crate::files::{read_rows, write_whole};
use crate::results::Spread;

/// A row. The names are those of the file's columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrowthRow {
    /// The name of the curve.
    pub curve: String,
    /// Where on its axis.
    pub x: f64,
    /// The number of the run, from 1.
    pub run: usize,
    /// What was measured, with its unit; empty if the run is missing.
    pub measure: String,
    /// The figure.
    pub value: Option<f64>,
    /// Why the run is missing, if it is.
    pub missing: String,
    /// When the run ended, in UTC.
    pub measured_at: String,
    /// The call of the program.
    pub command: String,
    /// The program in words.
    pub program: String,
    /// The machine in words.
    pub machine: String,
}

/// The rows of a table, none if there is no such file.
///
/// # Errors
/// [`FiguresError::File`] or [`FiguresError::Table`] if there is one that cannot be read.
pub(super) fn read(path: &Path) -> Result<Vec<GrowthRow>, FiguresError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    read_rows(path)
}

/// Writes rows as a table. Of none there is no table.
///
/// # Errors
/// [`FiguresError::File`].
pub(super) fn write(path: &Path, rows: &[GrowthRow]) -> Result<(), FiguresError> {
    if rows.is_empty() {
        return if path.exists() { fs::remove_file(path).map_err(FiguresError::file(path)) } else { Ok(()) };
    }
    let mut table = csv::Writer::from_writer(Vec::new());
    for row in rows {
        table.serialize(row).unwrap_or_else(|error| unreachable!("written to memory: {error}"));
    }
    let bytes = table.into_inner().unwrap_or_else(|error| unreachable!("written to memory: {error}"));
    write_whole(path, &bytes)
}

/// What was measured at each place of the axis, in ascending order.
pub(super) fn spreads_of(rows: &[GrowthRow], measured: Measured) -> Vec<(f64, Spread)> {
    let key = measured.key();
    let own = || rows.iter().filter(|row| row.curve == measured.curve.name && row.measure == key);
    let mut xs: Vec<f64> = own().map(|row| row.x).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let at = |x| Spread::of(own().filter(|row| row.x == x).filter_map(|row| row.value).collect());
    xs.into_iter().filter_map(|x| Some((x, at(x)?))).collect()
}

/// Which places of the axis have no figures, and why.
pub(super) fn missing_of(rows: &[GrowthRow], curve: &Curve) -> Vec<(f64, String)> {
    let missing = rows.iter().filter(|row| row.curve == curve.name && !row.missing.is_empty());
    let mut missing: Vec<(f64, String)> = missing.map(|row| (row.x, row.missing.clone())).collect();
    missing.sort_by(|a, b| a.0.total_cmp(&b.0));
    missing.dedup();
    missing
}
