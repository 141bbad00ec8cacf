//! The runs of an experiment, read back from the table that was written of them.
//!
//! A table has the figures of every run, and neither the sizes that the experiment had nor the runs that failed: its points are those at which any
//! series was measured, and those that have no figures there failed. Tables of earlier versions have fewer columns, and what is missing is not known: the machine's number of processors, and the run over
//! time.

use std::path::Path;

use ensilo_bench::report::Machine;

use crate::error::FiguresError;
use crate::experiment::{Axis, Experiment, Point};
use crate::files::read_rows;
use crate::measurement::RecordedRun;
use crate::processors::Processors;
use crate::provenance::processors_in;
use crate::results::{MeasuredRun, Results};
use crate::sizes::{Overrides, Scale, Sizes};

/// An experiment whose points are those of a table.
#[derive(Debug)]
pub(crate) struct RecordedExperiment {
    pub experiment: Experiment,
    pub results: Results,
    pub processors: Processors,
}

/// The experiments whose tables a directory has, in the order in which all experiments stand. One of which nothing was measured is not among them.
///
/// # Errors
/// [`FiguresError::File`] and [`FiguresError::Table`].
pub(crate) fn recorded_in(directory: &Path) -> Result<Vec<RecordedExperiment>, FiguresError> {
    let with_tables = described()
        .into_iter()
        .map(|experiment| (directory.join(format!("{}.csv", experiment.name)), experiment))
        .filter(|(path, _)| path.exists());
    with_tables.filter_map(|(path, experiment)| read(experiment, &path).transpose()).collect()
}

/// Reads the table at `path` as one of this experiment; `None` if there are no runs in it, all of which failed.
///
/// # Errors
/// [`FiguresError::File`] and [`FiguresError::Table`].
fn read(experiment: Experiment, path: &Path) -> Result<Option<RecordedExperiment>, FiguresError> {
    let rows = read_rows(path)?;
    if rows.is_empty() {
        return Ok(None);
    }
    RecordedExperiment::of(experiment, &rows).map(Some).map_err(FiguresError::table(path))
}

/// All experiments. Their sizes do not count: the tables have them.
pub(crate) fn described() -> Vec<Experiment> {
    let machine = Machine { cpu: String::new(), cores: 1, memory_bytes: 0, os: String::new() };
    Experiment::all(&Sizes::new(Scale::Full, &machine, &Overrides::default()))
}

impl RecordedExperiment {
    fn of(mut experiment: Experiment, rows: &[RecordedRun]) -> Result<Self, String> {
        let series = rows.iter().map(|row| series_of(&experiment, row)).collect::<Result<Vec<_>, _>>()?;
        for (at, described) in experiment.series.iter_mut().enumerate() {
            let of_all = series.iter().zip(rows).map(|(&of, row)| (of == at, row));
            described.points = points(&described.points, of_all.collect())?;
        }
        let mut results = Results::default();
        for (&at, row) in series.iter().zip(rows) {
            add(&mut results, &experiment, at, row)?;
        }
        Ok(Self { processors: processors_of(rows)?, experiment, results })
    }
}

/// Which series of the experiment a row is of.
fn series_of(experiment: &Experiment, row: &RecordedRun) -> Result<usize, String> {
    if row.experiment != experiment.name || row.axis != experiment.axis.label() {
        let axis = if row.axis.is_empty() { String::new() } else { format!(" over {}", row.axis) };
        return Err(format!(
            "it has runs of {}{axis}, and is named like those of {}",
            row.experiment, experiment.name
        ));
    }
    let unknown = || format!("{} has no series {}", experiment.name, row.series);
    experiment.series_at(&row.series).ok_or_else(unknown)
}

/// The points of a series by the rows of all, of which some are its own, each with the command of a described one but for the number of workers.
fn points(described: &[Point], mut rows: Vec<(bool, &RecordedRun)>) -> Result<Vec<Point>, String> {
    // Of a place that others have alone, the number of workers that these have.
    rows.sort_by(|(a_is_own, a), (b_is_own, b)| a.x.total_cmp(&b.x).then(b_is_own.cmp(a_is_own)));
    let point = |of_point: &[(bool, &RecordedRun)]| {
        let RecordedRun { x, workers, series, .. } = of_point[0].1;
        if of_point.iter().any(|(is_own, row)| *is_own && row.workers != *workers) {
            return Err(format!("runs of {series} at {x} have different numbers of workers"));
        }
        let mut command = described[0].command.clone();
        command.workers = *workers;
        Ok(Point { x: *x, command })
    };
    rows.chunk_by(|(_, a), (_, b)| a.x == b.x).map(point).collect()
}

fn add(
    results: &mut Results,
    experiment: &Experiment,
    series: usize,
    row: &RecordedRun,
) -> Result<(), String> {
    let what = || format!("run {} of {} at {}", row.run, row.series, row.x);
    let measurement = row.to_measurement().map_err(|why| format!("{}: {why}", what()))?;
    if experiment.axis == Axis::Series && row.x != 0.0 {
        return Err(format!("{}: a bar lies at 0", what()));
    }
    let points = &experiment.series[series].points;
    let point = points
        .iter()
        .position(|point| point.x == row.x)
        .ok_or_else(|| format!("{}: x is no place", what()))?;
    let run = MeasuredRun { arguments: Vec::new(), measured_at: row.measured_at.clone(), measurement };
    match results.add_measured((series, point, row.run - 1), run) {
        Some(_) => Err(format!("{} is in it twice", what())),
        None => Ok(()),
    }
}

/// What the rows say of the machine's processors, which has to fit what they say of single runs.
fn processors_of(rows: &[RecordedRun]) -> Result<Processors, String> {
    let workers = |is_beyond: bool| {
        let of = rows.iter().filter(move |row| row.beyond_cores == is_beyond);
        of.map(|row| row.workers)
    };
    let at_least = workers(false).max().unwrap_or(1);
    let fewer_than = workers(true).min().unwrap_or(usize::MAX);
    let noted = processors_in(&rows[0].machine);
    if rows.iter().any(|row| processors_in(&row.machine) != noted) {
        return Err("its runs are of machines with different numbers of processors".to_owned());
    }
    let number = noted.unwrap_or(at_least);
    if number < at_least || number >= fewer_than {
        return Err("what beyond_cores says of its runs contradicts itself or their machine".to_owned());
    }
    Ok(noted.map_or(Processors::AtLeast(number), Processors::Known))
}
