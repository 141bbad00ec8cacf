//! How a database in a directory keeps its rows safe.

use std::path::PathBuf;
use std::time::Duration;

use ensilo_epoch::Epoch;
use ensilo_log::Compression;

/// What [`Options`](crate::Options) say about log and checkpoints.
#[derive(Clone, Debug)]
pub(crate) struct DurableOptions {
    /// Where the loggers write, one for each; the database's own directory has one if none is named.
    pub(crate) log_directories: Vec<PathBuf>,
    pub(crate) log_file_bytes: u64,
    pub(crate) log_buffers: usize,
    pub(crate) log_compression: Compression,
    pub(crate) logs_operations: bool,
    pub(crate) checkpoint: CheckpointOptions,
    pub(crate) recovery_threads: usize,
    /// How many bytes of log files are kept for consumers of changes, if changes are kept.
    pub(crate) change_feed: Option<u64>,
    /// What was committed after this epoch is given up at the opening.
    pub(crate) give_up_after: Option<Epoch>,
}

/// When checkpoints are made, and how fast.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckpointOptions {
    /// Whether they are made by themselves.
    pub(crate) is_automatic: bool,
    /// One is made so often at least, if anything was logged.
    pub(crate) interval: Option<Duration>,
    /// One is made when so much was logged.
    pub(crate) log_bytes: u64,
    /// One is made before a recovery would take longer.
    pub(crate) recovery_time_target: Duration,
    /// `None` to be done when the next is about to begin.
    pub(crate) bytes_per_second: Option<u64>,
    /// How many threads write a checkpoint.
    pub(crate) threads: u32,
    /// How many files they write, at least one each.
    pub(crate) parts: u32,
    pub(crate) compression: Compression,
    /// What each thread writes between two syncs.
    pub(crate) sync_bytes: u64,
    pub(crate) at_close: bool,
}

/// A checkpoint is never made slower than this unless it is asked for: a log that goes far back takes long to
/// recover from.
const BYTES_PER_SECOND_MIN: u64 = 32 << 20;

/// One checkpointer for so many processors: they are there for the transactions.
const CORES_PER_CHECKPOINTER: usize = 8;

impl Default for DurableOptions {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        DurableOptions {
            log_directories: Vec::new(),
            log_file_bytes: 64 << 20,
            log_buffers: 32,
            log_compression: Compression::None,
            logs_operations: false,
            checkpoint: CheckpointOptions {
                is_automatic: true,
                interval: None,
                log_bytes: 4 << 30,
                recovery_time_target: Duration::from_secs(10),
                bytes_per_second: None,
                threads: u32::try_from(threads / CORES_PER_CHECKPOINTER).unwrap_or(1).clamp(1, 8),
                parts: u32::try_from(threads).unwrap_or(1).clamp(1, 16),
                compression: Compression::None,
                sync_bytes: 32 << 20,
                at_close: false,
            },
            recovery_threads: threads,
            change_feed: None,
            give_up_after: None,
        }
    }
}

/// No checkpoint is spread over more time, unless it is asked for.
const SPREAD_MAX: Duration = Duration::from_secs(60);

impl CheckpointOptions {
    /// Returns the longest time that a checkpoint is spread over.
    pub(crate) fn spread_max(&self) -> Duration {
        self.interval.unwrap_or(SPREAD_MAX)
    }

    /// Returns the rate at which about `bytes` are written within about `within`.
    pub(crate) fn bytes_per_second(&self, bytes: u64, within: Duration) -> u64 {
        let enough = bytes as f64 / within.as_secs_f64().max(1.0);
        self.bytes_per_second.unwrap_or((enough as u64).max(BYTES_PER_SECOND_MIN))
    }
}
