//! Drawing what a directory of results has, from its tables alone.

use std::path::{Path, PathBuf};

use crate::drawing::plots_of;
use crate::error::FiguresError;
use crate::files::write_whole;
use crate::recorded::{RecordedExperiment, recorded_in};
use crate::summary::lines_of;
use crate::{compare, latency, model, regions};

/// What was drawn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Redrawn {
    /// Lines for people: the claims of each experiment and what became of them, and the other tables.
    pub lines: Vec<String>,
    /// The plots that were written.
    pub plots: Vec<PathBuf>,
    /// The plots that were not, because a table does not have the figures for them. Those that are there stay as they are.
    pub left: Vec<PathBuf>,
}

/// What is said and drawn of a table that is of no experiment.
pub(crate) struct Rendered {
    /// For a terminal.
    pub text: String,
    /// The plots by the names of their files.
    pub plots: Vec<(String, String)>,
}

impl Redrawn {
    /// A line for each plot that was not drawn.
    pub fn notes(&self) -> Vec<String> {
        let note = |plot: &PathBuf| {
            let fate = if plot.exists() { "; it stays as it is" } else { "" };
            format!("{}: its table does not have the figures for it{fate}", plot.display())
        };
        self.left.iter().map(note).collect()
    }
}

/// Draws every plot of a directory of results anew, as the runs drew them, from the tables that they left. Nothing is measured, and nothing
/// is written before all tables are read and all plots are drawn.
///
/// # Errors
/// [`FiguresError::Table`] if a table is damaged or is none of its name, [`FiguresError::NothingToDraw`] if there is none,
/// [`FiguresError::File`] and [`FiguresError::Plot`].
pub fn redraw_results(directory: &Path) -> Result<Redrawn, FiguresError> {
    let (mut redrawn, mut drawn) = (Redrawn::default(), Vec::new());
    for recorded in recorded_in(directory)? {
        let RecordedExperiment { experiment, results, processors } = &recorded;
        redrawn.lines.extend(lines_of(experiment, results, *processors, true));
        for (name, svg) in plots_of(experiment, results, *processors)? {
            match svg {
                Some(svg) => drawn.push((name, svg)),
                None => redrawn.left.push(directory.join(name)),
            }
        }
    }
    for Rendered { text, plots } in others_in(directory)? {
        redrawn.lines.push(text);
        drawn.extend(plots);
    }
    if drawn.is_empty() {
        return Err(FiguresError::NothingToDraw(directory.to_owned()));
    }
    for (name, svg) in drawn {
        let path = directory.join(name);
        write_whole(&path, svg.as_bytes())?;
        redrawn.plots.push(path);
    }
    Ok(redrawn)
}

/// The tables that are of no experiment.
fn others_in(directory: &Path) -> Result<Vec<Rendered>, FiguresError> {
    let others = [
        regions::rendered_in(directory)?,
        latency::rendered_in(directory)?,
        compare::rendered_in(directory)?,
        model::rendered_in(directory)?,
    ];
    Ok(others.into_iter().flatten().collect())
}
