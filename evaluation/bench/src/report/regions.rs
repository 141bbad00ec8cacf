//! Where the time of a run's workers went: a line of what `cargo xtask regions --csv FILE` writes and `ensilo figures regions` reads.

use serde::{Deserialize, Serialize};

use super::Machine;

/// A run of TPC-C at which it was looked which part of the program each worker is in. The names are those of the file's columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionRun {
    /// The system, by the name that [`System`](crate::System) has for it.
    pub system: String,
    /// What lies on disk: `memory` for nothing, `log` for the log.
    pub storage: String,
    /// Threads that ran transactions, each on its own warehouse.
    pub workers: usize,
    /// The number of the run, from 1.
    pub run: usize,
    /// The share of the workers' time at work that went to the index.
    pub index: f64,
    /// The same for indirection arrays and versions.
    pub indirection: f64,
    /// For log entries.
    pub log: f64,
    /// For epochs and garbage.
    pub epochs: f64,
    /// For the rest of the engine.
    pub engine: f64,
    /// For the workload and its tables.
    pub workload: f64,
    /// The share of the time of transactions that went to waiting for the disk, beside the others, which add up to 1.
    pub waiting: f64,
    /// How often a worker was found at work.
    pub looks: u64,
    /// Transactions that committed, by second.
    pub transactions_per_second: f64,
    /// Processors of the machine.
    pub cores: usize,
    /// The machine in words.
    pub machine: String,
}

impl RegionRun {
    /// What the shares are of, in the order of [`RegionRun::shares`].
    pub const PARTS: [&'static str; 6] =
        ["index", "indirection", "log", "epochs", "rest of the engine", "workload, tables"];

    /// Returns the shares of the time at work. They add up to 1.
    pub fn shares(&self) -> [f64; 6] {
        [self.index, self.indirection, self.log, self.epochs, self.engine, self.workload]
    }

    /// Returns the machine as a line of the file names it.
    pub fn machine_in_words(machine: &Machine) -> String {
        format!("{}, {} processors, {}", machine.cpu, machine.cores, machine.os)
    }
}
