//! Which values options may have.

use std::fmt;
use std::time::Duration;

use super::Options;
use crate::error::Name;
use crate::row_ids::ROW_ID_END;
use crate::{Error, Result};

impl Options {
    /// Checks whether every option is in its range.
    ///
    /// # Errors
    /// [`Error::InvalidOption`].
    pub(crate) fn check(&self) -> Result<()> {
        let second = Duration::from_secs(1);
        let durable = &self.durable;
        require((1 << 20..=16 << 30).contains(&durable.log_file_bytes), "log_file_bytes", "1 MiB to 16 GiB")?;
        require((2..=65_536).contains(&durable.log_buffers), "log_buffers", "2 to 65536")?;
        #[cfg(feature = "live-statistics")]
        require(!self.live_statistics || !self.read_only, "live_statistics", "false with read_only")?;
        require(self.read_only || !self.beside_writer, "beside_writer", "false without read_only")?;
        let checkpoint = &durable.checkpoint;
        let is_long = |time: Duration| time >= second / 10;
        require(is_long(checkpoint.recovery_time_target), "recovery_time_target", "at least 100 ms")?;
        require(checkpoint.interval.is_none_or(is_long), "checkpoint_interval", "at least 100 ms")?;
        require(checkpoint.log_bytes >= 1 << 20, "checkpoint_log_bytes", "at least 1 MiB")?;
        require(checkpoint.sync_bytes >= 1 << 20, "checkpoint_sync_bytes", "at least 1 MiB")?;
        require(
            checkpoint.bytes_per_second.is_none_or(|bytes| bytes >= 1 << 20),
            "checkpoint_bytes_per_second",
            "at least 1 MiB",
        )?;
        require((1..=64).contains(&checkpoint.threads), "checkpoint_threads", "1 to 64")?;
        require((1..=1024).contains(&durable.recovery_threads), "recovery_threads", "1 to 1024")?;
        require(
            self.epoch_interval.is_none_or(|interval| (second / 1000..=second * 10).contains(&interval)),
            "epoch_interval",
            "1 ms to 10 s",
        )?;
        require((1..=10_000).contains(&self.epochs_per_snapshot), "epochs_per_snapshot", "1 to 10,000")?;
        require(
            self.snapshot_age_limit >= self.snapshot_interval(),
            "snapshot_age_limit",
            "at least one snapshot interval",
        )?;
        require(
            self.memory_limit_bytes.is_none_or(|limit| limit >= 8 << 20),
            "memory_limit_bytes",
            "at least 8 MiB",
        )?;
        require(self.row_ids_behind.is_none_or(|id| id < ROW_ID_END), "row_ids_behind", "below 2^59")?;
        require((1..=4096).contains(&self.pool.threads), "pool_threads", "1 to 4096")?;
        require(self.pool.queue_len_max >= 1, "pool_queue_len_max", "at least 1")
    }
}

/// Returns the error of an option that is not in its range, unless it is.
pub(crate) fn require(holds: bool, option: &str, range: impl fmt::Display) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::InvalidOption(Name::new(format!("{option} must be {range}")))) }
}
