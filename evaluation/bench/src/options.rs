//! What to measure, and how.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::database::DatabaseOptions;
use crate::driver::RunOptions;
use crate::place::StorageOptions;
use crate::report::CheckedRun;
use crate::stock::StockOptions;
use crate::systems::{LogRecords, System};
use crate::tpcb::TpcbOptions;
use crate::tpcc::TpccOptions;
use crate::tpcc_hybrid::HybridOptions;
use crate::tpce::TpceOptions;
use crate::ycsb::YcsbOptions;

/// Which workload, with its options.
#[derive(Debug, Clone)]
pub enum Benchmark {
    /// TPC-B.
    Tpcb(TpcbOptions),
    /// TPC-C.
    Tpcc(TpccOptions),
    /// TPC-C with CH-Q2*.
    TpccHybrid(HybridOptions),
    /// Reads and updates of TPC-C's stocks.
    Stock(StockOptions),
    /// TPC-E or TPC-E-hybrid.
    Tpce(TpceOptions),
    /// YCSB.
    Ycsb(YcsbOptions),
}

/// How to run it.
#[derive(Debug, Clone)]
pub struct BenchmarkOptions {
    /// Workers and times of each run.
    pub run: RunOptions,
    /// Runs, each with a database loaded anew; at least 1.
    pub runs: usize,
    /// Whether the database is checked for consistency after each run.
    pub check: bool,
    /// Whether a snapshot stays open from before the warm-up until the run has ended.
    pub holds_snapshot: bool,
    /// Whether a checkpoint is made and timed after the run, or after the recovery.
    pub times_checkpoint: bool,
    /// The database.
    pub database: DatabaseOptions,
    /// Where the database is kept; `None` for one in memory.
    pub storage: Option<StorageOptions>,
    /// What it runs on.
    pub system: System,
    /// What is logged.
    pub log_records: LogRecords,
    /// How each run ends in a crash and the database is recovered, if that is wanted. Not for one in memory.
    pub crash: Option<CrashOptions>,
}

/// How the program is started again so that it calls [`run_and_crash`](crate::run_and_crash) with the same options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrashOptions {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// The names of the transaction types, and what there is to report.
pub(crate) type Run = (&'static [&'static str], CheckedRun);

impl Benchmark {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Tpcb(_) => "tpcb",
            Self::Tpcc(_) => "tpcc",
            Self::TpccHybrid(_) => "tpcc-hybrid",
            Self::Stock(_) => "stock",
            Self::Tpce(tpce) => tpce.name(),
            Self::Ycsb(_) => "ycsb",
        }
    }

    pub(crate) fn parameters(&self, options: &BenchmarkOptions) -> serde_json::Value {
        let mut parameters = match self {
            Self::Tpcb(tpcb) => tpcb.parameters(),
            Self::Tpcc(tpcc) => tpcc.parameters(),
            Self::TpccHybrid(hybrid) => hybrid.parameters(),
            Self::Stock(stock) => stock.parameters(),
            Self::Tpce(tpce) => tpce.parameters(),
            Self::Ycsb(ycsb) => ycsb.parameters(),
        };
        parameters["seconds"] = options.run.measured.as_secs_f64().into();
        parameters["warmup_seconds"] = options.run.warmup.as_secs_f64().into();
        parameters["runs"] = options.runs.into();
        parameters["pinned"] = options.run.pin.into();
        parameters["database"] = options.database.parameters();
        parameters["durable"] = options.storage.is_some().into();
        parameters["holds_snapshot"] = options.holds_snapshot.into();
        parameters["times_checkpoint"] = options.times_checkpoint.into();
        parameters["crash"] = options.crash.is_some().into();
        parameters["log_records"] = options.storage.as_ref().map(|_| options.log_records.name()).into();
        if let Self::Tpcc(tpcc) = self {
            parameters["partitions"] = options.system.is_split().then(|| tpcc.partitions()).into();
        }
        parameters
    }

    /// How many bytes of memory rows and indexes of a run may take, roughly, old versions included: what is loaded, and what its
    /// transactions add.
    pub fn memory_bytes(&self, run: &RunOptions) -> u64 {
        /// A record, and versions of it that snapshots may see.
        const VERSIONS: u64 = 3;
        let (loaded, adding) = match self {
            Self::Tpcb(tpcb) => (tpcb.loaded_bytes().saturating_mul(VERSIONS), 1.0),
            Self::Tpcc(tpcc) => (tpcc.loaded_bytes(), 1.0),
            Self::TpccHybrid(hybrid) => (hybrid.tpcc().loaded_bytes(), 1.0),
            Self::Stock(stock) => (stock.loaded_bytes().saturating_mul(VERSIONS), 0.0),
            Self::Tpce(tpce) => (tpce.loaded_bytes(), 1.0),
            Self::Ycsb(ycsb) => (ycsb.loaded_bytes().saturating_mul(VERSIONS), ycsb.inserting_share()),
        };
        run.memory_bytes(loaded, adding)
    }

    /// How many bytes log and checkpoints of a run may take at most, roughly: the load in the log and in two checkpoints, and what the
    /// workers log, which is bounded in turn by the checkpoints that a large log brings about.
    pub(crate) fn disk_bytes(&self, options: &BenchmarkOptions) -> u64 {
        /// What a worker logs in a second, and the log at which there is a checkpoint at the latest, twice.
        const LOGGED_BYTES: f64 = 96e6;
        const LOG_BYTES_MAX: f64 = 8e9;
        let (loaded, writing) = match self {
            Self::Tpcb(tpcb) => (tpcb.loaded_bytes(), 1.0),
            Self::Tpcc(tpcc) => (tpcc.loaded_bytes(), 1.0),
            Self::TpccHybrid(hybrid) => (hybrid.tpcc().loaded_bytes(), 1.0),
            Self::Stock(stock) => (stock.loaded_bytes(), stock.writing_share()),
            Self::Tpce(tpce) => (tpce.loaded_bytes(), 1.0),
            Self::Ycsb(ycsb) => (ycsb.loaded_bytes(), ycsb.writing_share()),
        };
        let run = &options.run;
        let logged = LOGGED_BYTES * writing * run.workers as f64 * (run.warmup + run.measured).as_secs_f64();
        if options.database.has_no_checkpoints {
            return loaded + logged as u64;
        }
        3 * loaded + logged.min(LOG_BYTES_MAX) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ycsb::NamedMix;

    const MIB: u64 = 1 << 20;

    fn run(workers: usize) -> RunOptions {
        RunOptions { workers, warmup: Duration::from_secs(2), measured: Duration::from_secs(10), pin: false }
    }

    fn ycsb(records: u64, mix: &str) -> Benchmark {
        let mix: NamedMix = mix.parse().unwrap();
        Benchmark::Ycsb(YcsbOptions { records, mix, ..YcsbOptions::new(8) })
    }

    #[test]
    fn memory_follows_what_is_loaded_and_added() {
        let small = ycsb(100_000, "silo").memory_bytes(&run(8));
        assert!(small < 128 * MIB, "{small}");
        let large = ycsb(10_000_000, "silo").memory_bytes(&run(8));
        assert!(large > 3_000 * MIB && large < 6_000 * MIB, "{large}");
        let updates = ycsb(100_000, "rmw=100").memory_bytes(&run(8));
        assert_eq!(updates, small);
        let inserts = ycsb(100_000, "read=50,insert=50").memory_bytes(&run(8));
        assert!(inserts > 6_000 * MIB && inserts < 6_300 * MIB, "{inserts}");
    }
}
