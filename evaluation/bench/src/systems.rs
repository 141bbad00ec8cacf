//! The systems that a workload can run on: the product, and what Silo's paper compares it with.
//!
//! # Source
//! Silo (SOSP 2013) §5: which figure measures what stands at each.

use crate::benchmark::{Benchmark, BenchmarkOptions};
use crate::tpcc::ReadOnly;
use crate::ycsb;

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
    /// Every system.
    pub const ALL: [Self; 11] = [
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

    /// The name by which it is asked for.
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
        }
    }

    /// Whether it is the product, under one of its names.
    pub fn is_product(self) -> bool {
        matches!(self, Self::Ensilo | Self::Overwrites)
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

/// Why the benchmark cannot run with these options, if so: the system that is asked for does not go with the rest.
pub fn refusal(benchmark: &Benchmark, options: &BenchmarkOptions) -> Option<String> {
    let system = options.system;
    let name = system.name();
    if !system.is_product() && options.storage.is_some() {
        return Some(format!("{name} is measured in memory: it needs --memory"));
    }
    if system == System::Simple && options.database.memory_limit_bytes.is_some() {
        return Some(format!("no --memory-limit-mib bounds the records of {name}"));
    }
    match benchmark {
        Benchmark::Tpcc(_) if system == System::KeyValue => {
            return Some(format!("{name} has no transactions, which TPC-C is made of"));
        }
        Benchmark::Tpcc(tpcc) => {
            if tpcc.read_only == ReadOnly::Snapshot && !system.has_snapshots() {
                return Some(format!("{name} has no snapshots: --read-only ordinary"));
            }
            if tpcc.partitions() > tpcc.warehouses {
                return Some("there are fewer --warehouses than --partitions".to_owned());
            }
        }
        Benchmark::Ycsb(_) if system.is_split() || system == System::FastIds => {
            return Some(format!("{name} is about the tables of TPC-C"));
        }
        Benchmark::Ycsb(ycsb) if system == System::KeyValue => {
            let has_scans = ycsb.mix.shares.percent(ycsb::SCAN) > 0.0;
            if has_scans || ycsb.operations > 1 {
                return Some(format!(
                    "{name} has gets and puts of single keys: no scans, one of --operations"
                ));
            }
        }
        Benchmark::Ycsb(_) => {}
    }
    refused_log(options)
}

/// Why what is logged does not go with the rest.
fn refused_log(options: &BenchmarkOptions) -> Option<String> {
    let name = options.log_records.name();
    if options.log_records == LogRecords::Patches {
        return None;
    }
    let Some(storage) = &options.storage else {
        return Some(format!("--log-records {name}: with --memory nothing is logged"));
    };
    if options.crash.is_some() {
        return Some(format!("--crash is for what the product logs, not for --log-records {name}"));
    }
    let is_kept = options.log_records == LogRecords::Small && storage.data_directory.is_some();
    is_kept
        .then(|| format!("nothing can be recovered from --log-records {name}: no --data-dir to keep it in"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_descriptions_tell_systems_apart() {
        let names: std::collections::BTreeSet<_> = System::ALL.map(System::name).into_iter().collect();
        assert_eq!(names.len(), System::ALL.len());
        // They stand in a column of a terminal's help.
        assert!(System::ALL.iter().all(|system| system.description().chars().count() <= 85));
    }
}
