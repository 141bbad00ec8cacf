//! A run of `ensilo compare`.

use serde::{Deserialize, Serialize};

/// The file in the directory of results.
pub const FILE_NAME: &str = "compare.csv";

/// A run of a database under a workload. The names are those of the file's columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PeerRun {
    /// The workload.
    pub workload: String,
    /// When transactions were answered.
    pub setting: String,
    /// Client threads, each with one transaction at a time.
    pub workers: usize,
    /// The database.
    pub peer: String,
    /// What its transactions were isolated from.
    pub isolation: String,
    /// Rows that were loaded.
    pub rows: u64,
    /// The number of the run, from 1.
    pub run: usize,
    /// Seconds that were counted.
    pub seconds: f64,
    /// Transactions that committed.
    pub committed: u64,
    /// Attempts that were undone and made again.
    pub aborted: u64,
    /// Transactions a second.
    pub transactions_per_second: f64,
    /// The median of the time from the start of a transaction to its answer, in microseconds.
    pub latency_us_p50: f64,
    /// What 99 of 100 do not exceed.
    pub latency_us_p99: f64,
    /// Checks of consistency after the run.
    pub checks: usize,
    /// Those that did not hold.
    pub checks_failed: usize,
    /// When it ended, in UTC. Empty, like what follows, in tables from before these columns.
    #[serde(default)]
    pub measured_at: String,
    /// The user's command.
    #[serde(default)]
    pub command: String,
    /// The program in words.
    #[serde(default)]
    pub program: String,
    /// The machine in words.
    #[serde(default)]
    pub machine: String,
}

impl PeerRun {
    /// Whether it and `other` are of the same database under the same workload, setting and number of clients.
    pub fn is_of_point(&self, other: &Self) -> bool {
        let point = |run: &Self| (run.workload.clone(), run.setting.clone(), run.workers, run.peer.clone());
        point(self) == point(other)
    }
}
