//! What all plots have: a title, room for a legend, fonts and colours.

use plotters::coord::Shift;
use plotters::prelude::{
    Circle, Cross, DrawingArea, IntoDrawingArea, PathElement, Polygon, RGBColor, Rectangle, SVGBackend, Text,
    WHITE,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, ShapeStyle, TextStyle};

use super::pattern::{Fill, PixelBox};
use crate::error::FiguresError;

/// A part of a drawing.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Pixels of a plot.
pub(super) const WIDTH: u32 = 680;
pub(super) const HEIGHT: u32 = 340;
const TITLE_HEIGHT: i32 = 30;
const LEGEND_WIDTH: i32 = 212;
const LEGEND_LINE: i32 = 20;
const LEGEND_TEXT: i32 = 38;
pub(super) const INK: RGBColor = RGBColor(34, 34, 34);
pub(super) const PAPER_GREY: RGBColor = RGBColor(150, 150, 150);
pub(super) const SHADE: RGBColor = RGBColor(232, 232, 232);
pub(super) const GRID: RGBColor = RGBColor(225, 225, 225);

/// Pixels from a line of text to the next, and those that a title has at the most.
const TEXT_LINE: i32 = 13;
const TITLE_WIDTH: i32 = WIDTH as i32 - 24;

/// The corners of markers, the first one twice.
const TRIANGLE: [(i32, i32); 4] = [(0, -5), (5, 4), (-5, 4), (0, -5)];
const DIAMOND: [(i32, i32); 5] = [(0, -6), (5, 0), (0, 6), (-5, 0), (0, -6)];
const FALLING_TRIANGLE: [(i32, i32); 4] = [(0, 5), (5, -4), (-5, -4), (0, 5)];
/// So many markers differ.
pub(super) const MARKERS: usize = 7;

const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];

/// The colour of the series of this number.
pub(super) fn colour(series: usize) -> RGBColor {
    COLOURS[series % COLOURS.len()]
}

/// One line of a legend.
pub(super) struct LegendEntry {
    pub(super) text: String,
    pub(super) sample: Sample,
}

/// What stands before it.
pub(super) enum Sample {
    /// A line with the marker of this series, if it has markers.
    Line { style: LineStyle, marker: Option<usize> },
    /// A filled box.
    Box(Fill),
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineStyle {
    pub(super) colour: RGBColor,
    pub(super) width: u32,
    /// Pixels of a dash and of the gap behind it; none for a line without gaps.
    pub(super) dash: Option<(i32, i32)>,
    /// Whether its markers are filled.
    pub(super) is_filled: bool,
}

/// Draws on a new canvas: a title, the legend at the right if there is one, and what `draw` puts into the rest.
pub(super) fn canvas(
    title: &str,
    legend: &[LegendEntry],
    draw: impl FnOnce(&Area) -> Result<(), String>,
) -> Result<String, FiguresError> {
    let mut svg = String::new();
    draw_all(&mut svg, title, legend, draw).map_err(FiguresError::Plot)?;
    Ok(svg)
}

fn draw_all(
    svg: &mut String,
    title: &str,
    legend: &[LegendEntry],
    draw: impl FnOnce(&Area) -> Result<(), String>,
) -> Result<(), String> {
    let root = SVGBackend::with_string(svg, (WIDTH, HEIGHT)).into_drawing_area();
    root.fill(&WHITE).map_err(message)?;
    draw_title(&root, title)?;
    let (_, below) = root.split_vertically(TITLE_HEIGHT);
    if legend.is_empty() {
        draw(&below)?;
    } else {
        let (plot, beside) = below.split_horizontally(WIDTH as i32 - LEGEND_WIDTH);
        draw(&plot)?;
        draw_legend(&beside, legend)?;
    }
    root.present().map_err(message)
}

/// Writes a title: a longer one smaller, a very long one in two lines.
fn draw_title(area: &Area, title: &str) -> Result<(), String> {
    let size = if text_width(title, 15) > TITLE_WIDTH { 13 } else { 15 };
    let lines = wrapped(title, 13, TITLE_WIDTH);
    let top = if lines.len() > 1 { 3 } else { 10 };
    draw_lines(area, &lines, (12, top), size)
}

fn draw_lines(area: &Area, lines: &[String], (left, top): (i32, i32), size: u32) -> Result<(), String> {
    let line = |(at, line): (i32, &String)| Text::new(line.clone(), (left, top + at * TEXT_LINE), font(size));
    (0..).zip(lines).try_for_each(|numbered| area.draw(&line(numbered))).map_err(message)
}

fn draw_legend(area: &Area, legend: &[LegendEntry]) -> Result<(), String> {
    let mut middle = 16;
    for entry in legend {
        let lines = wrapped(&entry.text, 12, LEGEND_WIDTH - LEGEND_TEXT);
        draw_entry(area, middle, entry, &lines)?;
        middle += LEGEND_LINE + (lines.len() as i32 - 1) * TEXT_LINE;
    }
    Ok(())
}

/// About so many pixels a text takes in a font of [`font`] of this size, in wide fonts too.
pub(super) fn text_width(text: &str, size: u32) -> i32 {
    (text.chars().count() * size as usize / 2) as i32
}

/// A text in lines that are no wider than so many pixels, unless one word is.
fn wrapped(text: &str, size: u32, width: i32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if text_width(line, size) + text_width(word, size) + size as i32 / 2 <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Plots side by side, as one drawing.
pub fn beside(plots: &[String]) -> String {
    let width = WIDTH as usize * plots.len();
    let placed = |(at, plot): (usize, &String)| {
        plot.replacen("<svg ", &format!("<svg x=\"{}\" y=\"0\" ", at * WIDTH as usize), 1)
    };
    let plots: String = plots.iter().enumerate().map(placed).collect();
    format!(
        "<svg width=\"{width}\" height=\"{HEIGHT}\" viewBox=\"0 0 {width} {HEIGHT}\" xmlns=\"http://www.w3.org/2000/svg\">\n{plots}</svg>\n"
    )
}

fn draw_entry(area: &Area, middle: i32, entry: &LegendEntry, lines: &[String]) -> Result<(), String> {
    match entry.sample {
        Sample::Box(fill) => PixelBox::of((6, middle - 6), (30, middle + 6)).draw(area, fill)?,
        Sample::Line { style, marker } => {
            let (dash, gap) = style.dash.unwrap_or((24, 24));
            for from in (6..30).step_by((dash + gap) as usize) {
                let piece = vec![(from, middle), ((from + dash).min(30), middle)];
                area.draw(&PathElement::new(piece, style.colour.stroke_width(style.width)))
                    .map_err(message)?;
            }
            if let Some(marker) = marker {
                draw_marker(area, (18, middle), marker, style.colour, style.is_filled)?;
            }
        }
    }
    draw_lines(area, lines, (LEGEND_TEXT, middle - 6), 12)
}

/// Draws the marker of the series of this number.
pub(super) fn draw_marker(
    area: &Area,
    at: (i32, i32),
    series: usize,
    colour: RGBColor,
    is_filled: bool,
) -> Result<(), String> {
    let style: ShapeStyle = if is_filled { colour.filled() } else { colour.stroke_width(1) };
    let corners =
        |points: &[(i32, i32)]| points.iter().map(|(x, y)| (at.0 + x, at.1 + y)).collect::<Vec<_>>();
    let polygon = |shape: &[(i32, i32)]| {
        if is_filled {
            area.draw(&Polygon::new(corners(shape), style))
        } else {
            area.draw(&PathElement::new(corners(shape), style))
        }
    };
    match series % MARKERS {
        0 => area.draw(&Circle::new(at, 4, style)),
        1 => area.draw(&Rectangle::new([(at.0 - 4, at.1 - 4), (at.0 + 4, at.1 + 4)], style)),
        2 => polygon(&TRIANGLE),
        3 => area.draw(&Cross::new(at, 4, colour.stroke_width(2))),
        4 => polygon(&DIAMOND),
        5 => polygon(&FALLING_TRIANGLE),
        _ => [[(0, -5), (0, 5)], [(-5, 0), (5, 0)]]
            .iter()
            .try_for_each(|line| area.draw(&PathElement::new(corners(line), colour.stroke_width(2)))),
    }
    .map_err(message)
}

/// The font of all text, in pixels.
pub(super) fn font(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK)
}

/// The same, for text that stands centred above a point.
pub(super) fn font_above(size: u32) -> TextStyle<'static> {
    font(size).pos(Pos::new(HPos::Center, VPos::Bottom))
}

/// An error of the drawing library in words.
pub(super) fn message(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_broken_between_words() {
        let width = text_width("twenty characters at", 12);
        assert_eq!(wrapped("twenty characters at", 12, width), ["twenty characters at"]);
        let text = "twenty characters at the most in each line, and avery-long-word-that-is-longer";
        let lines = wrapped(text, 12, width);
        assert_eq!(lines.join(" "), text);
        assert!(lines.iter().filter(|line| line.contains(' ')).all(|line| text_width(line, 12) <= width));
        assert_eq!(lines.len(), 4, "{lines:?}");
    }

    #[test]
    fn a_long_title_has_two_lines_and_none_is_cut() {
        let title = format!("{}end", "some words ".repeat(11));
        let svg = canvas(&title, &[], |_| Ok(())).unwrap();
        assert_eq!(svg.matches("<text").count(), 2, "{svg}");
        assert!(svg.contains("end\n"), "{svg}");
    }
}
