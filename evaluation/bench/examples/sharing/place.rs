//! What lies in a line, by the source file that wrote it.

/// What is counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// The counter of +GlobalTID.
    GlobalTid,
    /// The clock of ERMIA's engine: stamps of commits, which are places in the log.
    Clock,
    /// TID words, row words, links to old versions, indirection arrays.
    Records,
    /// Nodes of trees.
    Index,
    /// Epochs, and what workers publish of theirs.
    Epochs,
    /// Accounts and lists of free memory.
    Memory,
    /// Sets of a transaction, counters, locks and everything else.
    Others,
}

impl Place {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::GlobalTid => "global TID",
            Self::Clock => "clock",
            Self::Records => "records",
            Self::Index => "index",
            Self::Epochs => "epochs",
            Self::Memory => "memory",
            Self::Others => "others",
        }
    }

    /// The place of lines that this source file writes.
    pub(crate) fn of(file: &str) -> Self {
        let is_in = |part: &str| file.contains(part);
        if is_in("txn/src/global_tid.rs") {
            Self::GlobalTid
        } else if CLOCK.into_iter().any(is_in) {
            Self::Clock
        } else if RECORDS.into_iter().any(is_in) {
            Self::Records
        } else if is_in("crates/index/") {
            Self::Index
        } else if is_in("crates/epoch/") {
            Self::Epochs
        } else if is_in("crates/slab/") {
            Self::Memory
        } else {
            Self::Others
        }
    }
}

const CLOCK: [&str; 2] = ["ermia/src/stamp.rs", "log/src/runtime/ring/clock.rs"];

const RECORDS: [&str; 6] = [
    "txn/src/record",
    "engine/src/raw_record.rs",
    "engine/src/row.rs",
    "ermia/src/version.rs",
    "ermia/src/isolation.rs",
    "ermia/src/oid_array",
];
