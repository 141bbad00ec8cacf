//! What can be read off a run.

use serde::Deserialize;

use crate::measurement::Measurement;

/// A figure of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Committed transactions a second.
    #[default]
    Throughput,
    /// The same for each worker.
    ThroughputPerWorker,
    /// Microseconds of a worker for each committed transaction.
    WorkerMicroseconds,
    /// The part of them in the code of the transaction's parts, where that is timed.
    PartMicroseconds,
    /// The others: commit protocol, messages, waiting.
    MicrosecondsBesideParts,
    /// The share of the others, in percent.
    PercentBesideParts,
    /// Milliseconds until half of the transactions that had to wait for the disk were stored; over time the longest of each moment.
    StoredLatencyMs,
    /// Aborted attempts a second.
    AbortsPerSecond,
    /// Throughput, where what counts are no transactions, but this.
    PerSecondOf(&'static str),
    /// Committed transactions of this type a second.
    CommitsPerSecondOf(&'static str),
    /// The percent of the attempts at transactions of this type that aborted.
    AbortPercentOf(&'static str),
    /// Milliseconds that half of the transactions of this type took at most until they were committed or given up.
    LatencyMsOf(&'static str),
    /// By how much the database's memory grew during the run, in percent.
    MemoryGrowthPercent,
    /// Throughput of the slowest half second, as a share of the median half second.
    SlowestHalfSecond,
    /// Bytes of log for each committed transaction.
    LogBytesPerTransaction,
    /// Megabytes written to checkpoints.
    CheckpointMegabytes,
    /// Seconds of the run during which a checkpoint was under way.
    CheckpointSeconds,
    /// Seconds of a recovery.
    RecoverySeconds,
    /// Seconds of a recovery for each gigabyte of checkpoint and log.
    RecoverySecondsPerGigabyte,
    /// Gigabytes that a recovery read.
    RecoveryGigabytes,
    /// The part of them that lay in the checkpoint, in percent.
    RecoveryCheckpointPercent,
    /// Bytes in use at the end by rows, their older versions and indexes.
    LiveBytes,
    /// Older versions of rows at the end.
    Versions,
    /// Seconds of a checkpoint that was made with nothing else going on.
    TimedCheckpointSeconds,
}

impl Metric {
    /// What stands beside an axis.
    pub fn label(self) -> String {
        let label = match self {
            Self::CommitsPerSecondOf(name) | Self::PerSecondOf(name) => return format!("{name}/s"),
            Self::AbortPercentOf(name) => return format!("% of {name} aborted"),
            Self::LatencyMsOf(name) => return format!("ms of a {name}"),
            Self::Throughput => "transactions/s",
            Self::ThroughputPerWorker => "transactions/s for each worker",
            Self::WorkerMicroseconds => "us of a worker",
            Self::PartMicroseconds => "us in its parts",
            Self::MicrosecondsBesideParts => "us beside its parts",
            Self::PercentBesideParts => "% beside its parts",
            Self::StoredLatencyMs => "ms until stored",
            Self::AbortsPerSecond => "aborts/s",
            Self::MemoryGrowthPercent => "growth of memory in %",
            Self::SlowestHalfSecond => "slowest / median half second",
            Self::LogBytesPerTransaction => "bytes of log a transaction",
            Self::CheckpointMegabytes => "MB of checkpoints",
            Self::CheckpointSeconds => "seconds",
            Self::RecoverySeconds => "seconds",
            Self::RecoverySecondsPerGigabyte => "seconds for each GB",
            Self::RecoveryGigabytes => "GB read",
            Self::RecoveryCheckpointPercent => "% of it checkpoint",
            Self::LiveBytes => "bytes in use",
            Self::Versions => "versions",
            Self::TimedCheckpointSeconds => "seconds of a checkpoint",
        };
        label.to_owned()
    }

    /// Whether more of it is better.
    pub fn is_better_up(self) -> bool {
        match self {
            Self::Throughput
            | Self::ThroughputPerWorker
            | Self::SlowestHalfSecond
            | Self::PerSecondOf(_)
            | Self::CommitsPerSecondOf(_) => true,
            Self::WorkerMicroseconds
            | Self::PartMicroseconds
            | Self::MicrosecondsBesideParts
            | Self::PercentBesideParts
            | Self::StoredLatencyMs
            | Self::AbortsPerSecond
            | Self::AbortPercentOf(_)
            | Self::LatencyMsOf(_)
            | Self::MemoryGrowthPercent
            | Self::LogBytesPerTransaction
            | Self::CheckpointMegabytes
            | Self::CheckpointSeconds
            | Self::RecoverySeconds
            | Self::RecoverySecondsPerGigabyte
            | Self::RecoveryGigabytes
            | Self::RecoveryCheckpointPercent
            | Self::LiveBytes
            | Self::Versions
            | Self::TimedCheckpointSeconds => false,
        }
    }

    /// The figure of a run; `None` if the run has no such thing.
    pub fn of(self, run: &Measurement) -> Option<f64> {
        let recovery = run.recovery.as_ref();
        let gigabytes = recovery.map(|recovery| recovery.bytes as f64 / 1e9);
        match self {
            Self::Throughput | Self::PerSecondOf(_) => Some(run.throughput_per_second),
            Self::ThroughputPerWorker => Some(run.throughput_per_second / run.workers as f64),
            Self::WorkerMicroseconds => run.worker_microseconds(),
            Self::PartMicroseconds => run.in_parts_us,
            Self::MicrosecondsBesideParts => Some(run.worker_microseconds()? - run.in_parts_us?),
            Self::PercentBesideParts => Some(100.0 * (1.0 - run.in_parts_us? / run.worker_microseconds()?)),
            Self::StoredLatencyMs => run.durable_latency_ms.as_ref().map(|latency| latency.p50),
            Self::AbortsPerSecond => Some(run.aborted as f64 / run.seconds),
            Self::CommitsPerSecondOf(name) => Some(run.transactions.get(name)?.count as f64 / run.seconds),
            Self::AbortPercentOf(name) => run.transactions.get(name)?.abort_percent(),
            Self::LatencyMsOf(name) => {
                let of_type = run.transactions.get(name)?;
                of_type.abort_percent()?;
                Some(of_type.latency_us.p50 / 1e3)
            }
            Self::MemoryGrowthPercent => run.memory.growth_percent(),
            Self::SlowestHalfSecond => run.slowest_half_second(),
            Self::LogBytesPerTransaction => Some(run.log_bytes? as f64 / run.committed.max(1) as f64),
            Self::CheckpointMegabytes => Some(run.checkpoint_bytes? as f64 / 1e6),
            Self::CheckpointSeconds => run.checkpoint_bytes.and_then(|_| run.checkpoint_seconds()),
            Self::RecoverySeconds => recovery.map(|recovery| recovery.seconds),
            Self::RecoverySecondsPerGigabyte => {
                Some(recovery?.seconds / gigabytes.filter(|&read| read > 0.0)?)
            }
            Self::RecoveryGigabytes => gigabytes,
            Self::LiveBytes => Some(run.memory.live_bytes as f64),
            Self::Versions => Some(run.memory.versions as f64),
            Self::TimedCheckpointSeconds => run.timed_checkpoint.map(|checkpoint| checkpoint.seconds),
            Self::RecoveryCheckpointPercent => {
                let recovery = recovery.filter(|recovery| recovery.bytes > 0)?;
                Some(100.0 * recovery.checkpoint_bytes as f64 / recovery.bytes as f64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::tests::report;

    #[test]
    fn a_type_of_transactions_has_figures_of_its_own() {
        let run: Measurement = serde_json::from_value(report(1, 100.0)).unwrap();
        assert_eq!(Metric::CommitsPerSecondOf("read").of(&run), Some(3.5));
        assert_eq!(Metric::AbortPercentOf("read").of(&run), Some(30.0));
        assert_eq!(Metric::LatencyMsOf("rmw").of(&run), Some(0.003));
        assert_eq!(Metric::CommitsPerSecondOf("scan").of(&run), None);
        assert_eq!(Metric::AbortPercentOf("read").label(), "% of read aborted");
    }
}
