//! Which store an instance belongs to: the number that tells all instances of one directory from every other one.

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::process;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The number that tells one store from every other, drawn when it is made. Copies of all instances keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoreId(u128);

impl StoreId {
    /// Returns a new number, from the standard library's hashers, which the system seeds, with the time and the process mixed in.
    pub(crate) fn random() -> Self {
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let half = |salt: u8| {
            let mut hasher = RandomState::new().build_hasher();
            hasher.write_u8(salt);
            hasher.write_u32(process::id());
            hasher.write_u128(nanos);
            u128::from(hasher.finish())
        };
        StoreId(half(0) << 64 | half(1))
    }
}

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for StoreId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(text, 16).map(StoreId)
    }
}

/// What an instance has to be to belong to a store.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct StoreMember {
    pub(crate) store: StoreId,
    pub(crate) stage: StoreStage,
}

/// How far the instances of a store are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StoreStage {
    /// Some may not be there yet. The first opening goes on to `Whole`.
    Making,
    /// All are there, and some may not say yet which store they belong to: they were made by a version that did not. The next opening goes on to
    /// `Whole`.
    Marking,
    /// All are there, and say which store they belong to.
    Whole,
}
