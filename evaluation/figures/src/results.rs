//! The runs of one experiment, by series, point and repetition.

use std::collections::BTreeMap;

use crate::experiment::{Experiment, Metric};
use crate::measurement::Measurement;
use crate::outcome::StoredOutcome;

/// What has been measured of an experiment so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Results {
    runs: BTreeMap<RunPlace, MeasuredRun>,
    missing: BTreeMap<RunPlace, MissingRun>,
}

/// Series, point, repetition.
pub(crate) type RunPlace = (usize, usize, usize);

/// A run that was measured.
#[derive(Debug, Clone)]
pub(crate) struct MeasuredRun {
    /// The arguments that the program was given.
    pub arguments: Vec<String>,
    /// When it ended; empty if that was not noted.
    pub measured_at: String,
    /// What came out.
    pub measurement: Measurement,
}

/// MissingRun a run has no measurement.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MissingRun {
    /// The program refuses it.
    Refused(String),
    /// It failed.
    Failed(String),
}

/// The runs of a point as one figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    /// The one in the middle; of an even number, the mean of both.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// How many there are.
    pub count: usize,
}

/// A run that got less of the processors competed with others for them.
const PROCESSOR_SHARE_MIN: f64 = 0.8;

impl Spread {
    /// Of these figures; `None` if there are none.
    pub(crate) fn of(mut figures: Vec<f64>) -> Option<Self> {
        figures.sort_by(f64::total_cmp);
        let (min, max) = (*figures.first()?, *figures.last()?);
        let middle = (figures[(figures.len() - 1) / 2], figures[figures.len() / 2]);
        Some(Self { median: (middle.0 + middle.1) / 2.0, min, max, count: figures.len() })
    }
}

impl Results {
    /// Takes up how the run at `place` has ended.
    pub(crate) fn add(
        &mut self,
        place: RunPlace,
        arguments: Vec<String>,
        measured_at: String,
        outcome: StoredOutcome,
    ) {
        let why = match outcome {
            StoredOutcome::Measured(report) => match Measurement::of(report) {
                Ok(measurement) => {
                    self.add_measured(place, MeasuredRun { arguments, measured_at, measurement });
                    return;
                }
                Err(error) => MissingRun::Failed(format!("its report cannot be read: {error}")),
            },
            StoredOutcome::Refused(why) => MissingRun::Refused(why),
            StoredOutcome::Failed(why) => MissingRun::Failed(why),
        };
        self.missing.insert(place, why);
    }

    /// Takes up a run that was measured, in place of one that was at `place`, which comes back.
    pub(crate) fn add_measured(&mut self, place: RunPlace, run: MeasuredRun) -> Option<MeasuredRun> {
        self.runs.insert(place, run)
    }

    /// Whether nothing has been measured.
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// All runs, each with its place.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (RunPlace, &MeasuredRun)> + Clone {
        self.runs.iter().map(|(&place, run)| (place, run))
    }

    /// The repetitions of a point.
    pub(crate) fn of_point(&self, series: usize, point: usize) -> impl Iterator<Item = &Measurement> {
        self.runs.range((series, point, 0)..=(series, point, usize::MAX)).map(|(_, run)| &run.measurement)
    }

    /// A figure of a point.
    pub(crate) fn spread(&self, series: usize, point: usize, metric: Metric) -> Option<Spread> {
        Spread::of(self.of_point(series, point).filter_map(|run| metric.of(run)).collect())
    }

    /// A figure of one run.
    pub(crate) fn figure(
        &self,
        series: usize,
        point: usize,
        repetition: usize,
        metric: Metric,
    ) -> Option<f64> {
        metric.of(&self.runs.get(&(series, point, repetition))?.measurement)
    }

    /// How many repetitions there are at most of any point.
    pub(crate) fn repetitions(&self) -> usize {
        self.runs.keys().map(|(_, _, repetition)| repetition + 1).max().unwrap_or(0)
    }

    /// The least part of the processors that a run in memory got, if that is so little that the figures say nothing about the systems.
    pub(crate) fn starved(&self, cores: usize) -> Option<f64> {
        let shares = self.runs.values().filter_map(|run| run.measurement.processor_share(cores));
        shares.min_by(f64::total_cmp).filter(|&least| least < PROCESSOR_SHARE_MIN)
    }

    /// The runs without measurement, by series and reason, with their number.
    pub(crate) fn missing(&self, experiment: &Experiment) -> Vec<(&'static str, MissingRun, usize)> {
        let mut counts: BTreeMap<(usize, &MissingRun), usize> = BTreeMap::new();
        for (&(series, ..), why) in &self.missing {
            *counts.entry((series, why)).or_default() += 1;
        }
        let named = |((series, why), count): ((usize, &MissingRun), usize)| {
            (experiment.series[series].name, why.clone(), count)
        };
        counts.into_iter().map(named).collect()
    }

    /// How many runs failed or were refused.
    pub(crate) fn missing_count(&self) -> usize {
        self.missing.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_in_the_middle() {
        let spread = |figures: &[f64]| Spread::of(figures.to_vec());
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0, count: 3 }));
        assert_eq!(spread(&[4.0, 2.0]), Some(Spread { median: 3.0, min: 2.0, max: 4.0, count: 2 }));
    }
}
