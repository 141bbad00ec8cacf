//! What the workload is made of.

/// The only worker.
pub const WORKER: u32 = 0;

/// What the workload is made of.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Where all numbers come from.
    pub seed: u64,
    /// How many steps.
    pub steps: u64,
    /// How many of 100 transactions wait until they are stored.
    pub stored_percent: u64,
    /// Rows of the table `wide`, about.
    pub rows: u32,
    /// The largest row of the table `blob`.
    pub blob_bytes_max: u64,
    /// Whether the workload goes on when a checkpoint could not be made.
    pub survives_failed_checkpoints: bool,
}

impl Plan {
    /// Returns a workload that touches everything.
    #[must_use]
    pub fn new(seed: u64, steps: u64) -> Plan {
        Plan {
            seed,
            steps,
            stored_percent: 30,
            rows: 60,
            blob_bytes_max: 90_000,
            survives_failed_checkpoints: false,
        }
    }
}
