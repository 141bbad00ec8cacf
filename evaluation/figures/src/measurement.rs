//! What a single run measured, read from the report that `ensilo bench --format json` writes.

mod recorded;

use ensilo_bench::driver::Interval;
use serde::{Deserialize, Serialize};

pub(crate) use recorded::RecordedRun;

/// The part of a report that the figures use; see `ensilo_bench::report::Report` for what each field means.
#[derive(Debug, Clone, Deserialize)]
pub struct Measurement {
    /// Threads that ran transactions.
    pub workers: usize,
    /// Seconds measured.
    pub seconds: f64,
    /// Transactions that committed.
    pub committed: u64,
    /// Attempts that aborted.
    pub aborted: u64,
    /// Committed transactions per second.
    pub throughput_per_second: f64,
    /// Seconds of processors that the program took meanwhile.
    pub processor_seconds: f64,
    /// How long transactions took until they were stored.
    pub durable_latency_ms: Option<StoredLatency>,
    /// Bytes written to the log.
    pub log_bytes: Option<u64>,
    /// Bytes written to checkpoints.
    pub checkpoint_bytes: Option<u64>,
    /// The database's memory.
    pub memory: MemoryUse,
    /// How the database came back.
    pub recovery: Option<Recovery>,
    /// A checkpoint with nothing else going on.
    #[serde(default)]
    pub timed_checkpoint: Option<TimedCheckpoint>,
    /// Consistency checks that were made; all passed.
    pub consistency_checks: u64,
    /// Whether somebody ended the run early.
    pub interrupted: bool,
    /// By transaction type, in no particular order.
    pub transactions: std::collections::BTreeMap<String, OfType>,
    /// Microseconds of a committed transaction in the code of its parts, if these were timed.
    #[serde(default)]
    pub in_parts_us: Option<f64>,
    /// How steady the run was; `None` if it was too short to tell.
    #[serde(default)]
    half_seconds: Option<Steadiness>,
    /// Where the seconds of checkpoints are.
    #[serde(skip)]
    checkpoint_time: CheckpointTime,
    /// The runs that the report is on: one.
    runs: Vec<ReportedRun>,
}

/// During how many seconds checkpoints were under way.
#[derive(Debug, Clone, Copy, Default)]
enum CheckpointTime {
    /// As many as the timeline says.
    #[default]
    OfTimeline,
    /// As many as a table says, if it does.
    Noted(Option<f64>),
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Steadiness {
    worst: WorstHalfSecond,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct WorstHalfSecond {
    of_median: f64,
}

#[derive(Debug, Clone, Deserialize)]
struct ReportedRun {
    #[serde(default)]
    timeline: Vec<Interval>,
}

/// Milliseconds until transactions were stored.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct StoredLatency {
    /// Half of them took at most this.
    pub p50: f64,
    /// 95 of 100.
    pub p95: f64,
    /// 99 of 100.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

/// One transaction type.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct OfType {
    /// How many committed.
    pub count: u64,
    /// Attempts that aborted.
    pub aborted: u64,
    /// Microseconds until the commit.
    pub latency_us: Latency,
}

/// Microseconds until transactions were committed in memory.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Latency {
    /// Half of them took at most this.
    pub p50: f64,
    /// 99 of 100.
    pub p99: f64,
}

/// Bytes of the database.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct MemoryUse {
    /// In use at the end.
    pub live_bytes: u64,
    /// In use when the measured time began.
    pub live_bytes_before: u64,
    /// Older versions of rows at the end.
    #[serde(default)]
    pub versions: u64,
}

/// A checkpoint with nothing else going on.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct TimedCheckpoint {
    /// How long it took.
    pub seconds: f64,
}

/// A recovery.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Recovery {
    /// Until the database could be used.
    pub seconds: f64,
    /// Bytes read.
    pub bytes: u64,
    /// Those of the checkpoint.
    pub checkpoint_bytes: u64,
    /// Those of the log.
    pub log_bytes: u64,
}

/// The report of a workload on several instances; see `ensilo_islands_bench::IslandsReport`.
#[derive(Debug, Deserialize)]
struct IslandsMeasurement {
    workload: String,
    islands: usize,
    workers_per_island: usize,
    seconds: f64,
    throughput: f64,
    retried: u64,
    latency_us_p50: f64,
    latency_us_p99: f64,
    #[serde(default)]
    in_parts_us: Option<f64>,
}

/// The report on counters or on a channel, which count increments and messages.
#[derive(Debug, Deserialize)]
struct MachineMeasurement {
    workers: usize,
    seconds: f64,
    throughput: f64,
}

impl From<MachineMeasurement> for Measurement {
    fn from(MachineMeasurement { workers, seconds, throughput }: MachineMeasurement) -> Self {
        Measurement::in_memory(workers, seconds, throughput)
    }
}

impl From<IslandsMeasurement> for Measurement {
    fn from(report: IslandsMeasurement) -> Self {
        let workers = report.islands * report.workers_per_island;
        let latency_us = Latency { p50: report.latency_us_p50, p99: report.latency_us_p99 };
        let measurement = Measurement::in_memory(workers, report.seconds, report.throughput);
        let of_type = OfType { count: measurement.committed, aborted: report.retried, latency_us };
        Measurement {
            aborted: report.retried,
            transactions: [(report.workload, of_type)].into(),
            in_parts_us: report.in_parts_us,
            ..measurement
        }
    }
}

/// The paper's window, in seconds.
const WINDOW: f64 = 0.5;

impl Measurement {
    /// Of reports that say no more than this. What is not known is as if there were none; of the processors'
    /// time, as if all of it was taken.
    fn in_memory(workers: usize, seconds: f64, throughput: f64) -> Self {
        Measurement {
            workers,
            seconds,
            committed: (throughput * seconds) as u64,
            aborted: 0,
            throughput_per_second: throughput,
            processor_seconds: seconds * workers as f64,
            durable_latency_ms: None,
            log_bytes: None,
            checkpoint_bytes: None,
            memory: MemoryUse { live_bytes: 0, live_bytes_before: 0, versions: 0 },
            recovery: None,
            timed_checkpoint: None,
            consistency_checks: 1,
            interrupted: false,
            transactions: std::collections::BTreeMap::new(),
            in_parts_us: None,
            half_seconds: None,
            checkpoint_time: CheckpointTime::OfTimeline,
            runs: Vec::new(),
        }
    }

    /// Reads a report, that of a workload on several instances, of counters or of a channel too.
    pub(crate) fn of(report: serde_json::Value) -> serde_json::Result<Self> {
        let workload = report.get("workload").and_then(serde_json::Value::as_str);
        if let Some("counters" | "channels") = workload {
            return serde_json::from_value::<MachineMeasurement>(report).map(Self::from);
        }
        if report.get("islands").is_some() {
            return serde_json::from_value::<IslandsMeasurement>(report).map(Self::from);
        }
        serde_json::from_value(report)
    }

    /// The run in tenths of seconds; empty if the report does not have them.
    pub fn timeline(&self) -> &[Interval] {
        self.runs.first().map_or(&[], |run| &run.timeline)
    }

    /// The run in half seconds. An end that is shorter is left out.
    pub fn half_seconds(&self) -> Vec<HalfSecond> {
        let mut halves = Vec::new();
        let (mut began, mut open) = (0.0, HalfSecond::default());
        for moment in self.timeline() {
            open.committed += moment.committed;
            open.checkpoint |= moment.checkpoint;
            let latencies = [open.durable_latency_ms_max, moment.durable_latency_ms_max];
            open.durable_latency_ms_max = latencies.into_iter().flatten().reduce(f64::max);
            // Moments end a little early or late.
            if moment.ended_at - began >= 0.9 * WINDOW {
                open.ended_at = moment.ended_at;
                open.seconds = moment.ended_at - began;
                halves.push(std::mem::take(&mut open));
                began = moment.ended_at;
            }
        }
        halves
    }

    /// Seconds of the run during which a checkpoint was under way, to a tenth of a second at each end; `None` if that is not known.
    pub(crate) fn checkpoint_seconds(&self) -> Option<f64> {
        match self.checkpoint_time {
            CheckpointTime::OfTimeline => Some(self.checkpoint_seconds_of_timeline()),
            CheckpointTime::Noted(seconds) => seconds,
        }
    }

    fn checkpoint_seconds_of_timeline(&self) -> f64 {
        let began = [0.0].into_iter().chain(self.timeline().iter().map(|moment| moment.ended_at));
        let moments = self.timeline().iter().zip(began).filter(|(moment, _)| moment.checkpoint);
        moments.map(|(moment, began)| moment.ended_at - began).sum()
    }

    /// Microseconds of a worker for each committed transaction, if any has.
    pub(crate) fn worker_microseconds(&self) -> Option<f64> {
        (self.throughput_per_second > 0.0).then(|| 1e6 * self.workers as f64 / self.throughput_per_second)
    }

    /// Throughput of the slowest half second, as a share of the median.
    pub(crate) fn slowest_half_second(&self) -> Option<f64> {
        self.half_seconds.map(|steadiness| steadiness.worst.of_median)
    }

    /// The part of the processors' time that a run in memory got, of what its workers could use of `cores` processors: its workers
    /// never wait, so that what is missing went to others. `None` for a run that may wait for the disk.
    pub(crate) fn processor_share(&self, cores: usize) -> Option<f64> {
        let usable = self.seconds * self.workers.min(cores) as f64;
        self.log_bytes.is_none().then(|| self.processor_seconds / usable)
    }

    /// The transaction type that occurred most often.
    pub fn most_frequent_type(&self) -> Option<(&str, OfType)> {
        let types = self.transactions.iter().max_by_key(|(_, of_type)| of_type.count);
        types.map(|(name, of_type)| (name.as_str(), *of_type))
    }
}

/// About half a second of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HalfSecond {
    /// When it ended, in seconds since the measured time began.
    pub ended_at: f64,
    /// How long it was.
    pub seconds: f64,
    /// Transactions that committed.
    pub committed: u64,
    /// Whether a checkpoint was written at some time in it.
    pub checkpoint: bool,
    /// The longest time until a transaction was stored.
    pub durable_latency_ms_max: Option<f64>,
}

impl HalfSecond {
    /// Transactions a second.
    pub fn throughput(&self) -> f64 {
        self.committed as f64 / self.seconds
    }
}

impl OfType {
    /// How many of 100 attempts aborted; `None` if there were none.
    pub(crate) fn abort_percent(&self) -> Option<f64> {
        let attempts = self.count + self.aborted;
        (attempts > 0).then(|| 100.0 * self.aborted as f64 / attempts as f64)
    }
}

impl MemoryUse {
    /// By how much the end exceeds the beginning.
    pub(crate) fn growth_percent(&self) -> Option<f64> {
        let before = self.live_bytes_before as f64;
        (before > 0.0).then(|| 100.0 * (self.live_bytes as f64 - before) / before)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::experiment::Metric;
    use serde_json::{Value, json};

    /// A report with this throughput.
    pub(crate) fn report(workers: usize, throughput: f64) -> Value {
        json!({
            "workers": workers, "seconds": 2.0, "committed": (2.0 * throughput) as u64, "aborted": 10,
            "throughput_per_second": throughput, "processor_seconds": 2 * workers, "durable_latency_ms": null, "log_bytes": null,
            "checkpoint_bytes": null, "memory": { "live_bytes": 110, "live_bytes_before": 100, "mapped_bytes": 500 },
            "recovery": null, "consistency_checks": 3, "interrupted": false,
            "transactions": {
                "read": { "count": 7, "aborted": 3, "latency_us": { "p50": 1.0, "p99": 2.0 } },
                "rmw": { "count": 9, "aborted": 0, "latency_us": { "p50": 3.0, "p99": 4.0 } },
            },
            "half_seconds": { "worst": { "of_median": 0.75, "ended_at": 1.0 } },
            "runs": [{ "seconds": 2.0, "timeline": [] }],
        })
    }

    fn with_timeline(committed: &[u64]) -> Measurement {
        let mut report = report(1, 10.0);
        let moments = (1..).zip(committed);
        report["runs"][0]["timeline"] = moments
            .map(|(at, &committed)| {
                let latency = (at > 5).then_some(f64::from(at));
                json!({ "ended_at": f64::from(at) * 0.1, "committed": committed, "aborted": 0, "checkpoint": at == 7, "durable_latency_ms_max": latency })
            })
            .collect();
        serde_json::from_value(report).unwrap()
    }

    #[test]
    fn tenths_of_seconds_make_half_seconds() {
        let halves = with_timeline(&[10; 12]).half_seconds();
        assert_eq!(halves.len(), 2);
        assert_eq!(halves.iter().map(|half| half.checkpoint).collect::<Vec<_>>(), [false, true]);
        assert_eq!(
            halves.iter().map(|half| half.durable_latency_ms_max).collect::<Vec<_>>(),
            [None, Some(10.0)]
        );
        assert!(halves.iter().all(|half| half.committed == 50 && (half.throughput() - 100.0).abs() < 1e-6));
    }

    #[test]
    fn a_report_on_instances_is_read() {
        let report = json!({
            "workload": "micro", "islands": 2, "workers_per_island": 3, "placement": "group", "seconds": 2.0,
            "throughput": 500.0, "retried": 10, "latency_us_p50": 4.0, "latency_us_p99": 9.0, "in_parts_us": 3000.0,
        });
        let measurement = Measurement::of(report).unwrap();
        assert_eq!((measurement.workers, measurement.committed, measurement.aborted), (6, 1000, 10));
        let (name, of_type) = measurement.most_frequent_type().unwrap();
        assert_eq!((name, of_type.count, of_type.latency_us.p99), ("micro", 1000, 9.0));
        assert_eq!(Metric::PartMicroseconds.of(&measurement), Some(3000.0));
        assert_eq!(Metric::MicrosecondsBesideParts.of(&measurement), Some(9000.0));
        assert_eq!(Metric::PercentBesideParts.of(&measurement), Some(75.0));
        assert!(Measurement::of(json!({ "islands": 2 })).is_err());
    }

    #[test]
    fn reports_on_the_machine_are_read() {
        for workload in ["channels", "counters"] {
            let report = json!({ "workload": workload, "workers": 2, "seconds": 2.0, "throughput": 500.0 });
            let measurement = Measurement::of(report).unwrap();
            assert_eq!((measurement.workers, measurement.committed), (2, 1000));
        }
        assert!(Measurement::of(json!({ "workload": "channels" })).is_err());
    }

    #[test]
    fn the_figures_of_a_report_are_read() {
        let measurement: Measurement = serde_json::from_value(report(2, 5.0)).unwrap();
        assert_eq!((measurement.workers, measurement.slowest_half_second()), (2, Some(0.75)));
        assert!(measurement.half_seconds().is_empty());
        assert_eq!((measurement.processor_share(2), measurement.processor_share(1)), (Some(1.0), Some(2.0)));
        assert_eq!(measurement.most_frequent_type().unwrap().0, "rmw");
        assert_eq!(measurement.memory.growth_percent(), Some(10.0));
    }
}
