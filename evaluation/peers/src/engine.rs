//! The databases that Ensilo is compared with, each used as its documentation recommends.

mod fjall;
mod key_value;
mod lmdb;
mod ordered;
mod postgres;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod sqlite;

pub use fjall::Fjall;
pub use key_value::{KeyValue, KeyValueClient};
pub use lmdb::Lmdb;
pub(crate) use ordered::scan;
pub use ordered::{
    End, ORDERED_TABLES_MAX, OrderedClient, OrderedRange, OrderedRead, OrderedStore, OrderedTable,
    OrderedWrite, ReadBody, Visit, WriteBody,
};
pub use postgres::{Postgres, PostgresClient};
pub(crate) use postgres::{Schema, failed, retry};
pub use redb::Redb;
#[cfg(feature = "rocksdb")]
pub use rocksdb::RocksDb;
pub use sqlite::Sqlite;
