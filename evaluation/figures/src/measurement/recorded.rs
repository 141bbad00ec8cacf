//! A run as its row in the table of an experiment has it.

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::{
    CheckpointTime, Measurement, MemoryUse, Recovery, ReportedRun, Steadiness, StoredLatency, WorstHalfSecond,
};

/// A row. The names are those of the table's columns; tables of earlier versions lack those that have a default.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordedRun {
    pub(crate) experiment: String,
    pub(crate) series: String,
    pub(crate) axis: String,
    pub(crate) x: f64,
    pub(crate) run: usize,
    pub(crate) beyond_cores: bool,
    pub(crate) workers: usize,
    seconds: f64,
    committed: u64,
    transactions_per_second: f64,
    aborted: u64,
    #[serde(rename = "aborts_per_second")]
    _aborts_per_second: IgnoredAny,
    processor_seconds: f64,
    #[serde(rename = "most_frequent_type")]
    _most_frequent_type: IgnoredAny,
    #[serde(rename = "latency_us_p50")]
    _latency_us_p50: IgnoredAny,
    #[serde(rename = "latency_us_p99")]
    _latency_us_p99: IgnoredAny,
    stored_latency_ms_p50: Option<f64>,
    stored_latency_ms_p95: Option<f64>,
    stored_latency_ms_p99: Option<f64>,
    stored_latency_ms_max: Option<f64>,
    log_bytes: Option<u64>,
    checkpoint_bytes: Option<u64>,
    #[serde(default)]
    checkpoint_seconds: Option<f64>,
    memory_bytes_before: u64,
    memory_bytes: u64,
    slowest_half_second_share: Option<f64>,
    #[serde(default)]
    in_parts_us: Option<f64>,
    recovery_seconds: Option<f64>,
    recovery_checkpoint_bytes: Option<u64>,
    recovery_log_bytes: Option<u64>,
    consistency_checks_passed: u64,
    #[serde(default)]
    transactions: String,
    #[serde(rename = "command")]
    _command: IgnoredAny,
    #[serde(default)]
    pub(crate) measured_at: String,
    #[serde(default, rename = "program")]
    _program: IgnoredAny,
    #[serde(default)]
    pub(crate) machine: String,
    #[serde(default)]
    timeline: String,
}

impl RecordedRun {
    /// What the run measured.
    ///
    /// # Errors
    /// What is wrong with the row, in words.
    pub(crate) fn to_measurement(&self) -> Result<Measurement, String> {
        self.see_whether_numbers_can_be()?;
        Ok(Measurement {
            workers: self.workers,
            seconds: self.seconds,
            committed: self.committed,
            aborted: self.aborted,
            throughput_per_second: self.transactions_per_second,
            processor_seconds: self.processor_seconds,
            durable_latency_ms: self.stored_latency(),
            log_bytes: self.log_bytes,
            checkpoint_bytes: self.checkpoint_bytes,
            // Versions are not noted, and nothing of an experiment is made of them.
            memory: MemoryUse {
                live_bytes: self.memory_bytes,
                live_bytes_before: self.memory_bytes_before,
                versions: 0,
            },
            recovery: self.recovery(),
            timed_checkpoint: None,
            consistency_checks: self.consistency_checks_passed,
            interrupted: false,
            transactions: json("transactions", &self.transactions)?,
            in_parts_us: self.in_parts_us,
            half_seconds: self
                .slowest_half_second_share
                .map(|of_median| Steadiness { worst: WorstHalfSecond { of_median } }),
            checkpoint_time: CheckpointTime::Noted(self.checkpoint_seconds),
            runs: vec![ReportedRun { timeline: json("timeline", &self.timeline)? }],
        })
    }

    /// No figure may be what no measurement gives; a plot of it would show nothing, or anything.
    fn see_whether_numbers_can_be(&self) -> Result<(), String> {
        let figures = [
            ("x", Some(self.x)),
            ("seconds", Some(self.seconds)),
            ("transactions_per_second", Some(self.transactions_per_second)),
            ("processor_seconds", Some(self.processor_seconds)),
            ("stored_latency_ms_p50", self.stored_latency_ms_p50),
            ("checkpoint_seconds", self.checkpoint_seconds),
            ("slowest_half_second_share", self.slowest_half_second_share),
            ("in_parts_us", self.in_parts_us),
            ("recovery_seconds", self.recovery_seconds),
        ];
        let is_impossible = |figure: f64| !figure.is_finite() || figure < 0.0;
        let found = figures.into_iter().find(|(_, figure)| figure.is_some_and(is_impossible));
        match found {
            Some((column, figure)) => Err(format!("{column} is {}", figure.unwrap_or_default())),
            None if self.seconds == 0.0 => Err("seconds is 0".to_owned()),
            None if self.run == 0 || self.workers == 0 => Err("run and workers count from 1".to_owned()),
            None => Ok(()),
        }
    }

    fn stored_latency(&self) -> Option<StoredLatency> {
        Some(StoredLatency {
            p50: self.stored_latency_ms_p50?,
            p95: self.stored_latency_ms_p95?,
            p99: self.stored_latency_ms_p99?,
            max: self.stored_latency_ms_max?,
        })
    }

    fn recovery(&self) -> Option<Recovery> {
        let [checkpoint_bytes, log_bytes] = [self.recovery_checkpoint_bytes?, self.recovery_log_bytes?];
        let bytes = checkpoint_bytes.saturating_add(log_bytes);
        Some(Recovery { seconds: self.recovery_seconds?, bytes, checkpoint_bytes, log_bytes })
    }
}

/// The JSON of a column; that of an empty one is as if the table did not have it.
fn json<T: DeserializeOwned + Default>(column: &str, text: &str) -> Result<T, String> {
    if text.is_empty() {
        return Ok(T::default());
    }
    serde_json::from_str(text).map_err(|error| format!("{column} is no such JSON: {error}"))
}
