//! The finished single runs in the directory of the results, one file each, so that an evaluation that was stopped can be taken up again.
//!
//! # Layout
//! `runs/EXPERIMENT/SERIES-AT-X-RUN-N.json`: what was run, by which program, where, and the program's whole report. A file counts for a
//! run only if arguments, program and machine are the same; otherwise the run is made anew and the file replaced.
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
use crate::plan::SingleRun;

/// Where the results are kept, and what they have to be of.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    directory: PathBuf,
    origin: Origin,
}

/// What measured: results of different origins are not mixed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// A checksum of the program's file.
    pub program: String,
    /// The processor's name, the number of processors, and the operating system.
    pub machine: String,
}

/// The content of a file.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    experiment: String,
    series: String,
    x: f64,
    repetition: usize,
    arguments: Vec<String>,
    origin: Origin,
    wall_seconds: f64,
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

/// What there is of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Found {
    /// Nothing.
    Missing,
    /// The result of other parameters, another program or another machine.
    Other,
    /// Its result.
    Same(StoredOutcome),
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
    /// The results of `origin` in `directory`.
    pub(crate) fn new(directory: &Path, origin: Origin) -> Self {
        Self { directory: directory.join("runs"), origin }
    }

    /// What there is of `run`, which is one of `experiment`.
    pub(crate) fn find(&self, experiment: &Experiment, run: &SingleRun) -> Found {
        let path = self.path(experiment, run);
        let Some(record) =
            fs::read(path).ok().and_then(|bytes| serde_json::from_slice::<Record>(&bytes).ok())
        else {
            return Found::Missing;
        };
        if record.arguments != run.arguments || record.origin != self.origin {
            return Found::Other;
        }
        Found::Same(record.outcome)
    }

    /// Keeps the outcome of `run`.
    ///
    /// # Errors
    /// [`FiguresError::File`].
    pub(crate) fn keep(
        &self,
        experiment: &Experiment,
        run: &SingleRun,
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
            origin: self.origin.clone(),
            wall_seconds,
            outcome: outcome.clone(),
        };
        let text = serde_json::to_vec_pretty(&record)
            .unwrap_or_else(|error| unreachable!("every key is a string: {error}"));
        write_whole(&self.path(experiment, run), &text)
    }

    fn path(&self, experiment: &Experiment, run: &SingleRun) -> PathBuf {
        let series = &experiment.series[run.series];
        let (name, x) = (file_name(series.name), series.points[run.point].x);
        let file = format!("{name}-at-{x}-run-{}.json", run.repetition + 1);
        self.directory.join(experiment.name).join(file)
    }
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
