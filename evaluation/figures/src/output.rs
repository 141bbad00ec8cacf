//! What a directory of results holds: the runs of each experiment with their provenance, and what is drawn and written of them.
//!
//! Nothing but the directory is asked: experiments of different sizes, programs or machines lie side by side, each shown as what it is.

use std::path::{Path, PathBuf};

use crate::drawing::plots_of;
use crate::error::FiguresError;
use crate::experiment::Experiment;
use crate::files::write_whole;
use crate::page::Page;
use crate::processors::Processors;
use crate::provenance::Provenance;
use crate::results::Results;
use crate::store::Store;
use crate::summary::section_of;
use crate::table::csv_of_runs;
use crate::{compare, latency, model, regions};

/// An experiment that something is known of.
struct MeasuredExperiment {
    experiment: Experiment,
    provenance: Provenance,
    results: Results,
}

/// Writes tables, plots and the page of all that is in a directory of results. What comes back is the page's path.
///
/// # Errors
/// [`FiguresError::File`] and [`FiguresError::Plot`].
pub fn write_results(directory: &Path) -> Result<PathBuf, FiguresError> {
    let all = experiments_in(directory);
    all.iter().try_for_each(|measured| measured.write(directory))?;
    let mut sections = all.iter().map(MeasuredExperiment::section).collect::<Result<Vec<_>, _>>()?;
    sections.extend(regions::section_in(directory)?);
    sections.extend(latency::section_in(directory)?);
    sections.extend(compare::section_in(directory)?);
    sections.push(model::section_in(directory)?);
    let path = page_in(directory);
    write_whole(&path, Page { sections }.to_html().as_bytes())?;
    Ok(path)
}

/// The page of a directory of results.
pub(crate) fn page_in(directory: &Path) -> PathBuf {
    directory.join("index.html")
}

/// Makes a directory of results, if there is none, and sees whether files can be written to it.
///
/// # Errors
/// [`FiguresError::File`] if it cannot be made or written to.
pub fn make_directory(directory: &Path) -> Result<(), FiguresError> {
    let file = directory.join(".writable");
    write_whole(&file, b"")?;
    std::fs::remove_file(&file).map_err(FiguresError::file(&file))
}

/// In the order in which all experiments stand.
fn experiments_in(directory: &Path) -> Vec<MeasuredExperiment> {
    let store = Store::new(directory);
    let known = |name: String| {
        let provenance = store.provenance(&name)?;
        let all = Experiment::all(&provenance.sizes);
        let order = all.iter().position(|experiment| experiment.name == name)?;
        let results = store.results(&all[order], &provenance.origin);
        let is_known = !results.is_empty() || results.missing_count() > 0;
        is_known.then(|| (order, MeasuredExperiment { experiment: all[order].clone(), provenance, results }))
    };
    let mut measured: Vec<_> = store.names().into_iter().filter_map(known).collect();
    measured.sort_by_key(|&(order, _)| order);
    measured.into_iter().map(|(_, measured)| measured).collect()
}

impl MeasuredExperiment {
    /// Its table and its plots.
    fn write(&self, directory: &Path) -> Result<(), FiguresError> {
        let Self { experiment, provenance, results } = self;
        let table = csv_of_runs(experiment, results, provenance);
        write_whole(&directory.join(format!("{}.csv", experiment.name)), table.as_bytes())?;
        for (name, svg) in plots_of(experiment, results, Processors::Known(provenance.sizes.cores))? {
            svg.map_or(Ok(()), |svg| write_whole(&directory.join(name), svg.as_bytes()))?;
        }
        Ok(())
    }

    fn section(&self) -> Result<crate::page::Section, FiguresError> {
        section_of(&self.experiment, &self.results, &self.provenance)
    }
}
