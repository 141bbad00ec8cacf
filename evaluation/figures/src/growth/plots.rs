//! A plot for each measure: what was measured, and what `n log n` would allow from its first point on.

use super::description::{Curve, Measured, Work};
use super::fit::n_log_n;
use super::rows::{GrowthRow, spreads_of};
use crate::error::FiguresError;
use crate::plot::{Curve as DrawnCurve, CurvePoint, LineChart, Ticks};
use crate::results::Spread;

/// The plots of all measures that have figures, by the names of their files.
///
/// # Errors
/// [`FiguresError::Plot`].
pub(super) fn plots_of(rows: &[GrowthRow]) -> Result<Vec<(String, String)>, FiguresError> {
    let measured = Curve::all().iter().flat_map(Curve::measured);
    let drawn = measured.filter_map(|measured| {
        let spreads = spreads_of(rows, measured);
        (!spreads.is_empty()).then(|| Ok((file_name(measured), chart(measured, &spreads).to_svg()?)))
    });
    drawn.collect()
}

/// The name of the file of a measure's plot.
pub(super) fn file_name(measured: Measured) -> String {
    let at = measured.curve.measured().position(|other| std::ptr::eq(other.measure, measured.measure));
    format!("growth-{}-{}.svg", measured.curve.name, at.map_or(0, |at| at + 1))
}

fn chart(measured: Measured, spreads: &[(f64, Spread)]) -> LineChart {
    let metric = measured.measure.metric;
    let better = if metric.is_better_up() { "up" } else { "down" };
    let xs: Vec<f64> = spreads.iter().map(|&(x, _)| x).collect();
    let points = spreads.iter().map(|&(x, Spread { median: y, min, max, .. })| CurvePoint { x, y, min, max });
    let here = DrawnCurve {
        name: "measured".to_owned(),
        series: 0,
        is_paper: false,
        is_own: true,
        points: points.collect(),
    };
    let allowed = DrawnCurve {
        name: "n log n".to_owned(),
        series: 1,
        is_paper: true,
        is_own: false,
        points: allowed_points(measured, spreads),
    };
    LineChart {
        title: format!("{}: {} ({better} is better)", measured.curve.title, measured.measure.title),
        x_label: measured.curve.axis.to_owned(),
        y_label: metric.label(),
        ticks: if xs.contains(&0.0) { Ticks::At(xs) } else { Ticks::Doubling(xs) },
        curves: vec![here, allowed],
        shades: Vec::new(),
        shade_meaning: String::new(),
        has_markers: true,
    }
}

/// From the first point on, what would be measured if the cost grew like `n log n`.
fn allowed_points(measured: Measured, spreads: &[(f64, Spread)]) -> Vec<CurvePoint> {
    let Some(&(first, Spread { median, .. })) = spreads.first() else { return Vec::new() };
    let counted = |x: f64| x + measured.curve.counted_from;
    let growth = |x: f64| {
        let whole = n_log_n(counted(x)) / n_log_n(counted(first));
        if measured.measure.work == Work::Each { whole * counted(first) / counted(x) } else { whole }
    };
    let figure =
        |x: f64| if measured.measure.metric.is_better_up() { median / growth(x) } else { median * growth(x) };
    let point = |&(x, _): &(f64, Spread)| CurvePoint { x, y: figure(x), min: figure(x), max: figure(x) };
    spreads.iter().map(point).collect()
}
