//! When a checkpoint is made by itself.
//!
//! - When the log has grown by so much that a recovery would soon take longer than it should, or that the log takes
//!   too much room: see [`NextRecovery::log_bytes_due`](super::next_recovery::NextRecovery::log_bytes_due).
//! - By time, if that is asked for: see [`Options::checkpoint_interval`](crate::Options::checkpoint_interval).
//! - Soon after an opening that found a long log, or the logs of many openings, and when that database is closed before:
//!   see [`LogBacklog`](super::log_backlog::LogBacklog).
//! - When a disk of the database or of its log is nearly full, so that the log may soon have no room, or no
//!   checkpoint may have, or rows that should leave memory have none: a checkpoint frees log. One that is not likely to fit does not begin
//!   for that.
//! - When the log could not make its next file: at once; as long as that lasts, again after pauses that grow up to
//!   the time that a checkpoint may take.
//!
//! One that could not be made stays due, whatever becomes of its reason, and is tried again after pauses that grow. A log that could not make its
//! next file waits for its own pauses alone, but what costs much in vain is tried seldom for that, too. One that was asked for counts as well for
//! how much the log has grown.

use std::mem;
use std::time::{Duration, Instant};

use ensilo_log::{Log, LogStatistics};

use super::options::CheckpointOptions;

/// A checkpoint is spread over so much of the time to the next one, so that transactions feel little of it at
/// any one time.
pub(super) const SHARE: f64 = 0.8;

/// How long after a checkpoint the next one is made because the log is short of space, or after one that could not be made, at first. Twice as
/// long each time.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// The longest pause after one that could not be made, unless that took long itself.
const PAUSE_MAX: Duration = Duration::from_secs(600);

/// So many checkpoints in a row may have no transaction to take in while the log is short of space. More than one is needed: the file of the log that has
/// ended last stays, so that a file only goes with the checkpoint after the one for which it has ended.
const WITHOUT_TRANSACTIONS_MAX: u32 = 3;

/// The longest pause after one that took however long.
const LONG_PAUSE_MAX: Duration = Duration::from_secs(3600);

/// What was logged since the opening.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Logged {
    pub(super) bytes: u64,
    /// Without any, the bytes are marks of rounds, as a checkpoint itself has some written.
    pub(super) transactions: u64,
}

impl Logged {
    pub(super) fn of(log: &Log) -> Self {
        let LogStatistics { written_bytes: bytes, transactions, .. } = log.statistics();
        Logged { bytes, transactions }
    }

    /// Returns how much more this is. The other one may have been read later.
    fn since(self, other: Logged) -> Logged {
        Logged {
            bytes: self.bytes.saturating_sub(other.bytes),
            transactions: self.transactions.saturating_sub(other.transactions),
        }
    }
}

/// How long the log is.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogGrowth {
    pub(super) written: Logged,
    /// What the opening has found, if no checkpoint has replaced that.
    pub(super) found_bytes: u64,
    /// What of it was written when the last checkpoint began that was made.
    pub(super) replaced: Logged,
    /// How many checkpoints were made: another number says that one was.
    pub(super) checkpoints: u64,
    /// A checkpoint is due when so much was written since then.
    pub(super) due_bytes: u64,
    /// Whether the log that the opening has found is to be replaced by a checkpoint.
    pub(super) is_overdue: bool,
}

/// How much room the disks have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Room {
    /// Whether the log could not make its next file as it should be.
    pub(super) is_log_short: bool,
    /// Whether rows that should leave memory cannot.
    pub(super) is_eviction_refused: bool,
    /// What files can still take where checkpoints are written, as far as is known.
    pub(super) free_bytes: Option<u64>,
    /// The same of the log directories, of the one with the least.
    pub(super) log_free_bytes: Option<u64>,
    /// What the next checkpoint takes, about.
    pub(super) expected_bytes: u64,
    pub(super) log_file_bytes: u64,
}

impl Pause {
    /// Returns when it ends. A checkpoint that is not likely to fit waits for longer, and is not given up: how large one is, is a guess.
    fn end(&self, room: Room) -> Instant {
        self.not_before + if room.is_hopeless() { PAUSE_MAX } else { Duration::ZERO }
    }
}

impl Room {
    /// Returns whether a checkpoint, and the files that the log needs meanwhile, may not fit if one waits for
    /// longer, or rows stay in memory until there is one.
    fn is_scarce(&self) -> bool {
        let of_log = 2 * self.log_file_bytes;
        let needed = self.expected_bytes + self.expected_bytes / 4 + of_log;
        self.is_eviction_refused
            || self.free_bytes.is_some_and(|free| free < needed)
            || self.log_free_bytes.is_some_and(|free| free < of_log)
    }

    /// Returns whether a checkpoint is not likely to fit: it would take the last room from the log for nothing.
    fn is_hopeless(&self) -> bool {
        self.free_bytes.is_some_and(|free| free < self.expected_bytes / 2)
    }

    /// So much log is worth a checkpoint for the space that it frees.
    fn worth_bytes(&self) -> u64 {
        self.log_file_bytes.max(self.expected_bytes / 2)
    }
}

/// What follows a checkpoint that could not be made.
#[derive(Debug, Copy, Clone)]
struct Pause {
    /// When the next one may begin.
    not_before: Instant,
    length: Duration,
    /// How many checkpoints were made then: another number says that one was made meanwhile, which somebody has asked for.
    checkpoints: u64,
}

/// A checkpoint that has begun by itself.
#[derive(Debug)]
pub(super) struct Try {
    began: Instant,
    /// How many were made then.
    checkpoints: u64,
    /// Whether the log was short of space.
    is_relief: bool,
    /// Whether any transaction was logged since the one before.
    is_any_logged: bool,
}

/// What follows a checkpoint while the log is short of space.
#[derive(Debug, Copy, Clone)]
struct Relief {
    /// When the next one may begin for that.
    not_before: Instant,
    length: Duration,
    /// How many in a row had no transaction to take in.
    without_transactions: u32,
}

/// When the last checkpoint began, and what speaks for the next one.
#[derive(Debug)]
pub(super) struct Schedule {
    options: CheckpointOptions,
    /// When the last one that was made by itself began, or the schedule.
    began: Instant,
    /// What the opening itself has logged.
    of_opening: Logged,
    /// How many checkpoints were made by the last look.
    checkpoints: u64,
    /// After one that has failed, until one is made.
    pause: Option<Pause>,
    /// After one that has begun while the log was short of space: until that is over, and none is due that has failed.
    relief: Option<Relief>,
}

impl Schedule {
    /// Makes a schedule that begins now, after what the opening has logged.
    pub(super) fn new(options: CheckpointOptions, of_opening: Logged, now: Instant) -> Self {
        Schedule { options, began: now, of_opening, checkpoints: 0, pause: None, relief: None }
    }

    /// Returns how long a checkpoint may take that is to begin now, if one is.
    pub(super) fn due(&mut self, now: Instant, log: LogGrowth, room: Room) -> Option<Duration> {
        if !self.options.is_automatic {
            return None;
        }
        let period = now - self.began;
        self.follow(now, log, room);
        let grown = self.grown(log);
        let is_any_logged = grown.transactions > 0;
        if self.is_relief_due(now, is_any_logged, room) {
            // Nothing is gained by going slowly.
            Some(Duration::ZERO)
        } else if self.pause.is_some_and(|pause| now < pause.end(room)) {
            None
        } else if room.is_scarce()
            && !room.is_hopeless()
            && grown.bytes + log.found_bytes >= room.worth_bytes()
        {
            Some(Duration::ZERO)
        } else if log.is_overdue || self.pause.is_some() {
            Some(self.options.spread_max() / 2)
        } else if is_any_logged
            && (grown.bytes >= log.due_bytes || self.options.interval.is_some_and(|max| period >= max))
        {
            Some(period.min(self.options.spread_max()).mul_f64(SHARE))
        } else {
            None
        }
    }

    /// Returns the checkpoint that begins now, as one is due.
    pub(super) fn begin(&self, now: Instant, log: LogGrowth, room: Room) -> Try {
        Try {
            began: now,
            checkpoints: log.checkpoints,
            is_relief: room.is_log_short,
            is_any_logged: self.grown(log).transactions > 0,
        }
    }

    /// Notes what has become of a checkpoint by now, and whether the log is short of space.
    pub(super) fn note(&mut self, tried: &Try, now: Instant, was_made: bool, is_log_short: bool) {
        let &Try { began, checkpoints, is_relief, is_any_logged } = tried;
        // What costs much in vain is tried seldom.
        let costly = if was_made { Duration::ZERO } else { (4 * (now - began)).min(LONG_PAUSE_MAX) };
        // It may have become so meanwhile, and needs a moment to make use of what was freed.
        if is_relief || is_log_short {
            let max = self.options.spread_max().max(PAUSE_MIN);
            let length = self.relief.map_or(PAUSE_MIN, |relief| (2 * relief.length).min(max));
            let before = self.relief.filter(|_| !is_any_logged);
            let without_transactions =
                before.map_or(0, |relief| relief.without_transactions + u32::from(was_made));
            self.relief = Some(Relief { not_before: now + length.max(costly), length, without_transactions });
        }
        if was_made {
            (self.began, self.pause) = (began, None);
            return;
        }
        let length = self.pause.map_or(PAUSE_MIN, |pause| (2 * pause.length).min(PAUSE_MAX)).max(costly);
        self.pause = Some(Pause { not_before: now + length, length, checkpoints });
    }

    /// Forgets the pauses whose reasons are over, and lets the log make use of what a checkpoint has freed that somebody has asked for.
    fn follow(&mut self, now: Instant, log: LogGrowth, room: Room) {
        self.pause = self.pause.filter(|pause| pause.checkpoints == log.checkpoints);
        // After one that has failed, a shortage that comes and goes is one.
        self.relief = self.relief.filter(|_| room.is_log_short || self.pause.is_some());
        let was_made = mem::replace(&mut self.checkpoints, log.checkpoints) != log.checkpoints;
        if was_made && room.is_log_short {
            let first = Relief { not_before: now, length: PAUSE_MIN, without_transactions: 0 };
            let relief = self.relief.unwrap_or(first);
            self.relief = Some(Relief { not_before: now + relief.length, ..relief });
        }
    }

    /// Returns what was logged since the last checkpoint, which has what the opening has logged.
    fn grown(&self, log: LogGrowth) -> Logged {
        log.written.since(if log.checkpoints > 0 { log.replaced } else { self.of_opening })
    }

    fn is_relief_due(&self, now: Instant, is_any_logged: bool, room: Room) -> bool {
        let is_due = self.relief.is_none_or(|relief| {
            let may_help = is_any_logged
                || self.pause.is_some()
                || relief.without_transactions < WITHOUT_TRANSACTIONS_MAX;
            may_help && now >= relief.not_before
        });
        room.is_log_short && is_due && !room.is_hopeless()
    }
}

#[cfg(test)]
mod tests;
