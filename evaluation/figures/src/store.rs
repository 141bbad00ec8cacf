//! The finished single runs in the directory of the results, one file each, so that an evaluation that was stopped can be taken up again.
//!
//! # Layout
//! - `runs/EXPERIMENT/SERIES-AT-X-RUN-N.json`: what was run, by which program, where, and the program's whole report. A file counts for a
//!   run only if arguments, program and machine are the same.
//! - `runs/EXPERIMENT.json`: with what the runs of the experiment are made ([`Provenance`]).
//!
//! # Crash
//! A file is written beside and renamed: one that is there is whole. One that cannot be read is as if it were not there.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::FiguresError;
use crate::experiment::Experiment;
use crate::files::{file_name, write_whole};
use crate::origin::Origin;
use crate::outcome::StoredOutcome;
use crate::plan::SingleRun;
use crate::provenance::{Provenance, now};
use crate::results::{Results, RunPlace};

/// Where the results are kept.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    directory: PathBuf,
}

/// A file of a run.
struct RunFile {
    path: PathBuf,
    record: RunRecord,
}

/// The content of such a file.
#[derive(Debug, Serialize, Deserialize)]
struct RunRecord {
    experiment: String,
    series: String,
    x: f64,
    repetition: usize,
    arguments: Vec<String>,
    origin: Origin,
    wall_seconds: f64,
    #[serde(default)]
    measured_at: String,
    outcome: StoredOutcome,
}

/// Results that a directory has of an experiment, and that are of no run of it as it is described now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outdated {
    /// How many.
    pub runs: usize,
    /// One of their commands.
    pub example: Vec<String>,
    /// Whether they are of another program or another machine.
    pub of_other_origin: bool,
}

impl Store {
    /// The results in `directory`.
    pub(crate) fn new(directory: &Path) -> Self {
        Self { directory: directory.join("runs") }
    }

    /// What there is of `run`, which is one of `experiment`, by the program and on the machine of `origin`.
    pub(crate) fn find(
        &self,
        experiment: &Experiment,
        run: &SingleRun,
        origin: &Origin,
    ) -> Option<StoredOutcome> {
        let record: RunRecord = read(&self.path(experiment, run))?;
        (record.arguments == run.arguments && record.origin == *origin).then_some(record.outcome)
    }

    /// All that there is of `experiment` by `origin`, more repetitions than it asks for included.
    pub(crate) fn results(&self, experiment: &Experiment, origin: &Origin) -> Results {
        let mut results = Results::default();
        for RunFile { record, .. } in self.kept(experiment) {
            if let Some(place) = record.place(experiment, origin) {
                results.add(place, record.arguments, record.measured_at, record.outcome);
            }
        }
        results
    }

    /// What there is of `experiment` in other sizes, of another program or another machine.
    pub(crate) fn outdated(&self, experiment: &Experiment, origin: &Origin) -> Option<Outdated> {
        let others = self.others(experiment, origin);
        let measured: Vec<_> = others
            .into_iter()
            .map(|kept| kept.record)
            .filter(|record| matches!(record.outcome, StoredOutcome::Measured(_)))
            .collect();
        let of_other_origin = measured.iter().any(|record| record.origin != *origin);
        let example = measured.first()?.arguments.clone();
        Some(Outdated { runs: measured.len(), example, of_other_origin })
    }

    /// Removes that.
    ///
    /// # Errors
    /// [`FiguresError::File`].
    pub(crate) fn remove_outdated(
        &self,
        experiment: &Experiment,
        origin: &Origin,
    ) -> Result<(), FiguresError> {
        let mut others = self.others(experiment, origin).into_iter();
        others.try_for_each(|RunFile { path, .. }| fs::remove_file(&path).map_err(FiguresError::file(&path)))
    }

    /// Keeps the outcome of `run`.
    ///
    /// # Errors
    /// [`FiguresError::File`].
    pub(crate) fn keep(
        &self,
        experiment: &Experiment,
        run: &SingleRun,
        origin: &Origin,
        wall_seconds: f64,
        outcome: &StoredOutcome,
    ) -> Result<(), FiguresError> {
        let series = &experiment.series[run.series];
        let record = RunRecord {
            experiment: experiment.name.to_owned(),
            series: series.name.to_owned(),
            x: series.points[run.point].x,
            repetition: run.repetition + 1,
            arguments: run.arguments.clone(),
            origin: origin.clone(),
            wall_seconds,
            measured_at: now(),
            outcome: outcome.clone(),
        };
        write_json(&self.path(experiment, run), &record)
    }

    /// With what the runs of the experiment of this name are made, if there are any.
    pub(crate) fn provenance(&self, experiment: &str) -> Option<Provenance> {
        read(&self.provenance_path(experiment))
    }

    /// Keeps that.
    ///
    /// # Errors
    /// [`FiguresError::File`].
    pub(crate) fn keep_provenance(
        &self,
        experiment: &str,
        provenance: &Provenance,
    ) -> Result<(), FiguresError> {
        write_json(&self.provenance_path(experiment), provenance)
    }

    /// The names of the experiments that there is something of, in no particular order.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = files_in(&self.directory).into_iter();
        names.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect()
    }

    fn others(&self, experiment: &Experiment, origin: &Origin) -> Vec<RunFile> {
        let mut kept = self.kept(experiment);
        kept.retain(|kept| kept.record.place(experiment, origin).is_none());
        kept
    }

    fn kept(&self, experiment: &Experiment) -> Vec<RunFile> {
        let files = files_in(&self.directory.join(experiment.name)).into_iter();
        files.filter_map(|path| Some(RunFile { record: read(&path)?, path })).collect()
    }

    fn provenance_path(&self, experiment: &str) -> PathBuf {
        self.directory.join(format!("{experiment}.json"))
    }

    fn path(&self, experiment: &Experiment, run: &SingleRun) -> PathBuf {
        let series = &experiment.series[run.series];
        let (name, x) = (file_name(series.name), series.points[run.point].x);
        let file = format!("{name}-at-{x}-run-{}.json", run.repetition + 1);
        self.directory.join(experiment.name).join(file)
    }
}

impl RunRecord {
    /// Which run of `experiment` by `origin` it is of, if of any.
    fn place(&self, experiment: &Experiment, origin: &Origin) -> Option<RunPlace> {
        let series = experiment.series_at(&self.series)?;
        let is_of = |arguments: &[String]| arguments == self.arguments && self.origin == *origin;
        let points = &experiment.series[series].points;
        let point = points.iter().position(|point| is_of(&point.command.arguments(self.repetition)))?;
        Some((series, point, self.repetition.checked_sub(1)?))
    }
}

/// The files `*.json` of a directory in the order of their names; none if there is no such directory.
fn files_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect();
    files.sort();
    files
}

fn read<T: for<'d> Deserialize<'d>>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn write_json(path: &Path, content: &impl Serialize) -> Result<(), FiguresError> {
    let text = serde_json::to_vec_pretty(content)
        .unwrap_or_else(|error| unreachable!("every key is a string: {error}"));
    write_whole(path, &text)
}
