//! Whether a paper's claim holds on this machine.
//!
//! The number that a claim is about is computed once for each repetition, from runs that were made one right after the other: what
//! disturbs the machine for a while disturbs both sides of a ratio. The claim holds if it holds in every repetition, and does not if it
//! holds in none; if they disagree, nothing can be told. With fewer than three repetitions a number within a tenth of the bound
//! says nothing either, nor does anything if a run in memory did not get the processors because others used them.

use std::fmt;

use crate::experiment::{At, Claim, Experiment, Metric, Quantity};
use crate::results::{Results, Spread};

/// What became of a claim.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Verdict {
    /// The number here; `None` if there are no runs for it.
    pub here: Option<Spread>,
    /// What follows.
    pub ruling: Ruling,
}

/// What follows from the measurements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    /// The claim holds.
    Holds,
    /// It does not.
    DoesNotHold,
    /// It cannot be told, because of this.
    CannotBeTold(String),
}

/// Repetitions that have to agree.
const RUNS_TO_AGREE: usize = 3;
/// With fewer repetitions a number has to be so far from the bound, as a share of it.
const MARGIN: f64 = 0.1;

/// Judges `claim`, which is one of `experiment`, on a machine with `cores` processors.
pub(crate) fn judge(experiment: &Experiment, claim: &Claim, results: &Results, cores: usize) -> Verdict {
    let numbers = (0..experiment.runs)
        .filter_map(|repetition| View { experiment, results, cores, repetition }.number(&claim.quantity));
    let numbers: Vec<f64> = numbers.collect();
    let here = Spread::of(numbers.clone());
    let ruling = if numbers.is_empty() {
        Ruling::CannotBeTold(what_is_missing(experiment, claim, results))
    } else {
        rule(claim, &numbers, cores, results.starved(cores))
    };
    Verdict { here, ruling }
}

fn what_is_missing(experiment: &Experiment, claim: &Claim, results: &Results) -> String {
    let is_missing = |name: &&str| {
        let series = experiment.series_at(name);
        !results.runs().any(|((of, ..), ..)| Some(of) == series)
    };
    let names: Vec<&str> = claim.quantity.series().into_iter().filter(is_missing).collect();
    if names.is_empty() {
        "its runs do not have the figures for it".to_owned()
    } else {
        format!("there are no runs of {}", names.join(" and "))
    }
}

/// `starved` is the part of the processors that a run got if it got too few of them.
fn rule(claim: &Claim, numbers: &[f64], cores: usize, starved: Option<f64>) -> Ruling {
    let holding = numbers.iter().filter(|&&number| claim.relation.holds(number)).count();
    let bound = claim.relation.bound();
    let is_close = |number: &f64| (number - bound).abs() < MARGIN * bound.abs();
    if cores < claim.cores_min {
        Ruling::CannotBeTold(format!("it takes {} processors or more, there are {cores}", claim.cores_min))
    } else if let Some(share) = starved {
        let percent = 100.0 * share;
        Ruling::CannotBeTold(format!("others were at work: a run got {percent:.0} % of the processors"))
    } else if holding != 0 && holding != numbers.len() {
        Ruling::CannotBeTold(format!("it holds in {holding} of {} runs", numbers.len()))
    } else if numbers.len() < RUNS_TO_AGREE && numbers.iter().any(is_close) {
        Ruling::CannotBeTold(format!("too close to tell with {} run(s)", numbers.len()))
    } else if holding > 0 {
        Ruling::Holds
    } else {
        Ruling::DoesNotHold
    }
}

/// One repetition of an experiment.
struct View<'a> {
    experiment: &'a Experiment,
    results: &'a Results,
    cores: usize,
    repetition: usize,
}

impl View<'_> {
    fn number(&self, quantity: &Quantity) -> Option<f64> {
        match *quantity {
            Quantity::LargestRatio { metric, of, to } => self.largest_ratio(metric, of, to),
            Quantity::Ratio { metric, of, to, at } => {
                let (above, below) = (self.counted(metric, of), self.counted(metric, to));
                ratio(pick(&above, at)?, pick(&below, at)?)
            }
            Quantity::LastToFirst { metric, of } => {
                let points = self.counted(metric, of);
                // Of a single point there is nothing to tell.
                if points.len() < 2 {
                    return None;
                }
                ratio(pick(&points, At::Last)?, pick(&points, At::First)?)
            }
            Quantity::Value { metric, of, at } => pick(&self.counted(metric, of), at)?.1,
        }
        .filter(|number| number.is_finite())
    }

    fn largest_ratio(&self, metric: Metric, of: &str, to: &str) -> Option<f64> {
        let (above, below) = (self.counted(metric, of), self.counted(metric, to));
        let ratios = above.iter().zip(&below).filter_map(|(&above, &below)| ratio(above, below));
        ratios.max_by(f64::total_cmp)
    }

    /// The points of a series that count, each with its figure, if it was measured.
    fn counted(&self, metric: Metric, name: &str) -> Vec<(f64, Option<f64>)> {
        let Some(series) = self.experiment.series_at(name) else { return Vec::new() };
        let points = self.experiment.series[series].points.iter().enumerate();
        points
            .filter(|(_, point)| !self.experiment.is_beyond(point.x, self.cores))
            .map(|(at, point)| (point.x, self.results.figure(series, at, self.repetition, metric)))
            .collect()
    }
}

fn pick(points: &[(f64, Option<f64>)], at: At) -> Option<(f64, Option<f64>)> {
    match at {
        At::First => points.first().copied(),
        At::Last => points.last().copied(),
    }
}

/// One figure divided by the other, if they belong to the same point or to the same series, and both were measured.
fn ratio(above: (f64, Option<f64>), below: (f64, Option<f64>)) -> Option<f64> {
    Some(above.1? / below.1?)
}

/// A line for people: the claim, the number here, the ruling.
pub(crate) fn line(claim: &Claim, verdict: &Verdict) -> String {
    let here = verdict.here.map_or_else(|| "no number".to_owned(), |here| number_here(here, claim.unit));
    format!("{}: here {here}: {}", claim.text, verdict.ruling)
}

/// The median, and from where to where the repetitions lie.
pub(crate) fn number_here(here: Spread, unit: &str) -> String {
    let Spread { median, min, max, count } = here;
    if count > 1 { format!("{median:.2}{unit} ({min:.2} to {max:.2})") } else { format!("{median:.2}{unit}") }
}

impl fmt::Display for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Holds => write!(f, "holds"),
            Self::DoesNotHold => write!(f, "does not hold"),
            Self::CannotBeTold(why) => write!(f, "cannot be told on this machine ({why})"),
        }
    }
}

#[cfg(test)]
mod tests;
