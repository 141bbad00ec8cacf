//! Bars with error bars, one group for each thing that is compared.

use plotters::prelude::{PathElement, RGBColor, Rectangle, Text};
use plotters::style::Color;

use super::axis::{Chart, TickedAxis, chart, draw_mesh};
use super::canvas::{Area, INK, LegendEntry, PAPER_GREY, SHADE, Sample, canvas, colour, font_above, message};
use super::number::{axis_end, short_number};
use crate::error::FiguresError;

/// A plot of bars.
#[derive(Debug, Clone)]
pub struct BarChart {
    /// What it shows.
    pub title: String,
    /// What stands beside the vertical axis.
    pub y_label: String,
    /// From left to right.
    pub groups: Vec<BarGroup>,
    /// What it means that a group is marked.
    pub mark_meaning: String,
}

/// Bars that belong to one thing.
#[derive(Debug, Clone)]
pub struct BarGroup {
    /// Its name, below.
    pub label: String,
    /// What is measured here.
    pub here: Option<Bar>,
    /// What the paper measured.
    pub paper: Option<Bar>,
    /// Whether it stands on grey.
    pub is_marked: bool,
}

/// A bar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bar {
    /// How high it is.
    pub value: f64,
    /// The lower end of its error bar.
    pub min: f64,
    /// The upper one.
    pub max: f64,
}

/// A bar with its place: from where to where, and its colour.
type Placed = (Bar, f64, f64, RGBColor);

impl BarChart {
    /// The plot as SVG.
    ///
    /// # Errors
    /// [`FiguresError::Plot`].
    pub fn to_svg(&self) -> Result<String, FiguresError> {
        let entry = |text: &str, colour| LegendEntry { text: text.to_owned(), sample: Sample::Box(colour) };
        let mut legend = Vec::new();
        if self.has_paper() {
            legend.extend([entry("here", colour(0)), entry("the paper", PAPER_GREY)]);
        }
        if self.groups.iter().any(|group| group.is_marked) {
            legend.push(entry(&self.mark_meaning, SHADE));
        }
        canvas(&self.title, &legend, |area| self.draw(area))
    }

    fn has_paper(&self) -> bool {
        self.groups.iter().any(|group| group.paper.is_some())
    }

    fn draw(&self, area: &Area) -> Result<(), String> {
        let bars = self.bars();
        let end = axis_end(bars.iter().map(|(bar, ..)| bar.max).fold(0.0, f64::max) * 1.05);
        let middles = (0..self.groups.len()).map(|at| at as f64 + 0.5);
        let axis = TickedAxis { from: 0.0, to: self.groups.len() as f64, ticks: middles.collect() };
        let mut chart = chart(area, axis, end, 28)?;
        self.draw_marks(&mut chart, end)?;
        let label =
            |x: &f64| self.groups.get(*x as usize).map_or_else(String::new, |group| group.label.clone());
        draw_mesh(&mut chart, None, &self.y_label, &label)?;
        bars.iter().try_for_each(|bar| draw_bar(&mut chart, bar))
    }

    fn bars(&self) -> Vec<Placed> {
        let width = if self.has_paper() { 0.36 } else { 0.5 };
        let of_group = |(at, group): (usize, &BarGroup)| {
            let middle = at as f64 + 0.5;
            let (left, right) = if self.has_paper() {
                (middle - width - 0.02, middle + 0.02)
            } else {
                (middle - width / 2.0, middle)
            };
            let here = group.here.map(|bar| (bar, left, left + width, colour(0)));
            let paper = group.paper.map(|bar| (bar, right, right + width, PAPER_GREY));
            [here, paper]
        };
        self.groups.iter().enumerate().flat_map(of_group).flatten().collect()
    }

    fn draw_marks(&self, chart: &mut Chart<'_, '_>, top: f64) -> Result<(), String> {
        let marked = self.groups.iter().enumerate().filter(|(_, group)| group.is_marked);
        let boxes =
            marked.map(|(at, _)| Rectangle::new([(at as f64, 0.0), ((at + 1) as f64, top)], SHADE.filled()));
        chart.draw_series(boxes).map(|_| ()).map_err(message)
    }
}

fn draw_bar(chart: &mut Chart<'_, '_>, &(bar, left, right, colour): &Placed) -> Result<(), String> {
    let filled = Rectangle::new([(left, 0.0), (right, bar.value)], colour.filled());
    chart.draw_series([filled]).map_err(message)?;
    let middle = (left + right) / 2.0;
    if bar.max > bar.min {
        let spread = PathElement::new(vec![(middle, bar.min), (middle, bar.max)], INK.stroke_width(1));
        chart.draw_series([spread]).map_err(message)?;
    }
    let number = Text::new(short_number(bar.value), (middle, bar.max.max(bar.value)), font_above(11));
    chart.draw_series([number]).map(|_| ()).map_err(message)
}
