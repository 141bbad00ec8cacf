//! The runs.

use std::path::Path;
use std::time::Duration;

use ensilo_bench::driver::Interrupt;
use ensilo_bench::report::Machine;

use super::FILE_NAME;
use super::description::{Curve, GrowthScale};
use super::rows::{self, GrowthRow};
use crate::bench::Bench;
use crate::error::FiguresError;
use crate::measurement::Measurement;
use crate::outcome::Outcome;
use crate::plot::short_number;
use crate::progress::Progress;
use crate::provenance::{machine_in_words, now, this_program_in_words};
use crate::table::command_line;

/// The runs of some curves at a scale.
#[derive(Debug)]
pub struct GrowthRuns {
    curves: Vec<&'static Curve>,
    scale: GrowthScale,
    machine: Machine,
}

/// How runs are made.
#[derive(Debug, Clone, Copy)]
pub struct MakeOptions {
    /// Whether runs of the same curves that are there already are given up.
    pub replaces: bool,
    /// Whether no progress is shown.
    pub is_quiet: bool,
}

/// How the runs have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrowthEnding {
    /// Runs that failed or were refused; those that do not fit the machine are none of them.
    pub failed: usize,
    /// Whether somebody ended them early.
    pub interrupted: bool,
}

/// A single run.
struct PlannedRun {
    curve: &'static Curve,
    x: f64,
    number: usize,
    arguments: Vec<String>,
    estimate: Duration,
}

/// Of the machine's memory, rows may take so much: the rest is for logs, recovery, and others.
const MEMORY_SHARE: f64 = 0.7;
/// No run takes longer.
const LIMIT: Duration = Duration::from_secs(1_800);

impl GrowthRuns {
    /// The runs of the curves of these names, of all if there are none.
    ///
    /// # Errors
    /// [`FiguresError::UnknownExperiment`].
    pub fn new(names: &[String], scale: GrowthScale, machine: Machine) -> Result<Self, FiguresError> {
        let all = Curve::all();
        if let Some(unknown) = names.iter().find(|name| !all.iter().any(|curve| curve.name == **name)) {
            return Err(FiguresError::UnknownExperiment(unknown.clone()));
        }
        let is_asked = |curve: &&Curve| names.is_empty() || names.iter().any(|name| name == curve.name);
        Ok(Self { curves: all.iter().filter(is_asked).collect(), scale, machine })
    }

    /// How many runs there are, and about how long they take.
    pub fn size(&self) -> (usize, Duration) {
        let plan = self.plan();
        (plan.len(), plan.iter().map(|run| run.estimate).sum())
    }

    /// The calls of the program, in order.
    pub fn commands(&self) -> Vec<String> {
        self.plan().iter().map(|run| command_line(&run.arguments)).collect()
    }

    /// Makes all runs and keeps each finished one in the table in `directory`. What the table has of other curves stays.
    ///
    /// # Errors
    /// [`FiguresError::WouldReplace`] if it has runs of these curves that are not to be replaced; [`FiguresError::File`].
    pub fn make(
        &self,
        bench: &impl Bench,
        directory: &Path,
        options: MakeOptions,
        interrupt: &Interrupt,
    ) -> Result<GrowthEnding, FiguresError> {
        let file = directory.join(FILE_NAME);
        let mut rows = self.rows_to_keep(rows::read(&file)?, directory, options.replaces)?;
        rows.extend(self.misfits());
        rows::write(&file, &rows)?;
        let mut ending = GrowthEnding { failed: 0, interrupted: false };
        let (count, time) = self.size();
        let mut progress = Progress::new(options.is_quiet, count, time);
        for run in self.plan() {
            progress.begin(&run.name());
            let outcome = bench.run(&run.arguments, LIMIT, interrupt);
            if outcome == Outcome::Interrupted || interrupt.is_raised() {
                ending.interrupted = true;
                break;
            }
            let new = self.rows_of(&run, outcome);
            for row in new.iter().filter(|row| !row.missing.is_empty()) {
                ending.failed += 1;
                progress.note(&format!("{}: {}", run.name(), row.missing));
            }
            rows.extend(new);
            rows::write(&file, &rows)?;
            progress.end(run.estimate);
        }
        progress.close();
        Ok(ending)
    }

    /// What the table has of other curves.
    fn rows_to_keep(
        &self,
        rows: Vec<GrowthRow>,
        directory: &Path,
        replaces: bool,
    ) -> Result<Vec<GrowthRow>, FiguresError> {
        let is_ours = |row: &&GrowthRow| self.curves.iter().any(|curve| curve.name == row.curve);
        if let Some(row) = rows.iter().find(is_ours).filter(|_| !replaces) {
            let lost = vec![format!("growth: runs of {}", row.curve)];
            return Err(FiguresError::WouldReplace(directory.to_owned(), lost));
        }
        Ok(rows.into_iter().filter(|row| !is_ours(&row)).collect())
    }

    /// Curves take turns, so that what disturbs the machine for a while disturbs one run of each.
    fn plan(&self) -> Vec<PlannedRun> {
        let most = self.curves.iter().map(|curve| curve.runs(self.scale)).max().unwrap_or(0);
        let of_number = |number| {
            let curves = self.curves.iter().filter(move |curve| number <= curve.runs(self.scale));
            curves.flat_map(move |curve| {
                let xs = curve.xs(self.scale).iter().filter(|&&x| self.fits(curve, x));
                xs.map(move |&x| self.planned(curve, x, number))
            })
        };
        (1..=most).flat_map(of_number).collect()
    }

    fn planned(&self, curve: &'static Curve, x: f64, number: usize) -> PlannedRun {
        let arguments = curve.arguments(x, self.scale, self.machine.cores, number);
        PlannedRun { curve, x, number, arguments, estimate: curve.estimate(x, self.scale) }
    }

    /// Whether the machine has the memory.
    fn fits(&self, curve: &Curve, x: f64) -> bool {
        x * curve.memory_bytes_each as f64 <= MEMORY_SHARE * self.machine.memory_bytes as f64
    }

    /// A row for each point that the machine has no memory for.
    fn misfits(&self) -> Vec<GrowthRow> {
        let of_curve = |curve: &&'static Curve| {
            let curve = *curve;
            let xs = curve.xs(self.scale).iter().filter(move |&&x| !self.fits(curve, x));
            xs.map(move |&x| {
                let gibibytes = x * curve.memory_bytes_each as f64 / f64::from(1 << 30);
                let why = format!("does not fit the machine: it may take {gibibytes:.0} GiB of memory");
                GrowthRow { missing: why, ..self.row(&self.planned(curve, x, 0)) }
            })
        };
        self.curves.iter().flat_map(of_curve).collect()
    }

    /// What a run says of each measure, or why it says nothing.
    fn rows_of(&self, run: &PlannedRun, outcome: Outcome) -> Vec<GrowthRow> {
        let missing = |why: String| vec![GrowthRow { missing: why, ..self.row(run) }];
        let measurement = match outcome {
            Outcome::Measured(report) => match Measurement::of(report) {
                Ok(measurement) => measurement,
                Err(error) => return missing(format!("its report cannot be read: {error}")),
            },
            Outcome::Refused(why) | Outcome::Failed(why) => return missing(why),
            Outcome::Interrupted => return Vec::new(),
        };
        let of_measure = |measured: super::description::Measured| {
            let measure = measured.key();
            match measured.measure.metric.of(&measurement) {
                Some(value) => GrowthRow { measure, value: Some(value), ..self.row(run) },
                None => GrowthRow { missing: format!("its report has no {measure}"), ..self.row(run) },
            }
        };
        run.curve.measured().map(of_measure).collect()
    }

    fn row(&self, run: &PlannedRun) -> GrowthRow {
        GrowthRow {
            curve: run.curve.name.to_owned(),
            x: run.x,
            run: run.number,
            measure: String::new(),
            value: None,
            missing: String::new(),
            measured_at: now(),
            command: command_line(&run.arguments),
            program: this_program_in_words().to_owned(),
            machine: machine_in_words(&self.machine),
        }
    }
}

impl PlannedRun {
    fn name(&self) -> String {
        format!("{} {}, run {}", short_number(self.x), self.curve.axis, self.number)
    }
}
