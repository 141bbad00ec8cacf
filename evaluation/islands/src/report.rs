//! What a run has come to.

use std::fmt;

use serde::Serialize;

/// A run of a workload on instances.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IslandsReport {
    /// Which workload.
    pub workload: &'static str,
    /// How many instances.
    pub islands: usize,
    /// How many workers each has.
    pub workers_per_island: u16,
    /// How the cores of the machine are divided among them.
    pub placement: String,
    /// Whether there are more instances than cores: then nothing can be said of the machine's islands.
    pub is_oversubscribed: bool,
    /// What carries messages between them.
    pub channel: String,
    /// Whether each has a process of its own.
    pub processes: bool,
    /// Whether what was answered is stored.
    pub durable: bool,
    /// What is stored at all instances at once: a transaction, or an epoch; `None` in memory.
    pub commit_unit: Option<&'static str>,
    /// How many transactions each worker had under way.
    pub width: usize,
    /// How many of a hundred transactions are multisite.
    pub multisite_percent: u8,
    /// How many bytes all instances together took from the system beforehand.
    pub prefault_bytes: u64,
    /// How long was measured.
    pub seconds: f64,
    /// Committed transactions a second.
    pub throughput: f64,
    /// How many were aborted by conflicts and tried again, of those that were measured.
    pub retried: u64,
    /// How often one, or a part of one, has waited for what was prepared, also before the measurement and after it.
    pub waited: u64,
    /// Microseconds from the first begin of a transaction to its outcome, of the middle one and of one in a hundred.
    pub latency_us_p50: f64,
    /// See `latency_us_p50`.
    pub latency_us_p99: f64,
    /// Microseconds that a committed transaction has taken in the code of its parts, with all of its attempts;
    /// `None` where that was not timed.
    pub in_parts_us: Option<f64>,
}

impl IslandsReport {
    /// Returns the report as one JSON object, with the fields of this struct.
    #[must_use]
    pub fn to_json(&self) -> String {
        let Ok(json) = serde_json::to_string_pretty(self) else {
            unreachable!("numbers and names are JSON");
        };
        json
    }
}

impl fmt::Display for IslandsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.processes { "processes" } else { "threads" };
        let stored = self.commit_unit.map_or("in memory".to_owned(), |unit| format!("stored by the {unit}"));
        let note = if self.is_oversubscribed { " (more than cores)" } else { "" };
        writeln!(
            f,
            "{} on {} island{}{note}, {place}, {} worker{} each, {}, channels through {}, {stored}",
            self.workload,
            self.islands,
            if self.islands == 1 { "" } else { "s" },
            self.workers_per_island,
            if self.workers_per_island == 1 { "" } else { "s" },
            self.placement,
            self.channel
        )?;
        writeln!(
            f,
            "{:.0} transactions a second over {} s, {} % multisite, {} at a time for each worker",
            self.throughput, self.seconds, self.multisite_percent, self.width
        )?;
        writeln!(f, "latency {:.1} us (p50), {:.1} us (p99)", self.latency_us_p50, self.latency_us_p99)?;
        if let Some(in_parts) = self.in_parts_us {
            let all = self.islands as f64 * f64::from(self.workers_per_island) * 1e6 / self.throughput;
            writeln!(
                f,
                "a transaction takes {all:.2} us of a worker, {in_parts:.2} us of them in its parts"
            )?;
        }
        write!(
            f,
            "{} aborted by conflicts and tried again, {} have waited for what was prepared; the rows are consistent",
            self.retried, self.waited
        )
    }
}
