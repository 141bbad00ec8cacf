//! PostgreSQL over its socket: a connection for each client, every transaction one prepared statement, `SERIALIZABLE`.
//!
//! Unsynced, `synchronous_commit` is `off`; synced it is `on`. The server is its user's, configured as they like.

mod records;
mod schema;

pub use records::{Postgres, PostgresClient};
pub(crate) use schema::{Schema, failed, retry};
