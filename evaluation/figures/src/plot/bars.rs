//! Bars with error bars, one group for each thing that is compared.

mod sideways;

use plotters::prelude::{PathElement, Rectangle, Text};
use plotters::style::Color;

use super::axis::{Chart, TickedAxis, chart, draw_mesh, pixel};
use super::canvas::{
    Area, INK, LegendEntry, PAPER_GREY, SHADE, Sample, canvas, colour, font_above, message, text_width,
};
use super::number::{axis_end, short_number};
use super::pattern::{Fill, Pattern, PixelBox};
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
    /// Whether it is to stand out: the bars of the others are grey and hatched then.
    pub is_own: bool,
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

/// A bar with its place: from where to where, and its filling.
type Placed = (Bar, f64, f64, Fill);

/// Pixels of the width that upright bars do not have: margins, and the labels of the axis.
const BESIDE_BARS: i32 = 86;

/// The bars of a paper.
const PAPER: Fill = Fill { colour: PAPER_GREY, pattern: Pattern::Rising };
/// The bars beside our own.
const OTHERS: Fill = Fill { colour: PAPER_GREY, pattern: Pattern::Falling };

impl BarChart {
    /// The plot as SVG.
    ///
    /// # Errors
    /// [`FiguresError::Plot`].
    pub fn to_svg(&self) -> Result<String, FiguresError> {
        let entry = |text: &str, fill| LegendEntry { text: text.to_owned(), sample: Sample::Box(fill) };
        let mut legend = Vec::new();
        if self.has_paper() {
            legend.extend([entry("here", Fill::solid(colour(0))), entry("the paper", PAPER)]);
        }
        if self.groups.iter().any(|group| group.is_marked) {
            legend.push(entry(&self.mark_meaning, Fill::solid(SHADE)));
        }
        canvas(&self.title, &legend, |area| self.draw(area))
    }

    fn has_paper(&self) -> bool {
        self.groups.iter().any(|group| group.paper.is_some())
    }

    fn draw(&self, area: &Area) -> Result<(), String> {
        if !self.has_room_below(area) {
            return sideways::draw(self, area);
        }
        let bars = self.bars();
        let end = end_of(&bars);
        let middles = (0..self.groups.len()).map(|at| at as f64 + 0.5);
        let axis = TickedAxis { from: 0.0, to: self.groups.len() as f64, ticks: middles.collect() };
        let mut chart = chart(area, axis, end, 28)?;
        self.draw_marks(&mut chart, end)?;
        let label =
            |x: &f64| self.groups.get(*x as usize).map_or_else(String::new, |group| group.label.clone());
        draw_mesh(&mut chart, None, &self.y_label, &label)?;
        bars.iter().try_for_each(|bar| draw_bar(area, &mut chart, bar))
    }

    /// Whether the names of all groups fit below them.
    fn has_room_below(&self, area: &Area) -> bool {
        let room = (area.dim_in_pixel().0 as i32 - BESIDE_BARS) / self.groups.len().max(1) as i32;
        self.groups.iter().all(|group| text_width(&group.label, 12) < room)
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
            let here = group.here.map(|bar| (bar, left, left + width, self.fill_of(group)));
            let paper = group.paper.map(|bar| (bar, right, right + width, PAPER));
            [here, paper]
        };
        self.groups.iter().enumerate().flat_map(of_group).flatten().collect()
    }

    fn fill_of(&self, group: &BarGroup) -> Fill {
        let is_beside_own = !group.is_own && self.groups.iter().any(|group| group.is_own);
        if is_beside_own { OTHERS } else { Fill::solid(colour(0)) }
    }

    fn draw_marks(&self, chart: &mut Chart<'_, '_>, top: f64) -> Result<(), String> {
        let marked = self.groups.iter().enumerate().filter(|(_, group)| group.is_marked);
        let boxes =
            marked.map(|(at, _)| Rectangle::new([(at as f64, 0.0), ((at + 1) as f64, top)], SHADE.filled()));
        chart.draw_series(boxes).map(|_| ()).map_err(message)
    }
}

/// Where the axis of these bars ends.
fn end_of(bars: &[Placed]) -> f64 {
    axis_end(bars.iter().map(|(bar, ..)| bar.max).fold(0.0, f64::max) * 1.05)
}

fn draw_bar(
    area: &Area,
    chart: &mut Chart<'_, '_>,
    &(bar, left, right, fill): &Placed,
) -> Result<(), String> {
    let [foot, head] = [(left, 0.0), (right, bar.value)].map(|place| pixel(area, chart, place));
    PixelBox::of(foot, head).draw(area, fill)?;
    let middle = (left + right) / 2.0;
    if bar.max > bar.min {
        let spread = PathElement::new(vec![(middle, bar.min), (middle, bar.max)], INK.stroke_width(1));
        chart.draw_series([spread]).map_err(message)?;
    }
    let number = Text::new(short_number(bar.value), (middle, bar.max.max(bar.value)), font_above(11));
    chart.draw_series([number]).map(|_| ()).map_err(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(is_own: bool) -> String {
        let bar = Bar { value: 5.0, min: 5.0, max: 5.0 };
        let group = |label: &str, is_own| BarGroup {
            label: label.to_owned(),
            here: Some(bar),
            paper: None,
            is_marked: false,
            is_own,
        };
        let groups = vec![group("ours", is_own), group("another", false)];
        let chart = BarChart {
            title: "Throughput (up is better)".to_owned(),
            y_label: "tx/s".to_owned(),
            groups,
            mark_meaning: String::new(),
        };
        chart.to_svg().unwrap()
    }

    #[test]
    fn names_without_room_stand_beside_bars_that_lie() {
        let bar = Bar { value: 5.0, min: 4.0, max: 6.0 };
        let group = |at: usize| BarGroup {
            label: format!("a name that is long, {at}"),
            here: Some(bar),
            paper: Some(Bar { value: 2.5, ..bar }),
            is_marked: at == 11,
            is_own: false,
        };
        let mut chart = BarChart {
            title: "Throughput (up is better)".to_owned(),
            y_label: "transactions/s".to_owned(),
            groups: (0..2).map(group).collect(),
            mark_meaning: "beyond".to_owned(),
        };
        let upright = chart.to_svg().unwrap();
        assert!(upright.contains("rotate"), "the name of the axis stands beside upright bars");
        chart.groups = (0..12).map(group).collect();
        let lying = chart.to_svg().unwrap();
        assert!(!lying.contains("rotate") && lying.contains("transactions/s"), "{lying}");
        for at in 0..12 {
            assert!(lying.contains(&format!("long, {at}\n")), "{lying}");
        }
        assert_eq!(lying.matches("\n2.5\n").count(), 12, "each bar has its number: {lying}");
    }

    #[test]
    fn beside_our_own_bars_others_are_hatched() {
        let lines = |svg: &str| svg.matches("<polyline").count() + svg.matches("<line").count();
        let (alike, apart) = (chart(false), chart(true));
        assert!(lines(&apart) > lines(&alike) + 5, "{apart}");
        let blue = "#0072B2";
        assert_eq!([&alike, &apart].map(|svg| svg.matches(blue).count()), [2, 1], "{apart}");
    }
}
