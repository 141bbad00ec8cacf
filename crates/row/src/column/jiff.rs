//! Times of the crate `jiff`.

use jiff::civil::{Date, DateTime, Time};

use super::nanoseconds::{of_time, time_of};
use super::stored_as::stored_as;
use super::timestamp::{civil_date, day_of_civil_date};
use crate::{Timestamp, TimestampError};

/// Nanoseconds in a day.
const DAY: i128 = 86_400_000_000_000;

stored_as! {
    /// Stored as an `i128` of nanoseconds since 1970-01-01 UTC: nothing is lost. [`Timestamp`] has half as many bytes, and is made
    /// of one by `From`.
    jiff::Timestamp as i128, |time| time.as_nanosecond(), |nanoseconds| Self::from_nanosecond(nanoseconds).ok();

    /// Stored as an `i32` of days since 1970-01-01.
    Date as i32, |date| day_of_date(date), |day| date_of_day(day);

    /// Stored as a `u64` of nanoseconds since midnight.
    Time as u64, |time| nanoseconds_of_time(time), |nanoseconds| time_of_nanoseconds(nanoseconds);

    /// Stored as an `i128` of nanoseconds since 1970-01-01 00:00.
    DateTime as i128,
        |time| i128::from(day_of_date(time.date())) * DAY + i128::from(nanoseconds_of_time(time.time())),
        |nanoseconds| date_time_of(nanoseconds);
}

fn day_of_date(date: Date) -> i32 {
    // At most four digits of a year.
    day_of_civil_date(date.year().into(), date.month().into(), date.day().into()) as i32
}

fn date_of_day(day: i32) -> Option<Date> {
    let (year, month, day) = civil_date(day.into());
    Date::new(i16::try_from(year).ok()?, month as i8, day as i8).ok()
}

fn nanoseconds_of_time(time: Time) -> u64 {
    let parts = [time.hour(), time.minute(), time.second()];
    let [hour, minute, second] = parts.map(|part| u32::from(part.unsigned_abs()));
    of_time((hour * 60 + minute) * 60 + second, time.subsec_nanosecond().unsigned_abs())
}

fn time_of_nanoseconds(nanoseconds: u64) -> Option<Time> {
    let (second, nanosecond) = time_of(nanoseconds)?;
    Time::new((second / 3600) as i8, (second / 60 % 60) as i8, (second % 60) as i8, nanosecond as i32).ok()
}

fn date_time_of(nanoseconds: i128) -> Option<DateTime> {
    let date = date_of_day(i32::try_from(nanoseconds.div_euclid(DAY)).ok()?)?;
    Some(DateTime::from_parts(date, time_of_nanoseconds(nanoseconds.rem_euclid(DAY) as u64)?))
}

/// The microsecond that the time lies in: nanoseconds are cut off, towards the past.
impl From<jiff::Timestamp> for Timestamp {
    fn from(time: jiff::Timestamp) -> Self {
        // The years from -9999 to 9999 in microseconds fit 64 bits.
        Self::from_micros(time.as_nanosecond().div_euclid(1000) as i64)
    }
}

impl TryFrom<Timestamp> for jiff::Timestamp {
    type Error = TimestampError;

    fn try_from(time: Timestamp) -> Result<Self, TimestampError> {
        Self::from_microsecond(time.micros()).map_err(|_| TimestampError::OutOfRange)
    }
}
