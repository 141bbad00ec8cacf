//! Timestamps from text as RFC 3339 has it.
//!
//! Years before 0 and after 9999, which the RFC has not, are written with a sign or with more digits, as
//! [`Timestamp`] prints them.

use ensilo::Timestamp;

const DAY_SECONDS: i64 = 86_400;

/// Parses a date and a time with an offset, such as `2024-02-29T12:00:00.5Z`. `None` if it is something else, is
/// more precise than microseconds, or is too far away.
pub(super) fn parse(text: &str) -> Option<Timestamp> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let day = day_of(date)?;
    let (time, offset_seconds) = split_offset(time)?;
    let (seconds, micros) = time_of_day(time)?;
    let seconds = day.checked_mul(DAY_SECONDS)?.checked_add(seconds - offset_seconds)?;
    let all = i128::from(seconds) * 1_000_000 + i128::from(micros);
    i64::try_from(all).ok().map(Timestamp::from_micros)
}

/// Parses exactly `len` digits.
fn digits(text: &str, len: usize) -> Option<i64> {
    let is_number = text.len() == len && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// Returns the days from 1970-01-01 to a date.
fn day_of(date: &str) -> Option<i64> {
    let (is_negative, unsigned) = match date.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, date),
    };
    let mut parts = unsigned.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    // A sign takes the place of a digit.
    let digits_min = if is_negative { 3 } else { 4 };
    if parts.next().is_some() || !(digits_min..=6).contains(&year.len()) {
        return None;
    }
    let year = digits(year, year.len())?;
    let year = if is_negative { -year } else { year };
    let (month, day) = (digits(month, 2)?, digits(day, 2)?);
    let is_there = (1..=12).contains(&month) && (1..=days_of_month(year, month)).contains(&day);
    is_there.then(|| days_from_civil(year, month, day))
}

fn days_of_month(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Years are counted from March, so that the leap day is their last, in cycles of 400 years or 146097 days.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (cycle, year) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let day_of_cycle = 365 * year + year / 4 - year / 100 + day_of_year;
    cycle * 146_097 + day_of_cycle - 719_468 // days from 0000-03-01 to 1970-01-01
}

/// Returns the time without its offset, and the offset in seconds.
fn split_offset(time: &str) -> Option<(&str, i64)> {
    if let Some(time) = time.strip_suffix(['Z', 'z']) {
        return Some((time, 0));
    }
    let (time, offset) = time.split_at(time.rfind(['+', '-'])?);
    let (hours, minutes) = offset[1..].split_once(':')?;
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    let seconds = hours * 3600 + minutes * 60;
    Some((time, if offset.starts_with('-') { -seconds } else { seconds }))
}

/// Returns the seconds of a time of the day, and the microseconds of its fraction.
fn time_of_day(time: &str) -> Option<(i64, i64)> {
    let (whole, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut parts = whole.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || fraction.is_empty() {
        return None;
    }
    let (hours, minutes, seconds) = (digits(hours, 2)?, digits(minutes, 2)?, digits(seconds, 2)?);
    // A leap second has no number of its own.
    if hours > 23 || minutes > 59 || seconds > 59 || digits(fraction, fraction.len()).is_none() {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 6 {
        return None;
    }
    Some((hours * 3600 + minutes * 60 + seconds, digits(&format!("{fraction:0<6}"), 6)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_read_as_they_print() {
        let times =
            [i64::MIN, -62_167_219_200_000_001, -1, 0, 951_825_600_000_000, 4_107_542_400_000_000, i64::MAX];
        let steps = (-400i64..400).map(|step| step * 86_400_000_000 * 97 + step);
        for micros in times.into_iter().chain(steps) {
            let time = Timestamp::from_micros(micros);
            assert_eq!(parse(&time.to_string()), Some(time), "{time}");
        }
    }

    #[test]
    fn offsets_and_fractions_count() {
        let micros = |text| parse(text).map(Timestamp::micros);
        assert_eq!(micros("1970-01-01T01:00:00.5+01:00"), Some(500_000));
        assert_eq!(micros("1969-12-31t23:59:59.000001000-00:30"), Some(1_799_000_001));
        assert_eq!(micros("1970-01-01 00:00:01z"), Some(1_000_000));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "2024-02-30T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2024-13-01T00:00:00Z",
            "2024-01-01",
            "2024-01-01T00:00:00",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:60Z",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00.0000001Z",
            "24-01-01T00:00:00Z",
            "2024-1-01T00:00:00Z",
            "2024-01-01T00:00:00+1:00",
            "294248-01-01T00:00:00Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
