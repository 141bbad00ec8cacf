//! Silo's optimistic protocol.
//!
//! # Source
//! Silo (SOSP 2013) §4.4 to §4.9, figure 2. One file a verb: `read`, `scan`, `write`, `commit`, `snapshot`, `collect`; what waits for the
//! decision of a two-phase commit stands in `prepared`, what a worker keeps between transactions stands in `context`.

mod addition;
mod collect;
mod commit;
mod contention;
mod context;
mod garbage;
mod key_bytes;
mod log;
mod lost_write;
mod memory;
#[cfg(all(test, loom))]
mod model;
mod node_set;
mod own_write;
mod paper_variants;
mod peek;
mod prepared;
mod protection;
mod read;
mod record_history;
mod scan;
#[cfg(all(test, not(any(loom, shuttle))))]
mod size_tests;
mod snapshot;
mod stop;
mod transaction;
mod variant;
mod write;
mod write_set;

pub(crate) use collect::{collect_garbage, take_out_deleted};
pub(crate) use context::Context;
pub(crate) use garbage::Garbage;
pub(crate) use memory::{allocate, free, free_garbage, retire};
pub use paper_variants::{Allocator, GlobalTid, NoGc, NoSnapshots, RowLog, Simple, TidLog};
pub use prepared::PreparedTransaction;
pub(crate) use prepared::registry::PreparedRegistry;
pub use snapshot::Snapshot;
pub use transaction::Transaction;
pub use variant::{LogRecords, Standard, Variant};
