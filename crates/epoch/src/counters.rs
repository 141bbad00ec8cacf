//! What an operator wants to know about epochs and garbage.

use crate::Epoch;

/// Where the epochs are and what waits for them, at some moment. While others work, the parts may be a little apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EpochCounters {
    /// The global epoch.
    pub global_epoch: Epoch,
    /// The epoch that a new snapshot reads at.
    pub snapshot_epoch: Epoch,
    /// Memory retired with an earlier tag can be freed.
    pub memory_horizon: Epoch,
    /// No snapshot is read at an earlier epoch.
    pub snapshot_horizon: Epoch,
    /// The earliest epoch that some participant is pinned at.
    pub oldest_pin: Option<Epoch>,
    /// The earliest epoch that some participant began to commit in and has not ended to.
    pub oldest_commit: Option<Epoch>,
    /// The earliest snapshot that some participant reads.
    pub oldest_snapshot: Option<Epoch>,
    /// How often the global epoch was advanced.
    pub epochs_advanced: u64,
    /// Slots that belong to a participant.
    pub active_slots: u64,
    /// Blocks of memory that wait for the memory horizon.
    pub retired_objects: u64,
    /// Bytes in those blocks.
    pub retired_bytes: u64,
}
