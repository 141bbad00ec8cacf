//! The result of a check.

use std::collections::BTreeMap;
use std::fmt;

use super::{Anomaly, Violation};
use crate::check::IsolationLevel;

/// How much a history contained.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Committed transactions, snapshot transactions included.
    pub transactions: u64,
    /// Snapshot transactions.
    pub snapshots: u64,
    /// Item reads.
    pub reads: u64,
    /// Scanned ranges and keys found missing.
    pub predicate_reads: u64,
    /// Versions written, initial ones included.
    pub versions: u64,
    /// Keys written.
    pub keys: u64,
    /// Edges of the direct serialization graph between different transactions, without those by program order.
    pub dependencies: u64,
    /// Edges between transactions of one level: those that could take part in a cycle.
    pub dependencies_within_epochs: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} transactions ({} snapshots), {} reads, {} predicate reads, {} versions of {} keys, \
             {} dependencies ({} within epochs)",
            self.transactions,
            self.snapshots,
            self.reads,
            self.predicate_reads,
            self.versions,
            self.keys,
            self.dependencies,
            self.dependencies_within_epochs
        )
    }
}

/// The findings about a history that is not what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What the history was held to.
    pub isolation: IsolationLevel,
    /// The first findings of each kind.
    pub violations: Vec<Violation>,
    /// How many there are of each kind, those left out of `violations` included.
    pub counts: BTreeMap<Anomaly, u64>,
    /// How much the history contained.
    pub summary: Summary,
}

impl Report {
    /// Returns the kinds of findings, in order.
    pub fn anomalies(&self) -> Vec<Anomaly> {
        self.counts.keys().copied().collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.isolation {
            IsolationLevel::Serializable => write!(f, "not serializable: {}", self.summary)?,
            IsolationLevel::SnapshotIsolation => write!(f, "no snapshot isolation: {}", self.summary)?,
        }
        for (anomaly, count) in &self.counts {
            write!(f, "\n  {count} x {anomaly}")?;
        }
        for violation in &self.violations {
            write!(f, "\n  {violation}")?;
        }
        Ok(())
    }
}

/// Why a history without findings proves nothing.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Inconclusive {
    /// Fewer transactions than asked for.
    TooFewTransactions {
        /// How many there are.
        found: u64,
        /// How many there must be.
        wanted: u64,
    },
    /// Fewer dependencies than asked for: the transactions hardly met each other.
    TooFewDependencies {
        /// How many there are.
        found: u64,
        /// How many there must be.
        wanted: u64,
    },
}

impl fmt::Display for Inconclusive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (found, wanted, what) = match self {
            Inconclusive::TooFewTransactions { found, wanted } => (found, wanted, "transactions"),
            Inconclusive::TooFewDependencies { found, wanted } => (found, wanted, "dependencies"),
        };
        write!(f, "inconclusive: {found} {what}, at least {wanted} are needed")
    }
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// The history is equivalent to a serial one in an order that agrees with the epochs.
    Serializable(Summary),
    /// Nothing else was asked than snapshot isolation, and that it has.
    SnapshotIsolated(Summary),
    /// It is not what was asked.
    Violated(Report),
    /// There was too little to judge.
    Inconclusive(Inconclusive),
}

impl Verdict {
    /// Returns whether the history was large enough and serializable.
    pub fn is_serializable(&self) -> bool {
        matches!(self, Verdict::Serializable(_))
    }

    /// Returns whether the history was large enough, and one of snapshot isolation, when no more was asked.
    pub fn is_snapshot_isolated(&self) -> bool {
        matches!(self, Verdict::SnapshotIsolated(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Serializable(summary) => write!(f, "serializable: {summary}"),
            Verdict::SnapshotIsolated(summary) => write!(f, "snapshot isolation: {summary}"),
            Verdict::Violated(report) => report.fmt(f),
            Verdict::Inconclusive(reason) => reason.fmt(f),
        }
    }
}
