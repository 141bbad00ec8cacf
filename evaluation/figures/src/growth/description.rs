//! What a curve is, read from `data/growth.json`.

use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;

use super::fit::{Samples, Verdict};
use super::rows::{GrowthRow, spreads_of};
use crate::experiment::Metric;

const DESCRIPTIONS: &str = include_str!("../../data/growth.json");

static ALL: LazyLock<Vec<Curve>> = LazyLock::new(|| {
    serde_json::from_str(DESCRIPTIONS)
        .unwrap_or_else(|error| unreachable!("the descriptions in this crate can be read: {error}"))
});

/// One thing that grows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Curve {
    /// What a user calls it.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// What is run; lines that are joined by spaces.
    about: Vec<&'static str>,
    /// What grows, in the plural.
    pub(super) axis: &'static str,
    /// The call of the program, with [places](Curve::arguments) for what differs.
    arguments: Vec<&'static str>,
    xs: ByScale<Vec<f64>>,
    runs: ByScale<usize>,
    /// Added to the axis where the work is counted: 0 indexes are one tree.
    #[serde(default)]
    pub(super) counted_from: f64,
    /// Whether the axis is how long a run takes.
    #[serde(default)]
    times: bool,
    /// Whether the command is one of several instances, which has no seed and shows no progress.
    #[serde(default)]
    is_of_islands: bool,
    /// Bytes of memory that one more on the axis takes, at most; 0 where that does not matter.
    #[serde(default)]
    pub(super) memory_bytes_each: u64,
    pub(super) measures: Vec<Measure>,
}

/// What is measured of it.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Measure {
    pub(super) metric: Metric,
    pub(super) title: &'static str,
    pub(super) work: Work,
    /// Why its cost may grow faster than `n log n`, if it may.
    #[serde(default)]
    pub(super) why: Option<&'static str>,
}

/// Whose cost a measured figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Work {
    /// Of one piece of work, of which there are as many as the axis says.
    Each,
    /// Of all together.
    Whole,
}

/// How thorough the runs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrowthScale {
    /// Some seconds, to see that everything works: its figures mean nothing.
    Tiny,
    /// About two minutes.
    Quick,
    /// About half an hour.
    Full,
}

#[derive(Debug, Deserialize)]
struct ByScale<T> {
    tiny: T,
    quick: T,
    full: T,
}

/// A measure with the curve that it is of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured {
    pub(super) curve: &'static Curve,
    pub(super) measure: &'static Measure,
}

impl<T> ByScale<T> {
    fn at(&self, scale: GrowthScale) -> &T {
        match scale {
            GrowthScale::Tiny => &self.tiny,
            GrowthScale::Quick => &self.quick,
            GrowthScale::Full => &self.full,
        }
    }
}

impl GrowthScale {
    /// Seconds that a run measures.
    fn seconds(self) -> f64 {
        match self {
            Self::Tiny => 0.1,
            Self::Quick => 0.7,
            Self::Full => 3.0,
        }
    }

    /// Seconds before that.
    fn warmup(self) -> f64 {
        match self {
            Self::Tiny => 0.0,
            Self::Quick => 0.2,
            Self::Full => 1.0,
        }
    }

    /// Records where something else grows.
    fn records(self) -> u64 {
        match self {
            Self::Tiny => 1_000,
            Self::Quick => 200_000,
            Self::Full => 1_000_000,
        }
    }

    /// Records where each may be large.
    fn small_records(self) -> u64 {
        match self {
            Self::Tiny => 200,
            Self::Quick => 10_000,
            Self::Full => 50_000,
        }
    }
}

impl Curve {
    pub(super) fn all() -> &'static [Self] {
        &ALL
    }

    pub(super) fn about(&self) -> String {
        self.about.join(" ")
    }

    pub(super) fn runs(&self, scale: GrowthScale) -> usize {
        *self.runs.at(scale)
    }

    pub(super) fn xs(&self, scale: GrowthScale) -> &[f64] {
        self.xs.at(scale)
    }

    /// The call for `x`: `{x}` stands for it, `{workers:x}` for as many as there are cores but no more than `x`, `{records}` and
    /// `{small_records}` for what the scale says.
    pub(super) fn arguments(&self, x: f64, scale: GrowthScale, cores: usize, seed: usize) -> Vec<String> {
        let put = |&argument: &&str| match argument {
            "{x}" => x.to_string(),
            "{workers:x}" => (x as usize).clamp(1, cores).to_string(),
            "{records}" => scale.records().to_string(),
            "{small_records}" => scale.small_records().to_string(),
            argument => argument.to_owned(),
        };
        let mut arguments: Vec<String> = self.arguments.iter().map(put).collect();
        let (warmup, seconds) = if self.times { (0.0, x) } else { (scale.warmup(), scale.seconds()) };
        let mut add = |option: &str, value: String| arguments.extend([option.to_owned(), value]);
        add("--warmup", warmup.to_string());
        add("--seconds", seconds.to_string());
        add("--prefault-mib", "0".to_owned());
        add("--format", "json".to_owned());
        if !self.is_of_islands {
            add("--seed", seed.to_string());
            arguments.push("--quiet".to_owned());
        }
        arguments
    }

    /// About how long a run takes, load and check included.
    pub(super) fn estimate(&self, x: f64, scale: GrowthScale) -> Duration {
        /// Seconds to load and to check a record, and to write and recover it as well.
        const RECORD_SECONDS: f64 = 2.5e-6;
        let measured = if self.times { x } else { scale.warmup() + scale.seconds() };
        let records = if self.memory_bytes_each > 0 { x } else { scale.records() as f64 };
        Duration::from_secs_f64(0.5 + measured + RECORD_SECONDS * records)
    }

    pub(super) fn measured(&'static self) -> impl Iterator<Item = Measured> {
        self.measures.iter().map(move |measure| Measured { curve: self, measure })
    }

    /// The verdict on each measure that has two points at least.
    pub(super) fn verdicts(&'static self, rows: &[GrowthRow]) -> Vec<(Measured, Verdict)> {
        let of = |measured: Measured| measured.verdict(rows).map(|verdict| (measured, verdict));
        self.measured().filter_map(of).collect()
    }
}

impl Measured {
    /// Its name in lists.
    pub(super) fn name(self) -> String {
        format!("{}, {}", self.curve.title, self.measure.title)
    }

    /// Its name in the table of runs.
    pub(super) fn key(self) -> String {
        self.measure.metric.label()
    }

    pub(super) fn verdict(self, rows: &[GrowthRow]) -> Option<Verdict> {
        let point = |(x, spread)| {
            let n = x + self.curve.counted_from;
            (n, self.cost(n, spread))
        };
        let samples = Samples::new(spreads_of(rows, self).into_iter().map(point).collect());
        let unit = if self.curve.counted_from > 0.0 { "trees" } else { self.curve.axis };
        samples.verdict(unit, self.measure.why)
    }

    /// The cost of `n` pieces of work by the measured figures: least, median, most.
    fn cost(self, n: f64, spread: crate::results::Spread) -> [f64; 3] {
        let times = if self.measure.work == Work::Each { n } else { 1.0 };
        let figures = if self.measure.metric.is_better_up() {
            [spread.max, spread.median, spread.min].map(|figure| 1.0 / figure.max(f64::MIN_POSITIVE))
        } else {
            [spread.min, spread.median, spread.max]
        };
        figures.map(|cost| times * cost)
    }
}

impl fmt::Display for GrowthScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tiny => "tiny",
            Self::Quick => "quick",
            Self::Full => "full",
        })
    }
}
