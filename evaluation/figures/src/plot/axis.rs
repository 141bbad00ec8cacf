//! Axes: a horizontal one that is divided where its caller says, and a vertical one of amounts from 0.

use std::ops::Range;

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::SVGBackend;
use plotters::style::Color;

use super::canvas::{Area, GRID, INK, font, message};
use super::number::short_number;

/// The horizontal axis: from where to where, and the places of its labels.
pub(super) struct TickedAxis {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) ticks: Vec<f64>,
}

/// An area with both axes.
pub(super) type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<TickedAxis, RangedCoordf64>>;

/// Puts axes on an area; the vertical one ends at `top`. Labels below take so many pixels.
pub(super) fn chart<'a, 'b>(
    area: &'a Area<'b>,
    axis: TickedAxis,
    top: f64,
    labels_below: u32,
) -> Result<Chart<'a, 'b>, String> {
    ChartBuilder::on(area)
        .margin(10)
        .x_label_area_size(labels_below)
        .y_label_area_size(66)
        .build_cartesian_2d(axis, 0.0..top)
        .map_err(message)
}

/// Draws the axes and the lines of the grid. `x_text` makes the labels of ticks; below them stands `x_label`, if there is one.
pub(super) fn draw_mesh(
    chart: &mut Chart<'_, '_>,
    x_label: Option<&str>,
    y_label: &str,
    x_text: &dyn Fn(&f64) -> String,
) -> Result<(), String> {
    let mut mesh = chart.configure_mesh();
    mesh.disable_x_mesh()
        .bold_line_style(GRID)
        .light_line_style(GRID.mix(0.0))
        .axis_style(INK)
        .label_style(font(12))
        .axis_desc_style(font(13))
        .y_desc(y_label)
        .y_labels(6)
        .x_label_formatter(x_text)
        .y_label_formatter(&|y| short_number(*y));
    if let Some(label) = x_label {
        mesh.x_desc(label);
    }
    mesh.draw().map_err(message)
}

/// Where a place of the chart lies, in pixels of its area.
pub(super) fn pixel(area: &Area, chart: &Chart<'_, '_>, place: (f64, f64)) -> (i32, i32) {
    let (left, top) = area.get_base_pixel();
    let (x, y) = chart.backend_coord(&place);
    (x - left, y - top)
}

impl Ranged for TickedAxis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = (value - self.from) / (self.to - self.from);
        limit.0 + (share * f64::from(limit.1 - limit.0)).round() as i32
    }

    // The hint says how many labels have room: callers keep their ticks few.
    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.from..self.to
    }
}
