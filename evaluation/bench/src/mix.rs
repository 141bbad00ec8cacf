//! The shares of a workload's transaction types, and the draw of the next one.

use std::error;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::random::Random;

/// Shares of transaction types; they add up to 100 percent and are kept to a thousandth of a percent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mix {
    /// For each type, the share of the draws at or below it, in units of 2^-32.
    bounds: Vec<u64>,
    percents: Vec<f64>,
}

/// A share of draws.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Of 2^32 draws.
    bound: u64,
    percent: f64,
}

impl Share {
    /// One of 100.
    pub const ONE_OF_100: Self = Self { bound: (1 << 32) / 100, percent: 1.0 };

    /// 15 of 100.
    pub const FIFTEEN_OF_100: Self = Self { bound: (1 << 32) / 100 * 15, percent: 15.0 };

    /// A share in percent; `None` unless it is from 0 to 100.
    pub fn of_percent(percent: f64) -> Option<Self> {
        let bound = (percent / 100.0 * (1u64 << 32) as f64) as u64;
        (0.0..=100.0).contains(&percent).then_some(Self { bound, percent })
    }

    /// The share in percent.
    pub fn percent(self) -> f64 {
        self.percent
    }

    /// Draws; true for this share of all draws.
    #[inline]
    pub fn draw(self, random: &mut Random) -> bool {
        random.next_u64() >> 32 < self.bound
    }
}

/// Why a text is no mix.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum MixError {
    /// A part is neither a number nor a name with a number.
    Syntax(String),
    /// A name is none of the types.
    UnknownName(String),
    /// A name occurs twice.
    Twice(String),
    /// A share is not between 0 and 100.
    OutOfRange(String),
    /// There are more or fewer shares than types.
    Count {
        /// Shares given.
        given: usize,
        /// Types there are.
        expected: usize,
    },
    /// The shares add up to something else.
    Sum(f64),
}

impl fmt::Display for MixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(part) => write!(f, "'{part}' is not a share"),
            Self::UnknownName(name) => write!(f, "there is no transaction type '{name}'"),
            Self::Twice(name) => write!(f, "'{name}' is given twice"),
            Self::OutOfRange(part) => write!(f, "the share '{part}' is not between 0 and 100"),
            Self::Count { given, expected } => {
                write!(f, "{given} shares given for {expected} transaction types")
            }
            Self::Sum(sum) => write!(f, "the shares add up to {sum}, not to 100"),
        }
    }
}

impl error::Error for MixError {}

impl Mix {
    /// Shares in percent, in the order of types.
    ///
    /// # Errors
    /// [`MixError::OutOfRange`] and [`MixError::Sum`].
    pub fn new(percents: &[f64]) -> Result<Self, MixError> {
        if let Some(bad) = percents.iter().find(|percent| !(0.0..=100.0).contains(*percent)) {
            return Err(MixError::OutOfRange(bad.to_string()));
        }
        let sum: f64 = percents.iter().sum();
        if (sum - 100.0).abs() > 1e-3 {
            return Err(MixError::Sum(sum));
        }
        let mut below = 0.0;
        let mut bounds: Vec<u64> = percents
            .iter()
            .map(|percent| {
                below += percent;
                (below / 100.0 * (1u64 << 32) as f64) as u64
            })
            .collect();
        // Whatever the rounding left over belongs to the last type that has a share at all.
        let last = percents.iter().rposition(|&percent| percent > 0.0).unwrap_or(0);
        bounds[last..].fill(1 << 32);
        Ok(Self { bounds, percents: percents.to_vec() })
    }

    /// Reads `45/43/4/4/4`, one share for each of `names` in their order, or `read=80,rmw=20`, where types that are not
    /// named have no share.
    ///
    /// # Errors
    /// Any [`MixError`].
    pub fn parse(text: &str, names: &[&str]) -> Result<Self, MixError> {
        if text.contains('=') {
            Self::parse_named(text, names)
        } else {
            Self::parse_listed(text, names.len())
        }
    }

    fn parse_listed(text: &str, expected: usize) -> Result<Self, MixError> {
        let percents = text.split(['/', ',']).map(parse_share).collect::<Result<Vec<_>, _>>()?;
        if percents.len() != expected {
            return Err(MixError::Count { given: percents.len(), expected });
        }
        Self::new(&percents)
    }

    fn parse_named(text: &str, names: &[&str]) -> Result<Self, MixError> {
        let mut percents = vec![None; names.len()];
        for part in text.split([',', '/']) {
            let (name, share) = part.split_once('=').ok_or_else(|| MixError::Syntax(part.to_owned()))?;
            let name = name.trim().replace('-', "_");
            let at =
                names.iter().position(|&known| known == name).ok_or(MixError::UnknownName(name.clone()))?;
            if percents[at].replace(parse_share(share)?).is_some() {
                return Err(MixError::Twice(name));
            }
        }
        Self::new(&percents.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>())
    }

    /// Draws the next type.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> usize {
        let draw = random.next_u64() >> 32;
        self.bounds.iter().position(|&bound| draw < bound).unwrap_or(0)
    }

    /// The share of a type in percent.
    pub fn percent(&self, index: usize) -> f64 {
        self.percents[index]
    }
}

fn parse_share(text: &str) -> Result<f64, MixError> {
    text.trim().parse().map_err(|_| MixError::Syntax(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["read", "rmw", "new_order"];

    #[test]
    fn shares_are_read_in_order_or_by_name() {
        let listed = Mix::parse("80/15/5", &NAMES).unwrap();
        let named = Mix::parse("rmw=15, new-order=5,read=80", &NAMES).unwrap();
        assert_eq!(listed, named);
        assert_eq!(named.percent(2), 5.0);
        assert_eq!(Mix::parse("rmw=100", &NAMES).unwrap().percent(0), 0.0);
    }

    #[test]
    fn bad_shares_are_refused() {
        let error = |text| Mix::parse(text, &NAMES).unwrap_err();
        assert_eq!(error("80/20"), MixError::Count { given: 2, expected: 3 });
        assert_eq!(error("80/10/5"), MixError::Sum(95.0));
        assert_eq!(error("120/-20/0"), MixError::OutOfRange("120".to_owned()));
        assert_eq!(error("a/b/c"), MixError::Syntax("a".to_owned()));
        assert_eq!(error("NaN/50/50"), MixError::OutOfRange("NaN".to_owned()));
        assert_eq!(error(""), MixError::Syntax(String::new()));
        assert_eq!(error("write=100"), MixError::UnknownName("write".to_owned()));
        assert_eq!(error("read=50,read=50"), MixError::Twice("read".to_owned()));
        assert_eq!(error("read=50,50"), MixError::Syntax("50".to_owned()));
    }

    #[test]
    fn draws_follow_the_shares() {
        let mix = Mix::parse("30/70/0", &NAMES).unwrap();
        let mut random = Random::new(9);
        let mut seen = [0u32; 3];
        (0..100_000).for_each(|_| seen[mix.draw(&mut random)] += 1);
        assert!((29_000..31_000).contains(&seen[0]), "{seen:?}");
        assert_eq!(seen[2], 0);
    }

    #[test]
    fn a_share_is_drawn_as_often_as_it_says() {
        let mut random = Random::new(3);
        for percent in [0.0, 0.5, 1.0, 12.5, 100.0] {
            let share = Share::of_percent(percent).unwrap();
            let drawn = f64::from((0..100_000).filter(|_| share.draw(&mut random)).count() as u32);
            assert!((drawn / 1_000.0 - percent).abs() < 0.5, "{drawn} of 100000 at {percent} %");
        }
        assert_eq!(Share::of_percent(1.0), Some(Share::ONE_OF_100));
        assert!([-0.1, 100.1, f64::NAN].into_iter().all(|percent| Share::of_percent(percent).is_none()));
    }

    #[test]
    fn shares_that_do_not_divide_evenly_leave_no_gap() {
        let third = 100.0 / 3.0;
        let mix = Mix::new(&[third, third, third]).unwrap();
        assert_eq!(mix.bounds[2], 1 << 32);
    }
}
