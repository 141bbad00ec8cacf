//! How far a long run is.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::environment::is_long;

/// Returns a bar on standard error for `count` steps of a long run. A run in passing has none, nor has one without a
/// terminal.
#[must_use]
pub fn bar(what: &str, count: u64) -> ProgressBar {
    let target = if is_long() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(count), target).with_message(what.to_owned());
    // A template that does not parse would leave the default style: a bar with a position.
    match ProgressStyle::with_template("{msg} [{bar:30}] {human_pos} of {human_len}, {eta} left") {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        Err(_) => bar,
    }
}
