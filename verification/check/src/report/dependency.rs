//! One edge of the direct serialization graph, explained.

use std::fmt;

use crate::history::{Epoch, Key, Tid, Transaction, TransactionId};

/// The name of a transaction in a report.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TransactionName {
    /// Worker and sequence.
    pub id: TransactionId,
    /// Its TID.
    pub tid: Tid,
    /// Its commit epoch, or the snapshot epoch of a snapshot transaction.
    pub epoch: Epoch,
    /// Whether it is a snapshot transaction.
    pub is_snapshot: bool,
}

impl TransactionName {
    pub(crate) fn of(transaction: &Transaction) -> TransactionName {
        TransactionName {
            id: transaction.id,
            tid: transaction.tid,
            epoch: transaction.horizon(),
            is_snapshot: transaction.snapshot.is_some(),
        }
    }
}

impl fmt::Display for TransactionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TransactionId { worker, sequence } = self.id;
        let Epoch(epoch) = self.epoch;
        if self.is_snapshot {
            write!(f, "T{worker}.{sequence} (snapshot {epoch})")
        } else {
            write!(f, "T{worker}.{sequence} (epoch {epoch}, TID {:#x})", self.tid.0)
        }
    }
}

/// Why one transaction must come after another.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DependencyKind {
    /// The second overwrote what the first had written (ww).
    WriteWrite,
    /// The second read what the first had written (wr).
    WriteRead,
    /// The second found no record because of a delete of the first (predicate wr).
    PredicateWriteRead,
    /// The second overwrote what the first had read (rw).
    ReadWrite,
    /// The second inserted a key that the first had found missing (predicate rw).
    PredicateReadWrite,
    /// One worker ran the second after the first.
    ProgramOrder,
}

impl DependencyKind {
    /// Returns whether the second has made what the first has not seen.
    #[must_use]
    pub fn is_anti_dependency(self) -> bool {
        matches!(self, DependencyKind::ReadWrite | DependencyKind::PredicateReadWrite)
    }
}

/// One edge of the direct serialization graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The transaction that comes first in the serial order.
    pub from: TransactionName,
    /// The transaction that comes later.
    pub to: TransactionName,
    /// Why.
    pub kind: DependencyKind,
    /// The key that they conflict on; nothing for the order of a worker's transactions.
    pub key: Option<Key>,
    /// For an anti-dependency the version that `from` read; nothing if it was the initial state or no record.
    pub read: Option<Tid>,
}

impl fmt::Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Dependency { from, to, .. } = self;
        let key = |f: &mut fmt::Formatter<'_>| self.key.as_ref().map_or(Ok(()), |key| write!(f, " {key}"));
        match self.kind {
            DependencyKind::WriteWrite => {
                write!(f, "{from} --ww--> {to}: wrote")?;
                key(f)?;
                write!(f, "@{:#x}, overwritten with @{:#x}", from.tid.0, to.tid.0)
            }
            DependencyKind::WriteRead => {
                write!(f, "{from} --wr--> {to}: wrote")?;
                key(f)?;
                write!(f, "@{:#x}, read", from.tid.0)
            }
            DependencyKind::PredicateWriteRead => {
                write!(f, "{from} --wr(predicate)--> {to}: deleted")?;
                key(f)?;
                write!(f, "@{:#x}, found missing", from.tid.0)
            }
            DependencyKind::ReadWrite => {
                write!(f, "{from} --rw--> {to}: read")?;
                key(f)?;
                match self.read {
                    Some(version) => write!(f, "@{:#x}", version.0)?,
                    None => write!(f, " in its initial state")?,
                }
                write!(f, ", overwritten with @{:#x}", to.tid.0)
            }
            DependencyKind::PredicateReadWrite => {
                write!(f, "{from} --rw(predicate)--> {to}: found no")?;
                key(f)?;
                write!(f, ", inserted with @{:#x}", to.tid.0)
            }
            DependencyKind::ProgramOrder => write!(f, "{from} --program order--> {to}"),
        }
    }
}
