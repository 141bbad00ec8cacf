//! Whether a paper's claim holds on this machine.
//!
//! The number that a claim is about is computed once for each repetition, from runs that were made one right after the other: what
//! disturbs the machine for a while disturbs both sides of a ratio. The claim holds if it holds in every repetition, and does not if it
//! holds in none; if they disagree, it is undecided. With fewer than three repetitions a number within a tenth of the bound
//! says nothing either, nor does anything if a run in memory did not get the processors because others used them.
//!
//! A claim about a maximum over points is judged at each point by itself, because the largest of many noisy numbers is large by noise.
//! That a ratio is *at most* so much fails where it fails at one point, in every repetition; that it is *at least* so much holds where it
//! holds at one.

use std::fmt;

use crate::experiment::{At, Claim, Experiment, Metric, Quantity, Relation};
use crate::processors::Processors;
use crate::results::{Results, Spread};

/// What became of a claim.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Verdict {
    /// The number here, at the point that decides; `None` if there are no runs for it.
    pub here: Option<Spread>,
    /// That point in words, if the claim is about several.
    pub at: Option<String>,
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
    /// It is undecided, because of this.
    Undecided(String),
}

/// Repetitions that have to agree.
const RUNS_TO_AGREE: usize = 3;
/// With fewer repetitions a number has to be so far from the bound, as a share of it.
const MARGIN: f64 = 0.1;

/// The numbers of all repetitions at a place, and what they say.
struct JudgedPlace {
    /// The point in words, if the claim is about several.
    at: Option<String>,
    here: Spread,
    ruling: Ruling,
}

/// Judges `claim`, which is one of `experiment`, on a machine with so many processors.
pub(crate) fn judge(
    experiment: &Experiment,
    claim: &Claim,
    results: &Results,
    processors: impl Into<Processors>,
) -> Verdict {
    let processors = processors.into();
    let cores = processors.at_least();
    let places = ClaimView { experiment, results, cores }.places(&claim.quantity);
    let judged = places.into_iter().filter_map(|(at, numbers)| {
        let ruling = rule(claim.relation, &numbers);
        Some(JudgedPlace { at, here: Spread::of(numbers)?, ruling })
    });
    let deciding = judged.max_by(|a, b| {
        let weights = weight(claim.relation, &a.ruling).cmp(&weight(claim.relation, &b.ruling));
        weights.then_with(|| a.here.median.total_cmp(&b.here.median))
    });
    let ruling = match &deciding {
        _ if cores < claim.cores_min => too_few(claim.cores_min, processors),
        None => Ruling::Undecided(what_is_missing(experiment, claim, results, processors)),
        Some(deciding) => results.starved(cores).map_or_else(|| deciding.ruling.clone(), others_at_work),
    };
    let (here, at) = deciding.map_or((None, None), |deciding| (Some(deciding.here), deciding.at));
    Verdict { here, at, ruling }
}

/// Why nothing follows on these processors of a claim that takes `needed`.
fn too_few(needed: usize, processors: Processors) -> Ruling {
    let there = match processors {
        Processors::Known(number) => format!("there are {number}"),
        Processors::AtLeast(_) => "how many there were is not noted".to_owned(),
    };
    Ruling::Undecided(format!("it takes {needed} processors or more, {there}"))
}

/// Why nothing follows where a run got only this `share` of the processors.
fn others_at_work(share: f64) -> Ruling {
    Ruling::Undecided(format!("others were at work: a run got {:.0} % of the processors", 100.0 * share))
}

/// What the ruling at one place weighs among several: a claim "at most" is refuted by one place, a claim "at least" is borne out by one, and
/// where neither happens a place that says nothing leaves it open.
fn weight(relation: Relation, ruling: &Ruling) -> u8 {
    match (relation, ruling) {
        (_, Ruling::Undecided(_)) => 1,
        (Relation::AtMost(_), Ruling::DoesNotHold) => 2,
        (Relation::AtLeast(_) | Relation::Between(..), Ruling::Holds) => 2,
        _ => 0,
    }
}

fn what_is_missing(
    experiment: &Experiment,
    claim: &Claim,
    results: &Results,
    processors: Processors,
) -> String {
    let names = claim.quantity.series();
    let has_runs = |name: &&str| {
        let series = experiment.series_at(name);
        results.runs().any(|((of, ..), _)| Some(of) == series)
    };
    let missing: Vec<&str> = names.iter().copied().filter(|name| !has_runs(name)).collect();
    let is_within = |name: &&str| {
        let points = experiment.series_at(name).into_iter().flat_map(|at| &experiment.series[at].points);
        points.into_iter().any(|point| !point.is_beyond(processors.at_least()))
    };
    if !missing.is_empty() {
        format!("there are no runs of {}", missing.join(" and "))
    } else if !names.iter().all(is_within) {
        format!("its runs have more workers than {}", processors.with_article())
    } else {
        "its runs do not have the figures for it".to_owned()
    }
}

/// Rules by the numbers of all repetitions, of which there is one at least.
pub(crate) fn rule(relation: Relation, numbers: &[f64]) -> Ruling {
    let holding = numbers.iter().filter(|&&number| relation.holds(number)).count();
    if holding != 0 && holding != numbers.len() {
        Ruling::Undecided(format!("it holds in {holding} of {} runs", numbers.len()))
    } else if numbers.len() < RUNS_TO_AGREE && numbers.iter().any(|&number| relation.is_close(number, MARGIN))
    {
        Ruling::Undecided(format!("too close to tell with {} run(s)", numbers.len()))
    } else if holding > 0 {
        Ruling::Holds
    } else {
        Ruling::DoesNotHold
    }
}

/// The results of an experiment as a claim reads them.
struct ClaimView<'a> {
    experiment: &'a Experiment,
    results: &'a Results,
    cores: usize,
}

/// A point of a series that counts, with its figure in one repetition, if it was measured.
#[derive(Clone, Copy)]
struct CountedPoint {
    x: f64,
    figure: Option<f64>,
}

impl ClaimView<'_> {
    /// The places that a claim about `quantity` is judged at, each with the numbers of the repetitions that have one.
    fn places(&self, quantity: &Quantity) -> Vec<(Option<String>, Vec<f64>)> {
        let each = |number: &dyn Fn(usize) -> Option<f64>| {
            let numbers = (0..self.results.repetitions()).filter_map(number);
            vec![(None, numbers.filter(|number| number.is_finite()).collect())]
        };
        match *quantity {
            Quantity::LargestRatio { metric, of, to } => self.places_of_ratios(metric, of, to),
            Quantity::Ratio { metric, of, to, at } => each(&|run| {
                let [above, below] = [of, to].map(|name| pick(&self.counted(metric, name, run), at));
                ratio(above?, below?)
            }),
            Quantity::LastToFirst { metric, of } => {
                each(&|run| change(&self.counted(metric, of, run), At::First, At::Last))
            }
            Quantity::Change { metric, of, from, to } => {
                each(&|run| change(&self.counted(metric, of, run), from, to))
            }
            Quantity::Crossing { metric, of, to } => each(&|run| crossing(&self.ratios(metric, of, to, run))),
            Quantity::Value { metric, of, at } => {
                each(&|run| pick(&self.counted(metric, of, run), at)?.figure)
            }
        }
    }

    /// Every point that counts with the ratios of its repetitions.
    fn places_of_ratios(&self, metric: Metric, of: &str, to: &str) -> Vec<(Option<String>, Vec<f64>)> {
        let repetitions = 0..self.results.repetitions();
        let mut ratios: Vec<_> = repetitions.flat_map(|at| self.ratios(metric, of, to, at)).collect();
        // Stable: the repetitions of a point stay in order.
        ratios.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let place = |of_point: &[(f64, f64)]| {
            let place = self.experiment.place(of_point[0].0);
            let numbers = of_point.iter().map(|&(_, ratio)| ratio).collect();
            (Some(place).filter(|place| !place.is_empty()), numbers)
        };
        ratios.chunk_by(|(a, _), (b, _)| a == b).map(place).collect()
    }

    /// `of` divided by `to` at every point that counts and has both, with its place on the axis.
    fn ratios(&self, metric: Metric, of: &str, to: &str, repetition: usize) -> Vec<(f64, f64)> {
        let (above, below) = (self.counted(metric, of, repetition), self.counted(metric, to, repetition));
        let beside = |above: CountedPoint| Some((above, *below.iter().find(|below| below.x == above.x)?));
        let ratios = above.into_iter().filter_map(beside);
        ratios
            .filter_map(|(above, below)| Some((above.x, ratio(above, below)?)))
            .filter(|(_, ratio)| ratio.is_finite())
            .collect()
    }

    /// The points of a series that count.
    fn counted(&self, metric: Metric, name: &str, repetition: usize) -> Vec<CountedPoint> {
        let Some(series) = self.experiment.series_at(name) else { return Vec::new() };
        let points = self.experiment.series[series].points.iter().enumerate();
        points
            .filter(|(_, point)| !point.is_beyond(self.cores))
            .map(|(at, point)| CountedPoint {
                x: point.x,
                figure: self.results.figure(series, at, repetition, metric),
            })
            .collect()
    }
}

fn pick(points: &[CountedPoint], at: At) -> Option<CountedPoint> {
    match at {
        At::First => points.first().copied(),
        At::BeforeLast => points.len().checked_sub(2).map(|before| points[before]),
        At::Last => points.last().copied(),
        At::Nearest(x) => {
            let distance = |point: &CountedPoint| (point.x - f64::from(x)).abs();
            points.iter().copied().min_by(|a, b| distance(a).total_cmp(&distance(b)))
        }
    }
}

/// One figure divided by the other, if both were measured.
fn ratio(above: CountedPoint, below: CountedPoint) -> Option<f64> {
    Some(above.figure? / below.figure?)
}

/// A point divided by another one. Of a single point there is nothing to tell.
fn change(points: &[CountedPoint], from: At, to: At) -> Option<f64> {
    let (from, to) = (pick(points, from)?, pick(points, to)?);
    if from.x == to.x { None } else { ratio(to, from) }
}

/// Where ratios, given by ascending place, fall below 1.
fn crossing(ratios: &[(f64, f64)]) -> Option<f64> {
    let is_below = |&(_, ratio): &(f64, f64)| ratio < 1.0;
    let Some(after) = ratios.iter().position(is_below) else { return Some(ratios.last()?.0) };
    let Some(before) = after.checked_sub(1) else { return Some(ratios[0].0) };
    let ((left, above), (right, below)) = (ratios[before], ratios[after]);
    Some(left + (right - left) * (above - 1.0) / (above - below))
}

impl Verdict {
    /// The median, from where to where the repetitions lie, and at which point.
    pub(crate) fn number_here(&self, unit: &str) -> Option<String> {
        let Spread { median, min, max, count } = self.here?;
        let at = self.at.as_ref().map_or_else(String::new, |at| format!(" at {at}"));
        let spread = if count > 1 { format!(" ({min:.2} to {max:.2})") } else { String::new() };
        Some(format!("{median:.2}{unit}{spread}{at}"))
    }
}

/// A line for people: the claim, the number here, the ruling.
pub(crate) fn line(claim: &Claim, verdict: &Verdict) -> String {
    let here = verdict.number_here(claim.unit).unwrap_or_else(|| "no number".to_owned());
    format!("{}: here {here}: {}", claim.text, verdict.ruling)
}

#[cfg(test)]
impl Ruling {
    /// As it stands in `docs/evaluation.md`.
    pub(crate) fn in_document(&self) -> String {
        match self {
            Self::Holds => "holds".to_owned(),
            Self::DoesNotHold => "**does not hold**".to_owned(),
            Self::Undecided(why) => format!("cannot be told ({why})"),
        }
    }
}

impl fmt::Display for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Holds => write!(f, "holds"),
            Self::DoesNotHold => write!(f, "does not hold"),
            Self::Undecided(why) => write!(f, "cannot be told on this machine ({why})"),
        }
    }
}

#[cfg(test)]
mod full_run;
#[cfg(test)]
mod tests;
