//! An in-memory, serializable transactional database for multicore machines.

extern crate self as ensilo;

mod catalog;
mod database;
mod dynamic;
mod error;
mod interactive;
mod local;
mod maintain;
mod options;
mod pool;
mod records;
mod request;
mod row_ids;
mod row_words;
mod shared;
mod statistics;
mod table;
#[cfg(test)]
mod test_support;
mod transaction;
mod worker;

/// Rows, keys, schemas and values: the crate `ensilo-row`, whose traits `#[derive(Row)]` and `#[derive(Columns)]` name.
pub use ensilo_row as row;

pub use database::Database;
pub use dynamic::{DynamicScan, DynamicTable};
pub use ensilo_derive::{Columns, Row};
pub use ensilo_row::{
    Column, ColumnType, Columns, Decimal, Key, KeyColumn, KeyPrefix, KeyedRow, Order, Row, RowId, Schema,
    SchemaBuilder, SchemaError, Text, TextError, Timestamp, Value,
};
pub use ensilo_txn::{Fault, Protocol, Silo, Standard, Variant};
pub use error::{
    Abort, AbortReason, DuplicateKey, Error, MissingRow, Name, Result, SchemaMismatch, TooLong, UserError,
    WrongType,
};
pub use interactive::Interactive;
pub use options::Options;
pub use pool::JobHandle;
pub use request::{NoHook, Request};
pub use statistics::{EpochStatistics, IndexStatistics, MemoryStatistics, Statistics, TableStatistics};
pub use table::{Found, Index, IndexScan, Scan, ScanFlow, Table};
pub use transaction::{ReadTransaction, Snapshot, Transaction};

const _: () = assert!(ensilo_row::KEY_LEN_MAX <= ensilo_txn::KEY_LEN_MAX);
const _: () = assert!(ensilo_row::ROW_LEN_MAX <= ensilo_txn::ROW_LEN_MAX);
