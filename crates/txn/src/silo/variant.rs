//! Variants of the protocol, chosen at compile time: the product pays nothing for the others.

use ensilo_engine::{Failpoint, Fault};

/// What a variant of Silo does differently. The defaults are the product.
pub trait Variant: std::fmt::Debug + Send + Sync + Sized + 'static {
    /// Whether old versions are kept for snapshot transactions.
    const SNAPSHOTS: bool = true;
    /// Whether records lie in per-worker slabs; if not, each comes from the general-purpose allocator.
    const SLABS: bool = true;
    /// Whether a record that no snapshot needs is overwritten in place; if not, each write makes a new record.
    const OVERWRITES: bool = true;
    /// Whether anything is freed that transactions have left behind.
    const COLLECTS: bool = true;
    /// Whether TIDs come from one counter that all workers share.
    const GLOBAL_TID: bool = false;
    /// What of a transaction goes to the log.
    const LOGGED: LogRecords = LogRecords::Changes;
    /// Whether a transaction validates what it has read. If not, a layer above sees to it that all of it stays as it is until the
    /// transaction has ended, and that nobody else writes what it writes.
    const VALIDATES: bool = true;
    /// Whether committed transactions are recorded for a checker.
    const RECORDS_HISTORY: bool = false;
    /// A mistake that is built in on purpose, to see that a checker finds it.
    const FAULT: Option<Fault> = None;

    /// Called at every [`Failpoint`], on the thread that has come to it.
    #[inline(always)]
    fn reached(failpoint: Failpoint) {
        let _ = failpoint;
    }
}

/// The product: snapshots, no recording, no mistake.
#[derive(Copy, Clone, Debug)]
pub struct Standard;

impl Variant for Standard {}

/// What of a transaction goes to the log.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LogRecords {
    /// Whole rows once a checkpoint, after that the words that changed.
    Changes,
    /// Whole rows.
    Rows,
    /// Its TID alone, to measure what the rest costs. Such a log cannot be recovered from, and opening it is refused.
    Tids,
}

/// Returns whether variant `V` has `fault` built in.
pub(super) const fn has_fault<V: Variant>(fault: Fault) -> bool {
    match V::FAULT {
        Some(built_in) => built_in as u8 == fault as u8,
        None => false,
    }
}
