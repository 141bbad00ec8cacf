//! Plots as SVG. What is drawn is plain figures: nothing here knows experiments, so that other tables can be drawn, too.
//!
//! Axes of amounts begin at 0. Legends stand beside the plot, never on it. Colours are those of Okabe and Ito, which people with
//! colour-blind eyes can tell apart; markers differ as well.

mod axis;
mod bars;
mod canvas;
mod lines;
mod number;
mod stacked;

pub use bars::{Bar, BarChart, BarGroup};
pub use lines::{Curve, CurvePoint, LineChart, Shade, Ticks};
pub use number::short_number;
pub use stacked::{StackedBar, StackedChart};
