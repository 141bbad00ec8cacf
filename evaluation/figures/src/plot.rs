//! Plots as SVG. What is drawn is plain figures: nothing here knows experiments, so that other tables can be drawn, too.
//!
//! Axes of amounts begin at 0. Legends stand beside the plot, never on it. Colours are those of Okabe and Ito, which people with
//! colour-blind eyes can tell apart. Nothing is said by colour alone: markers, dashes and patterns differ as well, for prints in black and
//! white. Where others are drawn beside Ensilo, its lines are thick and its bars are the solid ones.

mod axis;
mod bars;
mod canvas;
mod lines;
mod number;
mod pattern;
mod stacked;

pub use bars::{Bar, BarChart, BarGroup};
pub use canvas::beside;
pub use lines::{Curve, CurvePoint, LineChart, Shade, Ticks};
pub use number::short_number;
pub use stacked::{StackedBar, StackedChart};
