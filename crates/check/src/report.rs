//! What the checker has to say: values that can be compared by programs and read by people.

use std::collections::BTreeMap;
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

/// Transactions none of which can come first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// The edges; each begins where the one before ends, the first where the last ends.
    pub steps: Vec<Dependency>,
    /// The well-known pattern that this is, if it is one.
    pub pattern: Option<&'static str>,
}

impl Cycle {
    pub(crate) fn of(steps: Vec<Dependency>, has_reader: bool) -> Cycle {
        let kinds: Vec<DependencyKind> = steps.iter().map(|step| step.kind).collect();
        let on_one_key = steps.iter().all(|step| step.key == steps[0].key);
        let anti = kinds.iter().filter(|kind| **kind == DependencyKind::ReadWrite).count();
        let pattern = match kinds.len() {
            _ if kinds.contains(&DependencyKind::ProgramOrder) => None,
            _ if kinds.contains(&DependencyKind::PredicateReadWrite) => Some("phantom"),
            2 if on_one_key && anti == 1 && kinds.contains(&DependencyKind::WriteWrite) => {
                Some("lost update")
            }
            2 if !on_one_key && anti == 2 => Some("write skew"),
            2 if anti == 1 && kinds.contains(&DependencyKind::WriteRead) => Some("read skew"),
            3 if has_reader && anti == 2 => Some("read-only anomaly"),
            _ => None,
        };
        Cycle { steps, pattern }
    }

    /// The class of the cycle: that of its least harmless edge.
    pub fn anomaly(&self) -> Anomaly {
        let worst = self.steps.iter().map(|step| step.kind).max();
        match worst.expect("a cycle has edges") {
            DependencyKind::WriteWrite | DependencyKind::WriteRead | DependencyKind::PredicateWriteRead => {
                Anomaly::G1c
            }
            DependencyKind::ReadWrite => Anomaly::G2Item,
            DependencyKind::PredicateReadWrite => Anomaly::G2,
            DependencyKind::ProgramOrder => Anomaly::ProgramOrder,
        }
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cycle of {}", self.steps.len())?;
        if let Some(pattern) = self.pattern {
            write!(f, " ({pattern})")?;
        }
        for step in &self.steps {
            write!(f, "\n    {step}")?;
        }
        Ok(())
    }
}

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
    /// The kind of the finding.
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

/// The findings about a history that is not serializable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The first findings of each kind.
    pub violations: Vec<Violation>,
    /// How many there are of each kind, those left out of `violations` included.
    pub counts: BTreeMap<Anomaly, u64>,
    /// How much the history contained.
    pub summary: Summary,
}

impl Report {
    /// The kinds of findings, in order.
    pub fn anomalies(&self) -> Vec<Anomaly> {
        self.counts.keys().copied().collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not serializable: {}", self.summary)?;
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
    /// The history is equivalent to a serial one whose order agrees with the epochs.
    Serializable(Summary),
    /// It is not.
    Violated(Report),
    /// There was too little to judge.
    Inconclusive(Inconclusive),
}

impl Verdict {
    /// Whether the history was large enough and serializable.
    pub fn is_serializable(&self) -> bool {
        matches!(self, Verdict::Serializable(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Serializable(summary) => write!(f, "serializable: {summary}"),
            Verdict::Violated(report) => report.fmt(f),
            Verdict::Inconclusive(reason) => reason.fmt(f),
        }
    }
}
