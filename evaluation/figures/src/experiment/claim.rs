//! What a paper says of its measurements, in a form that can be judged.

use serde::Deserialize;

use super::metric::Metric;

/// A statement of a paper about an experiment.
#[derive(Debug, Clone, Deserialize)]
pub struct Claim {
    /// The statement.
    pub text: &'static str,
    /// The number that is compared, of the measurements here and of the paper's.
    pub quantity: Quantity,
    /// What the paper measured, if it has a number.
    pub paper: Option<f64>,
    /// What stands behind the number; a multiple by default.
    #[serde(default = "times")]
    pub unit: &'static str,
    /// When the claim holds here.
    pub relation: Relation,
    /// With fewer processors it is not judged; 1 by default.
    #[serde(default = "one")]
    pub cores_min: usize,
}

/// A number made of an experiment's measurements. Points with more workers than processors do not count.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// `of` divided by `to`, judged at each point: that it is at most so much has to hold at all of them, that it is at least so much at
    /// one.
    LargestRatio {
        /// What is compared.
        #[serde(default)]
        metric: Metric,
        /// The series above.
        of: &'static str,
        /// The series below.
        to: &'static str,
    },
    /// `of` divided by `to` at one point.
    Ratio {
        /// What is compared.
        #[serde(default)]
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
        #[serde(default)]
        metric: Metric,
        /// The series.
        of: &'static str,
    },
    /// One point of a series divided by another one; nothing if both are the same.
    Change {
        /// What is compared.
        #[serde(default)]
        metric: Metric,
        /// The series.
        of: &'static str,
        /// The point below.
        from: At,
        /// The point above.
        to: At,
    },
    /// Where on the axis `of` falls below `to`, on straight lines between the points: the first point if it lies below from the start,
    /// the last one if it never does.
    Crossing {
        /// What is compared.
        #[serde(default)]
        metric: Metric,
        /// The series that falls.
        of: &'static str,
        /// The series that it falls below.
        to: &'static str,
    },
    /// One point of a series.
    Value {
        /// What is read.
        #[serde(default)]
        metric: Metric,
        /// The series.
        of: &'static str,
        /// Where.
        at: At,
    },
}

/// A point of a series, of those that have no more workers than the machine has processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// The first.
    First,
    /// The one before the last.
    BeforeLast,
    /// The last.
    Last,
    /// The one that lies nearest to this.
    Nearest(u32),
}

/// When a claim holds.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// The number is this or less.
    AtMost(f64),
    /// The number is this or more.
    AtLeast(f64),
    /// The number is the first or more, and the second or less.
    Between(f64, f64),
}

fn times() -> &'static str {
    "x"
}

fn one() -> usize {
    1
}

impl Quantity {
    /// The names of the series that it speaks of.
    pub(crate) fn series(&self) -> Vec<&'static str> {
        match *self {
            Self::LargestRatio { of, to, .. }
            | Self::Ratio { of, to, .. }
            | Self::Crossing { of, to, .. } => {
                vec![of, to]
            }
            Self::LastToFirst { of, .. } | Self::Change { of, .. } | Self::Value { of, .. } => vec![of],
        }
    }
}

impl Relation {
    /// Whether a number stands in it.
    pub fn holds(self, number: f64) -> bool {
        match self {
            Self::AtMost(bound) => number <= bound,
            Self::AtLeast(bound) => number >= bound,
            Self::Between(least, most) => (least..=most).contains(&number),
        }
    }

    /// Whether a number is nearer to a bound than this share of the bound.
    pub(crate) fn is_close(self, number: f64, share: f64) -> bool {
        let is_close = |bound: f64| (number - bound).abs() < share * bound.abs();
        match self {
            Self::AtMost(bound) | Self::AtLeast(bound) => is_close(bound),
            Self::Between(least, most) => is_close(least) || is_close(most),
        }
    }

    /// In words, the bounds with this unit.
    pub fn in_words(self, unit: &str) -> String {
        match self {
            Self::AtMost(bound) => format!("at most {bound:.2}{unit}"),
            Self::AtLeast(bound) => format!("at least {bound:.2}{unit}"),
            Self::Between(least, most) => format!("{least:.2}{unit} to {most:.2}{unit}"),
        }
    }
}
