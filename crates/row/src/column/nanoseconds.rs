//! Times of other crates as they are stored: nothing of them is lost, and all crates agree.
//!
//! - A point in time, or a date with a time of day, is an `i128` of nanoseconds since 1970-01-01 00:00 (for a point in time, UTC).
//! - A date is an `i32` of days since 1970-01-01.
//! - A time of day is a `u64` of nanoseconds since midnight.

const SECOND: u64 = 1_000_000_000;
const DAY_SECONDS: u32 = 86_400;

/// Returns the nanoseconds from midnight to a time of day.
pub(super) const fn of_time(seconds: u32, nanoseconds: u32) -> u64 {
    seconds as u64 * SECOND + nanoseconds as u64
}

/// Returns the seconds from midnight to a time of day, and the nanoseconds after them.
pub(super) fn time_of(nanoseconds: u64) -> Option<(u32, u32)> {
    let seconds = u32::try_from(nanoseconds / SECOND).ok().filter(|seconds| *seconds < DAY_SECONDS)?;
    Some((seconds, (nanoseconds % SECOND) as u32))
}
