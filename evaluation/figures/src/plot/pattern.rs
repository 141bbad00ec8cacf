//! What areas are filled with: a colour and a pattern, so that they can be told apart in black and white too.

use plotters::prelude::{Circle, PathElement, RGBColor, Rectangle, WHITE};
use plotters::style::Color;

use super::canvas::{Area, INK, message};

/// White lines or dots on a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pattern {
    Solid,
    Rising,
    Falling,
    Crossed,
    Level,
    Upright,
    Dotted,
}

/// How an area is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fill {
    pub(super) colour: RGBColor,
    pub(super) pattern: Pattern,
}

/// A rectangle in pixels of an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PixelBox {
    pub(super) left: i32,
    pub(super) top: i32,
    pub(super) right: i32,
    pub(super) bottom: i32,
}

/// Pixels between two lines.
const STEP: usize = 7;

const PATTERNS: [Pattern; 7] = [
    Pattern::Solid,
    Pattern::Rising,
    Pattern::Falling,
    Pattern::Crossed,
    Pattern::Level,
    Pattern::Upright,
    Pattern::Dotted,
];

impl Pattern {
    /// The pattern of the part of this number.
    pub(super) fn of(part: usize) -> Self {
        PATTERNS[part % PATTERNS.len()]
    }
}

impl Fill {
    pub(super) fn solid(colour: RGBColor) -> Self {
        Self { colour, pattern: Pattern::Solid }
    }
}

impl PixelBox {
    /// With these two corners, in any order.
    pub(super) fn of(a: (i32, i32), b: (i32, i32)) -> Self {
        Self { left: a.0.min(b.0), top: a.1.min(b.1), right: a.0.max(b.0), bottom: a.1.max(b.1) }
    }

    /// Fills it, with a thin outline unless it is solid.
    pub(super) fn draw(self, area: &Area, fill: Fill) -> Result<(), String> {
        let Self { left, top, right, bottom } = self;
        let corners = [(left, top), (right, bottom)];
        area.draw(&Rectangle::new(corners, fill.colour.filled())).map_err(message)?;
        if fill.pattern == Pattern::Solid {
            return Ok(());
        }
        for line in self.lines(fill.pattern) {
            area.draw(&PathElement::new(line.to_vec(), WHITE.stroke_width(2))).map_err(message)?;
        }
        if fill.pattern == Pattern::Dotted {
            self.draw_dots(area)?;
        }
        area.draw(&Rectangle::new(corners, INK.stroke_width(1))).map_err(message)
    }

    /// The lines of a pattern, within the box.
    fn lines(self, pattern: Pattern) -> Vec<[(i32, i32); 2]> {
        let Self { left, top, right, bottom } = self;
        match pattern {
            Pattern::Solid | Pattern::Dotted => Vec::new(),
            Pattern::Rising => self.diagonals(|x, down| (x, bottom - down)),
            Pattern::Falling => self.diagonals(|x, down| (x, top + down)),
            Pattern::Crossed => [self.lines(Pattern::Rising), self.lines(Pattern::Falling)].concat(),
            Pattern::Level => (top..bottom).step_by(STEP).skip(1).map(|y| [(left, y), (right, y)]).collect(),
            Pattern::Upright => {
                (left..right).step_by(STEP).skip(1).map(|x| [(x, top), (x, bottom)]).collect()
            }
        }
    }

    /// Lines that go one pixel aside for each pixel down or up; `at` places a point by its `x` and how far it is from where they begin.
    fn diagonals(self, at: impl Fn(i32, i32) -> (i32, i32)) -> Vec<[(i32, i32); 2]> {
        let (width, height) = (self.right - self.left, self.bottom - self.top);
        let line = |aside: i32| {
            let (from, to) = ((-aside).max(0), height.min(width - aside));
            (to > from).then(|| [from, to].map(|far| at(self.left + aside + far, far)))
        };
        (-height..width).step_by(STEP).filter_map(line).collect()
    }

    fn draw_dots(self, area: &Area) -> Result<(), String> {
        let Self { left, top, right, bottom } = self;
        for y in (top..bottom).step_by(STEP).skip(1) {
            for x in (left..right).step_by(STEP).skip(1) {
                area.draw(&Circle::new((x, y), 1, WHITE.filled())).map_err(message)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_patterns_stay_within_the_box() {
        for (width, height) in [(1, 1), (24, 12), (5, 200), (300, 3)] {
            let of = PixelBox::of((10 + width, 20), (10, 20 + height));
            for pattern in PATTERNS {
                for (x, y) in of.lines(pattern).into_iter().flatten() {
                    assert!(
                        (of.left..=of.right).contains(&x) && (of.top..=of.bottom).contains(&y),
                        "{pattern:?}"
                    );
                }
            }
        }
        let of = PixelBox::of((0, 0), (24, 12));
        let counts = PATTERNS.map(|pattern| of.lines(pattern).len());
        assert!(counts[1] > 2 && counts[1] == counts[2] && counts[3] == 2 * counts[1], "{counts:?}");
        assert!(counts[4] > 0 && counts[5] > 2, "{counts:?}");
    }
}
