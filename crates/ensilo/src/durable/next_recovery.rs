//! How long a recovery would take, and how much log there may be for it to take no longer than it should.
//!
//! # Source
//! SiloR (OSDI 2014) §5: what a recovery takes is the time for the checkpoint, for the log since that began, and for what follows
//! from the rows. The paper makes checkpoints one after the other without a pause; here the time that a recovery may take says when the next
//! one is due, since a checkpoint costs the disk, and transactions, as much as its rows.
//!
//! # Terms
//! ```text
//! last checkpoint begins    the next one begins     and is complete
//!  |------------ grown ------|---- 0.8 x grown ------|
//!  |------------- log that a recovery finds ---------|    at most, if the log grows evenly
//! ```

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::options::CheckpointOptions;
use super::schedule::{Logged, SHARE};
use super::statistics::RecoveryStatistics;

/// What a recovery would take if the process ended now, see
/// [`DurabilityStatistics::next_recovery`](crate::DurabilityStatistics::next_recovery).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RecoveryForecast {
    /// About how long it would take until everything is in memory, indexes included, on this machine with nothing else to do.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::serialized::seconds"))]
    pub duration: Duration,
    /// Bytes of checkpoint that it would read.
    pub checkpoint_bytes: u64,
    /// Bytes of log that it would replay.
    pub log_bytes: u64,
    /// Whether the present opening has measured how fast that goes; otherwise it is assumed, see
    /// [`Options::recovery_time_target`](crate::Options::recovery_time_target).
    pub is_measured: bool,
}

/// How fast rows come back.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecoveryRates {
    checkpoint_bytes_per_second: f64,
    log_bytes_per_second: f64,
    /// Of what follows from rows, for each of their bytes: the catalog and the indexes.
    seconds_per_row_byte: f64,
    is_measured: bool,
}

/// Less says little about how fast more goes.
const MEASURED_BYTES_MIN: u64 = 16 << 20;

/// What a thread is assumed to replay in a second until that was measured.
const ASSUMED_BYTES_PER_SECOND: f64 = 100e6;

/// More threads than these are not assumed to be faster.
const ASSUMED_THREADS_MAX: usize = 16;

/// So much log is never worth a checkpoint.
const DUE_BYTES_MIN: u64 = 64 << 20;

impl RecoveryRates {
    /// Those that an opening has shown with so many threads, after which there were `row_bytes` of rows.
    pub(super) fn new(recovery: &RecoveryStatistics, threads: usize, row_bytes: u64) -> Self {
        let assumed = ASSUMED_BYTES_PER_SECOND * threads.min(ASSUMED_THREADS_MAX) as f64;
        let checkpoint = measured(recovery.checkpoint_bytes, recovery.checkpoint_duration);
        let log = measured(recovery.log_bytes, recovery.log_duration);
        let replay = recovery.checkpoint_duration + recovery.log_duration;
        let derived = measured(row_bytes, recovery.duration.saturating_sub(replay));
        RecoveryRates {
            checkpoint_bytes_per_second: checkpoint.or(log).unwrap_or(assumed),
            log_bytes_per_second: log.or(checkpoint).unwrap_or(assumed),
            seconds_per_row_byte: derived.map_or(0.0, |bytes_per_second| 1.0 / bytes_per_second),
            is_measured: checkpoint.or(log).is_some(),
        }
    }

    /// How long a recovery takes without the log.
    fn seconds_of_rows(&self, checkpoint_bytes: u64, row_bytes: u64) -> f64 {
        checkpoint_bytes as f64 / self.checkpoint_bytes_per_second
            + row_bytes as f64 * self.seconds_per_row_byte
    }
}

/// Returns bytes per second, if these were enough to tell.
fn measured(bytes: u64, duration: Duration) -> Option<f64> {
    let is_enough = bytes >= MEASURED_BYTES_MIN && !duration.is_zero();
    is_enough.then(|| bytes as f64 / duration.as_secs_f64())
}

/// What a recovery would find.
#[derive(Debug)]
pub(super) struct NextRecovery {
    rates: RecoveryRates,
    /// Log of earlier openings. It counts until a checkpoint has replaced it.
    found_log_bytes: u64,
    /// Those of the checkpoint that counts.
    checkpoint_bytes: AtomicU64,
    /// What of the log that checkpoint has replaced, the log of earlier openings included.
    replaced_log_bytes: AtomicU64,
    /// How many transactions of this opening were logged when that checkpoint began.
    replaced_transactions: AtomicU64,
}

impl NextRecovery {
    pub(super) fn new(rates: RecoveryRates, checkpoint_bytes: u64, found_log_bytes: u64) -> Self {
        NextRecovery {
            rates,
            found_log_bytes,
            checkpoint_bytes: AtomicU64::new(checkpoint_bytes),
            replaced_log_bytes: AtomicU64::new(0),
            replaced_transactions: AtomicU64::new(0),
        }
    }

    /// Notes a checkpoint of so many bytes, which began when the present opening had logged so much.
    pub(super) fn note_checkpoint(&self, checkpoint_bytes: u64, logged: Logged) {
        // Relaxed: they are for forecasts alone.
        self.checkpoint_bytes.store(checkpoint_bytes, Ordering::Relaxed);
        self.replaced_log_bytes.store(self.found_log_bytes + logged.bytes, Ordering::Relaxed);
        self.replaced_transactions.store(logged.transactions, Ordering::Relaxed);
    }

    /// Returns how much log of earlier openings no checkpoint has replaced.
    pub(super) fn found_bytes(&self) -> u64 {
        self.found_log_bytes.saturating_sub(self.replaced_log_bytes.load(Ordering::Relaxed))
    }

    /// Returns what of the log of this opening the last checkpoint has replaced.
    pub(super) fn replaced(&self) -> Logged {
        let bytes = self.replaced_log_bytes.load(Ordering::Relaxed).saturating_sub(self.found_log_bytes);
        Logged { bytes, transactions: self.replaced_transactions.load(Ordering::Relaxed) }
    }

    /// Returns what a recovery would take when this opening has written so much log, and there are `row_bytes` of rows.
    pub(super) fn forecast(&self, written_log_bytes: u64, row_bytes: u64) -> RecoveryForecast {
        let checkpoint_bytes = self.checkpoint_bytes.load(Ordering::Relaxed);
        let replaced = self.replaced_log_bytes.load(Ordering::Relaxed);
        let log_bytes = (self.found_log_bytes + written_log_bytes).saturating_sub(replaced);
        let seconds = self.rates.seconds_of_rows(checkpoint_bytes, row_bytes)
            + log_bytes as f64 / self.rates.log_bytes_per_second;
        RecoveryForecast {
            duration: Duration::from_secs_f64(seconds),
            checkpoint_bytes,
            log_bytes,
            is_measured: self.rates.is_measured,
        }
    }

    /// Returns by how much the log may grow from the beginning of the last checkpoint, or from the opening, to that of the next one,
    /// which will have about `expected_bytes` of `row_bytes` of rows.
    pub(super) fn log_bytes_due(
        &self,
        options: &CheckpointOptions,
        expected_bytes: u64,
        row_bytes: u64,
    ) -> u64 {
        let seconds = options.recovery_time_target.as_secs_f64()
            - self.rates.seconds_of_rows(expected_bytes, row_bytes);
        // A conversion from floating point saturates: what is below zero is 0.
        let within_target = (seconds * self.rates.log_bytes_per_second / (1.0 + SHARE)) as u64;
        let is_found_log_replaced = self.replaced_log_bytes.load(Ordering::Relaxed) > 0;
        let found = if is_found_log_replaced { 0 } else { self.found_log_bytes };
        let least = DUE_BYTES_MIN.max(expected_bytes / 2);
        within_target.max(least).saturating_sub(found).min(options.log_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durable::DurableOptions;

    const GB: u64 = 1_000_000_000;

    fn options(target_seconds: u64) -> CheckpointOptions {
        CheckpointOptions {
            recovery_time_target: Duration::from_secs(target_seconds),
            log_bytes: u64::MAX,
            ..DurableOptions::default().checkpoint
        }
    }

    /// Two gigabytes of checkpoint in four seconds, one of log in five, and one for the indexes of four gigabytes of rows.
    fn recovery() -> RecoveryStatistics {
        RecoveryStatistics {
            duration: Duration::from_secs(10),
            checkpoint_duration: Duration::from_secs(4),
            log_duration: Duration::from_secs(5),
            checkpoint_bytes: 2 * GB,
            log_bytes: GB,
            ..RecoveryStatistics::default()
        }
    }

    fn logged(bytes: u64) -> Logged {
        Logged { bytes, transactions: 1 }
    }

    fn measured_next() -> NextRecovery {
        NextRecovery::new(RecoveryRates::new(&recovery(), 2, 4 * GB), 2 * GB, GB)
    }

    #[test]
    fn the_same_again_takes_as_long_as_it_took() {
        let next = measured_next();
        let now = next.forecast(0, 4 * GB);
        let as_found = RecoveryForecast {
            duration: Duration::from_secs(10),
            checkpoint_bytes: 2 * GB,
            log_bytes: GB,
            is_measured: true,
        };
        assert_eq!(now, as_found);
        assert_eq!(next.forecast(GB, 4 * GB).duration, Duration::from_secs(15));
    }

    #[test]
    fn a_checkpoint_takes_the_place_of_the_log_before_it() {
        let next = measured_next();
        next.note_checkpoint(4 * GB, logged(GB / 2));
        let now = next.forecast(GB, 4 * GB);
        assert_eq!((now.checkpoint_bytes, now.log_bytes), (4 * GB, GB / 2));
        assert_eq!(now.duration, Duration::from_millis(8000 + 2500 + 1000));
    }

    #[test]
    fn the_log_may_grow_by_what_is_replayed_in_the_time_that_is_left() {
        let next = measured_next();
        next.note_checkpoint(2 * GB, logged(0));
        let due = next.log_bytes_due(&options(23), 2 * GB, 4 * GB);
        // Of 23 s the rows take 5; in the others 3.6 GB are replayed, of which the next checkpoint takes 4 parts of 9 to be made.
        assert_eq!(due, 2 * GB);
        let bounded = CheckpointOptions { log_bytes: GB, ..options(23) };
        assert_eq!(next.log_bytes_due(&bounded, 2 * GB, 4 * GB), GB);
    }

    #[test]
    fn log_of_earlier_openings_counts_until_a_checkpoint_has_replaced_it() {
        let next = measured_next();
        assert_eq!(next.log_bytes_due(&options(23), 2 * GB, 4 * GB), GB);
        assert_eq!(next.log_bytes_due(&options(1), 2 * GB, 4 * GB), 0, "at once");
        next.note_checkpoint(2 * GB, logged(0));
        assert_eq!(next.log_bytes_due(&options(23), 2 * GB, 4 * GB), 2 * GB);
    }

    #[test]
    fn rows_that_take_too_long_by_themselves_are_not_written_all_the_time() {
        let next = measured_next();
        next.note_checkpoint(2 * GB, logged(0));
        assert_eq!(next.log_bytes_due(&options(1), 2 * GB, 4 * GB), GB);
        assert_eq!(next.log_bytes_due(&options(0), 0, 0), DUE_BYTES_MIN);
    }

    #[test]
    fn what_was_not_measured_is_assumed() {
        let little = RecoveryStatistics { log_bytes: 1000, ..recovery() };
        let next = NextRecovery::new(RecoveryRates::new(&little, 2, 0), 0, 0);
        assert_eq!(next.forecast(GB, 0).duration, Duration::from_secs(2), "as fast as the checkpoint");
        let nothing = RecoveryRates::new(&RecoveryStatistics::default(), 5, 0);
        let now = NextRecovery::new(nothing, 0, 0).forecast(GB, 0);
        assert_eq!((now.duration, now.is_measured), (Duration::from_secs(2), false));
    }
}
