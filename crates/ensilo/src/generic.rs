//! The types over any engine.
//!
//! Programs that choose another engine than [`Silo`] import them, and so does code that is generic over
//! engines:
//!
//! ```
//! use ensilo::generic::{ReadTransaction, Table};
//! use ensilo::{Engine, Result, Row};
//!
//! fn count<'t, T: Row, E: Engine>(table: &Table<T, E>, tx: &mut impl ReadTransaction<'t, E>) ->
//! Result<u64> {
//!     let mut rows = 0;
//!     table.scan().for_each(tx, |_key, _row| rows += 1)?;
//!     Ok(rows)
//! }
//! ```
//!
//! The engine is the last type parameter, `E`, and [`Silo`] where it is left out. The types at the
//! [root of the crate](crate) are these with `Silo`: [`Database`](crate::Database) is a name for
//! `generic::Database<Silo>`.
//!
//! [`Silo`]: crate::Silo

pub use crate::changes::{ChangeStream, Changes, ChangesRequest};
pub use crate::database::Database;
pub use crate::dynamic::{DynamicScan, DynamicTable};
pub use crate::expiry::Expiry;
pub use crate::job_request::JobRequest;
pub use crate::migrations::Migrations;
pub use crate::prefetch::Prefetch;
pub use crate::request::Request;
pub use crate::sequence::Sequence;
pub use crate::session::Session;
pub use crate::session::prepared::PreparedTransaction;
pub use crate::table::{Cursor, Found, Index, IndexScan, Rows, Scan, Table};
pub use crate::transaction::{ReadTransaction, Reader, Snapshot, Transaction, WriteTransaction};
