//! Times of the crate `time`.

use time::{Date, OffsetDateTime, PrimitiveDateTime, Time, UtcDateTime};

use super::nanoseconds::{of_time, time_of};
use super::stored_as::stored_as;
use crate::{Timestamp, TimestampError};

/// The Julian day of 1970-01-01.
const UNIX_EPOCH: i32 = 2_440_588;

stored_as! {
    /// Stored as an `i128` of nanoseconds since 1970-01-01 UTC: nothing is lost. [`Timestamp`] has half as many bytes, and is made
    /// of one by `From`.
    UtcDateTime as i128, |time| time.unix_timestamp_nanos(), |nanoseconds| Self::from_unix_timestamp_nanos(nanoseconds).ok();

    /// Stored as an `i128` of nanoseconds since 1970-01-01 UTC. The offset is not stored: what is read is the same point in time, and
    /// equal, but in UTC. A column that is to keep the offset as well is better two.
    OffsetDateTime as i128, |time| time.unix_timestamp_nanos(), |nanoseconds| Self::from_unix_timestamp_nanos(nanoseconds).ok();

    /// Stored as an `i128` of nanoseconds since 1970-01-01 00:00.
    PrimitiveDateTime as i128,
        |time| time.assume_utc().unix_timestamp_nanos(),
        |nanoseconds| OffsetDateTime::from_unix_timestamp_nanos(nanoseconds).ok().map(|time| Self::new(time.date(), time.time()));

    /// Stored as an `i32` of days since 1970-01-01.
    Date as i32,
        |date| date.to_julian_day() - UNIX_EPOCH,
        |day| day.checked_add(UNIX_EPOCH).and_then(|day| Self::from_julian_day(day).ok());

    /// Stored as a `u64` of nanoseconds since midnight.
    Time as u64, |time| nanoseconds_of_time(time), |nanoseconds| time_of_nanoseconds(nanoseconds);
}

fn nanoseconds_of_time(time: Time) -> u64 {
    let (hour, minute, second, nanosecond) = time.as_hms_nano();
    of_time((u32::from(hour) * 60 + u32::from(minute)) * 60 + u32::from(second), nanosecond)
}

fn time_of_nanoseconds(nanoseconds: u64) -> Option<Time> {
    let (second, nanosecond) = time_of(nanoseconds)?;
    Time::from_hms_nano((second / 3600) as u8, (second / 60 % 60) as u8, (second % 60) as u8, nanosecond).ok()
}

/// The microsecond that the time lies in: nanoseconds are cut off, towards the past. Times that the type cannot hold, which only the
/// feature `large-dates` of the crate `time` has, become the nearest it can.
impl From<UtcDateTime> for Timestamp {
    fn from(time: UtcDateTime) -> Self {
        let micros = time.unix_timestamp_nanos().div_euclid(1000);
        Self::from_micros(micros.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    }
}

/// As from a `UtcDateTime`; the offset is lost.
impl From<OffsetDateTime> for Timestamp {
    fn from(time: OffsetDateTime) -> Self {
        Self::from(UtcDateTime::from(time))
    }
}

impl TryFrom<Timestamp> for UtcDateTime {
    type Error = TimestampError;

    fn try_from(time: Timestamp) -> Result<Self, TimestampError> {
        Self::from_unix_timestamp_nanos(i128::from(time.micros()) * 1000)
            .map_err(|_| TimestampError::OutOfRange)
    }
}

impl TryFrom<Timestamp> for OffsetDateTime {
    type Error = TimestampError;

    fn try_from(time: Timestamp) -> Result<Self, TimestampError> {
        UtcDateTime::try_from(time).map(Self::from)
    }
}
