//! The table of all single runs of an experiment, as CSV.

use crate::experiment::{Experiment, Metric};
use crate::measurement::Measurement;
use crate::provenance::Provenance;
use crate::results::Results;

/// The names of the columns. Units stand in the names; columns that do not apply to a run are empty.
const COLUMNS: [&str; 34] = [
    "experiment",
    "series",
    "axis",
    "x",
    "run",
    "beyond_cores",
    "workers",
    "seconds",
    "committed",
    "transactions_per_second",
    "aborted",
    "aborts_per_second",
    "processor_seconds",
    "most_frequent_type",
    "latency_us_p50",
    "latency_us_p99",
    "stored_latency_ms_p50",
    "stored_latency_ms_p95",
    "stored_latency_ms_p99",
    "stored_latency_ms_max",
    "log_bytes",
    "checkpoint_bytes",
    "checkpoint_seconds",
    "memory_bytes_before",
    "memory_bytes",
    "slowest_half_second_share",
    "recovery_seconds",
    "recovery_checkpoint_bytes",
    "recovery_log_bytes",
    "consistency_checks_passed",
    "command",
    "measured_at",
    "program",
    "machine",
];

/// Every run in a line, with the command that made it, and when, by what and where that was.
pub(crate) fn csv_of_runs(experiment: &Experiment, results: &Results, provenance: &Provenance) -> String {
    let mut table = csv::Writer::from_writer(Vec::new());
    let mut write = |fields: &[String]| {
        table.write_record(fields).unwrap_or_else(|error| unreachable!("written to memory: {error}"));
    };
    write(&COLUMNS.map(str::to_owned));
    for ((series, point, repetition), run) in results.runs() {
        let described = &experiment.series[series];
        let point = &described.points[point];
        let mut fields = vec![
            experiment.name.to_owned(),
            described.name.to_owned(),
            experiment.axis.label().to_owned(),
            point.x.to_string(),
            (repetition + 1).to_string(),
            point.is_beyond(provenance.sizes.cores).to_string(),
        ];
        fields.extend(figures(&run.measurement));
        fields.extend([
            command_line(&run.arguments),
            run.measured_at.clone(),
            provenance.program.clone(),
            provenance.machine.clone(),
        ]);
        write(&fields);
    }
    let bytes = table.into_inner().unwrap_or_else(|error| unreachable!("written to memory: {error}"));
    String::from_utf8(bytes).unwrap_or_else(|error| unreachable!("made of strings: {error}"))
}

/// From `workers` to `consistency_checks_passed`.
fn figures(run: &Measurement) -> [String; 24] {
    let frequent = run.most_frequent_type();
    let stored = run.durable_latency_ms;
    let recovery = run.recovery;
    [
        run.workers.to_string(),
        run.seconds.to_string(),
        run.committed.to_string(),
        run.throughput_per_second.to_string(),
        run.aborted.to_string(),
        (run.aborted as f64 / run.seconds).to_string(),
        run.processor_seconds.to_string(),
        frequent.map(|(name, _)| name.to_owned()).unwrap_or_default(),
        text(frequent.map(|(_, of_type)| of_type.latency_us.p50)),
        text(frequent.map(|(_, of_type)| of_type.latency_us.p99)),
        text(stored.map(|stored| stored.p50)),
        text(stored.map(|stored| stored.p95)),
        text(stored.map(|stored| stored.p99)),
        text(stored.map(|stored| stored.max)),
        text(run.log_bytes),
        text(run.checkpoint_bytes),
        text(Metric::CheckpointSeconds.of(run)),
        run.memory.live_bytes_before.to_string(),
        run.memory.live_bytes.to_string(),
        text(run.slowest_half_second()),
        text(recovery.map(|recovery| recovery.seconds)),
        text(recovery.map(|recovery| recovery.checkpoint_bytes)),
        text(recovery.map(|recovery| recovery.log_bytes)),
        run.consistency_checks.to_string(),
    ]
}

fn text(figure: Option<impl ToString>) -> String {
    figure.map(|figure| figure.to_string()).unwrap_or_default()
}

/// As a user would type it.
pub fn command_line(arguments: &[String]) -> String {
    let quoted = |part: &String| {
        let is_plain = part.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=,:".contains(c));
        if is_plain { part.clone() } else { format!("'{part}'") }
    };
    let parts: Vec<String> = arguments.iter().map(quoted).collect();
    format!("ensilo {}", parts.join(" "))
}
