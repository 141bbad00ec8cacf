//! A run of `ensilo compare`.

use ensilo_bench::driver::{Check, Latencies, RunResult};
use ensilo_bench::report::Machine;
use serde::{Deserialize, Serialize};

use crate::provenance::{machine_in_words, now, this_program_in_words};

/// The file in the directory of results.
pub const FILE_NAME: &str = "compare.csv";

/// A run of a database under a workload. The names are those of the file's columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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

/// What a run is of.
#[derive(Debug, Clone, Copy)]
pub struct RunSubject<'a> {
    /// The workload.
    pub workload: &'a str,
    /// When transactions are answered.
    pub setting: &'a str,
    /// Client threads.
    pub workers: usize,
    /// The database.
    pub peer: &'a str,
    /// What its transactions are isolated from.
    pub isolation: &'a str,
    /// Rows that were loaded.
    pub rows: u64,
    /// The number of the run, from 1.
    pub run: usize,
}

impl PeerRun {
    /// A run by this program on this machine, which has ended just now. `command` is the user's.
    pub fn new(subject: RunSubject<'_>, result: &RunResult, checks: &[Check], command: String) -> Self {
        let mut latencies = Latencies::new();
        result.measurements.types().iter().for_each(|of_type| latencies.add(&of_type.latencies));
        let committed = result.measurements.committed();
        Self {
            committed,
            transactions_per_second: committed as f64 / result.seconds,
            aborted: result.measurements.aborts().total(),
            checks: checks.len(),
            checks_failed: checks.iter().filter(|check| !check.passed()).count(),
            ..Self::of_latencies(subject, result.seconds, &latencies, command)
        }
    }

    /// The same of something that does not abort and is not checked, by the latencies of all that it did in `seconds`.
    pub(crate) fn of_latencies(
        subject: RunSubject<'_>,
        seconds: f64,
        latencies: &Latencies,
        command: String,
    ) -> Self {
        let RunSubject { workload, setting, workers, peer, isolation, rows, run } = subject;
        let committed = latencies.count();
        Self {
            workload: workload.to_owned(),
            setting: setting.to_owned(),
            workers,
            peer: peer.to_owned(),
            isolation: isolation.to_owned(),
            rows,
            run,
            seconds,
            committed,
            aborted: 0,
            transactions_per_second: committed as f64 / seconds,
            latency_us_p50: latencies.quantile_ns(0.5) as f64 / 1e3,
            latency_us_p99: latencies.quantile_ns(0.99) as f64 / 1e3,
            checks: 0,
            checks_failed: 0,
            measured_at: now(),
            command,
            program: this_program_in_words().to_owned(),
            machine: machine_in_words(&Machine::this()),
        }
    }

    /// Whether it and `other` are of the same database under the same workload, setting and number of clients.
    pub fn is_of_point(&self, other: &Self) -> bool {
        let point = |run: &Self| (run.workload.clone(), run.setting.clone(), run.workers, run.peer.clone());
        point(self) == point(other)
    }
}
