//! Provenance the runs of an evaluation that are not there yet, and writing what they say.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ensilo_bench::driver::Interrupt;
use ensilo_bench::report::Machine;

use crate::bench::Bench;
use crate::error::FiguresError;
use crate::experiment::Experiment;
use crate::origin::Origin;
use crate::outcome::StoredOutcome;
use crate::output::{make_directory, page_in, write_results};
use crate::plan::{SingleRun, plan};
use crate::processors::Processors;
use crate::progress::{Progress, in_words};
use crate::provenance::Provenance;
use crate::results::Results;
use crate::sizes::Sizes;
use crate::store::{Outdated, Store};
use crate::summary::lines_of;
use crate::table::command_line;

/// Experiments, and where their results are.
#[derive(Debug)]
pub struct Evaluation {
    experiments: Vec<Experiment>,
    runs: Vec<SingleRun>,
    provenance: Provenance,
    store: Store,
    out: PathBuf,
    replaces: bool,
}

/// What there is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// Runs in all.
    pub runs: usize,
    /// Those that have results.
    pub done: usize,
    /// Results that are there with other parameters, of another program or machine, and would be lost.
    pub outdated: usize,
    /// About how long the others take.
    pub time: Duration,
}

/// How an evaluation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// Lines for people: the claims of each experiment that was asked for; if it ended early, of those that something is known of.
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
        let (store, provenance) = (Store::new(&out), Provenance::new(sizes, &machine, origin));
        Self { experiments, runs, provenance, store, out, replaces: false }
    }

    /// The same; if `replaces`, results of the same experiments in other sizes, of another program or another machine give way, instead of
    /// being a reason to refuse.
    pub fn replacing(self, replaces: bool) -> Self {
        Self { replaces, ..self }
    }

    /// All experiments; their places in this list stand for them.
    pub fn experiments(&self) -> &[Experiment] {
        &self.experiments
    }

    /// The places of the experiments of these names, each once; `all` means every one.
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
        let mut places = names.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        let mut seen = BTreeSet::new();
        places.retain(|&place| seen.insert(place));
        Ok(places)
    }

    /// How many runs experiments have, and about how long they take if nothing of them is there.
    pub fn size_of(&self, selected: &[usize]) -> (usize, Duration) {
        let estimates = || self.runs_of(selected).map(|run| run.estimate);
        (estimates().count(), estimates().sum())
    }

    /// What there is to do for these experiments.
    pub fn workload(&self, selected: &[usize]) -> Workload {
        let mut workload = Workload { runs: 0, done: 0, outdated: 0, time: Duration::ZERO };
        for run in self.runs_of(selected) {
            workload.runs += 1;
            workload.done += usize::from(self.is_done(run));
        }
        workload.outdated = self.outdated(selected).map(|(_, outdated)| outdated.runs).sum();
        workload.time = self.to_do(selected).map(|run| run.estimate).sum();
        workload
    }

    /// The runs of these experiments that are not there yet.
    pub fn to_do<'a>(&'a self, selected: &'a [usize]) -> impl Iterator<Item = &'a SingleRun> {
        self.runs_of(selected).filter(|run| !self.is_done(run))
    }

    /// Makes these experiments' runs, and writes tables, plots and the page of everything that is there.
    ///
    /// # Errors
    /// [`FiguresError::WouldReplace`], before any run, if results would be lost that the user has not given up; [`FiguresError::File`], also
    /// before any run if the directory cannot be written to, and [`FiguresError::Plot`]. That single runs fail is no error.
    pub fn run(
        &self,
        selected: &[usize],
        bench: &dyn Bench,
        interrupt: &Interrupt,
        is_quiet: bool,
    ) -> Result<Ending, FiguresError> {
        self.make_way(selected)?;
        let workload = self.workload(selected);
        let mut progress = Progress::new(is_quiet, workload.runs - workload.done, workload.time);
        let mut experiment = None;
        for run in self.to_do(selected) {
            if experiment.replace(run.experiment).is_some_and(|before| before != run.experiment) {
                write_results(&self.out)?;
            }
            if !self.make(run, bench, interrupt, &mut progress)? {
                break;
            }
        }
        progress.close();
        write_results(&self.out)?;
        Ok(self.ending(selected, interrupt.is_raised()))
    }

    /// Makes the directory ready for these experiments: what is outdated goes, or is a reason to refuse.
    fn make_way(&self, selected: &[usize]) -> Result<(), FiguresError> {
        let lost: Vec<String> = self
            .outdated(selected)
            .map(|(at, outdated)| outdated_in_words(self.experiments[at].name, &outdated))
            .collect();
        if !lost.is_empty() && !self.replaces {
            return Err(FiguresError::WouldReplace(self.out.clone(), lost));
        }
        make_directory(&self.out)?;
        for &at in selected {
            let name = self.experiments[at].name;
            let changes = self.outdated(&[at]).next().is_some() || self.to_do(&[at]).next().is_some();
            self.store.remove_outdated(&self.experiments[at], &self.provenance.origin)?;
            if changes || self.store.provenance(name).is_none() {
                self.store.keep_provenance(name, &self.provenance_of(name))?;
            }
        }
        Ok(())
    }

    /// With what an experiment is made from now on: earlier commands count if their runs are of the same program on the same machine.
    fn provenance_of(&self, experiment: &str) -> Provenance {
        let before =
            self.store.provenance(experiment).filter(|before| before.origin == self.provenance.origin);
        let mut commands = before.map(|before| before.commands).unwrap_or_default();
        let command = command_line(&std::env::args().skip(1).collect::<Vec<_>>());
        if commands.last() != Some(&command) {
            commands.push(command);
        }
        Provenance { commands, ..self.provenance.clone() }
    }

    /// What of these experiments would be lost.
    fn outdated(&self, selected: &[usize]) -> impl Iterator<Item = (usize, Outdated)> {
        let of =
            |&at: &usize| Some((at, self.store.outdated(&self.experiments[at], &self.provenance.origin)?));
        selected.iter().filter_map(of).collect::<Vec<_>>().into_iter()
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
        let origin = &self.provenance.origin;
        self.store.keep(experiment, run, origin, began.elapsed().as_secs_f64(), &outcome)?;
        progress.end(run.estimate);
        Ok(true)
    }

    fn runs_of<'a>(&'a self, selected: &'a [usize]) -> impl Iterator<Item = &'a SingleRun> {
        selected.iter().flat_map(|&at| self.runs.iter().filter(move |run| run.experiment == at))
    }

    fn is_done(&self, run: &SingleRun) -> bool {
        let found = self.store.find(&self.experiments[run.experiment], run, &self.provenance.origin);
        matches!(found, Some(StoredOutcome::Measured(_)))
    }

    /// What there is of an experiment.
    fn results(&self, at: usize) -> Results {
        self.store.results(&self.experiments[at], &self.provenance.origin)
    }

    fn ending(&self, selected: &[usize], interrupted: bool) -> Ending {
        let (mut lines, mut missing) = (Vec::new(), 0);
        for &at in selected {
            let (experiment, results) = (&self.experiments[at], self.results(at));
            missing += results.missing_count();
            let is_complete = !interrupted || self.to_do(&[at]).next().is_none();
            if results.is_empty() && !is_complete {
                continue;
            }
            let processors = Processors::Known(self.provenance.sizes.cores);
            lines.extend(lines_of(experiment, &results, processors, is_complete));
        }
        Ending { lines, missing, interrupted, page: page_in(&self.out) }
    }
}

/// What would be lost of an experiment, for people.
fn outdated_in_words(experiment: &str, outdated: &Outdated) -> String {
    let Outdated { runs, example, of_other_origin } = outdated;
    let of =
        if *of_other_origin { "by another program or on another machine" } else { "with other parameters" };
    format!("{experiment}: {runs} runs {of}, like {}", command_line(example))
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
                "; {} are there with other parameters, of another program or another machine, and are replaced",
                self.outdated
            )?;
        }
        Ok(())
    }
}

fn named(experiment: &Experiment, run: &SingleRun) -> String {
    let series = &experiment.series[run.series];
    let place = experiment.place(series.points[run.point].x);
    let at = if place.is_empty() { String::new() } else { format!(", {place}") };
    format!("{}: {}{at}, run {} of {}", experiment.name, series.name, run.repetition + 1, experiment.runs)
}
