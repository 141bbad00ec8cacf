//! The kinds of findings.

use std::fmt;

/// The kinds of findings; G1a to G2 are Adya's names.
///
/// A cycle of writes alone (G0) cannot occur: all versions of a transaction have its TID and the TIDs are the version
/// orders. Writers that disagree about their order show as [`Anomaly::TidOrder`] or as a lost update.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Anomaly {
    /// The read of a version that nobody committed.
    G1a,
    /// The read of a state that its writer did not leave: a delete taken for a row or a row taken for a delete.
    G1b,
    /// A cycle of writes and reads of what was written.
    G1c,
    /// A cycle with anti-dependencies on single keys: lost update, write skew.
    G2Item,
    /// A cycle with an anti-dependency on a range or a missing key: a phantom.
    G2,
    /// A cycle only if each worker's transactions take effect in their order.
    ProgramOrder,
    /// A transaction found no record where an earlier epoch had left a row.
    OverlookedRow,
    /// A dependency against the order of the epochs.
    EpochOrder,
    /// A snapshot transaction saw something else than the newest version before its snapshot epoch.
    SnapshotRead,
    /// One key was written twice with the same TID, or twice by one transaction.
    DuplicateVersion,
    /// A TID that is not above those read, or not above the worker's last one.
    TidOrder,
    /// Two records of the history have the same worker and sequence.
    DuplicateTransaction,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Anomaly::G1a => "G1a (read of an uncommitted version)",
            Anomaly::G1b => "G1b (read of a state that was never committed)",
            Anomaly::G1c => "G1c (circular information flow)",
            Anomaly::G2Item => "G2-item (item anti-dependency cycle)",
            Anomaly::G2 => "G2 (predicate anti-dependency cycle)",
            Anomaly::ProgramOrder => "program order violated",
            Anomaly::OverlookedRow => "overlooked row",
            Anomaly::EpochOrder => "epoch order violated",
            Anomaly::SnapshotRead => "inconsistent snapshot",
            Anomaly::DuplicateVersion => "duplicate version",
            Anomaly::TidOrder => "TID order violated",
            Anomaly::DuplicateTransaction => "duplicate transaction",
        })
    }
}
