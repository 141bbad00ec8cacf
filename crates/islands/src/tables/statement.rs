//! What is asked of the tables of an instance, and what is answered.

use std::ops::Bound;

use ensilo::{Error, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::partitioning::AnyPartitioning;

/// A row as bytes: its primary key, and what is not in that.
pub(super) type EncodedRow = (Vec<u8>, Vec<u8>);

/// A statement on the rows that an instance has.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Statement {
    /// The rows with these keys.
    Get { table: String, keys: Vec<Vec<u8>> },
    /// Writes rows.
    Write { table: String, how: Writing, rows: Vec<EncodedRow> },
    /// Deletes rows.
    Delete { table: String, keys: Vec<Vec<u8>> },
    /// The rows of a range.
    Scan { table: String, scan: Range },
    /// How many rows a range has.
    Count { table: String, scan: Range },
}

impl Statement {
    /// Returns whether it changes rows.
    pub(super) fn writes(&self) -> bool {
        matches!(self, Statement::Write { .. } | Statement::Delete { .. })
    }
}

/// What becomes of a row with the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Writing {
    /// There is to be none.
    Insert,
    /// It is replaced, if there is one.
    Upsert,
    /// It is replaced.
    Replace,
}

/// A range of rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Range {
    /// The name of the index whose order they have; `None` for that of the primary key.
    pub(super) index: Option<String>,
    pub(super) low: Bound<Vec<u8>>,
    pub(super) high: Bound<Vec<u8>>,
    /// Whether the ends stand for all keys that begin with them.
    pub(super) of_prefixes: bool,
    pub(super) is_reverse: bool,
    pub(super) limit: u64,
}

/// The answer to a [`Statement`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// The rows of a `Get`, in the order of its keys, without these.
    Got(Vec<Option<Vec<u8>>>),
    /// A `Write` has written all rows.
    Written,
    /// A `Write` has written nothing: the index has the key of this one of its rows, or the primary key if it is `None`.
    Duplicate { index: Option<String> },
    /// A `Write` has written nothing: one of its rows is missing.
    Missing,
    /// Whether there was a row, for each key of a `Delete`.
    Deleted(Vec<bool>),
    /// The rows of a `Scan`.
    Rows(Vec<EncodedRow>),
    /// What a `Count` has come to.
    Count(u64),
}

/// What is asked of an instance outside of transactions: to have a table with this schema and these rows of it, as it may have already. The answer is
/// its partitioning.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct HaveTable {
    pub(super) schema: Vec<u8>,
    /// `None` for a table that is to be there, with whatever partitioning.
    pub(super) partitioning: Option<AnyPartitioning>,
}

pub(super) fn to_bytes(message: &impl Serialize) -> Vec<u8> {
    let Ok(bytes) = postcard::to_allocvec(message) else {
        unreachable!("a message has bytes");
    };
    bytes
}

pub(super) fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    postcard::from_bytes(bytes).map_err(|_| Error::rollback("it is no statement, or no answer to one"))
}
