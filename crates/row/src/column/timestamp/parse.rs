//! Timestamps as text.

use std::str::FromStr;

use super::civil::{civil_date, day_of_civil_date};
use super::{Timestamp, TimestampError};

/// Takes what [`Display`](std::fmt::Display) writes, and what else RFC 3339 allows: any digits of the second up to six, an offset instead of `Z`,
/// a space or small letters in place of `T` and `Z`. A year may have more digits, and a minus.
impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        let mut rest = Rest(text);
        let day = rest.date()?;
        rest.one_of(&['T', 't', ' '])?;
        let (seconds, micros) = (rest.time()?, rest.fraction()?);
        let seconds = i128::from(day) * 86_400 + i128::from(seconds - rest.offset()?);
        if !rest.0.is_empty() {
            return Err(TimestampError::Syntax);
        }
        i64::try_from(seconds * 1_000_000 + i128::from(micros))
            .map(Self)
            .map_err(|_| TimestampError::OutOfRange)
    }
}

/// What is left of a text.
struct Rest<'t>(&'t str);

impl Rest<'_> {
    /// Takes a year, a month and a day, and returns the day counted from 1970-01-01.
    fn date(&mut self) -> Result<i64, TimestampError> {
        let is_before_christ = self.one_of(&['-']).is_ok();
        let digits = self.0.bytes().take_while(u8::is_ascii_digit).count();
        // Negative years are printed with three digits at least.
        let (few, many) = (if is_before_christ { 3 } else { 4 }, 6);
        if digits < few {
            return Err(TimestampError::Syntax);
        }
        if digits > many {
            return Err(TimestampError::OutOfRange);
        }
        let year = self.number(digits)?;
        let year = if is_before_christ { -year } else { year };
        self.one_of(&['-'])?;
        let month = self.number_up_to(12)?;
        self.one_of(&['-'])?;
        let day = self.number_up_to(31)?;
        let number = day_of_civil_date(year, month, day);
        if civil_date(number) == (year, month, day) { Ok(number) } else { Err(TimestampError::Syntax) }
    }

    /// Takes hours, minutes and seconds, and returns the seconds.
    fn time(&mut self) -> Result<i64, TimestampError> {
        let minutes = self.hours_and_minutes()?;
        self.one_of(&[':'])?;
        Ok(minutes * 60 + self.number_up_to(59)?)
    }

    /// Takes the digits after a second, if there are any, and returns them as microseconds.
    fn fraction(&mut self) -> Result<i64, TimestampError> {
        if self.one_of(&['.']).is_err() {
            return Ok(0);
        }
        let len = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.0.split_at(len);
        self.0 = rest;
        if len == 0 {
            return Err(TimestampError::Syntax);
        }
        let (kept, lost) = digits.split_at(len.min(6));
        if lost.bytes().any(|digit| digit != b'0') {
            return Err(TimestampError::TooPrecise);
        }
        format!("{kept:0<6}").parse().map_err(|_| TimestampError::Syntax)
    }

    /// Takes the offset from UTC, and returns its seconds.
    fn offset(&mut self) -> Result<i64, TimestampError> {
        match self.one_of(&['Z', 'z', '+', '-'])? {
            '+' => Ok(self.hours_and_minutes()? * 60),
            '-' => Ok(-self.hours_and_minutes()? * 60),
            _ => Ok(0),
        }
    }

    /// Takes hours and minutes, and returns the minutes.
    fn hours_and_minutes(&mut self) -> Result<i64, TimestampError> {
        let hours = self.number_up_to(23)?;
        self.one_of(&[':'])?;
        Ok(hours * 60 + self.number_up_to(59)?)
    }

    /// Takes a number of two digits.
    fn number_up_to(&mut self, max: i64) -> Result<i64, TimestampError> {
        self.number(2).and_then(|number| if number <= max { Ok(number) } else { Err(TimestampError::Syntax) })
    }

    /// Takes a number of so many digits.
    fn number(&mut self, digits: usize) -> Result<i64, TimestampError> {
        let (number, rest) = self.0.split_at_checked(digits).ok_or(TimestampError::Syntax)?;
        self.0 = rest;
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(TimestampError::Syntax);
        }
        number.parse().map_err(|_| TimestampError::Syntax)
    }

    /// Takes one of these characters.
    fn one_of(&mut self, expected: &[char]) -> Result<char, TimestampError> {
        let found =
            self.0.chars().next().filter(|found| expected.contains(found)).ok_or(TimestampError::Syntax)?;
        self.0 = &self.0[found.len_utf8()..];
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_read_as_they_are_printed() {
        let special = [
            0,
            -1,
            1,
            i64::MIN,
            i64::MAX,
            951_825_600_000_000,
            -62_135_596_800_000_001,
            -62_198_755_200_000_000,
        ];
        let spread = (0..10_000i64).map(|step| step.wrapping_mul(0x1234_5678_9abc_def1));
        for micros in special.into_iter().chain(spread) {
            let time = Timestamp::from_micros(micros);
            assert_eq!(time.to_string().parse(), Ok(time), "{time}");
        }
    }

    #[test]
    fn timestamps_are_read_as_rfc_3339_has_them() {
        let micros = |text: &str| text.parse::<Timestamp>().map(Timestamp::micros);
        assert_eq!(micros("1970-01-01T00:00:01Z"), Ok(1_000_000));
        assert_eq!(micros("1970-01-01t00:00:00.25z"), Ok(250_000));
        assert_eq!(micros("1970-01-01 02:00:00.1234560+02:00"), Ok(123_456));
        assert_eq!(micros("1969-12-31T22:30:00-01:30"), Ok(0));
        assert_eq!(micros("1970-01-01T00:00:00.1234567Z"), Err(TimestampError::TooPrecise));
        assert_eq!(micros("294247-01-10T04:00:54.775807Z"), Ok(i64::MAX));
        assert_eq!(micros("294247-01-10T04:00:54.775808Z"), Err(TimestampError::OutOfRange));
        assert_eq!(micros("1000000-01-01T00:00:00Z"), Err(TimestampError::OutOfRange));
        for text in [
            "",
            "1970-01-01",
            "1970-01-01T00:00:00",
            "1970-01-01T00:00Z",
            "1970-01-01T00:00:00.Z",
            "1970-1-01T00:00:00Z",
            "1970-02-29T00:00:00Z",
            "1970-00-01T00:00:00Z",
            "1970-13-01T00:00:00Z",
            "1970-01-00T00:00:00Z",
            "1970-01-01T24:00:00Z",
            "1970-01-01T00:60:00Z",
            "1970-01-01T00:00:60Z",
            "1970-01-01T00:00:00+1:00",
            "1970-01-01T00:00:00+24:00",
            "70-01-01T00:00:00Z",
            "1970-01-01T00:00:00Z ",
            "1970-01-01T00:00:0éZ",
            "+1970-01-01T00:00:00Z",
            "1970-01-01T+1:00:00Z",
            "--1970-01-01T00:00:00Z",
        ] {
            assert_eq!(micros(text), Err(TimestampError::Syntax), "{text:?}");
        }
    }
}
