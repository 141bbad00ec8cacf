//! What a recording protocol notes of every committed transaction, for a checker to judge.
//!
//! The recorder is a consumer of the commit protocol like the log will be: it gets the TID, the epoch and the table, key
//! and kind of every write at the moment of the commit. It costs nothing unless the protocol's variant turns it on.

use std::ops::Bound;

use ensilo_epoch::Epoch;

use crate::store::TableId;
use crate::tid::Tid;

/// An encoded key of a store.
pub type RecordKey = (TableId, Box<[u8]>);

/// One committed transaction.
#[derive(Clone, Debug, Default)]
pub struct TransactionRecord {
    /// The TID that its writes carry; [`Tid::ZERO`] when it wrote nothing.
    pub tid: Tid,
    /// The epoch in which it lies in the serial order; of a snapshot transaction the snapshot epoch: it lies
    /// before the first commit of that epoch.
    pub epoch: Epoch,
    /// Whether it read a snapshot: for every key the newest version of an epoch before `epoch`.
    pub is_snapshot: bool,
    /// Records that were read.
    pub reads: Vec<RecordedRead>,
    /// Keys that were not in the tree.
    pub missing: Vec<RecordKey>,
    /// Ranges that were read: what `reads` does not list was not in the tree.
    pub ranges: Vec<RecordedRange>,
    /// Records that were written.
    pub writes: Vec<RecordedWrite>,
}

/// A record that was read: the version, and whether it was a deletion or a placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedRead {
    /// Store and key.
    pub key: RecordKey,
    /// The TID of the version.
    pub version: Tid,
    /// Whether the version says that the key does not exist.
    pub is_absent: bool,
}

/// A range that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedRange {
    /// The store.
    pub table: TableId,
    /// Where the range begins.
    pub low: Bound<Box<[u8]>>,
    /// Where the range ends.
    pub high: Bound<Box<[u8]>>,
}

/// A record that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedWrite {
    /// Store and key.
    pub key: RecordKey,
    /// Whether the write deleted the key.
    pub is_absent: bool,
}
