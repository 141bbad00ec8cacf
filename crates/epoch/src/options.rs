//! How fast epochs go by.

use std::time::Duration;

/// How fast epochs go by.
#[derive(Debug, Clone, Copy)]
pub struct EpochOptions {
    /// How long an epoch lasts.
    pub epoch_interval: Duration,
    /// How many epochs lie between two snapshots, from 1 to 2^23 - 1 (other values are clamped).
    pub epochs_per_snapshot: u64,
    /// Who moves the global epoch on.
    pub advance: Advance,
}

impl Default for EpochOptions {
    /// The paper's constants: an epoch every 40 ms, a snapshot every 25 epochs.
    fn default() -> Self {
        EpochOptions {
            epoch_interval: Duration::from_millis(40),
            epochs_per_snapshot: 25,
            advance: Advance::Thread,
        }
    }
}

/// Who moves the global epoch on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advance {
    /// A thread of its own, which ends with the last reference to the [`Epochs`](crate::Epochs).
    ///
    /// Model checkers have no clock: under them this is the same as `Manual`.
    Thread,
    /// Whoever calls [`Epochs::advance`](crate::Epochs::advance).
    Manual,
}
