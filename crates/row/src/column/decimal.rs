//! Exact decimal numbers: integers that count units of a power of ten.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};
use std::str::FromStr;

/// A number with exactly `SCALE` (up to 18) digits after the point, held as an `i64` of units of `10^-SCALE`.
///
/// The operators panic on overflow, in release builds too; the `checked_` methods answer `None`.
///
/// ```
/// use ensilo_row::Decimal;
///
/// let price: Decimal<2> = "19.99".parse()?;
/// let tax: Decimal<4> = "0.0725".parse()?;
/// assert_eq!((price + price).to_string(), "39.98");
/// assert_eq!(price.times(tax).to_string(), "1.45"); // 1.449275, rounded
/// # Ok::<(), ensilo_row::DecimalError>(())
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decimal<const SCALE: u8>(i64);

/// Why text is no [`Decimal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecimalError {
    /// Not digits with at most one point, after an optional sign.
    Syntax,
    /// More digits after the point than the type holds: round it first.
    TooPrecise,
    /// Too large or too small.
    Overflow,
}

impl fmt::Display for DecimalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syntax => "a decimal is digits with at most one point, after an optional sign",
            Self::TooPrecise => "more digits after the point than the type holds; round it first",
            Self::Overflow => "the decimal does not fit 64 bits at this scale",
        })
    }
}

impl std::error::Error for DecimalError {}

impl<const SCALE: u8> Decimal<SCALE> {
    /// `SCALE`, checked at compile time.
    pub(crate) const CHECKED_SCALE: u8 = {
        assert!(SCALE <= 18, "a decimal has at most 18 digits after the point");
        SCALE
    };

    /// Units in 1.
    const ONE: i64 = 10i64.pow(Self::CHECKED_SCALE as u32);

    /// Returns the number of so many units of `10^-SCALE`.
    #[inline(always)]
    pub const fn from_scaled(units: i64) -> Self {
        Self(units)
    }

    /// Returns how many units of `10^-SCALE` it is.
    #[inline(always)]
    pub const fn scaled(self) -> i64 {
        self.0
    }

    /// Returns a whole number as a decimal.
    ///
    /// # Panics
    /// On overflow.
    pub const fn from_int(whole: i64) -> Self {
        match whole.checked_mul(Self::ONE) {
            Some(units) => Self(units),
            None => panic!("decimal overflow"),
        }
    }

    /// Returns the sum.
    #[inline]
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(units) => Some(Self(units)),
            None => None,
        }
    }

    /// Returns the difference.
    #[inline]
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(units) => Some(Self(units)),
            None => None,
        }
    }

    /// Returns the product, rounded to this scale; halves away from zero.
    pub fn checked_times<const OTHER: u8>(self, other: Decimal<OTHER>) -> Option<Self> {
        let one = i128::from(Decimal::<OTHER>::ONE);
        let product = i128::from(self.0) * i128::from(other.0);
        let half = if product < 0 { -one / 2 } else { one / 2 };
        i64::try_from((product + half) / one).ok().map(Self)
    }

    /// Returns the product, rounded to this scale; halves away from zero.
    ///
    /// # Panics
    /// On overflow.
    pub fn times<const OTHER: u8>(self, other: Decimal<OTHER>) -> Self {
        self.checked_times(other).expect("decimal overflow")
    }

    /// Returns the nearest floating point number.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / Self::ONE as f64
    }
}

impl<const SCALE: u8> Add for Decimal<SCALE> {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        self.checked_add(other).expect("decimal overflow")
    }
}

impl<const SCALE: u8> Sub for Decimal<SCALE> {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        self.checked_sub(other).expect("decimal overflow")
    }
}

impl<const SCALE: u8> Neg for Decimal<SCALE> {
    type Output = Self;

    #[inline]
    fn neg(self) -> Self {
        Self(self.0.checked_neg().expect("decimal overflow"))
    }
}

impl<const SCALE: u8> AddAssign for Decimal<SCALE> {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl<const SCALE: u8> SubAssign for Decimal<SCALE> {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl<const SCALE: u8> Sum for Decimal<SCALE> {
    fn sum<I: Iterator<Item = Self>>(terms: I) -> Self {
        terms.fold(Self(0), Self::add)
    }
}

impl<const SCALE: u8> fmt::Display for Decimal<SCALE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad_integral(self.0 >= 0, "", &magnitude(self.0.unsigned_abs(), SCALE))
    }
}

/// `units * 10^-scale` without sign, with at least one digit before the point; any scale.
pub(crate) fn magnitude(units: u64, scale: u8) -> String {
    let scale = usize::from(scale);
    let mut digits = format!("{units:0width$}", width = scale + 1);
    if scale > 0 {
        digits.insert(digits.len() - scale, '.');
    }
    digits
}

/// `10^exponent` for the comparison of a multiple of it with a number of 64 bits: from 19 on, every multiple but zero is
/// greater than all of those, so `10^19` stands for all larger powers.
pub(crate) const fn power_of_ten(exponent: u8) -> i128 {
    10i128.pow(if exponent < 19 { exponent as u32 } else { 19 })
}

impl<const SCALE: u8> fmt::Debug for Decimal<SCALE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<const SCALE: u8> FromStr for Decimal<SCALE> {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        parse_units(text, SCALE).map(Self)
    }
}

/// Returns the units of `10^-scale` that the text says.
pub(crate) fn parse_units(text: &str, scale: u8) -> Result<i64, DecimalError> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !is_digits(whole) || !is_digits(fraction) {
        return Err(DecimalError::Syntax);
    }
    if fraction.trim_end_matches('0').len() > usize::from(scale) {
        return Err(DecimalError::TooPrecise);
    }
    let fraction = fraction.bytes().chain(std::iter::repeat(b'0')).take(usize::from(scale));
    let mut units = 0i128;
    for digit in whole.bytes().chain(fraction) {
        units = units * 10 + i128::from(digit - b'0');
        if units > i128::from(i64::MAX) + 1 {
            return Err(DecimalError::Overflow);
        }
    }
    i64::try_from(if negative { -units } else { units }).map_err(|_| DecimalError::Overflow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_print_and_parse() {
        for text in ["0.00", "-0.01", "12.30", "-92233720368547758.08", "92233720368547758.07"] {
            assert_eq!(text.parse::<Decimal<2>>().unwrap().to_string(), text);
        }
        assert_eq!("7".parse::<Decimal<2>>().unwrap().scaled(), 700);
        assert_eq!("+.5".parse::<Decimal<2>>().unwrap().scaled(), 50);
        assert_eq!("5.".parse::<Decimal<0>>().unwrap().scaled(), 5);
        assert_eq!("1.2300".parse::<Decimal<2>>().unwrap().scaled(), 123);
        assert_eq!(format!("{:>8}", Decimal::<1>::from_scaled(-15)), "    -1.5");
    }

    #[test]
    fn what_is_no_decimal_is_refused() {
        for text in ["", "-", ".", "1e3", "1.2.3", " 1", "--1", "١"] {
            assert_eq!(text.parse::<Decimal<2>>(), Err(DecimalError::Syntax), "{text:?}");
        }
        assert_eq!("1.234".parse::<Decimal<2>>(), Err(DecimalError::TooPrecise));
        assert_eq!("92233720368547758.08".parse::<Decimal<2>>(), Err(DecimalError::Overflow));
        assert_eq!("9".repeat(100).parse::<Decimal<2>>(), Err(DecimalError::Overflow));
    }

    #[test]
    fn products_round_halves_away_from_zero() {
        let half = Decimal::<1>::from_scaled(5);
        assert_eq!(Decimal::<0>::from_scaled(5).times(half).scaled(), 3);
        assert_eq!(Decimal::<0>::from_scaled(-5).times(half).scaled(), -3);
        assert_eq!(Decimal::<2>::from_int(i64::MAX / 100).checked_times(Decimal::<0>::from_int(2)), None);
    }
}
