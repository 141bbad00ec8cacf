//! What a paper says of its measurements, in a form that can be judged.

use super::metric::Metric;

/// A statement of a paper about an experiment.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The statement.
    pub text: &'static str,
    /// The number that is compared, of the measurements here and of the paper's.
    pub quantity: Quantity,
    /// What the paper measured.
    pub paper: f64,
    /// What stands behind the number.
    pub unit: &'static str,
    /// When the claim holds here.
    pub relation: Relation,
    /// With fewer processors it cannot be told whether it holds.
    pub cores_min: usize,
}

/// A number made of an experiment's measurements. Points with more workers than processors do not count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quantity {
    /// `of` divided by `to`, where that is largest.
    LargestRatio {
        /// What is compared.
        metric: Metric,
        /// The series above.
        of: &'static str,
        /// The series below.
        to: &'static str,
    },
    /// `of` divided by `to` at one point.
    Ratio {
        /// What is compared.
        metric: Metric,
        /// The series above.
        of: &'static str,
        /// The series below.
        to: &'static str,
        /// Where.
        at: At,
    },
    /// The last point of a series divided by its first.
    LastToFirst {
        /// What is compared.
        metric: Metric,
        /// The series.
        of: &'static str,
    },
    /// One point of a series.
    Value {
        /// What is read.
        metric: Metric,
        /// The series.
        of: &'static str,
        /// Where.
        at: At,
    },
}

/// A point of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// The first.
    First,
    /// The last that has no more workers than the machine has processors.
    Last,
}

/// When a claim holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Relation {
    /// The number is this or less.
    AtMost(f64),
    /// The number is this or more.
    AtLeast(f64),
}

impl Claim {
    /// A claim about throughput as a multiple.
    pub(super) fn times(text: &'static str, quantity: Quantity, paper: f64, relation: Relation) -> Self {
        Self { text, quantity, paper, unit: "x", relation, cores_min: 1 }
    }

    /// The same with another unit.
    pub(super) fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    /// The same, to be told only with so many processors.
    pub(super) fn needs_cores(mut self, cores_min: usize) -> Self {
        self.cores_min = cores_min;
        self
    }
}

impl Quantity {
    /// How many times as many transactions a second `of` makes as `to`, at most.
    pub(super) fn largest(of: &'static str, to: &'static str) -> Self {
        Self::LargestRatio { metric: Metric::Throughput, of, to }
    }

    /// How many times as many transactions a second `of` makes as `to`.
    pub(super) fn ratio(of: &'static str, to: &'static str, at: At) -> Self {
        Self::Ratio { metric: Metric::Throughput, of, to, at }
    }

    /// The names of the series that it speaks of.
    pub(crate) fn series(&self) -> Vec<&'static str> {
        match *self {
            Self::LargestRatio { of, to, .. } | Self::Ratio { of, to, .. } => vec![of, to],
            Self::LastToFirst { of, .. } | Self::Value { of, .. } => vec![of],
        }
    }
}

impl Relation {
    /// Whether a number stands in it.
    pub fn holds(self, number: f64) -> bool {
        match self {
            Self::AtMost(bound) => number <= bound,
            Self::AtLeast(bound) => number >= bound,
        }
    }

    /// The bound.
    pub fn bound(self) -> f64 {
        match self {
            Self::AtMost(bound) | Self::AtLeast(bound) => bound,
        }
    }

    /// In words, before the bound.
    pub fn words(self) -> &'static str {
        match self {
            Self::AtMost(_) => "at most",
            Self::AtLeast(_) => "at least",
        }
    }
}
