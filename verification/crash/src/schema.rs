//! The tables of the workloads.

use ensilo::generic::{Database, Table};
use ensilo::{Columns, Engine, Error, Result, Row};

/// A row of several columns, with an index.
#[derive(Clone, Debug, PartialEq, Eq, Row)]
#[row(table = "wide", index(name = "by_group", columns(group)))]
pub struct Wide {
    /// Its number.
    #[row(key)]
    pub id: u32,
    /// What the index is over.
    pub group: u16,
    /// A number that changes often.
    pub amount: i64,
    /// A number that is there or not.
    pub maybe: Option<i64>,
    /// More numbers, so that a change of one is little beside the row.
    pub first: u64,
    /// As `first`.
    pub second: u64,
    /// As `first`.
    pub third: u64,
    /// Text of any length.
    pub note: String,
}

/// One column of [`Wide`].
#[derive(Clone, Debug, PartialEq, Eq, Columns)]
#[columns(of = Wide)]
pub struct Amount {
    /// See [`Wide::amount`].
    pub amount: i64,
}

/// Several columns of [`Wide`], the index's among them.
#[derive(Clone, Debug, PartialEq, Eq, Columns)]
#[columns(of = Wide)]
pub struct Numbers {
    /// See [`Wide::group`].
    pub group: u16,
    /// See [`Wide::maybe`].
    pub maybe: Option<i64>,
    /// See [`Wide::first`].
    pub first: u64,
    /// See [`Wide::third`].
    pub third: u64,
}

/// A row with a key of two parts, in a table that comes and goes.
#[derive(Clone, Debug, PartialEq, Eq, Row)]
#[row(table = "pair", index(name = "pair_by_value", columns(value)))]
pub struct Pair {
    /// The first part.
    #[row(key)]
    pub left: u8,
    /// The second part.
    #[row(key)]
    pub right: u32,
    /// What belongs to them.
    pub value: u64,
}

/// A row of many bytes.
#[derive(Clone, Debug, PartialEq, Eq, Row)]
#[row(table = "blob")]
pub struct Blob {
    /// Its number.
    #[row(key)]
    pub id: u32,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// A row with a key that the table invents.
#[derive(Clone, Debug, PartialEq, Eq, Row)]
#[row(table = "event")]
pub struct Event {
    /// The transaction that wrote it.
    pub step: u64,
}

/// How far the workload is: every transaction writes its number here.
#[derive(Clone, Debug, PartialEq, Eq, Row)]
#[row(table = "progress")]
pub struct Progress {
    /// The worker.
    #[row(key)]
    pub worker: u32,
    /// The number of its last transaction.
    pub step: u64,
}

/// The column of [`Progress`] that changes.
#[derive(Clone, Debug, PartialEq, Eq, Columns)]
#[columns(of = Progress)]
pub struct Step {
    /// See [`Progress::step`].
    pub step: u64,
}

/// Returns the table of this row type, if the database has it.
///
/// # Errors
/// Those of [`Database::open_table`] but [`Error::UnknownTable`].
pub fn table<T: Row, E: Engine>(db: &Database<E>) -> Result<Option<Table<T, E>>> {
    if !db.list_tables()?.iter().any(|name| name == T::schema().name()) {
        return Ok(None);
    }
    match db.open_table() {
        // The table is there, one of the indexes that the row type names may not be.
        Err(Error::UnknownTable(_)) => Ok(None),
        opened => opened.map(Some),
    }
}
