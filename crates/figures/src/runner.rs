//! Making the runs of an evaluation that are not there yet, and writing what they say.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ensilo_bench::driver::Interrupt;
use ensilo_bench::report::{Build, Machine};

use crate::bench::Bench;
use crate::drawing::svg_of;
use crate::error::FiguresError;
use crate::experiment::Experiment;
use crate::page::Page;
use crate::plan::{SingleRun, plan};
use crate::progress::{Progress, in_words};
use crate::results::Results;
use crate::sizes::Sizes;
use crate::store::{Found, Origin, Store, StoredOutcome, file_name, write_whole};
use crate::summary::{lines_of, section_of};
use crate::table::{command_line, csv_of_runs};
use crate::{compare, model};

/// Experiments, and where their results are.
#[derive(Debug)]
pub struct Evaluation {
    experiments: Vec<Experiment>,
    sizes: Sizes,
    runs: Vec<SingleRun>,
    machine: Machine,
    origin: Origin,
    store: Store,
    out: PathBuf,
}

/// What there is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// Runs in all.
    pub runs: usize,
    /// Those whose results are there.
    pub done: usize,
    /// Those whose results are there with other parameters, of another program or machine: they are made anew.
    pub outdated: usize,
    /// About how long the others take.
    pub time: Duration,
}

/// How an evaluation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// Lines for people: the claims of each experiment that was asked for.
    pub lines: Vec<String>,
    /// Runs that failed or were refused.
    pub missing: usize,
    /// Whether somebody ended it early.
    pub interrupted: bool,
    /// The page.
    pub page: PathBuf,
}

/// A run may take so many times as long as estimated, and so much more.
const LIMIT: (u32, Duration) = (10, Duration::from_secs(120));

impl Evaluation {
    /// Of all experiments in these sizes on `machine` with the program of `origin`; results are kept in the directory `out`.
    pub fn new(sizes: Sizes, machine: Machine, origin: Origin, out: PathBuf) -> Self {
        let experiments = Experiment::all(&sizes);
        let runs = plan(&experiments, machine.cores);
        let store = Store::new(&out, origin.clone());
        Self { experiments, sizes, runs, machine, origin, store, out }
    }

    /// All experiments; their places in this list stand for them.
    pub fn experiments(&self) -> &[Experiment] {
        &self.experiments
    }

    /// The places of the experiments of these names; `all` means every one.
    ///
    /// # Errors
    /// [`FiguresError::UnknownExperiment`].
    pub fn select(&self, names: &[String]) -> Result<Vec<usize>, FiguresError> {
        if names.iter().any(|name| name == "all") {
            return Ok((0..self.experiments.len()).collect());
        }
        let find = |name: &String| {
            let place = self.experiments.iter().position(|experiment| experiment.name == name);
            place.ok_or_else(|| FiguresError::UnknownExperiment(name.clone()))
        };
        names.iter().map(find).collect()
    }

    /// About how long an experiment takes if nothing of it is there.
    pub fn time_of(&self, at: usize) -> Duration {
        self.runs_of(&[at]).map(|run| run.estimate).sum()
    }

    /// What there is to do for these experiments.
    pub fn workload(&self, selected: &[usize]) -> Workload {
        let mut workload = Workload { runs: 0, done: 0, outdated: 0, time: Duration::ZERO };
        for run in self.runs_of(selected) {
            workload.runs += 1;
            match self.find(run) {
                Found::Same(StoredOutcome::Measured(_)) => workload.done += 1,
                Found::Other => workload.outdated += 1,
                Found::Missing | Found::Same(_) => {}
            }
        }
        workload.time = self.to_do(selected).map(|run| run.estimate).sum();
        workload
    }

    /// The runs of these experiments that are not there yet.
    pub fn to_do<'a>(&'a self, selected: &'a [usize]) -> impl Iterator<Item = &'a SingleRun> {
        self.runs_of(selected)
            .filter(|run| !matches!(self.find(run), Found::Same(StoredOutcome::Measured(_))))
    }

    /// Makes these experiments' runs, and writes tables, plots and the page of everything that is there.
    ///
    /// # Errors
    /// [`FiguresError::File`] and [`FiguresError::Plot`]. That single runs fail is no error.
    pub fn run(
        &self,
        selected: &[usize],
        bench: &dyn Bench,
        interrupt: &Interrupt,
        is_quiet: bool,
    ) -> Result<Ending, FiguresError> {
        let workload = self.workload(selected);
        let mut progress = Progress::new(is_quiet, workload.runs - workload.done, workload.time);
        let mut experiment = None;
        for run in self.to_do(selected) {
            if experiment.replace(run.experiment).is_some_and(|before| before != run.experiment) {
                self.write_results()?;
            }
            if !self.make(run, bench, interrupt, &mut progress)? {
                break;
            }
        }
        progress.close();
        self.write_results()?;
        Ok(self.ending(selected, interrupt.is_raised()))
    }

    /// Makes one run and keeps its outcome. False if the evaluation is to end.
    fn make(
        &self,
        run: &SingleRun,
        bench: &dyn Bench,
        interrupt: &Interrupt,
        progress: &mut Progress,
    ) -> Result<bool, FiguresError> {
        let experiment = &self.experiments[run.experiment];
        if interrupt.is_raised() {
            return Ok(false);
        }
        let what = named(experiment, run);
        progress.begin(&what);
        let began = Instant::now();
        let outcome = bench.run(&run.arguments, LIMIT.0 * run.estimate + LIMIT.1, interrupt);
        let Some(outcome) = StoredOutcome::of(outcome) else { return Ok(false) };
        match &outcome {
            StoredOutcome::Measured(_) => {}
            StoredOutcome::Refused(why) => progress.note(&format!("{what}: refused: {why}")),
            StoredOutcome::Failed(why) => progress.note(&format!("{what}: failed: {why}")),
        }
        self.store.keep(experiment, run, began.elapsed().as_secs_f64(), &outcome)?;
        progress.end(run.estimate);
        Ok(true)
    }

    fn runs_of<'a>(&'a self, selected: &'a [usize]) -> impl Iterator<Item = &'a SingleRun> {
        selected.iter().flat_map(|&at| self.runs.iter().filter(move |run| run.experiment == at))
    }

    fn find(&self, run: &SingleRun) -> Found {
        self.store.find(&self.experiments[run.experiment], run)
    }

    /// What there is of an experiment.
    fn results(&self, at: usize) -> Results {
        let mut results = Results::default();
        for run in self.runs_of(&[at]) {
            if let Found::Same(outcome) = self.find(run) {
                results.add(run, outcome);
            }
        }
        results
    }

    /// Every experiment that something is known of.
    fn known(&self) -> impl Iterator<Item = (&Experiment, Results)> {
        let all = self.experiments.iter().enumerate().map(|(at, experiment)| (experiment, self.results(at)));
        all.filter(|(_, results)| !results.is_empty() || results.missing_count() > 0)
    }

    fn write_results(&self) -> Result<(), FiguresError> {
        let cores = self.machine.cores;
        for (experiment, results) in self.known() {
            let table = csv_of_runs(experiment, &results, cores);
            write_whole(&self.out.join(format!("{}.csv", experiment.name)), table.as_bytes())?;
            for (number, plot) in (1..).zip(&experiment.plots) {
                let Some(svg) = svg_of(experiment, plot, &results, cores)? else { continue };
                let name = format!("{}-{number}.svg", file_name(experiment.name));
                write_whole(&self.out.join(name), svg.as_bytes())?;
            }
        }
        self.write_page()
    }

    fn write_page(&self) -> Result<(), FiguresError> {
        let sections =
            self.known().map(|(experiment, results)| section_of(experiment, &results, self.machine.cores));
        let mut sections = sections.collect::<Result<Vec<_>, _>>()?;
        sections.extend(compare::section_in(&self.out)?);
        sections.push(model::section()?);
        let page = Page { facts: self.facts(), sections };
        write_whole(&self.page(), page.to_html().as_bytes())
    }

    fn page(&self) -> PathBuf {
        self.out.join("index.html")
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let Machine { cpu, cores, memory_bytes, os } = &self.machine;
        let build = Build::this();
        let gibibytes = *memory_bytes as f64 / f64::from(1 << 30);
        let command: Vec<String> = std::env::args().skip(1).collect();
        vec![
            ("machine", format!("{cpu}, {cores} processors, {gibibytes:.1} GiB, {os}")),
            (
                "program",
                format!(
                    "ensilo {}, {}, {}, {} (checksum {})",
                    build.version, build.profile, build.rustc, build.target, self.origin.program
                ),
            ),
            ("sizes", self.sizes.to_string()),
            ("command", command_line(&command)),
        ]
    }

    fn ending(&self, selected: &[usize], interrupted: bool) -> Ending {
        let (mut lines, mut missing) = (Vec::new(), 0);
        for &at in selected {
            let (experiment, results) = (&self.experiments[at], self.results(at));
            missing += results.missing_count();
            lines.push(format!("{} ({}): {}", experiment.name, experiment.source, experiment.title));
            let told = lines_of(experiment, &results, self.machine.cores);
            lines.extend(told.into_iter().map(|line| format!("  {line}")));
        }
        Ending { lines, missing, interrupted, page: self.page() }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to_do = self.runs - self.done;
        write!(f, "{to_do} runs, about {}", in_words(self.time))?;
        if self.done > 0 {
            write!(f, "; {} are there already", self.done)?;
        }
        if self.outdated > 0 {
            write!(
                f,
                "; {} are there with other parameters, of another program or another machine, and are made anew",
                self.outdated
            )?;
        }
        Ok(())
    }
}

fn named(experiment: &Experiment, run: &SingleRun) -> String {
    let series = &experiment.series[run.series];
    let at = match experiment.axis.label() {
        "" => String::new(),
        label => format!(", {} {label}", series.points[run.point].x),
    };
    format!("{}: {}{at}, run {} of {}", experiment.name, series.name, run.repetition + 1, experiment.runs)
}
