//! Internal to `ensilo`, not to be used by itself: ERMIA's engine, under the traits of `ensilo-engine`.
//!
//! A transaction reads what was committed when it began, however long it takes, and waits for nobody. Of two that overlap and write the same
//! row the first wins. Under [`Serializable`], the default, a transaction that might close a cycle aborts at its commit; under
//! [`SnapshotIsolation`] write skew is possible. Transactions that read much and write little commit beside others that change what they read,
//! where Silo's would not.
//!
//! # Source
//! Kim, Wang, Johnson, Pandis, "ERMIA: Fast memory-optimized database system for heterogeneous workloads" (SIGMOD 2016). Where we deviate:
//! - Epochs of memory come from `ensilo-epoch` as it is. The horizon of versions moves on with these, and after some hundred commits, so that
//!   what was overwritten is freed while it is in the cache. Epochs for transaction ids are not needed: a session keeps its place in the
//!   table.
//! - A version that was overwritten is freed by the session that has overwritten it: no pass over the arrays looks for garbage. One that stands in
//!   the way of those who have begun long ago, and that none of them sees, is taken out of the middle of its chain (`long_readers`).
//! - Deleted keys leave the index.
//! - Phantoms are found in both directions, see `certify`.
//! - The log manager's segments are epochs in memory, and not files (`ensilo_log::Ring`): on the disk the log is that of Silo's engine, so that
//!   each engine opens what the other has written. Large entries are not divided into overflow blocks, nor large values written aside: such a
//!   transaction logs all of it by a buffer of its session.
//!
//! # Layout
//! ```text
//! index: key -> OID      array: OID -> newest version -> older version -> ...
//! ```
//!
//! # Terms
//! - **OID**: names a record within its store: the address of its slot in the indirection array.
//! - **stamp**: a place in the order of commits (the paper's LSN).
//! - **begin**: the stamp at which a transaction has begun: it sees what has a smaller one.
//! - **horizon**: a stamp before which nobody needs a version that was overwritten.
//! - **look**: somebody looks at versions while they may follow links between them; what is taken away meanwhile stays until they are done.

mod certify;
mod checkpoint;
mod cold;
mod commit;
mod context;
mod deletions;
mod dropped_store;
mod engine;
mod garbage;
mod handle;
mod horizon;
mod interface;
mod isolation;
mod log;
mod long_readers;
#[cfg(all(test, any(loom, shuttle)))]
mod models;
mod oid_array;
mod overwritten;
mod peek;
mod planted;
mod prefetch;
mod read;
mod read_set;
mod record_history;
mod region;
mod replay;
mod safe_snapshot;
mod scan;
mod session;
mod shared;
mod snapshot;
mod stamp;
mod store;
mod transaction;
mod transaction_table;
mod version;
mod write;

pub use engine::Ermia;
pub use handle::ErmiaHandle;
#[doc(hidden)]
pub use isolation::Fault;
pub use isolation::{Isolation, Serializable, SnapshotIsolation};
pub use replay::{ErmiaReplayer, ReplayWorker};
pub use session::ErmiaSession;
pub use snapshot::Snapshot;
pub use store::ErmiaStore;
pub use transaction::Transaction;
