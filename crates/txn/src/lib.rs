//! Internal to `ensilo`, not to be used by itself: records, TID words, the sets of a transaction, the commit protocol.
//!
//! This crate turns the ordered index of [`ensilo_index`] into serializable transactions over stores of records. It knows
//! encoded keys and rows of words; tables with columns, requests and retries belong to the layers above.
//!
//! # Source
//! Silo (SOSP 2013) §4. What differs from the paper: rows are atomic words (no data race under an in-place
//! overwrite), a worker's commit epoch and its memory pin are two things, and a snapshot shows the versions of epochs
//! *before* its own (the paper's "at most" contradicts its rule for overwriting in place).
//!
//! # Terms
//! - *store*: one tree of records, a table's or an index's ([`Store`]);
//! - *TID word*: a record's version, lock and status in one word;
//! - *read set*, *write set*, *node set*: what a transaction has read, will write, and relies on not to have changed its keys;
//! - *placeholder*: the absent record that an insert puts into the tree before it commits;
//! - *unhooking*: taking a deleted record out of the tree. One that a snapshot may need goes into a second tree, which snapshots alone read.

mod checkpoint;
mod engine;
mod global_tid;
mod handle;
mod prefetch;
mod record;
mod registry;
mod replay;
mod shared;
mod silo;
mod store;
mod tid;
mod work_list;
mod worker;
mod worker_state;

pub use engine::Silo;
pub use ensilo_engine::{
    Abort, AbortReason, Addition, ColdPlace, Committed, Direction, Engine, EngineOptions, EngineStatistics,
    KeyBounds, KeyRange, NewStoreError, Prepared, ROW_LEN_MAX, Read, Recovered, RecoveredStore, Remains,
    Replayer, RowRef, Session, StoredRow, TRANSACTION_LIMITS, TableId, Tid, TransactionStatistics,
    WorkerCounters, Write,
};
#[doc(hidden)]
pub use ensilo_engine::{Failpoint, Fault, history};
pub use ensilo_epoch::{Advance, Epoch, EpochCounters, EpochOptions};
pub use ensilo_index::KEY_LEN_MAX;
pub use ensilo_slab::{AccountId, Usage};
pub use handle::RecordHandle;
pub use replay::{ReplayWorker, SiloReplayer};
#[doc(hidden)]
pub use silo::{
    Allocator, GlobalTid, LogRecords, NoGc, NoSnapshots, RowLog, Simple, Standard, TidLog, Variant,
};
pub use silo::{PreparedTransaction, Snapshot, Transaction};
pub use store::Store;
pub use tid::TidWord;
pub use worker::Worker;
