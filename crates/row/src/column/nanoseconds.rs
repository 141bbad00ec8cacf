//! Times of other crates as they are stored: nothing of them is lost, and all crates agree.
//!
//! - A point in time, or a date with a time of day, is an `i128` of nanoseconds since 1970-01-01 00:00 (for a point in time, UTC).
//! - A date is an `i32` of days since 1970-01-01.
//! - A time of day is a `u64` of nanoseconds since midnight.

const SECOND: i128 = 1_000_000_000;
const DAY: i128 = 86_400 * SECOND;

/// Returns the nanoseconds of so many seconds, and nanoseconds after them.
pub(super) const fn of_seconds(seconds: i64, nanoseconds: u32) -> i128 {
    seconds as i128 * SECOND + nanoseconds as i128
}

/// Returns the nanoseconds from midnight to a time of day.
pub(super) const fn of_time(seconds: u32, nanoseconds: u32) -> u64 {
    seconds as u64 * SECOND as u64 + nanoseconds as u64
}

/// Returns the seconds from midnight to a time of day, and the nanoseconds after them.
pub(super) fn time_of(nanoseconds: u64) -> Option<(u32, u32)> {
    let (seconds, rest) = (nanoseconds / SECOND as u64, nanoseconds % SECOND as u64);
    Some((u32::try_from(seconds).ok().filter(|seconds| *seconds < 86_400)?, rest as u32))
}

/// Returns the nanoseconds to a time of a day.
#[cfg(feature = "jiff")]
pub(super) const fn of_day(day: i32, nanoseconds: u64) -> i128 {
    day as i128 * DAY + nanoseconds as i128
}

/// Returns the day, and the nanoseconds from its midnight.
#[cfg(feature = "jiff")]
pub(super) fn day_of(nanoseconds: i128) -> Option<(i32, u64)> {
    Some((i32::try_from(nanoseconds.div_euclid(DAY)).ok()?, nanoseconds.rem_euclid(DAY) as u64))
}

/// Returns the whole seconds, and the nanoseconds after them.
#[cfg(feature = "chrono")]
pub(super) fn seconds_of(nanoseconds: i128) -> Option<(i64, u32)> {
    Some((i64::try_from(nanoseconds.div_euclid(SECOND)).ok()?, nanoseconds.rem_euclid(SECOND) as u32))
}
