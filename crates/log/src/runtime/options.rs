//! How the log is to run.

use std::time::Duration;

use super::file_length::first_file_bytes;
use crate::format::Compression;

/// How the log is to run.
#[derive(Debug, Clone, Copy)]
pub struct LogOptions {
    /// Bytes of the log buffer of a writer that logs all the time. Others have smaller ones.
    pub buffer_bytes: usize,
    /// Full buffers that may wait for each logger, beside the one that each writer is filling. Workers wait
    /// when there are more.
    pub buffers_per_logger: usize,
    /// The most bytes of a log file. The first files are shorter ([`LogOptions::first_file_bytes`]), and so are all as long
    /// as little is logged. A logger goes on in the next file at the end of the round that reached seven eighths of the length.
    pub file_bytes: u64,
    /// Whether blocks are compressed.
    pub compression: Compression,
    /// When the global epoch moves on.
    pub clock: EpochClock,
    /// Whether all rows are logged whole, for readers of changes, and not only once after each beginning of a checkpoint.
    pub whole_rows: bool,
    /// Whether every write takes a place in the central log buffer by itself, beside that of its transaction, to
    /// measure what that costs. For an engine that uses the buffer.
    pub logs_operations: bool,
}

impl LogOptions {
    /// Returns how many bytes the file has that a logger begins with:
    /// [`GenerationOptions::file_bytes`](crate::GenerationOptions::file_bytes).
    #[must_use]
    pub fn first_file_bytes(&self) -> u64 {
        first_file_bytes(self.file_bytes)
    }
}

impl Default for LogOptions {
    /// Buffers of 512 KiB, 32 per logger; files of up to 64 MiB; no compression; epochs by the loggers, of
    /// up to 40 ms.
    fn default() -> Self {
        LogOptions {
            buffer_bytes: 512 << 10,
            buffers_per_logger: 32,
            file_bytes: 64 << 20,
            compression: Compression::None,
            clock: EpochClock::default(),
            whole_rows: false,
            logs_operations: false,
        }
    }
}

/// When the global epoch moves on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpochClock {
    /// As soon as somebody waits and the loggers have stored what they had: whoever comes meanwhile is stored
    /// in the next round, so that the time until a commit is stored follows the disk. While nobody waits, the
    /// next round comes after 5 ms, the one after that 10 ms later, and so on up to `max`: a sync costs the
    /// processor as much as many transactions.
    ByLoggers {
        /// The longest epoch, also while nothing is logged or the disk hangs.
        max: Duration,
    },
    /// At fixed times, whatever the disk does.
    Fixed(Duration),
}

impl Default for EpochClock {
    fn default() -> Self {
        EpochClock::ByLoggers { max: Duration::from_millis(40) }
    }
}

/// How long after a round that somebody has waited for the next one begins if nobody waits for it.
const UNHURRIED: Duration = Duration::from_millis(5);

impl EpochClock {
    /// Returns the longest epoch.
    pub(crate) fn max(self) -> Duration {
        match self {
            EpochClock::ByLoggers { max } | EpochClock::Fixed(max) => max,
        }
    }

    /// Returns the time to the next round of the loggers while nobody waits for it, behind so many in a row that nobody has waited for:
    /// it doubles with each.
    pub(crate) fn unhurried(self, unwaited: u32) -> Duration {
        match self {
            EpochClock::ByLoggers { max } => UNHURRIED.saturating_mul(1 << unwaited.min(16)).min(max),
            // Rounds follow the clock; this is for those that are made once more because a commit took long.
            EpochClock::Fixed(interval) => interval.min(Duration::from_millis(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_between_rounds_that_nobody_waits_for_doubles_up_to_the_longest_epoch() {
        let clock = EpochClock::default();
        let times = [0, 1, 2, 3, 4, u32::MAX].map(|unwaited| clock.unhurried(unwaited).as_millis());
        assert_eq!(times, [5, 10, 20, 40, 40, 40]);
        let short = EpochClock::ByLoggers { max: Duration::from_millis(2) };
        assert_eq!(short.unhurried(0), short.max());
    }
}
