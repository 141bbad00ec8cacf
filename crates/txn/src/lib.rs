//! Internal to `ensilo`, not to be used by itself: records, TID words, the sets of a transaction, commit protocols.
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
//! - *unhooking*: taking a deleted record out of the tree, once no snapshot needs it.

mod abort;
pub mod baseline;
mod checkpoint;
mod counters;
mod engine;
mod global_tid;
pub mod history;
mod place;
mod pointer_map;
mod protocol;
mod ranges;
mod record;
mod registry;
mod replay;
mod row;
mod silo;
mod store;
mod tid;
mod work_list;
mod worker;

pub use abort::{Abort, AbortReason, TRANSACTION_LIMITS};
pub use checkpoint::CheckpointRecord;
pub use counters::{TransactionStatistics, WorkerCounters};
pub use engine::{Engine, EngineOptions, EngineStatistics, NewStoreError, Remains, Shared};
pub use ensilo_epoch::{Advance, Epoch, EpochCounters, EpochOptions};
pub use ensilo_index::{Direction, KEY_LEN_MAX};
pub use ensilo_slab::{AccountId, Usage};
pub use place::Place;
pub use protocol::{Committed, Found, KeyBounds, Protocol, Read, Write};
pub use ranges::KeyRange;
pub use replay::{Recovered, RecoveredStore, ReplayWorker, Replayer, derive_record};
pub use row::{ROW_LEN_MAX, RowRef};
pub use silo::{
    Allocator, Fault, GlobalTid, LogRecords, NoGc, NoSnapshots, RowLog, Silo, Simple, Snapshot, Standard,
    TidLog, Transaction, Variant,
};
pub use store::{Store, TableId};
pub use tid::{Tid, TidWord};
pub use worker::Worker;
