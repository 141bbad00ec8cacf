//! What a benchmark reports. The names of the fields are the names in the JSON and stay as they are.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::durable::{DurabilityReport, DurableLatencyReport, RecoveryReport, TimedCheckpoint};
use super::half_seconds::HalfSecondsReport;
use super::machine::{Build, Machine};
use crate::disk::DiskReport;
use crate::driver::{AbortKind, Aborts, Check, Interval, Memory, RunResult, SecondCounts, TypeMeasurements};
use crate::systems::System;

/// The result of `ensilo bench`: of several runs, the counts and latencies are those of the run with the median
/// throughput, and the consistency checks are those of all.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The workload's name, like `tpcc`.
    pub workload: &'static str,
    /// What it ran on, `ensilo` unless something else was asked for.
    pub system: &'static str,
    /// The engine that ran the transactions: `silo`, `ermia`, `2pl`, or that of the system's own name.
    pub engine: &'static str,
    /// What transactions could see of each other: `serializable`, `snapshot`, or `none` where there are no transactions.
    pub isolation: &'static str,
    /// Threads that ran transactions.
    pub workers: usize,
    /// Seconds measured.
    pub seconds: f64,
    /// Transactions that committed.
    pub committed: u64,
    /// Attempts that aborted, those rolled back on purpose included.
    pub aborted: u64,
    /// The same for each transaction that committed; `null` if none did.
    pub aborted_per_commit: Option<f64>,
    /// Committed transactions per second.
    pub throughput_per_second: f64,
    /// How steady the throughput was; `null` for a run of less than half a second.
    pub half_seconds: Option<HalfSecondsReport>,
    /// Seconds of processors that the program took meanwhile, loggers and checkpoints included.
    pub processor_seconds: f64,
    /// How long transactions took until they were stored; `null` for a database in memory, as the next four are.
    pub durable_latency_ms: Option<DurableLatencyReport>,
    /// Bytes written to the log in the measured time.
    pub log_bytes: Option<u64>,
    /// Bytes written to checkpoints in the measured time.
    pub checkpoint_bytes: Option<u64>,
    /// Log and checkpoints in the measured time.
    pub durability: Option<DurabilityReport>,
    /// The disk by itself, before the run.
    pub disk: Option<DiskReport>,
    /// How the database came back; `null` if there was no crash. Of several runs, the slowest recovery, with the losses of all.
    pub recovery: Option<RecoveryReport>,
    /// The checkpoint that was made after the run or the recovery, if one was asked for; of several runs, the slowest.
    pub timed_checkpoint: Option<TimedCheckpoint>,
    /// Bytes in use at the end by rows, their older versions and indexes.
    pub memory_bytes: u64,
    /// Consistency checks made, over all runs.
    pub consistency_checks: usize,
    /// Consistency checks that failed, over all runs.
    pub consistency_failures: usize,
    /// Whether the user ended the benchmark early.
    pub interrupted: bool,
    /// By transaction type.
    #[serde(serialize_with = "in_order")]
    pub transactions: Vec<(&'static str, TypeReport)>,
    /// Aborted attempts by reason, over all types.
    #[serde(serialize_with = "in_order")]
    pub aborts: Vec<(&'static str, AbortShare)>,
    /// The consistency checks one by one.
    pub consistency: Vec<CheckReport>,
    /// The database's memory.
    pub memory: MemoryReport,
    /// Each second of the median run.
    pub per_second: Vec<SecondCounts>,
    /// Every run in the order they were made.
    pub runs: Vec<RunReport>,
    /// What the workload was asked to do.
    pub parameters: serde_json::Value,
    /// The machine.
    pub machine: Machine,
    /// The program.
    pub build: Build,
}

/// Counts and latencies of a transaction type.
#[derive(Debug, Clone, Serialize)]
pub struct TypeReport {
    /// Transactions that committed.
    pub count: u64,
    /// Attempts that aborted.
    pub aborted: u64,
    /// The most of a single transaction, before it committed or was given up. [`LatencyReport::max`] is the longest time that one was tried.
    pub aborted_of_one_max: u64,
    /// Aborted attempts by reason; reasons that never occurred are left out.
    #[serde(serialize_with = "in_order")]
    pub aborts: Vec<(&'static str, AbortShare)>,
    /// Latency from the first attempt to the commit or rollback, in microseconds.
    pub latency_us: LatencyReport,
    /// Until it was stored, in milliseconds; `null` if none had to wait for the disk.
    pub durable_latency_ms: Option<DurableLatencyReport>,
}

/// Aborts for one reason.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct AbortShare {
    /// Attempts.
    pub count: u64,
    /// Share of all attempts, 0 to 1.
    pub share: f64,
}

/// Latencies in microseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct LatencyReport {
    /// Half of the transactions took at most this.
    pub p50: f64,
    /// 95 of 100 took at most this.
    pub p95: f64,
    /// 99 of 100.
    pub p99: f64,
    /// 999 of 1000.
    pub p99_9: f64,
    /// The longest.
    pub max: f64,
}

/// A consistency check.
#[derive(Debug, Clone, Serialize)]
pub struct CheckReport {
    /// The run it was made after, from 1.
    pub run: usize,
    /// Its name.
    pub name: &'static str,
    /// What must hold.
    pub condition: &'static str,
    /// Whether it does.
    pub passed: bool,
    /// Things it was held against.
    pub examined: u64,
    /// Things that violate it.
    pub violated: u64,
    /// The first violations in numbers.
    pub examples: Vec<String>,
}

/// Memory of the database.
#[derive(Debug, Clone, Serialize)]
pub struct MemoryReport {
    /// Bytes taken from the operating system, those included that were taken in advance.
    pub mapped_bytes: u64,
    /// Bytes in use.
    pub live_bytes: u64,
    /// Bytes in use when the measured time began.
    pub live_bytes_before: u64,
    /// Older versions of rows at the end, which snapshots may need.
    pub versions: u64,
    /// Bytes of those versions.
    pub version_bytes: u64,
    /// Bytes in use by table and index.
    pub by_table: BTreeMap<String, u64>,
}

/// One run.
#[derive(Debug, Clone, Serialize)]
pub struct RunReport {
    /// Seconds measured.
    pub seconds: f64,
    /// Transactions that committed.
    pub committed: u64,
    /// Attempts that aborted.
    pub aborted: u64,
    /// Committed transactions per second.
    pub throughput_per_second: f64,
    /// Bytes in use at the end.
    pub memory_bytes: u64,
    /// How steady the throughput was; `null` for a run of less than half a second.
    pub half_seconds: Option<HalfSecondsReport>,
    /// The measured time in tenths of a second.
    pub timeline: Vec<Interval>,
}

/// A run and the checks made after it.
#[derive(Debug, Clone)]
pub struct CheckedRun {
    /// What it measured.
    pub result: RunResult,
    /// What was checked afterwards.
    pub checks: Vec<Check>,
    /// The disk before it, if the database lies on one.
    pub disk: Option<DiskReport>,
    /// How the database came back, if the run ended in a crash.
    pub recovery: Option<RecoveryReport>,
    /// The checkpoint that was made afterwards, if one was asked for.
    pub timed_checkpoint: Option<TimedCheckpoint>,
}

/// What a report says beside the measurements.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The workload's name.
    pub workload: &'static str,
    /// What it ran on.
    pub system: System,
    /// Its transaction types.
    pub transaction_types: &'static [&'static str],
    /// Threads that ran transactions.
    pub workers: usize,
    /// What it was asked to do.
    pub parameters: serde_json::Value,
}

impl Report {
    /// The report on `runs`, of which there is at least one.
    pub fn new(subject: Subject, runs: &[CheckedRun]) -> Self {
        let CheckedRun { result: median, disk, .. } = median(runs);
        let Memory { live_bytes, mapped_bytes, versions, version_bytes, by_table } =
            median.memory_after.clone();
        let consistency = check_reports(runs);
        let committed = median.measurements.committed();
        let aborts = median.measurements.aborts();
        let durability = median.durability.as_ref();
        Self {
            workload: subject.workload,
            system: subject.system.name(),
            engine: subject.system.engine(),
            isolation: subject.system.isolation(),
            workers: subject.workers,
            seconds: median.seconds,
            committed,
            aborted: aborts.total(),
            aborted_per_commit: (committed > 0).then(|| aborts.total() as f64 / committed as f64),
            throughput_per_second: throughput(median),
            half_seconds: HalfSecondsReport::new(&median.timeline),
            processor_seconds: median.processor_seconds,
            durable_latency_ms: durability
                .map(|_| DurableLatencyReport::new(&median.measurements.durable_latencies())),
            log_bytes: durability.map(|counts| counts.log_bytes),
            checkpoint_bytes: durability.map(|counts| counts.checkpoint_bytes),
            durability: durability.map(|counts| DurabilityReport::new(counts.clone(), committed)),
            disk: *disk,
            recovery: worst_recovery(runs),
            timed_checkpoint: slowest_checkpoint(runs),
            memory_bytes: live_bytes,
            consistency_checks: consistency.len(),
            consistency_failures: consistency.iter().filter(|check| !check.passed).count(),
            interrupted: runs.iter().any(|run| run.result.interrupted),
            transactions: type_reports(subject.transaction_types, median.measurements.types()),
            aborts: abort_shares(&aborts, committed),
            consistency,
            memory: MemoryReport {
                mapped_bytes,
                live_bytes,
                live_bytes_before: median.memory_before.live_bytes,
                versions,
                version_bytes,
                by_table: by_table.into_iter().collect(),
            },
            per_second: median.per_second.clone(),
            runs: runs.iter().map(|run| run_report(&run.result)).collect(),
            parameters: subject.parameters,
            machine: Machine::this(),
            build: Build::this(),
        }
    }

    /// The report as JSON text.
    pub fn to_json(&self) -> String {
        // Every key is a string and every number finite, so that there is nothing to fail.
        serde_json::to_string_pretty(self)
            .unwrap_or_else(|error| unreachable!("a report is valid JSON: {error}"))
    }
}

/// The run with the median throughput; of an even number, the slower of the two in the middle.
fn median(runs: &[CheckedRun]) -> &CheckedRun {
    let mut by_throughput: Vec<&CheckedRun> = runs.iter().collect();
    by_throughput.sort_by(|a, b| throughput(&a.result).total_cmp(&throughput(&b.result)));
    by_throughput[(by_throughput.len() - 1) / 2]
}

/// The slowest recovery, with what was lost in all.
fn worst_recovery(runs: &[CheckedRun]) -> Option<RecoveryReport> {
    let recoveries = || runs.iter().filter_map(|run| run.recovery.as_ref());
    let slowest = recoveries().max_by(|a, b| a.seconds.total_cmp(&b.seconds))?;
    let transactions_lost = recoveries().map(|recovery| recovery.transactions_lost).sum();
    Some(RecoveryReport { transactions_lost, ..slowest.clone() })
}

fn slowest_checkpoint(runs: &[CheckedRun]) -> Option<TimedCheckpoint> {
    let all = runs.iter().filter_map(|run| run.timed_checkpoint);
    all.max_by(|a, b| a.seconds.total_cmp(&b.seconds))
}

fn throughput(run: &RunResult) -> f64 {
    if run.seconds > 0.0 { run.measurements.committed() as f64 / run.seconds } else { 0.0 }
}

fn type_reports(
    names: &'static [&'static str],
    types: &[TypeMeasurements],
) -> Vec<(&'static str, TypeReport)> {
    names.iter().zip(types).map(|(&name, of_type)| (name, type_report(of_type))).collect()
}

fn type_report(of_type: &TypeMeasurements) -> TypeReport {
    let microseconds = |quantile| of_type.latencies.quantile_ns(quantile) as f64 / 1e3;
    TypeReport {
        count: of_type.committed,
        aborted: of_type.aborts.total(),
        aborted_of_one_max: of_type.aborts_of_request_max,
        aborts: abort_shares(&of_type.aborts, of_type.committed),
        latency_us: LatencyReport {
            p50: microseconds(0.5),
            p95: microseconds(0.95),
            p99: microseconds(0.99),
            p99_9: microseconds(0.999),
            max: of_type.latencies.max_ns() as f64 / 1e3,
        },
        durable_latency_ms: Some(DurableLatencyReport::new(&of_type.durable_latencies))
            .filter(|latency| latency.count > 0),
    }
}

/// Reasons that occurred, with their shares of all attempts.
fn abort_shares(aborts: &Aborts, committed: u64) -> Vec<(&'static str, AbortShare)> {
    let attempts = (aborts.total() + committed).max(1) as f64;
    let occurred = AbortKind::ALL.into_iter().filter(|&kind| aborts.of(kind) > 0);
    occurred
        .map(|kind| {
            let count = aborts.of(kind);
            (kind.name(), AbortShare { count, share: count as f64 / attempts })
        })
        .collect()
}

fn check_reports(runs: &[CheckedRun]) -> Vec<CheckReport> {
    let numbered =
        (1..).zip(runs).flat_map(|(run, checked)| checked.checks.iter().map(move |check| (run, check)));
    numbered
        .map(|(run, check)| CheckReport {
            run,
            name: check.name,
            condition: check.condition,
            passed: check.passed(),
            examined: check.examined,
            violated: check.violated,
            examples: check.examples.clone(),
        })
        .collect()
}

fn run_report(run: &RunResult) -> RunReport {
    RunReport {
        seconds: run.seconds,
        committed: run.measurements.committed(),
        aborted: run.measurements.aborts().total(),
        throughput_per_second: throughput(run),
        memory_bytes: run.memory_after.live_bytes,
        half_seconds: HalfSecondsReport::new(&run.timeline),
        timeline: run.timeline.clone(),
    }
}

/// Writes pairs as a map in their own order.
fn in_order<V: Serialize, S: Serializer>(
    pairs: &[(&'static str, V)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(name, value)| (name, value)))
}
