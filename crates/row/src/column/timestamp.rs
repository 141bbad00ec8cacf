//! Points in time.

mod arithmetic;
mod civil;
mod parse;

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(super) use civil::civil_date;
#[cfg(feature = "jiff")]
pub(super) use civil::day_of_civil_date;

/// A point in time in microseconds since 1970-01-01 00:00 UTC, negative before. The years are those of -290308 to 294247, from
/// [`MIN`](Self::MIN) to [`MAX`](Self::MAX).
///
/// A [`Duration`] can be added and subtracted, and one timestamp subtracted from another. The operators panic where the type does not have
/// the outcome, as those of [`SystemTime`] do; the methods that are named `checked` return `None` there.
///
/// ```
/// use std::time::Duration;
///
/// use ensilo_row::Timestamp;
///
/// let noon: Timestamp = "2024-02-29T12:00:00Z".parse()?;
/// let later = noon + Duration::from_secs(86_400);
/// assert_eq!(later.to_string(), "2024-03-01T12:00:00.000000Z");
/// assert_eq!(later - noon, Duration::from_secs(86_400));
/// assert_eq!(noon.checked_duration_since(later), None);
/// # Ok::<(), ensilo_row::TimestampError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The first time that the type has.
    pub const MIN: Self = Self(i64::MIN);

    /// The last time that the type has.
    pub const MAX: Self = Self(i64::MAX);

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

/// Why something is no [`Timestamp`], or a timestamp no time of another crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimestampError {
    /// Not a date and a time as RFC 3339 has them, such as `2024-02-29T12:00:00.5Z`.
    Syntax,
    /// More digits of the second than six: cut them off first.
    TooPrecise,
    /// In a year that the type does not have.
    OutOfRange,
}

impl fmt::Display for TimestampError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syntax => {
                "a timestamp is a date and a time as RFC 3339 has them, such as 2024-02-29T12:00:00.5Z"
            }
            Self::TooPrecise => "a timestamp has microseconds; cut off the other digits first",
            Self::OutOfRange => "the timestamp is in a year that the type does not have",
        })
    }
}

impl std::error::Error for TimestampError {}

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
        assert!(print(Timestamp::MIN.micros()).starts_with("-290308-"));
        assert!(print(Timestamp::MAX.micros()).starts_with("294247-"));
    }

    #[test]
    fn now_is_after_this_was_written() {
        assert!(Timestamp::now() > Timestamp::from_micros(1_700_000_000_000_000));
        assert_eq!(Timestamp::from(UNIX_EPOCH - Duration::from_micros(5)).micros(), -5);
    }
}
