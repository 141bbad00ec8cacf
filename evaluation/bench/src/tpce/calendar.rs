//! The days of the database: trading days are the weekdays, from nine to five.

use ensilo::Timestamp;

use super::options::DAY_SECONDS;
use super::schema::Day;

/// Monday, 2005-01-03: the first day whose trades are loaded.
const FIRST_TRADING_DAY: Day = 12_786;
/// Monday, 2000-01-03: the first day of DAILY_MARKET.
const FIRST_MARKET_DAY: Day = 10_959;
const SECOND_US: i64 = 1_000_000;
pub(super) const DAY_US: i64 = 86_400 * SECOND_US;
const OPEN_US: i64 = 9 * 3_600 * SECOND_US;
/// How much trading there is in a day, in microseconds.
pub(super) const TRADING_US: u64 = DAY_SECONDS as u64 * SECOND_US as u64;

/// The weekday with this number, counted from `monday`.
fn weekday(monday: Day, number: u32) -> Day {
    monday + (number / 5 * 7 + number % 5).cast_signed()
}

/// The day of the market with this number.
pub(super) fn market_day(number: u32) -> Day {
    weekday(FIRST_MARKET_DAY, number)
}

/// The moment when so many microseconds of trading are over.
pub(super) fn trading_time(traded_us: u64) -> Timestamp {
    let day = weekday(FIRST_TRADING_DAY, (traded_us / TRADING_US) as u32);
    let within = (traded_us % TRADING_US).cast_signed();
    Timestamp::from_micros(i64::from(day) * DAY_US + OPEN_US + within)
}

/// `at`, moved by so many microseconds.
pub(super) fn moved(at: Timestamp, by_us: i64) -> Timestamp {
    Timestamp::from_micros(at.micros() + by_us)
}

/// The day that a trade is settled on: the next but one.
pub(super) fn due_date(traded: Timestamp) -> Timestamp {
    moved(traded, 2 * DAY_US)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trading_goes_on_after_the_weekend() {
        let monday = i64::from(FIRST_TRADING_DAY) * DAY_US + OPEN_US;
        assert_eq!(trading_time(0).micros(), monday);
        assert_eq!(trading_time(5 * TRADING_US + 1).micros(), monday + 7 * DAY_US + 1);
        assert_eq!(market_day(1_304), FIRST_MARKET_DAY + 260 * 7 + 4);
    }
}
