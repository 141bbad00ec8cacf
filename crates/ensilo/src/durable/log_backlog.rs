//! The log that an opening has found, and whether closing makes the checkpoint that is overdue because of it.

use super::options::CheckpointOptions;
use super::statistics::RecoveryStatistics;

/// How long the log is that an opening has found: the files of many short openings, or much to replay
/// beside a small checkpoint. It matters to programs that never run for long, which else would never make a
/// checkpoint.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum LogBacklog {
    Short,
    /// A checkpoint is overdue. Closing makes it if it takes no time that is worth mentioning.
    Long,
    /// Closing makes the checkpoint however long it takes: each opening that comes to no checkpoint adds to
    /// the log.
    TooLong,
}

impl LogBacklog {
    /// That of an opening which has found the files of so many loggers of earlier ones.
    pub(super) fn found(
        options: &CheckpointOptions,
        earlier_logs: usize,
        recovery: &RecoveryStatistics,
    ) -> LogBacklog {
        const EARLIER_LOGS_MAX: usize = 8;
        const REPLAYED_BYTES_MAX: u64 = 64 << 20;
        /// So many times as much is too long: short runs of a large database pay for one checkpoint in so
        /// many times a few.
        const TOO_LONG_FACTOR: u64 = 4;
        let log_bytes_max = options.log_bytes.min(REPLAYED_BYTES_MAX + 2 * recovery.checkpoint_bytes);
        let is_over = |factor: u64| {
            earlier_logs as u64 > factor * EARLIER_LOGS_MAX as u64
                || recovery.log_bytes > log_bytes_max.saturating_mul(factor)
        };
        match (is_over(TOO_LONG_FACTOR), is_over(1)) {
            (true, _) => LogBacklog::TooLong,
            (false, true) => LogBacklog::Long,
            (false, false) => LogBacklog::Short,
        }
    }

    /// Returns whether closing makes the checkpoint that is overdue, of so many bytes in memory and on the disk.
    pub(super) fn is_worth_waiting(self, bytes: u64) -> bool {
        const QUICK_BYTES_MAX: u64 = 64 << 20;
        match self {
            LogBacklog::Short => false,
            LogBacklog::Long => bytes <= QUICK_BYTES_MAX,
            LogBacklog::TooLong => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durable::DurableOptions;

    #[test]
    fn a_log_is_too_long_at_four_times_what_is_long() {
        let options = DurableOptions::default().checkpoint;
        let found = |logs, log_bytes| {
            let recovery =
                RecoveryStatistics { log_bytes, checkpoint_bytes: 100, ..RecoveryStatistics::default() };
            LogBacklog::found(&options, logs, &recovery)
        };
        let long = (64 << 20) + 200;
        assert_eq!(
            [found(8, long), found(9, 0), found(0, long + 1)],
            [LogBacklog::Short, LogBacklog::Long, LogBacklog::Long]
        );
        assert_eq!(
            [found(32, 4 * long), found(33, 0), found(0, 4 * long + 1)],
            [LogBacklog::Long, LogBacklog::TooLong, LogBacklog::TooLong]
        );
        assert!(LogBacklog::Long.is_worth_waiting(64 << 20) && !LogBacklog::Long.is_worth_waiting(1 << 40));
        assert!(LogBacklog::TooLong.is_worth_waiting(1 << 40) && !LogBacklog::Short.is_worth_waiting(0));
    }
}
