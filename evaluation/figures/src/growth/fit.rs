//! How fast a cost grows: an exponent, and whether it is more than `n log n`.
//!
//! The exponent is the slope of the line that fits the logarithms of work and cost best. It does not show where a curve bends, so that the
//! verdict compares all pairs of points: between two of them the cost may grow by as much as `n log n` does, and by a [tolerance] for the
//! noise of the machine. Runs of a point count by their most favourable: a curve that is called too steep is too steep in all of them.
//!
//! [tolerance]: TOLERANCE

use std::fmt;

use crate::plot::short_number;

/// How much faster than `n log n` a cost may grow between two points before that is called worse.
pub(super) const TOLERANCE: f64 = 1.25;

/// Costs by the amount of work.
#[derive(Debug)]
pub(super) struct Samples {
    /// By ascending work, which is at least 1 where it is counted: least, median and most of its cost.
    points: Vec<(f64, [f64; 3])>,
}

/// How fast a cost grows with the work.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The exponent of the power of the work that the cost grows like.
    pub exponent: f64,
    /// Where the cost grows faster than `n log n`, most of all.
    pub bend: Option<Bend>,
    /// Why it may, if something was said of it.
    pub why: Option<&'static str>,
    /// What the work is counted in.
    unit: &'static str,
}

/// Two points between which a cost grows faster than `n log n`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bend {
    /// The work of the first.
    pub from: f64,
    /// The work of the second.
    pub to: f64,
    /// How many times as fast.
    pub times: f64,
}

/// What is allowed: `n log n`, with a logarithm that is 1 for one piece of work.
pub(super) fn n_log_n(n: f64) -> f64 {
    n * (n + 1.0).log2()
}

impl Samples {
    /// Of these points, in any order.
    pub(super) fn new(mut points: Vec<(f64, [f64; 3])>) -> Self {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self { points }
    }

    /// The verdict; `None` with fewer than two amounts of work, or a cost that is not more than 0.
    pub(super) fn verdict(&self, unit: &'static str, why: Option<&'static str>) -> Option<Verdict> {
        let is_positive = |(n, cost): &(f64, [f64; 3])| *n > 0.0 && cost.iter().all(|&cost| cost > 0.0);
        if self.points.len() < 2 || !self.points.iter().all(is_positive) {
            return None;
        }
        Some(Verdict { exponent: self.exponent()?, bend: self.bend(), why, unit })
    }

    /// The slope of the line through the logarithms with the least squares.
    fn exponent(&self) -> Option<f64> {
        let count = self.points.len() as f64;
        let logarithms = || self.points.iter().map(|(n, [_, median, _])| (n.ln(), median.ln()));
        let mean = |of: fn((f64, f64)) -> f64| logarithms().map(of).sum::<f64>() / count;
        let (x_mean, y_mean) = (mean(|(x, _)| x), mean(|(_, y)| y));
        let spread: f64 = logarithms().map(|(x, _)| (x - x_mean).powi(2)).sum();
        let common: f64 = logarithms().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
        (spread > 0.0).then(|| common / spread)
    }

    /// The pair of points between which the cost grows most of all in comparison, if that is too much.
    fn bend(&self) -> Option<Bend> {
        let pairs = self
            .points
            .iter()
            .enumerate()
            .flat_map(|(at, first)| self.points[at + 1..].iter().map(move |second| (first, second)));
        let bends = pairs.map(|((from, [.., most]), (to, [least, ..]))| {
            let allowed = n_log_n(*to) / n_log_n(*from);
            Bend { from: *from, to: *to, times: least / most / allowed }
        });
        bends.max_by(|a, b| a.times.total_cmp(&b.times)).filter(|bend| bend.times > TOLERANCE)
    }
}

impl Verdict {
    /// Whether the cost grows no faster than `n log n`.
    pub fn is_no_worse(&self) -> bool {
        self.bend.is_none()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { exponent, bend, why, unit } = self;
        write!(f, "grows like n^{exponent:.2}, ")?;
        let Some(Bend { from, to, times }) = bend else { return f.write_str("no worse than n log n") };
        let (from, to) = (short_number(*from), short_number(*to));
        write!(f, "{times:.1} times as fast as n log n from {from} to {to} {unit}: ")?;
        f.write_str(why.unwrap_or("NOTHING SAYS WHY"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(cost: impl Fn(f64) -> f64, why: Option<&'static str>) -> Verdict {
        let points = [1e3, 1e4, 1e5, 1e6].map(|n| (n, [0.97, 1.0, 1.03].map(|noise| noise * cost(n))));
        Samples::new(points.to_vec()).verdict("rows", why).unwrap()
    }

    #[test]
    fn powers_have_their_exponents() {
        for exponent in [0.0, 0.5, 1.0, 1.5, 2.0] {
            let found = verdict(|n| n.powf(exponent), None);
            assert!((found.exponent - exponent).abs() < 1e-9, "{found:?}");
            assert_eq!(found.is_no_worse(), exponent <= 1.0, "{found:?}");
        }
    }

    #[test]
    fn n_log_n_is_allowed_and_n_log_squared_is_not() {
        assert!(verdict(n_log_n, None).is_no_worse());
        let worse = verdict(|n| n * n.ln().powi(2), None);
        assert!(!worse.is_no_worse() && worse.to_string().contains("NOTHING SAYS WHY"), "{worse}");
        let explained = verdict(|n| n * n, Some("each row looks at every other"));
        assert!(explained.to_string().ends_with("rows: each row looks at every other"), "{explained}");
    }

    #[test]
    fn a_late_bend_is_found_behind_a_flat_beginning() {
        let bent = verdict(|n| if n > 2e5 { 2e3 * n } else { 1e8 }, None);
        assert_eq!(bent.bend.map(|bend| (bend.from, bend.to)), Some((1e5, 1e6)), "{bent:?}");
    }

    #[test]
    fn runs_that_overlap_are_given_the_benefit_of_the_doubt() {
        let points = vec![(1e3, [1.0, 1.0, 3.0]), (1e4, [10.0, 40.0, 50.0])];
        assert!(Samples::new(points).verdict("rows", None).unwrap().is_no_worse());
    }

    #[test]
    fn one_point_says_nothing() {
        assert_eq!(Samples::new(vec![(1.0, [1.0; 3])]).verdict("rows", None), None);
        assert_eq!(Samples::new(vec![(1.0, [0.0; 3]), (2.0, [1.0; 3])]).verdict("rows", None), None);
        assert_eq!(Samples::new(vec![(1.0, [1.0; 3]), (1.0, [1.0; 3])]).verdict("rows", None), None);
    }
}
