//! Bars that lie, each with its name at the left, where names do not fit below upright ones.

use plotters::prelude::{PathElement, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, RGBColor};

use super::super::canvas::{Area, GRID, INK, SHADE, font, message, text_width};
use super::super::number::{even_ticks, short_number};
use super::super::pattern::PixelBox;
use super::{BarChart, Placed, end_of};

/// Pixels around the bars: above, for the axis below, and for numbers at the right.
const ABOVE: i32 = 6;
const BELOW: i32 = 46;
const RIGHT: i32 = 54;

/// Where the bars lie, in pixels of their area.
struct Layout {
    left: i32,
    right: i32,
    bottom: i32,
    /// The end of the axis, in what it shows.
    end: f64,
    /// From the middle of a group to that of the next.
    step: f64,
}

pub(super) fn draw(chart: &BarChart, area: &Area) -> Result<(), String> {
    let bars = chart.bars();
    let (width, height) = area.dim_in_pixel();
    let names = chart.groups.iter().map(|group| text_width(&group.label, 12)).max().unwrap_or(0);
    let bottom = height as i32 - BELOW;
    let layout = Layout {
        left: (names + 20).min(width as i32 / 2),
        right: width as i32 - RIGHT,
        bottom,
        end: end_of(&bars),
        step: f64::from(bottom - ABOVE) / chart.groups.len().max(1) as f64,
    };
    layout.draw_groups(chart, area)?;
    layout.draw_axis(&chart.y_label, area)?;
    bars.iter().try_for_each(|bar| layout.draw_bar(bar, area))
}

impl Layout {
    fn x(&self, value: f64) -> i32 {
        self.left + (value / self.end * f64::from(self.right - self.left)).round() as i32
    }

    fn y(&self, place: f64) -> i32 {
        ABOVE + (place * self.step).round() as i32
    }

    /// The names, and grey where a group is marked.
    fn draw_groups(&self, chart: &BarChart, area: &Area) -> Result<(), String> {
        let style = font(12).pos(Pos::new(HPos::Right, VPos::Center));
        for (at, group) in chart.groups.iter().enumerate() {
            let [top, middle, bottom] = [0.0, 0.5, 1.0].map(|part| self.y(at as f64 + part));
            if group.is_marked {
                let corners = [(self.left, top), (self.right, bottom)];
                area.draw(&Rectangle::new(corners, SHADE.filled())).map_err(message)?;
            }
            let name = Text::new(group.label.clone(), (self.left - 8, middle), style.clone());
            area.draw(&name).map_err(message)?;
        }
        Ok(())
    }

    /// The axis below with its name, and a line of the grid at each of its numbers.
    fn draw_axis(&self, name: &str, area: &Area) -> Result<(), String> {
        let style = font(12).pos(Pos::new(HPos::Center, VPos::Top));
        for tick in even_ticks(self.end) {
            let x = self.x(tick);
            draw_line(area, [(x, ABOVE), (x, self.bottom)], GRID)?;
            area.draw(&Text::new(short_number(tick), (x, self.bottom + 6), style.clone()))
                .map_err(message)?;
        }
        draw_line(area, [(self.left, ABOVE), (self.left, self.bottom)], INK)?;
        draw_line(area, [(self.left, self.bottom), (self.right, self.bottom)], INK)?;
        let middle = i32::midpoint(self.left, self.right);
        area.draw(&Text::new(name.to_owned(), (middle, self.bottom + 26), style)).map_err(message)
    }

    fn draw_bar(&self, &(bar, from, to, fill): &Placed, area: &Area) -> Result<(), String> {
        let [top, middle, bottom] = [from, f64::midpoint(from, to), to].map(|place| self.y(place));
        PixelBox::of((self.left, top), (self.x(bar.value), bottom)).draw(area, fill)?;
        if bar.max > bar.min {
            draw_line(area, [(self.x(bar.min), middle), (self.x(bar.max), middle)], INK)?;
        }
        let style = font(11).pos(Pos::new(HPos::Left, VPos::Center));
        let place = (self.x(bar.max.max(bar.value)) + 4, middle);
        area.draw(&Text::new(short_number(bar.value), place, style)).map_err(message)
    }
}

fn draw_line(area: &Area, ends: [(i32, i32); 2], colour: RGBColor) -> Result<(), String> {
    area.draw(&PathElement::new(ends.to_vec(), colour.stroke_width(1))).map_err(message)
}
