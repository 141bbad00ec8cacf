//! When a checkpoint is made by itself.
//!
//! - When the log has grown by so much that a recovery would soon take longer than it should, or that the log takes
//!   too much room: see [`NextRecovery::log_bytes_due`](super::next_recovery::NextRecovery::log_bytes_due).
//! - By time, if that is asked for: see [`Options::checkpoint_interval`](crate::Options::checkpoint_interval).
//! - Soon after an opening that found a long log, or the logs of many openings, and when that database is closed before:
//!   see [`LogBacklog`].
//! - When a disk of the database or of its log is nearly full, so that the log may soon have no room, or no
//!   checkpoint may have: a checkpoint frees log.
//! - When the log could not make its next file: at once; as long as that lasts, again after pauses that grow.

use std::time::{Duration, Instant};

use super::options::CheckpointOptions;
use super::statistics::RecoveryStatistics;

/// A checkpoint is spread over so much of the time to the next one, so that transactions feel little of it at
/// any one time.
pub(super) const SHARE: f64 = 0.8;

/// How long after a checkpoint the next one is made because the log is short of space, at first. Twice as
/// long each time.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// How long the log is.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogGrowth {
    /// What was written since the opening.
    pub(super) written_bytes: u64,
    /// A checkpoint is due when so much was written since the last one began.
    pub(super) due_bytes: u64,
}

/// How much room the disks have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Room {
    /// Whether the log could not make its next file as it should be.
    pub(super) is_log_short: bool,
    /// What files can still take where checkpoints are written, as far as is known.
    pub(super) free_bytes: Option<u64>,
    /// The same of the log directories, of the one with the least.
    pub(super) log_free_bytes: Option<u64>,
    /// What the next checkpoint takes, about.
    pub(super) expected_bytes: u64,
    pub(super) log_file_bytes: u64,
}

impl Room {
    /// Returns whether a checkpoint, and the files that the log needs meanwhile, may not fit if one waits for
    /// longer.
    fn is_scarce(&self) -> bool {
        let of_log = 2 * self.log_file_bytes;
        let needed = self.expected_bytes + self.expected_bytes / 4 + of_log;
        self.free_bytes.is_some_and(|free| free < needed)
            || self.log_free_bytes.is_some_and(|free| free < of_log)
    }

    /// Returns whether a checkpoint is sure not to fit: it would take the last room from the log for nothing.
    fn is_hopeless(&self) -> bool {
        self.free_bytes.is_some_and(|free| free < self.expected_bytes / 2)
    }

    /// So much log is worth a checkpoint for the space that it frees.
    fn worth_bytes(&self) -> u64 {
        self.log_file_bytes.max(self.expected_bytes / 2)
    }
}

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

/// When the last checkpoint began, and what speaks for the next one.
#[derive(Debug)]
pub(super) struct Schedule {
    options: CheckpointOptions,
    began: Instant,
    /// How much was logged by then.
    log_bytes: u64,
    has_failed: bool,
    /// After one that has failed: when the next one may begin, and how long it has been waited for.
    pause: Option<(Instant, Duration)>,
    /// Whether the log that the opening has found is to be replaced by a checkpoint.
    is_overdue: bool,
    /// While the log is short of space: when the next checkpoint may begin for that, and how long to wait
    /// after it.
    relief: Option<(Instant, Duration)>,
}

impl Schedule {
    /// Makes a schedule that begins now, after `log_bytes` of log.
    pub(super) fn new(options: CheckpointOptions, log_bytes: u64, is_overdue: bool) -> Self {
        Schedule {
            options,
            began: Instant::now(),
            log_bytes,
            has_failed: false,
            pause: None,
            is_overdue,
            relief: None,
        }
    }

    /// Returns how long a checkpoint may take that is to begin now, if one is.
    pub(super) fn due(&mut self, log: LogGrowth, room: Room) -> Option<Duration> {
        if !self.options.is_automatic {
            return None;
        }
        let now = Instant::now();
        let (period, grown) = (now - self.began, log.written_bytes - self.log_bytes);
        let is_scarce = grown >= room.worth_bytes() && room.is_scarce();
        let within = if self.is_relief_due(now, grown, room) || is_scarce {
            // Nothing is gained by going slowly.
            Duration::ZERO
        } else if self.pause.is_some_and(|(not_before, _)| now < not_before) {
            return None;
        } else if self.is_overdue {
            self.options.spread_max() / 2
        } else if grown > 0
            && (grown >= log.due_bytes || self.options.interval.is_some_and(|max| period >= max))
        {
            period.min(self.options.spread_max()).mul_f64(SHARE)
        } else {
            return None;
        };
        self.began = now;
        self.log_bytes = log.written_bytes;
        self.is_overdue = false;
        Some(within)
    }

    /// Notes whether the log that the opening has found still waits for a checkpoint: one that was asked for
    /// has replaced it, too.
    pub(super) fn note_overdue(&mut self, is_overdue: bool) {
        self.is_overdue &= is_overdue;
    }

    /// Notes what has become of the checkpoint that was due.
    pub(super) fn note(&mut self, was_made: bool) {
        self.has_failed = !was_made;
        self.pause = (!was_made).then(|| {
            let pause = self.pause.map_or(PAUSE_MIN, |(_, pause)| (2 * pause).min(self.options.spread_max()));
            (Instant::now() + pause, pause)
        });
    }

    fn is_relief_due(&mut self, now: Instant, grown: u64, room: Room) -> bool {
        if !room.is_log_short {
            self.relief = None;
            return false;
        }
        let (not_before, pause) = self.relief.unwrap_or((now, PAUSE_MIN));
        let may_help = self.relief.is_none() || grown > 0 || self.has_failed;
        if now < not_before || !may_help || room.is_hopeless() {
            return false;
        }
        self.relief = Some((now + pause, (2 * pause).min(self.options.spread_max())));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durable::DurableOptions;

    fn schedule(interval: Duration) -> Schedule {
        let options = CheckpointOptions { interval: Some(interval), ..DurableOptions::default().checkpoint };
        Schedule::new(options, 0, false)
    }

    const LONG: Duration = Duration::from_secs(3600);

    /// So much log, of which 1000 bytes are worth a checkpoint.
    fn grown(written_bytes: u64) -> LogGrowth {
        LogGrowth { written_bytes, due_bytes: 1000 }
    }

    fn short() -> Room {
        Room { is_log_short: true, ..Room::default() }
    }

    #[test]
    fn a_log_that_has_grown_enough_is_checkpointed() {
        let mut schedule = schedule(LONG);
        assert_eq!(schedule.due(grown(999), Room::default()), None);
        assert!(schedule.due(grown(1000), Room::default()).is_some());
        assert_eq!(schedule.due(grown(1999), Room::default()), None, "counted from the last one");
    }

    #[test]
    fn time_alone_is_no_reason() {
        let mut schedule = schedule(Duration::ZERO);
        assert_eq!(schedule.due(grown(0), Room::default()), None);
        assert!(schedule.due(grown(1), Room::default()).is_some());
    }

    #[test]
    fn a_log_without_a_next_file_is_a_reason_with_pauses() {
        let mut schedule = schedule(LONG);
        assert_eq!(schedule.due(grown(0), short()), Some(Duration::ZERO), "also without anything logged");
        assert_eq!(schedule.due(grown(10), short()), None, "too soon");
        assert_eq!(schedule.due(grown(10), Room::default()), None);
        assert_eq!(schedule.due(grown(10), short()), Some(Duration::ZERO), "another shortage");
    }

    #[test]
    fn a_nearly_full_disk_is_a_reason_if_something_is_freed() {
        let mut schedule = schedule(LONG);
        let nearly = Room {
            free_bytes: Some(200 + 125 - 1),
            expected_bytes: 100,
            log_file_bytes: 100,
            log_free_bytes: Some(200),
            is_log_short: false,
        };
        assert_eq!(schedule.due(grown(99), nearly), None);
        assert_eq!(schedule.due(grown(100), Room { free_bytes: Some(325), ..nearly }), None);
        assert_eq!(schedule.due(grown(100), Room { free_bytes: None, ..nearly }), None);
        assert_eq!(schedule.due(grown(100), nearly), Some(Duration::ZERO));
        assert_eq!(schedule.due(grown(199), nearly), None, "counted from the last one");
        let of_log = Room { free_bytes: Some(1 << 40), log_free_bytes: Some(199), ..nearly };
        assert_eq!(schedule.due(grown(200), of_log), Some(Duration::ZERO));
    }

    #[test]
    fn a_checkpoint_that_cannot_fit_leaves_the_room_to_the_log() {
        let mut schedule = schedule(LONG);
        let hopeless = Room { free_bytes: Some(49), expected_bytes: 100, ..short() };
        assert_eq!(schedule.due(grown(10), hopeless), None);
        assert_eq!(schedule.due(grown(10), Room { free_bytes: Some(50), ..hopeless }), Some(Duration::ZERO));
    }

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

    #[test]
    fn after_a_failure_the_next_one_waits_for_longer_each_time() {
        let mut schedule = schedule(LONG);
        let at_once = |written_bytes| LogGrowth { written_bytes, due_bytes: 0 };
        assert!(schedule.due(at_once(1), Room::default()).is_some());
        for pause in [1, 2, 4] {
            schedule.note(false);
            assert_eq!(schedule.pause.map(|(_, pause)| pause), Some(Duration::from_secs(pause)));
            assert_eq!(schedule.due(at_once(10), Room::default()), None);
        }
        schedule.note(true);
        assert!(schedule.due(at_once(10), Room::default()).is_some());
    }

    #[test]
    fn checkpoints_that_are_not_wanted_are_not_made() {
        let mut schedule = schedule(LONG);
        schedule.options.is_automatic = false;
        assert_eq!(schedule.due(grown(10_000), short()), None);
    }
}
