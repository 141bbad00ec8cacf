//! The finished single runs in the directory of the results, one file each, so that an evaluation that was stopped can be taken up again.
//!
//! # Layout
//! - `runs/EXPERIMENT/SERIES-AT-X-RUN-N.json`: what was run, by which program, where, and the program's whole report. A file counts for a
//!   run only if arguments, program and machine are the same.
//! - `runs/EXPERIMENT.json`: with what the runs of the experiment are made ([`Making`]).
//!
//! # Crash
//! A file is written beside and renamed: one that is there is whole. One that cannot be read is as if it were not there.

use std::fs;
use std::path::{Path, PathBuf};

use ensilo_bench::report::Machine;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bench::Outcome;
use crate::error::FiguresError;
use crate::experiment::Experiment;
use crate::making::{Making, now};
use crate::plan::SingleRun;
use crate::results::{Place, Results};

/// Where the results are kept.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    directory: PathBuf,
}

/// What measured: results of different origins are not mixed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// A checksum of the program's file.
    pub program: String,
    /// The processor's name, the number of processors, and the operating system.
    pub machine: String,
}

/// A file of a run.
struct Kept {
    path: PathBuf,
    record: Record,
}

/// The content of such a file.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
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

/// How a run ended that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StoredOutcome {
    /// With the report.
    Measured(Value),
    /// The program does not know what was asked for.
    Refused(String),
    /// It failed.
    Failed(String),
}

impl StoredOutcome {
    /// What is kept of an outcome; `None` if the run was interrupted.
    pub(crate) fn of(outcome: Outcome) -> Option<Self> {
        match outcome {
            Outcome::Measured(report) if report["interrupted"] == true => None,
            Outcome::Measured(report) => Some(Self::Measured(report)),
            Outcome::Refused(why) => Some(Self::Refused(why)),
            Outcome::Failed(why) => Some(Self::Failed(why)),
            Outcome::Interrupted => None,
        }
    }
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

impl Origin {
    /// The program that runs, on this machine.
    ///
    /// # Errors
    /// [`FiguresError::File`] if the program's file is not there any more.
    pub fn of_this_program() -> Result<Self, FiguresError> {
        Self::of(&this_program()?, &Machine::this())
    }

    /// The program at `path` on `machine`.
    ///
    /// # Errors
    /// [`FiguresError::File`] if the program cannot be read.
    pub fn of(path: &Path, machine: &Machine) -> Result<Self, FiguresError> {
        let bytes = fs::read(path).map_err(FiguresError::file(path))?;
        let checksum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, &bytes);
        Ok(Self {
            program: format!("{checksum:016x}"),
            machine: format!("{}, {} processors, {}", machine.cpu, machine.cores, machine.os),
        })
    }
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
        let record: Record = read(&self.path(experiment, run))?;
        (record.arguments == run.arguments && record.origin == *origin).then_some(record.outcome)
    }

    /// All that there is of `experiment` by `origin`, more repetitions than it asks for included.
    pub(crate) fn results(&self, experiment: &Experiment, origin: &Origin) -> Results {
        let mut results = Results::default();
        for Kept { record, .. } in self.kept(experiment) {
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
        others.try_for_each(|Kept { path, .. }| fs::remove_file(&path).map_err(FiguresError::file(&path)))
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
        let record = Record {
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
    pub(crate) fn making(&self, experiment: &str) -> Option<Making> {
        read(&self.making_path(experiment))
    }

    /// Keeps that.
    ///
    /// # Errors
    /// [`FiguresError::File`].
    pub(crate) fn keep_making(&self, experiment: &str, making: &Making) -> Result<(), FiguresError> {
        write_json(&self.making_path(experiment), making)
    }

    /// The names of the experiments that there is something of, in no particular order.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = files_in(&self.directory).into_iter();
        names.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect()
    }

    fn others(&self, experiment: &Experiment, origin: &Origin) -> Vec<Kept> {
        let mut kept = self.kept(experiment);
        kept.retain(|kept| kept.record.place(experiment, origin).is_none());
        kept
    }

    fn kept(&self, experiment: &Experiment) -> Vec<Kept> {
        let files = files_in(&self.directory.join(experiment.name)).into_iter();
        files.filter_map(|path| Some(Kept { record: read(&path)?, path })).collect()
    }

    fn making_path(&self, experiment: &str) -> PathBuf {
        self.directory.join(format!("{experiment}.json"))
    }

    fn path(&self, experiment: &Experiment, run: &SingleRun) -> PathBuf {
        let series = &experiment.series[run.series];
        let (name, x) = (file_name(series.name), series.points[run.point].x);
        let file = format!("{name}-at-{x}-run-{}.json", run.repetition + 1);
        self.directory.join(experiment.name).join(file)
    }
}

impl Record {
    /// Which run of `experiment` by `origin` it is of, if of any.
    fn place(&self, experiment: &Experiment, origin: &Origin) -> Option<Place> {
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

/// The file of the program that runs.
pub(crate) fn this_program() -> Result<PathBuf, FiguresError> {
    std::env::current_exe().map_err(FiguresError::file(Path::new("the program")))
}

/// Makes the directories on the way, writes beside, and renames.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> Result<(), FiguresError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(FiguresError::file(parent))?;
    }
    let beside = path.with_extension("new");
    fs::write(&beside, content).map_err(FiguresError::file(&beside))?;
    fs::rename(&beside, path).map_err(FiguresError::file(path))
}

/// A name as part of a file's: `+` stays, so that `MemSilo+NoSS` and `MemSilo` differ.
pub(crate) fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "+-.".contains(c) { c } else { '_' }).collect()
}
