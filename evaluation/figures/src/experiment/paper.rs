//! What the papers measured: the points behind Silo's figures 4 to 11, and single numbers.

use std::sync::LazyLock;

use serde::Deserialize;

use super::metric::Metric;

/// The points, as its authors published them.
const SILO_FIGURES: &str = include_str!("../../data/silo-figures.csv");

/// What a paper says of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Paper {
    /// Nothing that could be drawn.
    Unknown,
    /// A curve of a figure of Silo.
    Curve {
        /// The figure, as the list of points names it.
        figure: &'static str,
        /// The series.
        series: &'static str,
    },
    /// One point of such a curve, as a bar.
    PointOf {
        /// The figure.
        figure: &'static str,
        /// The series.
        series: &'static str,
        /// The point.
        x: f64,
    },
    /// An average in transactions a second.
    Throughput(f64),
    /// Averages in transactions a second, each with its place on the axis.
    Points(&'static [(f64, f64)]),
}

/// A point of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PaperPoint {
    /// Where it lies on the axis; 0 for a bar.
    pub x: f64,
    /// Transactions a second, the median of three runs.
    pub throughput: f64,
    /// The least of them.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// Milliseconds until a transaction was stored, 0 without a log.
    pub stored_latency_ms: f64,
    /// Aborts a second.
    pub aborts_per_second: f64,
}

#[derive(Debug, Deserialize)]
struct PaperRow {
    figure: String,
    series: String,
    x: f64,
    txn_per_s_median: f64,
    txn_per_s_min: f64,
    txn_per_s_max: f64,
    persist_latency_ms: f64,
    aborts_per_s: f64,
}

static ROWS: LazyLock<Vec<PaperRow>> = LazyLock::new(|| {
    csv::Reader::from_reader(SILO_FIGURES.as_bytes())
        .deserialize()
        .collect::<Result<_, _>>()
        .unwrap_or_else(|error| unreachable!("the list in this crate can be read: {error}"))
});

impl Paper {
    /// The points, by ascending `x`.
    pub fn points(self) -> Vec<PaperPoint> {
        match self {
            Self::Unknown => Vec::new(),
            Self::Curve { figure, series } => points_of(figure, series),
            Self::PointOf { figure, series, x } => points_of(figure, series)
                .into_iter()
                .filter(|point| point.x == x)
                .map(|point| PaperPoint { x: 0.0, ..point })
                .collect(),
            Self::Points(points) => {
                points.iter().map(|&(x, throughput)| PaperPoint::of_throughput(x, throughput)).collect()
            }
            Self::Throughput(throughput) => vec![PaperPoint::of_throughput(0.0, throughput)],
        }
    }

    /// What the paper calls the series, if it has one.
    pub fn series(self) -> Option<&'static str> {
        match self {
            Self::Curve { series, .. } | Self::PointOf { series, .. } => Some(series),
            Self::Unknown | Self::Throughput(_) | Self::Points(_) => None,
        }
    }
}

impl PaperPoint {
    /// A point of which only the throughput is known.
    pub fn of_throughput(x: f64, throughput: f64) -> Self {
        Self {
            x,
            throughput,
            min: throughput,
            max: throughput,
            stored_latency_ms: 0.0,
            aborts_per_second: 0.0,
        }
    }

    /// A figure of it, with the least and the most; `None` if the paper does not have it.
    pub(crate) fn figure(&self, metric: Metric) -> Option<[f64; 3]> {
        let throughput = [self.throughput, self.min, self.max];
        match metric {
            Metric::Throughput => Some(throughput),
            Metric::ThroughputPerWorker => Some(throughput.map(|figure| figure / self.x)),
            Metric::StoredLatencyMs => Some([self.stored_latency_ms; 3]),
            Metric::AbortsPerSecond => Some([self.aborts_per_second; 3]),
            _ => None,
        }
        .filter(|[middle, ..]| *middle > 0.0)
    }
}

fn points_of(figure: &str, series: &str) -> Vec<PaperPoint> {
    let of_series = ROWS.iter().filter(|row| row.figure == figure && row.series == series);
    of_series
        .map(|row| PaperPoint {
            x: row.x,
            throughput: row.txn_per_s_median,
            min: row.txn_per_s_min,
            max: row.txn_per_s_max,
            stored_latency_ms: row.persist_latency_ms,
            aborts_per_second: row.aborts_per_s,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_points_of_a_curve_are_found_in_order() {
        let points = Paper::Curve { figure: "fig4", series: "Key-Value" }.points();
        assert_eq!((points.len(), points[0].x, points[0].throughput), (9, 1.0, 596_995.0));
        assert!(points.is_sorted_by(|a, b| a.x < b.x));
        assert!(points.iter().all(|point| point.min <= point.throughput && point.throughput <= point.max));
        let bar = Paper::PointOf { figure: "fig5-7", series: "Silo", x: 28.0 }.points();
        assert_eq!((bar.len(), bar[0].x, bar[0].throughput), (1, 0.0, 636_286.0));
    }

    #[test]
    fn a_point_has_latency_and_aborts_where_the_paper_has_them() {
        let first = |figure, series| Paper::Curve { figure, series }.points()[0];
        let (silo, memory) = (first("fig5-7", "Silo"), first("fig5-7", "MemSilo"));
        assert_eq!(silo.figure(Metric::StoredLatencyMs), Some([84.1; 3]));
        assert_eq!(silo.figure(Metric::ThroughputPerWorker), Some([28_635.0, 28_617.0, 28_798.0]));
        assert_eq!(memory.figure(Metric::StoredLatencyMs), None);
        assert_eq!(first("fig10", "MemSilo+NoSS").figure(Metric::AbortsPerSecond), Some([15_755.6; 3]));
        assert_eq!(PaperPoint::of_throughput(0.0, 5.0).figure(Metric::AbortsPerSecond), None);
        assert_eq!(silo.figure(Metric::RecoverySeconds), None);
    }
}
