//! What log, checkpoints and recovery have come to.

use std::time::Duration;

use ensilo_log::{LogStatistics, Replayed};

use super::condition::Degraded;
use super::next_recovery::RecoveryForecast;
use crate::loading::LoadStatistics;

/// What the log, the checkpoints and the recovery of a database have counted since it was opened.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct DurabilityStatistics {
    /// All transactions of epochs up to this one are stored. Of a database that is read [beside](crate::Options::beside_writer) the process
    /// that writes it, these are those that are read, of which the last ones may have been written and not stored yet.
    pub durable_epoch: u64,
    /// Transactions that were written to the log.
    pub logged_transactions: u64,
    /// Bytes of the entries of these transactions, before compression.
    pub log_entry_bytes: u64,
    /// Bytes that were written to log files.
    pub log_bytes: u64,
    /// Calls to the system that wrote to the log.
    pub log_writes: u64,
    /// Syncs of log files.
    pub log_syncs: u64,
    /// How long these syncs took, all together.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::serialized::seconds"))]
    pub log_sync_time: Duration,
    /// How long the longest of them took.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::serialized::seconds"))]
    pub log_sync_time_max: Duration,
    /// How often a commit waited because all log buffers were full.
    pub log_buffer_waits: u64,
    /// How long these commits waited, all together.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::serialized::seconds"))]
    pub log_buffer_wait_time: Duration,
    /// Checkpoints.
    pub checkpoints: CheckpointStatistics,
    /// How the database was opened.
    pub recovery: RecoveryStatistics,
    /// What a recovery would take if the process ended now. Zero for a database that is open for reading only.
    pub next_recovery: RecoveryForecast,
    /// How far the rows are in memory, of a database that answers before.
    pub load: LoadStatistics,
    /// Whether the database is open for reading only: then it has neither a log nor checkpoints, and nothing
    /// is counted of them.
    pub is_read_only: bool,
    /// Whether it was opened with [`Options::beside_writer`](crate::Options::beside_writer).
    pub is_beside_writer: bool,
    /// What is wrong while the database goes on all the same; `None` if nothing is. See also
    /// [`Options::on_event`](crate::Options::on_event).
    pub degraded: Option<Degraded>,
}

/// What the checkpoints of a database have counted since it was opened.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CheckpointStatistics {
    /// How many were made.
    pub made: u64,
    /// How many could not be made.
    pub failed: u64,
    /// Whether one is being made now.
    pub is_under_way: bool,
    /// Bytes that were written, also by those that failed or are not finished.
    pub bytes_written: u64,
    /// Bytes of the last one.
    pub last_bytes: u64,
    /// How long the last one took.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::serialized::seconds"))]
    pub last_duration: Duration,
}

/// How a database was opened.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RecoveryStatistics {
    /// How long it took to put everything into memory, indexes included; or all that was to be there before
    /// the first request.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::serialized::seconds"))]
    pub duration: Duration,
    /// How much of that went into the checkpoint.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::serialized::seconds"))]
    pub checkpoint_duration: Duration,
    /// How much of that went into the log.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::serialized::seconds"))]
    pub log_duration: Duration,
    /// Bytes of checkpoint that were read into memory.
    pub checkpoint_bytes: u64,
    /// Rows of the checkpoint; 0 where they were not all read.
    pub checkpoint_rows: u64,
    /// Bytes of log that were read.
    pub log_bytes: u64,
    /// Writes that the log had.
    pub log_writes: u64,
}

impl DurabilityStatistics {
    pub(super) fn new(
        log: &LogStatistics,
        checkpoints: CheckpointStatistics,
        recovery: RecoveryStatistics,
        load: LoadStatistics,
    ) -> Self {
        DurabilityStatistics {
            durable_epoch: log.durable_epoch.get(),
            logged_transactions: log.transactions,
            log_entry_bytes: log.entry_bytes,
            log_bytes: log.written_bytes,
            log_writes: log.writes,
            log_syncs: log.syncs,
            log_sync_time: log.sync_time,
            log_sync_time_max: log.sync_time_max,
            log_buffer_waits: log.buffer_waits,
            log_buffer_wait_time: log.buffer_wait_time,
            checkpoints,
            recovery,
            next_recovery: RecoveryForecast::default(),
            load,
            is_read_only: false,
            is_beside_writer: false,
            degraded: None,
        }
    }
}

impl RecoveryStatistics {
    pub(super) fn new(duration: Duration, replayed: &Replayed) -> Self {
        RecoveryStatistics {
            duration,
            checkpoint_duration: replayed.checkpoint_duration,
            log_duration: replayed.log_duration,
            checkpoint_bytes: replayed.checkpoint_bytes,
            checkpoint_rows: replayed.records,
            log_bytes: replayed.log_bytes,
            log_writes: replayed.writes,
        }
    }
}
