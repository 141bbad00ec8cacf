//! Times of the crate `chrono`.
//!
//! A leap second, which chrono keeps apart from the second before it, is stored as the last nanosecond of that one: the time that
//! machines count has none.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Timelike, Utc};

use super::nanoseconds::{of_time, time_of};
use super::stored_as::stored_as;
use crate::{Timestamp, TimestampError};

/// Nanoseconds in a second.
const SECOND: i128 = 1_000_000_000;

/// The last nanosecond of a second.
const LAST: u32 = 999_999_999;

stored_as! {
    /// Stored as an `i128` of nanoseconds since 1970-01-01 UTC: nothing is lost but leap seconds, which become the last nanosecond before
    /// them. [`Timestamp`] has half as many bytes, and is made of one by `From`.
    DateTime<Utc> as i128,
        |time| nanoseconds_of(time.timestamp(), time.timestamp_subsec_nanos().min(LAST)),
        |nanoseconds| utc_of(nanoseconds);

    /// Stored as an `i128` of nanoseconds since 1970-01-01 00:00: nothing is lost but leap seconds, which become the last nanosecond
    /// before them.
    NaiveDateTime as i128,
        |time| nanoseconds_of(time.and_utc().timestamp(), time.and_utc().timestamp_subsec_nanos().min(LAST)),
        |nanoseconds| utc_of(nanoseconds).map(|time| time.naive_utc());

    /// Stored as an `i32` of days since 1970-01-01.
    NaiveDate as i32, |date| date.to_epoch_days(), |day| Self::from_epoch_days(day);

    /// Stored as a `u64` of nanoseconds since midnight: nothing is lost but leap seconds, which become the last nanosecond before
    /// them.
    NaiveTime as u64,
        |time| of_time(time.num_seconds_from_midnight(), time.nanosecond().min(LAST)),
        |nanoseconds| naive_time_of(nanoseconds);
}

fn nanoseconds_of(seconds: i64, nanoseconds: u32) -> i128 {
    i128::from(seconds) * SECOND + i128::from(nanoseconds)
}

fn utc_of(nanoseconds: i128) -> Option<DateTime<Utc>> {
    let seconds = i64::try_from(nanoseconds.div_euclid(SECOND)).ok()?;
    DateTime::from_timestamp(seconds, nanoseconds.rem_euclid(SECOND) as u32)
}

fn naive_time_of(nanoseconds: u64) -> Option<NaiveTime> {
    let (seconds, nanoseconds) = time_of(nanoseconds)?;
    NaiveTime::from_num_seconds_from_midnight_opt(seconds, nanoseconds)
}

/// The microsecond that the time lies in: nanoseconds are cut off, towards the past.
impl From<DateTime<Utc>> for Timestamp {
    fn from(time: DateTime<Utc>) -> Self {
        // The years that chrono has, some 262,000 either way, fit 64 bits of microseconds.
        let micros = i64::from(time.timestamp_subsec_nanos().min(LAST) / 1000);
        Self::from_micros(time.timestamp() * 1_000_000 + micros)
    }
}

impl TryFrom<Timestamp> for DateTime<Utc> {
    type Error = TimestampError;

    fn try_from(time: Timestamp) -> Result<Self, TimestampError> {
        Self::from_timestamp_micros(time.micros()).ok_or(TimestampError::OutOfRange)
    }
}
