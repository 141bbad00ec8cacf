//! How a table is placed anew whose row type is not at hand.

use std::fmt;
use std::str::FromStr;

/// How a [`Redistribution`](super::Redistribution) places the rows of a table whose row type is not at hand. As a text it is `hash`, `hash:2`, `ranges`,
/// `ranges:2` or `replicated`, with the number of columns.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Repartitioning {
    /// By a hash of the first columns of the primary key: so many, or all of them.
    Hash {
        /// How many, at least one; `None` for all.
        columns: Option<u8>,
    },
    /// By ranges, whose beginnings are chosen so that each instance gets about as many rows. They are made of the first columns of the primary key, so
    /// that rows that have these in common stay together.
    Ranges {
        /// How many, at least one; `None` for as many as decided about the place of a row before, at least one.
        columns: Option<u8>,
    },
    /// Every instance has every row.
    Replicated,
}

impl fmt::Display for Repartitioning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, columns) = match self {
            Repartitioning::Hash { columns } => ("hash", *columns),
            Repartitioning::Ranges { columns } => ("ranges", *columns),
            Repartitioning::Replicated => ("replicated", None),
        };
        f.write_str(name)?;
        columns.map_or(Ok(()), |columns| write!(f, ":{columns}"))
    }
}

/// Reads what `Display` writes.
impl FromStr for Repartitioning {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let none = || format!("{text:?} is none of hash, hash:N, ranges, ranges:N, replicated");
        let (name, columns) = match text.split_once(':') {
            None => (text, None),
            Some((name, columns)) => {
                let columns = columns.parse().ok().filter(|columns| *columns > 0);
                (name, Some(columns.ok_or_else(none)?))
            }
        };
        match (name, columns) {
            ("hash", columns) => Ok(Repartitioning::Hash { columns }),
            ("ranges", columns) => Ok(Repartitioning::Ranges { columns }),
            ("replicated", None) => Ok(Repartitioning::Replicated),
            _ => Err(none()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for text in ["hash", "hash:2", "ranges", "ranges:1", "replicated"] {
            assert_eq!(text.parse::<Repartitioning>().unwrap().to_string(), text);
        }
        for text in ["", "hash:", "hash:0", "hash:x", "hash:256", "replicated:1", "range"] {
            assert!(text.parse::<Repartitioning>().is_err(), "{text}");
        }
    }
}
