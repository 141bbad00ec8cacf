//! The room on the disk that rows which leave memory leave to the log and the next checkpoint, which has those, too, that stay.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ensilo_engine::Engine;
use ensilo_log::Log;

use crate::Options;

/// Says how much room that is.
#[derive(Debug)]
pub(super) struct KeptRoom {
    /// What the engine looks at.
    kept_free_bytes: Arc<AtomicU64>,
    log_bytes: u64,
    /// What a checkpoint needs, or the rest of the one under way.
    checkpoint_bytes: AtomicU64,
    memory_limit_bytes: u64,
}

impl KeptRoom {
    /// Keeps room for the log alone: while a database is opened no checkpoint is made, and it has to open on a nearly full disk, too.
    pub(super) fn new(kept_free_bytes: Arc<AtomicU64>, options: &Options) -> Self {
        let durable = &options.durable;
        let log_bytes = 2 * durable.log_file_bytes * durable.log_directories.len().max(1) as u64;
        // Without a limit no row leaves memory.
        let memory_limit_bytes = options.memory_limit_bytes.unwrap_or(0);
        let room =
            KeptRoom { kept_free_bytes, log_bytes, checkpoint_bytes: AtomicU64::new(0), memory_limit_bytes };
        room.set(log_bytes);
        room
    }

    /// Keeps room for the log and for so much more of a checkpoint; all there is while the log is short of it.
    pub(super) fn keep(&self, checkpoint_bytes: u64, log: &Log) {
        self.checkpoint_bytes.store(checkpoint_bytes, Ordering::Relaxed);
        self.follow(log);
    }

    /// Keeps as much of a checkpoint as before, or all there is while the log is short of it.
    pub(super) fn follow(&self, log: &Log) {
        let bytes = self.log_bytes.saturating_add(self.checkpoint_bytes.load(Ordering::Relaxed));
        self.set(if log.is_short_of_space() { u64::MAX } else { bytes });
    }

    /// Returns by how much checkpoints grow when rows fill what memory has left: about half of that are keys and rows, and those are on the
    /// disk twice while a checkpoint is made, as the one before is still there. Memory is mostly three quarters full, at least, when rows leave it.
    pub(super) fn growth_bytes(&self, live_bytes: u64) -> u64 {
        self.memory_limit_bytes.saturating_sub(live_bytes).min(self.memory_limit_bytes / 4)
    }

    /// Returns whether a row, which has at most 32 MiB, might find no room on a disk that has so much free because of what is kept.
    pub(super) fn is_needed(&self, free_bytes: u64) -> bool {
        let kept_bytes = self.kept_free_bytes.load(Ordering::Relaxed);
        free_bytes < kept_bytes.saturating_add(32 << 20)
    }

    fn set(&self, bytes: u64) {
        // Relaxed, here and above: numbers that stand for themselves.
        self.kept_free_bytes.store(bytes, Ordering::Relaxed);
    }
}

/// Returns about how many bytes of keys and rows there are: about half of what memory takes are some, and all that has left it.
pub(super) fn bytes_of_rows<E: Engine>(engine: &E) -> u64 {
    let statistics = engine.statistics();
    statistics.memory.live_bytes / 2 + statistics.cold.row_bytes
}

/// Returns about how many bytes a checkpoint has, after one of `last_bytes`, or none if that is 0: as many, but no more than there are after
/// tables were dropped.
pub(super) fn expected_bytes<E: Engine>(engine: &E, last_bytes: u64) -> u64 {
    let statistics = engine.statistics();
    match last_bytes {
        0 => bytes_of_rows(engine),
        last => last.min(statistics.memory.live_bytes + statistics.cold.row_bytes),
    }
}
