//! Days as dates in the proleptic Gregorian calendar.

/// Returns the day, counted from 1970-01-01, of a date in the proleptic Gregorian calendar.
pub(in crate::column) fn day_of_civil_date(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (cycle, year) = (year.div_euclid(400), year.rem_euclid(400));
    let day = (153 * month + 2) / 5 + day - 1;
    cycle * 146_097 + 365 * year + year / 4 - year / 100 + day - 719_468
}

/// Returns the date in the proleptic Gregorian calendar of a day counted from 1970-01-01.
///
/// Years are counted from March, so that the leap day is their last, in cycles of 400 years or 146097 days.
pub(in crate::column) fn civil_date(day: i64) -> (i64, i64, i64) {
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
    fn days_are_those_of_their_dates() {
        for day in (-1_000_000..1_000_000).chain([-(1 << 40), 1 << 40]) {
            let (year, month, day_of_month) = civil_date(day);
            assert_eq!(day_of_civil_date(year, month, day_of_month), day);
        }
    }
}
