//! The runs of an experiment, read back from the table that was written of them.
//!
//! A table has the figures of every run, and neither the sizes that the experiment had nor the runs that failed: its points are those that were
//! measured. Tables of earlier versions have fewer columns, and what is missing is not known: the machine's number of processors, and the run over
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

/// The experiments whose tables a directory has, in the order in which all experiments stand.
///
/// # Errors
/// [`FiguresError::File`] and [`FiguresError::Table`].
pub(crate) fn recorded_in(directory: &Path) -> Result<Vec<RecordedExperiment>, FiguresError> {
    let with_tables = described()
        .into_iter()
        .map(|experiment| (directory.join(format!("{}.csv", experiment.name)), experiment))
        .filter(|(path, _)| path.exists());
    with_tables.map(|(path, experiment)| read(experiment, &path)).collect()
}

/// Reads the table at `path` as one of this experiment.
///
/// # Errors
/// [`FiguresError::File`] and [`FiguresError::Table`].
pub(crate) fn read(experiment: Experiment, path: &Path) -> Result<RecordedExperiment, FiguresError> {
    RecordedExperiment::of(experiment, &read_rows(path)?).map_err(FiguresError::table(path))
}

/// All experiments. Their sizes do not count: the tables have them.
pub(crate) fn described() -> Vec<Experiment> {
    let machine = Machine { cpu: String::new(), cores: 1, memory_bytes: 0, os: String::new() };
    Experiment::all(&Sizes::new(Scale::Full, &machine, &Overrides::default()))
}

impl RecordedExperiment {
    fn of(mut experiment: Experiment, rows: &[RecordedRun]) -> Result<Self, String> {
        if rows.is_empty() {
            return Err("there are no runs in it".to_owned());
        }
        let series = rows.iter().map(|row| series_of(&experiment, row)).collect::<Result<Vec<_>, _>>()?;
        for (at, described) in experiment.series.iter_mut().enumerate() {
            let own = || series.iter().zip(rows).filter(|(of, _)| **of == at).map(|(_, row)| row);
            described.points = points(&described.points, own().collect())?;
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

/// The points of a series by its rows, each with the command of a described one but for the number of workers.
fn points(described: &[Point], mut rows: Vec<&RecordedRun>) -> Result<Vec<Point>, String> {
    rows.sort_by(|a, b| a.x.total_cmp(&b.x));
    let point = |of_point: &[&RecordedRun]| {
        let RecordedRun { x, workers, series, .. } = of_point[0];
        if of_point.iter().any(|row| row.workers != *workers) {
            return Err(format!("runs of {series} at {x} have different numbers of workers"));
        }
        let mut command = described[0].command.clone();
        command.workers = *workers;
        Ok(Point { x: *x, command })
    };
    rows.chunk_by(|a, b| a.x == b.x).map(point).collect()
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
