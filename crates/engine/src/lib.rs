//! Internal to `ensilo`, not to be used by itself: what a transaction engine offers to the tables above it.
//!
//! An engine runs serializable transactions over *stores*: ordered maps from encoded keys to rows of words. Tables with columns, indexes,
//! requests and retries are written once, against the traits of this crate: [`Engine`], [`Session`], [`Read`] and [`Write`]. An
//! engine comes from a crate of its own and knows nothing of columns.
//!
//! What is common to all engines lies here too: the reasons of aborts, TIDs, the words of a row, statistics, the records of
//! histories that a checker judges, and the failpoints of tests.
//!
//! # Contract
//! - **Serializable.** A transaction that commits has read and written at one point of a serial order. The order agrees with the
//!   order of epochs: [`Committed::epoch`] is the epoch of that point.
//! - **Logged before visible.** An engine that [logs](Engine::LOGS) hands each commit to the [`Log`](ensilo_log::Log) before others see it, under a TID of the
//!   commit's epoch. TIDs of one key rise in the order of its versions.
//! - **Two-phase commit**, in an engine that [has it](Engine::TWO_PHASE_COMMIT). A transaction that is [prepared](Write::prepare) can wait for
//!   its decision for seconds. Until then all that it has read stays as it is, and the durable epoch, snapshots, checkpoints and the reclamation of memory go
//!   on; who meets what it will write is told at once.
//! - **Checkpoints.** [`Engine::walk`] hands out every row of a store that did not change since the epoch that it is given; what has
//!   changed may be left out, because the log has it.
//! - **Replay.** [`Engine::replayer`] takes checkpoint and log in any order and from many threads at once
//!   ([`Replay`](ensilo_log::Replay)). No transaction has begun by then.

mod abort;
mod committed;
mod counters;
mod engine;
mod failpoint;
mod fault;
#[doc(hidden)]
pub mod history;
mod key_range;
mod options;
mod prepared;
mod raw_record;
mod remains;
mod replayer;
mod row;
mod session;
mod store;
mod tid;
mod transaction;
mod transaction_number;

pub use abort::{Abort, AbortReason, TRANSACTION_LIMITS};
pub use committed::Committed;
pub use counters::{TransactionStatistics, WorkerCounters};
pub use engine::{Engine, EngineStatistics, ReadOf, SnapshotOf, TransactionOf, WriteOf};
#[doc(hidden)]
pub use failpoint::Failpoint;
#[doc(hidden)]
pub use fault::Fault;
pub use key_range::{KeyBounds, KeyRange};
pub use options::EngineOptions;
pub use prepared::{NeverPrepared, Prepared};
pub use raw_record::RawRecord;
pub use remains::Remains;
pub use replayer::{NoReplay, Recovered, RecoveredStore, Replayer};
pub use row::{ROW_LEN_MAX, RowRef, StoredRow, assert_is_row};
pub use session::Session;
pub use store::{NewStoreError, Store, TableId};
pub use tid::Tid;
pub use transaction::{Direction, Read, Write};
pub use transaction_number::TransactionNumber;
