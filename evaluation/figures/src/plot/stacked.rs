//! Bars that are made of parts, one on the other.

use plotters::prelude::{Rectangle, Text, WHITE};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, TextStyle};

use super::axis::{Chart, TickedAxis, chart, draw_mesh, pixel};
use super::canvas::{Area, INK, LegendEntry, SHADE, Sample, canvas, colour, message};
use super::number::short_number;
use super::pattern::{Fill, Pattern, PixelBox};
use crate::error::FiguresError;

/// A plot of bars of the same height, in percent.
#[derive(Debug, Clone)]
pub struct StackedChart {
    /// What it shows.
    pub title: String,
    /// What stands below the bars.
    pub x_label: String,
    /// What stands beside the vertical axis.
    pub y_label: String,
    /// What the parts of each bar are, from below.
    pub parts: Vec<String>,
    /// From left to right.
    pub bars: Vec<StackedBar>,
    /// What it means that a bar is marked.
    pub mark_meaning: String,
}

/// A bar.
#[derive(Debug, Clone)]
pub struct StackedBar {
    /// Its name, below.
    pub label: String,
    /// Percent of each part, from below.
    pub percents: Vec<f64>,
    /// Whether it stands on grey.
    pub is_marked: bool,
}

/// How wide a bar is, of the room that it has.
const WIDTH: f64 = 0.6;

/// A part so high has room for its number.
const NUMBERED_PERCENT: f64 = 4.0;

impl StackedChart {
    /// The plot as SVG.
    ///
    /// # Errors
    /// [`FiguresError::Plot`].
    pub fn to_svg(&self) -> Result<String, FiguresError> {
        let entry = |text: &str, fill| LegendEntry { text: text.to_owned(), sample: Sample::Box(fill) };
        // From above, as the parts lie.
        let parts = self.parts.iter().enumerate().rev().map(|(at, part)| entry(part, fill_of(at)));
        let mut legend: Vec<_> = parts.collect();
        if self.bars.iter().any(|bar| bar.is_marked) {
            legend.push(entry(&self.mark_meaning, Fill::solid(SHADE)));
        }
        canvas(&self.title, &legend, |area| self.draw(area))
    }

    fn draw(&self, area: &Area) -> Result<(), String> {
        let middles = (0..self.bars.len()).map(|at| at as f64 + 0.5);
        let axis = TickedAxis { from: 0.0, to: self.bars.len() as f64, ticks: middles.collect() };
        let mut chart = chart(area, axis, 100.0, 44)?;
        for (at, _) in self.bars.iter().enumerate().filter(|(_, bar)| bar.is_marked) {
            let (left, right) = (at as f64, (at + 1) as f64);
            let shade = Rectangle::new([(left, 0.0), (right, 100.0)], SHADE.filled());
            chart.draw_series([shade]).map_err(message)?;
        }
        let label = |x: &f64| self.bars.get(*x as usize).map_or_else(String::new, |bar| bar.label.clone());
        draw_mesh(&mut chart, Some(&self.x_label), &self.y_label, &label)?;
        self.bars.iter().enumerate().try_for_each(|(at, bar)| draw_bar(area, &chart, at as f64 + 0.5, bar))
    }
}

/// The filling of the part of this number.
fn fill_of(part: usize) -> Fill {
    Fill { colour: colour(part), pattern: Pattern::of(part) }
}

fn draw_bar(area: &Area, chart: &Chart<'_, '_>, middle: f64, bar: &StackedBar) -> Result<(), String> {
    let mut below = 0.0;
    for (part, &percent) in bar.percents.iter().enumerate() {
        let corners = [(middle - WIDTH / 2.0, below), (middle + WIDTH / 2.0, below + percent)];
        let [foot, head] = corners.map(|place| pixel(area, chart, place));
        PixelBox::of(foot, head).draw(area, fill_of(part))?;
        if percent >= NUMBERED_PERCENT {
            draw_number(area, &short_number(percent), ((foot.0 + head.0) / 2, (foot.1 + head.1) / 2))?;
        }
        below += percent;
    }
    Ok(())
}

/// Writes a number on white, so that the pattern does not hide it.
fn draw_number(area: &Area, number: &str, (x, y): (i32, i32)) -> Result<(), String> {
    let half = 4 * number.len() as i32;
    let ground = Rectangle::new([(x - half, y - 6), (x + half, y + 6)], WHITE.filled());
    area.draw(&ground).map_err(message)?;
    area.draw(&Text::new(number.to_owned(), (x, y), number_font())).map_err(message)
}

fn number_font() -> TextStyle<'static> {
    ("sans-serif", 11).into_font().color(&INK).pos(Pos::new(HPos::Center, VPos::Center))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_on_each_other_and_the_legend_names_them_from_above() {
        let bar = |label: &str, is_marked| StackedBar {
            label: label.to_owned(),
            percents: vec![60.0, 38.5, 1.5],
            is_marked,
        };
        let chart = StackedChart {
            title: "Shares".to_owned(),
            x_label: "workers".to_owned(),
            y_label: "%".to_owned(),
            parts: ["lower", "second", "upper"].map(str::to_owned).to_vec(),
            bars: vec![bar("1", false), bar("64", true)],
            mark_meaning: "beyond".to_owned(),
        };
        let svg = chart.to_svg().unwrap();
        let place = |text: &str| svg.find(text).unwrap_or_else(|| panic!("{text}: {svg}"));
        assert!(place("upper") < place("second") && place("second") < place("lower"));
        assert!(svg.contains("beyond") && svg.contains("38.5") && svg.contains("workers"));
        assert!(!svg.contains("\n1.5\n"), "a part without room has no number");
    }
}
