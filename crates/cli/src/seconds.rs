//! Numbers of seconds as arguments.

use std::ops::RangeInclusive;

/// Parses seconds of a run that is measured, also parts of one, up to an hour.
pub(crate) fn seconds_of_run(text: &str) -> Result<f64, String> {
    seconds_within(text, 0.01..=3600.0)
}

/// Parses a number of seconds in a range.
pub(crate) fn seconds_within(text: &str, range: RangeInclusive<f64>) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if range.contains(&seconds) {
        Ok(seconds)
    } else {
        Err(format!("not in {}..={}", range.start(), range.end()))
    }
}
