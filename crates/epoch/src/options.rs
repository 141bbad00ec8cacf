//! How fast epochs go by.

use std::time::Duration;

use crate::Epoch;
use crate::epoch::SnapshotInterval;

/// How fast epochs go by.
#[derive(Debug, Clone, Copy)]
pub struct EpochOptions {
    /// How long an epoch lasts.
    pub epoch_interval: Duration,
    /// Snapshots are read at multiples of so many epochs, from 1 to 2^19 - 1 (other values are clamped).
    pub epochs_per_snapshot: u64,
    /// How long after a snapshot epoch the next one comes, however fast epochs go by: the epochs up to the next multiple are then left
    /// out, and multiples in between are no snapshot epochs. `None` where only epochs count.
    pub snapshot_interval: Option<Duration>,
    /// The global epoch begins at this one or soon after it: later than every epoch of an earlier life of the database.
    pub first_epoch: Epoch,
    /// What moves the global epoch on.
    pub advance: Advance,
}

impl EpochOptions {
    /// Returns the epoch that a database with these options begins in: [`Epoch::LAST`] or a later one if there is
    /// none in which anything can commit.
    #[must_use]
    pub fn start(&self) -> Epoch {
        let interval = SnapshotInterval::new(self.epochs_per_snapshot);
        interval.start_from(self.first_epoch).max(Epoch::new(4 * interval.epochs()))
    }
}

impl Default for EpochOptions {
    /// Returns the paper's constants: an epoch every 40 ms, a snapshot every 25 epochs.
    fn default() -> Self {
        EpochOptions {
            epoch_interval: Duration::from_millis(40),
            epochs_per_snapshot: 25,
            snapshot_interval: None,
            first_epoch: Epoch::new(0),
            advance: Advance::Thread,
        }
    }
}

/// What moves the global epoch on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advance {
    /// A thread of its own, which ends with the last reference to the [`Epochs`](crate::Epochs).
    ///
    /// Model checkers have no clock: under them this is the same as `Manual`.
    Thread,
    /// The callers of [`Epochs::advance`](crate::Epochs::advance).
    Manual,
}
