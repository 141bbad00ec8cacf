//! What the log and the checkpoints of a database did while it was measured.

use ensilo::generic::Database;
use ensilo::{DurabilityStatistics, Engine};
use serde::{Deserialize, Serialize};

/// Counts of the log and of checkpoints over a time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DurabilityCounts {
    /// Transactions in the log.
    pub logged_transactions: u64,
    /// Bytes of their entries, before compression.
    pub log_entry_bytes: u64,
    /// Bytes written to log files.
    pub log_bytes: u64,
    /// Writes to log files.
    pub log_writes: u64,
    /// Syncs of log files.
    pub log_syncs: u64,
    /// Seconds that these syncs took together.
    pub log_sync_seconds: f64,
    /// Seconds that the longest sync took since the database was opened.
    pub log_sync_seconds_max: f64,
    /// How often a commit waited because all log buffers were full.
    pub log_buffer_waits: u64,
    /// Seconds that such commits waited together.
    pub log_buffer_wait_seconds: f64,
    /// Checkpoints that were completed.
    pub checkpoints: u64,
    /// Checkpoints that failed.
    pub checkpoints_failed: u64,
    /// Bytes written to checkpoints.
    pub checkpoint_bytes: u64,
    /// Seconds that a recovery would have taken at the end.
    pub next_recovery_seconds: f64,
    /// Whether they follow from a recovery that was measured, or from assumptions.
    pub is_next_recovery_measured: bool,
}

impl DurabilityCounts {
    /// What has been counted since the database was opened; `None` for one in memory.
    pub(super) fn of<E: Engine>(database: &Database<E>) -> Option<Self> {
        // Only a closed database has no statistics.
        let DurabilityStatistics {
            logged_transactions,
            log_entry_bytes,
            log_bytes,
            log_writes,
            log_syncs,
            log_sync_time,
            log_sync_time_max,
            log_buffer_waits,
            log_buffer_wait_time,
            checkpoints,
            next_recovery,
            ..
        } = database.statistics().ok()?.durability?;
        Some(Self {
            logged_transactions,
            log_entry_bytes,
            log_bytes,
            log_writes,
            log_syncs,
            log_sync_seconds: log_sync_time.as_secs_f64(),
            log_sync_seconds_max: log_sync_time_max.as_secs_f64(),
            log_buffer_waits,
            log_buffer_wait_seconds: log_buffer_wait_time.as_secs_f64(),
            checkpoints: checkpoints.made,
            checkpoints_failed: checkpoints.failed,
            checkpoint_bytes: checkpoints.bytes_written,
            next_recovery_seconds: next_recovery.duration.as_secs_f64(),
            is_next_recovery_measured: next_recovery.is_measured,
        })
    }

    /// What was counted since `before`.
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            logged_transactions: self.logged_transactions - before.logged_transactions,
            log_entry_bytes: self.log_entry_bytes - before.log_entry_bytes,
            log_bytes: self.log_bytes - before.log_bytes,
            log_writes: self.log_writes - before.log_writes,
            log_syncs: self.log_syncs - before.log_syncs,
            log_sync_seconds: self.log_sync_seconds - before.log_sync_seconds,
            log_sync_seconds_max: self.log_sync_seconds_max,
            log_buffer_waits: self.log_buffer_waits - before.log_buffer_waits,
            log_buffer_wait_seconds: self.log_buffer_wait_seconds - before.log_buffer_wait_seconds,
            checkpoints: self.checkpoints - before.checkpoints,
            checkpoints_failed: self.checkpoints_failed - before.checkpoints_failed,
            checkpoint_bytes: self.checkpoint_bytes - before.checkpoint_bytes,
            next_recovery_seconds: self.next_recovery_seconds,
            is_next_recovery_measured: self.is_next_recovery_measured,
        }
    }
}
