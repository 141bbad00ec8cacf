//! The databases that are compared, each used as its documentation recommends.

mod ensilo;
mod fjall;
mod key_value;
mod lmdb;
mod ordered;
mod postgres;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod sqlite;

pub use ensilo::Ensilo;
pub use fjall::Fjall;
pub use key_value::{KeyValue, KeyValueClient, Store, StoreClient, TableName};
pub use lmdb::Lmdb;
pub use ordered::{
    End, FjallTables, KeyAndRow, LmdbTables, ORDERED_TABLES, OrderedClient, OrderedRead, OrderedStore,
    OrderedTable, OrderedWrite, RedbTables, SqliteTables, Visit,
};
pub use postgres::{Postgres, PostgresClient};
pub(crate) use postgres::{Schema, failed, retry};
pub use redb::Redb;
#[cfg(feature = "rocksdb")]
pub use rocksdb::RocksDb;
pub use sqlite::Sqlite;
