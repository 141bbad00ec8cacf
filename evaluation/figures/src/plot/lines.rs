//! Curves with error bars over an axis of numbers.

use plotters::prelude::{DashedLineSeries, LineSeries, PathElement, RGBColor, Rectangle};
use plotters::style::Color;

use super::axis::{Chart, TickedAxis, chart, draw_mesh, pixel};
use super::canvas::{
    Area, LegendEntry, LineStyle, MARKERS, SHADE, Sample, canvas, colour, draw_marker, message,
};
use super::number::{axis_end, even_ticks, short_number};
use super::pattern::Fill;
use crate::error::FiguresError;

/// A plot of curves.
#[derive(Debug, Clone)]
pub struct LineChart {
    /// What it shows.
    pub title: String,
    /// What stands below the horizontal axis.
    pub x_label: String,
    /// What stands beside the vertical axis.
    pub y_label: String,
    /// How the horizontal axis is divided.
    pub ticks: Ticks,
    /// What is drawn.
    pub curves: Vec<Curve>,
    /// Parts of the horizontal axis that are grey.
    pub shades: Vec<Shade>,
    /// What a grey part means.
    pub shade_meaning: String,
    /// Whether points have markers and error bars.
    pub has_markers: bool,
}

/// How a horizontal axis is divided.
#[derive(Debug, Clone, PartialEq)]
pub enum Ticks {
    /// At these numbers.
    At(Vec<f64>),
    /// At these numbers, each doubling taking as much room.
    Doubling(Vec<f64>),
    /// As it comes, from 0.
    Even,
}

/// A curve.
#[derive(Debug, Clone)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// Which colour and marker it has.
    pub series: usize,
    /// Whether it is a paper's: dashed, with hollow markers.
    pub is_paper: bool,
    /// Whether it is to stand out: a thick line.
    pub is_own: bool,
    /// Its points by ascending `x`.
    pub points: Vec<CurvePoint>,
}

/// A point with its error bar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    /// Where it lies.
    pub x: f64,
    /// How high.
    pub y: f64,
    /// The lower end of its error bar.
    pub min: f64,
    /// The upper one.
    pub max: f64,
}

/// A grey part of the horizontal axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shade {
    /// Where it begins.
    pub from: f64,
    /// Where it ends; the end of the axis if that comes before.
    pub to: f64,
}

/// Of the series in order, where they have no markers.
const DASHES: [Option<(i32, i32)>; 4] = [None, Some((9, 3)), Some((3, 3)), Some((14, 6))];

impl LineChart {
    /// The plot as SVG.
    ///
    /// # Errors
    /// [`FiguresError::Plot`].
    pub fn to_svg(&self) -> Result<String, FiguresError> {
        canvas(&self.title, &self.legend(), |area| self.draw(area))
    }

    fn legend(&self) -> Vec<LegendEntry> {
        let line = |curve: &Curve| LegendEntry {
            text: curve.name.clone(),
            sample: Sample::Line {
                style: self.style(curve),
                marker: self.has_markers.then_some(curve.series),
            },
        };
        let mut entries: Vec<_> = self.curves.iter().map(line).collect();
        if !self.shades.is_empty() {
            entries.push(LegendEntry {
                text: self.shade_meaning.clone(),
                sample: Sample::Box(Fill::solid(SHADE)),
            });
        }
        entries
    }

    fn draw(&self, area: &Area) -> Result<(), String> {
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        let most = points().map(|point| point.max).fold(0.0, f64::max);
        let axis = self.horizontal(points().map(|point| point.x));
        let mut chart = chart(area, axis, axis_end(most), 42)?;
        self.draw_shades(&mut chart, axis_end(most))?;
        let is_doubling = matches!(self.ticks, Ticks::Doubling(_));
        let x_number =
            |x: &f64| short_number(if is_doubling { (10.0 * x.exp2()).round() / 10.0 } else { *x });
        draw_mesh(&mut chart, Some(&self.x_label), &self.y_label, &x_number)?;
        self.curves.iter().try_for_each(|curve| self.draw_curve(area, &mut chart, curve))
    }

    /// Without markers dashes tell the series apart; where there are more series than markers, dashes and hollow markers do.
    fn style(&self, curve: &Curve) -> LineStyle {
        let dash = match (curve.is_paper, self.has_markers) {
            (true, _) => Some((5, 4)),
            (false, true) => DASHES[curve.series / MARKERS % DASHES.len()],
            (false, false) => DASHES[curve.series % DASHES.len()],
        };
        let width = match (curve.is_paper, curve.is_own) {
            (true, _) => 1,
            (false, false) => 2,
            (false, true) => 4,
        };
        let is_filled = !curve.is_paper && curve.series < MARKERS;
        LineStyle { colour: colour(curve.series), width, dash, is_filled }
    }

    fn horizontal(&self, xs: impl Iterator<Item = f64>) -> TickedAxis {
        let most = xs.fold(0.0, f64::max);
        match &self.ticks {
            Ticks::At(ticks) => {
                let end = ticks.iter().copied().fold(most, f64::max);
                TickedAxis { from: 0.0, to: end.max(f64::MIN_POSITIVE) * 1.05, ticks: ticks.clone() }
            }
            Ticks::Doubling(ticks) => {
                let end = ticks.iter().copied().fold(most, f64::max).max(2.0);
                let begin = ticks.iter().copied().fold(end / 2.0, f64::min);
                let ticks = ticks.iter().map(|tick| tick.log2()).collect();
                TickedAxis { from: begin.log2() - 0.15, to: end.log2() + 0.15, ticks }
            }
            Ticks::Even => {
                let ticks = even_ticks(most * 1.01);
                let to = most.max(f64::MIN_POSITIVE) * 1.02;
                // Room for the markers of points at 0.
                TickedAxis { from: if self.has_markers { -0.02 * to } else { 0.0 }, to, ticks }
            }
        }
    }

    fn placed(&self, x: f64) -> f64 {
        if matches!(self.ticks, Ticks::Doubling(_)) { x.log2() } else { x }
    }

    fn draw_shades(&self, chart: &mut Chart<'_, '_>, top: f64) -> Result<(), String> {
        let ends = chart.x_range();
        let boxes = self.shades.iter().map(|shade| {
            let (left, right) =
                (self.placed(shade.from).max(ends.start), self.placed(shade.to).min(ends.end));
            Rectangle::new([(left, 0.0), (right.max(left), top)], SHADE.filled())
        });
        chart.draw_series(boxes).map(|_| ()).map_err(message)
    }

    fn draw_curve(&self, area: &Area, chart: &mut Chart<'_, '_>, curve: &Curve) -> Result<(), String> {
        let LineStyle { colour, width, dash, is_filled } = self.style(curve);
        let points: Vec<_> = curve.points.iter().map(|point| (self.placed(point.x), point.y)).collect();
        let stroke = colour.stroke_width(width);
        match dash {
            Some((dash, gap)) => chart.draw_series(DashedLineSeries::new(points, dash, gap, stroke)),
            None => chart.draw_series(LineSeries::new(points, stroke)),
        }
        .map_err(message)?;
        if !self.has_markers {
            return Ok(());
        }
        let pixel = |chart: &Chart<'_, '_>, x, y| pixel(area, chart, (self.placed(x), y));
        for point in &curve.points {
            let [least, most] = [point.min, point.max].map(|y| pixel(chart, point.x, y));
            draw_error_bar(area, least, most, curve.series, colour)?;
            draw_marker(area, pixel(chart, point.x, point.y), curve.series, colour, is_filled)?;
        }
        Ok(())
    }
}

/// A vertical line from the least to the most, a little beside the point, so that those of different curves do not cover each other.
fn draw_error_bar(
    area: &Area,
    least: (i32, i32),
    most: (i32, i32),
    series: usize,
    colour: RGBColor,
) -> Result<(), String> {
    if least.1 == most.1 {
        return Ok(());
    }
    let aside = [0, 3, -3, 6][series % 4];
    let ends = vec![(least.0 + aside, least.1), (most.0 + aside, most.1)];
    area.draw(&PathElement::new(ends, colour.stroke_width(1))).map_err(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_differ_without_their_colours() {
        let point = |x| CurvePoint { x, y: x, min: x, max: x };
        let curve = |series, is_own| Curve {
            name: format!("series {series}"),
            series,
            is_paper: false,
            is_own,
            points: vec![point(1.0), point(8.0)],
        };
        let mut chart = LineChart {
            title: "Throughput".to_owned(),
            x_label: "workers".to_owned(),
            y_label: "tx/s".to_owned(),
            ticks: Ticks::Doubling(vec![1.0, 8.0]),
            curves: (0..3).map(|series| curve(series, series == 0)).collect(),
            shades: Vec::new(),
            shade_meaning: String::new(),
            has_markers: false,
        };
        let styles: Vec<_> = chart.curves.iter().map(|curve| chart.style(curve)).collect();
        assert!(styles[0].width > styles[1].width);
        assert!(styles[0].dash != styles[1].dash && styles[1].dash != styles[2].dash);
        chart.has_markers = true;
        assert!(chart.curves.iter().all(|curve| chart.style(curve).dash.is_none()));
        assert!(chart.to_svg().unwrap().contains("series 2"));
        let seventh = chart.style(&curve(MARKERS, false));
        assert!(seventh.dash.is_some() && !seventh.is_filled, "it has the marker of the first");
    }
}
