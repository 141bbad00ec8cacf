//! Which cluster an instance belongs to: the number that tells all instances of one directory from every other one.

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::process;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::term::TermsOf;

/// The number that tells one cluster from every other, drawn when it is made. Copies of all instances keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClusterId(u128);

impl ClusterId {
    /// Returns a new number.
    pub(crate) fn random() -> Self {
        ClusterId(random_number())
    }
}

/// Returns a number that nobody else draws, from the standard library's hashers, which the system seeds, with the time and the process mixed in.
pub(super) fn random_number() -> u128 {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let half = |salt: u8| {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u8(salt);
        hasher.write_u32(process::id());
        hasher.write_u128(nanos);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for ClusterId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(text, 16).map(ClusterId)
    }
}

/// What an instance has to be to belong to a cluster.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct ClusterMember {
    pub(crate) cluster: ClusterId,
    pub(crate) stage: ClusterStage,
    /// The terms that it may be in.
    pub(crate) terms: TermsOf,
}

/// How far the instances of a cluster are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ClusterStage {
    /// Some may not be there yet. The first opening goes on to `Whole`.
    Making,
    /// All are there, and some may not say yet which cluster they belong to: they were made by a version that did not. The next opening goes on to
    /// `Whole`.
    Marking,
    /// All are there, and say which cluster they belong to.
    Whole,
}
