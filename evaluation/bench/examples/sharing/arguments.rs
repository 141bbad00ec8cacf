//! What is counted.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Parser, ValueEnum, value_parser};
use ensilo_bench::tpcc::{ReadOnly, Scale, TpccOptions};
use ensilo_bench::ycsb::YcsbOptions;
use ensilo_bench::{Benchmark, System};

/// Counts the cache lines that workers share.
///
/// Workers take turns, a transaction each, so that the counts do not depend on the machine's cores or speed. Each worker has a cache of
/// its own, kept coherent as hardware does it. Its size relates to the database as that of the paper's machine does to the paper's.
#[derive(Debug, Parser)]
pub(crate) struct Arguments {
    /// Workers
    #[arg(long, default_value_t = 4, value_parser = value_parser!(u16).range(2..=64))]
    pub(crate) workers: u16,

    /// Transactions that each worker runs to fill its cache, and again as many that are counted
    #[arg(long, default_value_t = 10_000, value_parser = value_parser!(u64).range(1..))]
    pub(crate) transactions: u64,

    /// Records of the YCSB database
    #[arg(long, default_value_t = 1_000_000, value_parser = value_parser!(u64).range(1..))]
    pub(crate) records: u64,

    /// The workload; both by default
    #[arg(long, value_enum)]
    workload: Option<WorkloadName>,

    /// Systems, like ensilo,global-tid; all that run the workload by default
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(System::all().map(System::name)))]
    systems: Vec<String>,

    /// File for the counts as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
}

/// A workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WorkloadName {
    /// Silo's variant of YCSB (Silo §5.2): 80 reads and 20 read-modify-writes of 100, one a transaction, uniform keys
    Ycsb,
    /// TPC-C with a warehouse for each worker
    Tpcc,
}

/// A workload on a system.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject {
    pub(crate) workload: WorkloadName,
    pub(crate) system: System,
}

impl WorkloadName {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ycsb => "ycsb",
            Self::Tpcc => "tpcc",
        }
    }

    fn runs_on(self, system: System) -> bool {
        match self {
            Self::Ycsb => !system.is_split() && system != System::FastIds,
            Self::Tpcc => system != System::KeyValue,
        }
    }
}

impl Arguments {
    pub(crate) fn subjects(&self) -> Vec<Subject> {
        let workloads = match self.workload {
            Some(workload) => vec![workload],
            None => vec![WorkloadName::Ycsb, WorkloadName::Tpcc],
        };
        let is_asked_for =
            |system: System| self.systems.is_empty() || self.systems.iter().any(|name| name == system.name());
        let all = workloads.into_iter().flat_map(|workload| {
            System::all()
                .filter(move |&system| workload.runs_on(system))
                .map(move |system| (workload, system))
        });
        all.filter(|&(_, system)| is_asked_for(system))
            .map(|(workload, system)| Subject { workload, system })
            .collect()
    }

    pub(crate) fn benchmark(&self, subject: &Subject) -> Benchmark {
        let workers = usize::from(self.workers);
        match subject.workload {
            WorkloadName::Ycsb => {
                Benchmark::Ycsb(YcsbOptions { records: self.records, ..YcsbOptions::new(workers) })
            }
            WorkloadName::Tpcc => {
                let read_only =
                    if subject.system.has_snapshots() { ReadOnly::Snapshot } else { ReadOnly::Ordinary };
                Benchmark::Tpcc(TpccOptions { scale: SCALE, read_only, ..TpccOptions::new(workers) })
            }
        }
    }

    /// Lines of each worker's cache.
    ///
    /// The paper's processors have 24 MiB of cache for eight cores (Silo §5.1). Workers of YCSB share what they keep in it, the upper
    /// levels of the tree, so that each counts with all of it, in the relation of 160 million keys to the records here; those of TPC-C
    /// keep their own warehouses in it, so that each counts with its eighth, a tenth of that as the warehouses are a tenth.
    pub(crate) fn cache_lines(&self, workload: WorkloadName) -> u64 {
        const PROCESSOR_LINES: u64 = (24 << 20) / 64;
        const PAPER_KEYS: u64 = 160_000_000;
        match workload {
            WorkloadName::Ycsb => (PROCESSOR_LINES * self.records / PAPER_KEYS).clamp(512, PROCESSOR_LINES),
            WorkloadName::Tpcc => PROCESSOR_LINES / 8 / 10,
        }
    }
}

/// A tenth of the specification's.
const SCALE: Scale = Scale { items: 10_000, customers: 300 };
