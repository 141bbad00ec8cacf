//! The room on the disk that rows which leave memory leave to the log and the next checkpoint.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ensilo_log::Log;

use super::options::DurableOptions;

/// Says how much room that is.
#[derive(Debug)]
pub(super) struct KeptRoom {
    /// What the engine looks at.
    kept_free_bytes: Arc<AtomicU64>,
    log_bytes: u64,
}

impl KeptRoom {
    /// Keeps room for the log alone: while a database is opened no checkpoint is made, and it has to open on a nearly full disk, too.
    pub(super) fn new(kept_free_bytes: Arc<AtomicU64>, options: &DurableOptions) -> Self {
        let log_bytes = 2 * options.log_file_bytes * options.log_directories.len().max(1) as u64;
        let room = KeptRoom { kept_free_bytes, log_bytes };
        room.set(log_bytes);
        room
    }

    /// Keeps room for the log and for so much more of a checkpoint; all there is while the log is short of it.
    pub(super) fn keep(&self, checkpoint_bytes: u64, log: &Log) {
        let is_log_short = log.is_short_of_space();
        self.set(if is_log_short { u64::MAX } else { self.log_bytes.saturating_add(checkpoint_bytes) });
    }

    fn set(&self, bytes: u64) {
        // Relaxed: a number that stands for itself.
        self.kept_free_bytes.store(bytes, Ordering::Relaxed);
    }
}
