//! Which options do not go together.

use crate::options::{Benchmark, BenchmarkOptions};
use crate::systems::{LogRecords, System};
use crate::tpcc::ReadOnly;
use crate::ycsb::{self, YcsbOptions};

/// Why the benchmark cannot run with these options, if so: the system that is asked for does not go with the rest.
pub fn refusal(benchmark: &Benchmark, options: &BenchmarkOptions) -> Option<String> {
    let system = options.system;
    let name = system.name();
    if !system.is_product() && !system.has_other_engine() && options.storage.is_some() {
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
        Benchmark::Tpcb(_) | Benchmark::TpccHybrid(_) | Benchmark::Stock(_) | Benchmark::Tpce(_) => {
            if system != System::Ensilo && !system.has_other_engine() {
                return Some(format!("{name} does not run {}, which compares engines", benchmark.name()));
            }
            let is_compiled_for_all = matches!(benchmark, Benchmark::Tpcb(_) | Benchmark::Stock(_));
            if system == System::TwoPhaseLockingNoWait && !is_compiled_for_all {
                let name_that_does = System::TwoPhaseLocking.name();
                return Some(format!("{name} does not run {}, as {name_that_does} does", benchmark.name()));
            }
            if options.log_records != LogRecords::Patches {
                let log_records = options.log_records.name();
                return Some(format!("{} has no --log-records {log_records}", benchmark.name()));
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
    if options.holds_snapshot && !system.has_snapshots() {
        return Some(format!("--hold-snapshot: {name} has no snapshots"));
    }
    let refused_shape = match benchmark {
        Benchmark::Ycsb(ycsb) => refused_shape(ycsb, system),
        _ => None,
    };
    refused_shape.or_else(|| refused_log(options))
}

/// Why tables, indexes, sessions and batches of YCSB do not go with the rest.
fn refused_shape(ycsb: &YcsbOptions, system: System) -> Option<String> {
    let YcsbOptions { tables, indexes, sessions, batch, operations, workers, .. } = *ycsb;
    let name = system.name();
    let is_ours = system.is_product() || system.has_other_engine();
    let ours_alone = [
        ("--tables", tables > 1),
        ("--indexes", indexes.is_some()),
        ("--sessions", sessions.is_some()),
        ("--batch", batch.is_some()),
    ];
    if let Some((option, _)) = ours_alone.into_iter().find(|&(_, is_asked)| is_asked && !is_ours) {
        return Some(format!("{option} is for the product and its engines, not for {name}"));
    }
    if operations > 1 && tables > 1 {
        return Some("--tables: a transaction of several --operations has one table".to_owned());
    }
    if operations > 1 && batch.is_some() {
        return Some("--batch: the look-ups of several --operations are interleaved as it is".to_owned());
    }
    if sessions.is_some_and(|sessions| sessions < workers) {
        return Some(format!("there are fewer --sessions than the {workers} workers"));
    }
    None
}

/// Why what is logged does not go with the rest.
fn refused_log(options: &BenchmarkOptions) -> Option<String> {
    if options.database.logs_operations {
        if !options.system.is_ermia() {
            return Some(format!(
                "--logging per-operation: {} logs per transaction alone",
                options.system.name()
            ));
        }
        if options.storage.is_none() {
            return Some("--logging per-operation: with --memory nothing is logged".to_owned());
        }
    }
    let name = options.log_records.name();
    if options.log_records == LogRecords::Patches {
        return None;
    }
    if options.system.has_other_engine() {
        return Some(format!("--log-records {name}: {} has no choice of them", options.system.name()));
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
