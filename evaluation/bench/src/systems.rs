//! The systems that a workload can run on: the product, its other engines, and what Silo's paper compares it with.
//!
//! # Source
//! Silo (SOSP 2013) §5: which figure measures what stands at each. ERMIA (SIGMOD 2016).

/// A system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum System {
    /// The product with all that it has; in memory it is the paper's MemSilo, otherwise Silo.
    #[default]
    Ensilo,
    /// MemSilo+GlobalTID.
    GlobalTid,
    /// MemSilo+NoSS, which is also figure 11's +NoSnapshots.
    NoSnapshots,
    /// Figure 11's Simple.
    Simple,
    /// Figure 11's +Allocator.
    Allocator,
    /// Figure 11's +Overwrites, which is MemSilo.
    Overwrites,
    /// Figure 11's +NoGC.
    NoGc,
    /// Key-Value.
    KeyValue,
    /// Partitioned-Store.
    PartitionedStore,
    /// MemSilo+Split.
    Split,
    /// MemSilo+FastIds.
    FastIds,
    /// ERMIA's engine, serializable.
    Ermia,
    /// ERMIA's engine under snapshot isolation.
    ErmiaSnapshot,
    /// Two-phase locking, an older transaction waiting for younger ones.
    TwoPhaseLocking,
    /// Two-phase locking, nobody waiting.
    TwoPhaseLockingNoWait,
}

/// What of a transaction goes to the log of the product.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogRecords {
    /// Whole rows once a checkpoint, and the words that changed after that.
    #[default]
    Patches,
    /// Whole rows: figure 11's +FullRecs.
    Full,
    /// TIDs alone: figure 11's +SmallRecs. Nothing can be recovered.
    Small,
}

impl LogRecords {
    /// The name that the report shows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Patches => "patches",
            Self::Full => "full",
            Self::Small => "small",
        }
    }
}

impl System {
    /// What Silo's paper knows.
    pub const OF_SILO: [Self; 11] = [
        Self::Ensilo,
        Self::GlobalTid,
        Self::NoSnapshots,
        Self::Simple,
        Self::Allocator,
        Self::Overwrites,
        Self::NoGc,
        Self::KeyValue,
        Self::PartitionedStore,
        Self::Split,
        Self::FastIds,
    ];

    /// The product with ERMIA's engine.
    pub const OF_ERMIA: [Self; 2] = [Self::Ermia, Self::ErmiaSnapshot];

    /// The product with two-phase locking.
    pub const OF_TWO_PHASE_LOCKING: [Self; 2] = [Self::TwoPhaseLocking, Self::TwoPhaseLockingNoWait];

    /// Returns every system.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::OF_SILO.into_iter().chain(Self::OF_ERMIA).chain(Self::OF_TWO_PHASE_LOCKING)
    }

    /// The name by which it is asked for, and which the report shows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ensilo => "ensilo",
            Self::GlobalTid => "global-tid",
            Self::NoSnapshots => "no-snapshots",
            Self::Simple => "simple",
            Self::Allocator => "allocator",
            Self::Overwrites => "overwrites",
            Self::NoGc => "no-gc",
            Self::KeyValue => "key-value",
            Self::PartitionedStore => "partitioned-store",
            Self::Split => "split",
            Self::FastIds => "fast-ids",
            Self::Ermia => "ermia",
            Self::ErmiaSnapshot => "ermia-snapshot",
            Self::TwoPhaseLocking => "2pl",
            Self::TwoPhaseLockingNoWait => "2pl-no-wait",
        }
    }

    /// What it is, with the paper's name and section.
    pub fn description(self) -> &'static str {
        match self {
            Self::Ensilo => "Ensilo with all that it has (MemSilo with --memory, otherwise Silo)",
            Self::GlobalTid => "MemSilo+GlobalTID: TIDs from one counter that all workers share (§5.2)",
            Self::NoSnapshots => {
                "MemSilo+NoSS, +NoSnapshots: no old versions, no snapshots (§5.5, figure 11)"
            }
            Self::Simple => {
                "Simple: records from the general-purpose allocator, a new one a write (figure 11)"
            }
            Self::Allocator => {
                "+Allocator: records in per-worker slabs, a new one for each write (figure 11)"
            }
            Self::Overwrites => "+Overwrites: records are written in place; the same as ensilo (figure 11)",
            Self::NoGc => "+NoGC: no-snapshots that never frees anything (figure 11)",
            Self::KeyValue => "Key-Value: the index with gets and puts, no transactions; YCSB only (§5.2)",
            Self::PartitionedStore => {
                "Partitioned-Store: tables and a lock for each warehouse; TPC-C only (§5.4)"
            }
            Self::Split => "MemSilo+Split: tables for each warehouse; TPC-C only (§5.4)",
            Self::FastIds => {
                "MemSilo+FastIds: order ids from counters outside transactions; TPC-C only (§5.4)"
            }
            Self::Ermia => "ERMIA's engine: snapshot isolation made serializable (ERMIA-SSN)",
            Self::ErmiaSnapshot => {
                "ERMIA's engine under snapshot isolation: write skew is possible (ERMIA-SI)"
            }
            Self::TwoPhaseLocking => "two-phase locking; of two in conflict the older one waits (WAIT_DIE)",
            Self::TwoPhaseLockingNoWait => "two-phase locking; what meets a lock is run again (NO_WAIT)",
        }
    }

    /// The engine that runs its transactions: `silo` under all of its variants, `ermia`, `2pl`, or one of its own.
    pub fn engine(self) -> &'static str {
        match self {
            Self::Ermia | Self::ErmiaSnapshot => "ermia",
            Self::TwoPhaseLocking | Self::TwoPhaseLockingNoWait => "2pl",
            Self::KeyValue | Self::PartitionedStore => self.name(),
            _ => "silo",
        }
    }

    /// What transactions may see of each other.
    pub fn isolation(self) -> &'static str {
        match self {
            Self::ErmiaSnapshot => "snapshot",
            Self::KeyValue => "none",
            _ => "serializable",
        }
    }

    /// Whether it is the product with its default engine, under one of its names.
    pub fn is_product(self) -> bool {
        matches!(self, Self::Ensilo | Self::Overwrites)
    }

    /// Whether it is the product with ERMIA's engine.
    pub fn is_ermia(self) -> bool {
        Self::OF_ERMIA.contains(&self)
    }

    /// Whether it is the product with another engine than its default one.
    pub fn has_other_engine(self) -> bool {
        self.is_ermia() || Self::OF_TWO_PHASE_LOCKING.contains(&self)
    }

    /// Whether read-only transactions can run on snapshots.
    pub fn has_snapshots(self) -> bool {
        !matches!(self, Self::NoSnapshots | Self::NoGc | Self::KeyValue | Self::PartitionedStore)
    }

    /// Whether tables are split by warehouse.
    pub fn is_split(self) -> bool {
        matches!(self, Self::PartitionedStore | Self::Split)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_descriptions_tell_systems_apart() {
        let names: std::collections::BTreeSet<_> = System::all().map(System::name).collect();
        assert_eq!(names.len(), System::all().count());
        // They stand in a column of a terminal's help.
        assert!(System::all().all(|system| system.description().chars().count() <= 85));
    }
}
