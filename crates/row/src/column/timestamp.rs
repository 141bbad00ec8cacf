//! Points in time.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point in time in microseconds since 1970-01-01 00:00 UTC, negative before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// So many microseconds after 1970-01-01 UTC.
    #[inline(always)]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Returns the microseconds since 1970-01-01 UTC.
    #[inline(always)]
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Returns the system clock's time.
    pub fn now() -> Self {
        Self::from(SystemTime::now())
    }
}

/// Times that the type cannot hold (292 thousand years away) become the nearest it can.
impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let micros = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        match time.duration_since(UNIX_EPOCH) {
            Ok(since) => Self(micros(since)),
            Err(before) => Self(-micros(before.duration())),
        }
    }
}

/// As RFC 3339 has it: `2024-02-29T12:00:00.000000Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAY_MICROS: i64 = 86_400_000_000;
        let (year, month, day) = civil_date(self.0.div_euclid(DAY_MICROS));
        let micros = self.0.rem_euclid(DAY_MICROS);
        let seconds = micros / 1_000_000;
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:06}Z",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60,
            micros % 1_000_000
        )
    }
}

/// Why a [`Timestamp`] is no time of another crate: the year is beyond those that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampError;

impl fmt::Display for TimestampError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the timestamp is in a year that the other type does not have")
    }
}

impl std::error::Error for TimestampError {}

/// Returns the day, counted from 1970-01-01, of a date in the proleptic Gregorian calendar.
#[cfg(any(feature = "jiff", test))]
pub(super) fn day_of_civil_date(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (cycle, year) = (year.div_euclid(400), year.rem_euclid(400));
    let day = (153 * month + 2) / 5 + day - 1;
    cycle * 146_097 + 365 * year + year / 4 - year / 100 + day - 719_468
}

/// Returns the date in the proleptic Gregorian calendar of a day counted from 1970-01-01.
///
/// Years are counted from March, so that the leap day is their last, in cycles of 400 years or 146097 days.
pub(super) fn civil_date(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468; // days from 0000-03-01 to 1970-01-01
    let cycle = day.div_euclid(146_097);
    let day = day.rem_euclid(146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (cycle * 400 + year + next_year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_print_their_date_and_time() {
        let print = |micros| Timestamp::from_micros(micros).to_string();
        assert_eq!(print(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(print(-1), "1969-12-31T23:59:59.999999Z");
        assert_eq!(print(951_825_600_000_000), "2000-02-29T12:00:00.000000Z");
        assert_eq!(print(4_107_542_399_999_999), "2100-02-28T23:59:59.999999Z");
        assert_eq!(print(4_107_542_400_000_000), "2100-03-01T00:00:00.000000Z");
        assert!(print(i64::MIN).starts_with("-290308-"));
    }

    #[test]
    fn days_are_those_of_their_dates() {
        for day in (-1_000_000..1_000_000).chain([-(1 << 40), 1 << 40]) {
            let (year, month, day_of_month) = civil_date(day);
            assert_eq!(day_of_civil_date(year, month, day_of_month), day);
        }
    }

    #[test]
    fn now_is_after_this_was_written() {
        assert!(Timestamp::now() > Timestamp::from_micros(1_700_000_000_000_000));
        assert_eq!(Timestamp::from(UNIX_EPOCH - Duration::from_micros(5)).micros(), -5);
    }
}
