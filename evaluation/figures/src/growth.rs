//! How cost grows with the work: `ensilo figures growth`.
//!
//! Each curve of `data/growth.json` lets one thing grow (records, sessions, tables, indexes, bytes of a row, the age of a
//! snapshot, instances) and says what is measured of it. The runs are processes `ensilo bench`, as those of the papers' figures are. What
//! they measured lies in one table; from that alone come the plots, a [`Verdict`] for each curve, and a page in Markdown.
//!
//! No cost may grow faster than `n log n`, unless the description has a sentence that says why.
//!
//! To add a curve, describe it in the file.

mod description;
mod fit;
mod measure;
mod page;
mod plots;
mod rows;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub use description::GrowthScale;
pub use fit::Verdict;
pub use measure::{GrowthEnding, GrowthRuns, MakeOptions};
pub use rows::GrowthRow;

use crate::error::FiguresError;
use crate::files::write_whole;
use description::Curve;

/// What it shows, in one line.
pub const TITLE: &str = "How throughput, memory, recovery and checkpoints change as the work grows";
/// The table in the directory of results.
const FILE_NAME: &str = "growth.csv";

/// The names of the curves.
pub fn names() -> Vec<&'static str> {
    Curve::all().iter().map(|curve| curve.name).collect()
}

/// Draws what a directory has: the plots beside its table, and the page at `page`. Returns a line for each curve, and whether all curves
/// that grow too fast are explained.
///
/// # Errors
/// [`FiguresError::File`] and [`FiguresError::Plot`].
pub fn write_growth(directory: &Path, page: &Path) -> Result<(Vec<String>, bool), FiguresError> {
    let rows = rows::read(&directory.join(FILE_NAME))?;
    for (name, svg) in plots::plots_of(&rows)? {
        write_whole(&directory.join(name), svg.as_bytes())?;
    }
    write_whole(page, page::markdown(&rows, &link_to(directory, page)).as_bytes())?;
    let verdicts = || Curve::all().iter().flat_map(|curve| curve.verdicts(&rows));
    let lines = verdicts().map(|(measured, verdict)| format!("{}: {verdict}", measured.name())).collect();
    Ok((lines, verdicts().all(|(_, verdict)| verdict.is_no_worse() || verdict.why.is_some())))
}

/// How the page refers to files in the directory: relative, where that lies beside or below it.
fn link_to(directory: &Path, page: &Path) -> PathBuf {
    let beside = page.parent().unwrap_or(Path::new(""));
    directory.strip_prefix(beside).unwrap_or(directory).to_owned()
}
