//! What a report says of a database on disk.

use ensilo::Engine;
use ensilo::generic::Database;
use serde::Serialize;

use crate::driver::{DurabilityCounts, Latencies};

/// From the start of a request until it was seen to be stored, in milliseconds, of the requests that had to wait for the disk.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct DurableLatencyReport {
    /// Half of the transactions took at most this.
    pub p50: f64,
    /// 95 of 100 took at most this.
    pub p95: f64,
    /// 99 of 100.
    pub p99: f64,
    /// The longest.
    pub max: f64,
    /// How many there were. Those are left out that only read what was stored before.
    pub count: u64,
}

/// Log and checkpoints in the measured time.
#[derive(Debug, Clone, Serialize)]
pub struct DurabilityReport {
    /// What they did.
    #[serde(flatten)]
    pub counts: DurabilityCounts,
    /// Bytes of log for each committed transaction, those that only read included.
    pub log_bytes_per_transaction: f64,
    /// Bytes of log for each transaction that wrote.
    pub log_bytes_per_logged_transaction: f64,
    /// Milliseconds of a sync of the log, the mean.
    pub log_sync_ms_mean: f64,
    /// Milliseconds of the longest one since the database was opened.
    pub log_sync_ms_max: f64,
}

/// A checkpoint that was made while no worker was at work.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TimedCheckpoint {
    /// Seconds that it took.
    pub seconds: f64,
    /// The bytes of its files.
    pub bytes: u64,
    /// Its rows.
    pub rows: u64,
}

/// How the database came back after the crash.
#[derive(Debug, Clone, Serialize)]
pub struct RecoveryReport {
    /// Seconds until it could be used again.
    pub seconds: f64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Bytes of checkpoint among them.
    pub checkpoint_bytes: u64,
    /// Bytes of log among them.
    pub log_bytes: u64,
    /// Rows of the checkpoint.
    pub checkpoint_rows: u64,
    /// Writes in the log.
    pub log_writes: u64,
    /// Millions of bytes a second.
    pub mb_per_second: f64,
    /// Transactions that were acknowledged as stored and are not there. Must be 0.
    pub transactions_lost: u64,
    /// By transaction type, those that leave something to count.
    pub transactions: Vec<SurvivalReport>,
}

/// What was acknowledged of one transaction type, and what of it is there after a crash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SurvivalReport {
    /// The transaction type.
    pub transaction: &'static str,
    /// Effects that were acknowledged as stored before the crash: orders entered, payments, orders delivered, records changed.
    pub acknowledged: u64,
    /// Effects that are there. More than were acknowledged are no fault: they were stored when the crash came, and nobody knew yet.
    pub found: u64,
}

impl TimedCheckpoint {
    /// Makes a checkpoint of `database`.
    ///
    /// # Errors
    /// As [`Database::checkpoint`].
    pub(crate) fn make<E: Engine>(database: &Database<E>) -> ensilo::Result<Self> {
        let checkpoint = database.checkpoint()?;
        let seconds = checkpoint.duration.as_secs_f64();
        Ok(Self { seconds, bytes: checkpoint.bytes, rows: checkpoint.rows })
    }
}

impl DurableLatencyReport {
    pub(super) fn new(latencies: &Latencies) -> Self {
        let milliseconds = |quantile| latencies.quantile_ns(quantile) as f64 / 1e6;
        Self {
            p50: milliseconds(0.5),
            p95: milliseconds(0.95),
            p99: milliseconds(0.99),
            max: latencies.max_ns() as f64 / 1e6,
            count: latencies.count(),
        }
    }
}

impl DurabilityReport {
    pub(super) fn new(counts: DurabilityCounts, committed: u64) -> Self {
        Self {
            log_bytes_per_transaction: ratio(counts.log_bytes as f64, committed),
            log_bytes_per_logged_transaction: ratio(counts.log_bytes as f64, counts.logged_transactions),
            log_sync_ms_mean: 1e3 * ratio(counts.log_sync_seconds, counts.log_syncs),
            log_sync_ms_max: 1e3 * counts.log_sync_seconds_max,
            counts,
        }
    }
}

impl SurvivalReport {
    /// Those of the types that something was acknowledged or found of.
    pub(crate) fn of_types(names: &[&'static str], acknowledged: &[u64], found: &[u64]) -> Vec<Self> {
        let types = names.iter().zip(acknowledged).zip(found);
        types
            .map(|((&transaction, &acknowledged), &found)| Self { transaction, acknowledged, found })
            .filter(|survival| survival.acknowledged + survival.found > 0)
            .collect()
    }

    /// How many are missing.
    pub(crate) fn lost(&self) -> u64 {
        self.acknowledged.saturating_sub(self.found)
    }
}

/// 0 if there is nothing to divide among.
fn ratio(sum: f64, count: u64) -> f64 {
    if count > 0 { sum / count as f64 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_acknowledged_and_is_not_there_is_lost() {
        let names = ["new_order", "payment", "order_status", "delivery"];
        let survivals = SurvivalReport::of_types(&names, &[10, 5, 0, 7], &[9, 8, 0, 7]);
        assert_eq!(survivals.iter().map(SurvivalReport::lost).collect::<Vec<_>>(), [1, 0, 0]);
        assert_eq!(survivals[2].transaction, "delivery");
    }
}
