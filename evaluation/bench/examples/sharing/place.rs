//! What lies in a line, by the source file that wrote it.

/// What is counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// The counter of +GlobalTID.
    GlobalTid,
    /// TID words, row words, links to old versions.
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
        } else if ["txn/src/record", "engine/src/raw_record.rs", "engine/src/row.rs"].into_iter().any(is_in) {
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
