//! One finding.

use std::fmt;

use super::anomaly::Anomaly;
use super::cycle::Cycle;
use super::dependency::{Dependency, TransactionName};
use crate::history::{Key, Tid};

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// A read of a version that nobody committed.
    UncommittedRead {
        /// Who read it.
        reader: TransactionName,
        /// The key.
        key: Key,
        /// The version that no transaction of the history wrote.
        version: Tid,
    },
    /// A read that took a delete for a row, or a row for a delete.
    WrongState {
        /// Who read it.
        reader: TransactionName,
        /// The key.
        key: Key,
        /// The version read.
        version: Tid,
        /// Whether the reader took it for an absence.
        seen_absent: bool,
    },
    /// Two writes of one key with one TID.
    DuplicateVersion {
        /// The key.
        key: Key,
        /// The TID that both have.
        version: Tid,
    },
    /// A transaction that wrote has a TID that is not above that of a version it read.
    TidNotAboveRead {
        /// The transaction.
        writer: TransactionName,
        /// The key read.
        key: Key,
        /// The version read.
        version: Tid,
    },
    /// The TIDs of a worker do not grow.
    TidsOfWorkerNotGrowing {
        /// The earlier transaction.
        earlier: TransactionName,
        /// The later one.
        later: TransactionName,
    },
    /// Two transactions of the history have one name.
    DuplicateTransaction {
        /// The name that both have.
        name: TransactionName,
    },
    /// A snapshot transaction did not see the newest version before its snapshot epoch.
    SnapshotRead {
        /// The snapshot transaction.
        reader: TransactionName,
        /// The key.
        key: Key,
        /// What it saw; nothing if it found no record.
        seen: Option<Tid>,
        /// What it had to see; nothing if no version is old enough.
        newest: Option<Tid>,
    },
    /// A transaction found no record although the newest version before its epoch is a row.
    OverlookedRow {
        /// The transaction.
        reader: TransactionName,
        /// The key.
        key: Key,
        /// The row.
        newest: Tid,
    },
    /// A dependency against the order of the epochs.
    EpochOrder(Dependency),
    /// A cycle.
    Cycle(Cycle),
}

impl Violation {
    /// Returns the kind of the finding.
    pub fn anomaly(&self) -> Anomaly {
        match self {
            Violation::UncommittedRead { .. } => Anomaly::G1a,
            Violation::WrongState { .. } => Anomaly::G1b,
            Violation::DuplicateVersion { .. } => Anomaly::DuplicateVersion,
            Violation::TidNotAboveRead { .. } | Violation::TidsOfWorkerNotGrowing { .. } => Anomaly::TidOrder,
            Violation::DuplicateTransaction { .. } => Anomaly::DuplicateTransaction,
            Violation::SnapshotRead { .. } => Anomaly::SnapshotRead,
            Violation::OverlookedRow { .. } => Anomaly::OverlookedRow,
            Violation::EpochOrder(_) => Anomaly::EpochOrder,
            Violation::Cycle(cycle) => cycle.anomaly(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.anomaly())?;
        match self {
            Violation::UncommittedRead { reader, key, version } => {
                write!(f, "{reader} read {key}@{:#x}, which no committed transaction wrote", version.0)
            }
            Violation::WrongState { reader, key, version, seen_absent } => {
                let seen = if *seen_absent { "an absence" } else { "a row" };
                write!(f, "{reader} took {key}@{:#x} for {seen}, which it is not", version.0)
            }
            Violation::DuplicateVersion { key, version } => {
                write!(f, "{key}@{:#x} was written twice", version.0)
            }
            Violation::TidNotAboveRead { writer, key, version } => {
                write!(f, "the TID of {writer} is not above {key}@{:#x}, which it read", version.0)
            }
            Violation::TidsOfWorkerNotGrowing { earlier, later } => {
                write!(f, "the TID of {later} is not above that of {earlier} of the same worker")
            }
            Violation::DuplicateTransaction { name } => write!(f, "{name} stands in the history twice"),
            Violation::SnapshotRead { reader, key, seen, newest } => {
                write!(f, "{reader} saw {key}")?;
                match seen {
                    Some(version) => write!(f, "@{:#x}", version.0)?,
                    None => write!(f, " missing")?,
                }
                match newest {
                    Some(version) => write!(f, " instead of @{:#x}", version.0),
                    None => write!(f, ", but no version is that old"),
                }
            }
            Violation::OverlookedRow { reader, key, newest } => {
                write!(f, "{reader} found no {key}, where an earlier epoch left the row @{:#x}", newest.0)
            }
            Violation::EpochOrder(dependency) => dependency.fmt(f),
            Violation::Cycle(cycle) => cycle.fmt(f),
        }
    }
}
