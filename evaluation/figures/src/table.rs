//! The table of all single runs of an experiment, as CSV.

use serde::Serialize;

use crate::experiment::{Experiment, Metric, PlotKind, Point, Series};
use crate::measurement::{Latency, Measurement};
use crate::provenance::Provenance;
use crate::results::{MeasuredRun, Results, RunPlace};

/// What a line of the table is made of.
struct RunLine<'a> {
    experiment: &'a Experiment,
    place: RunPlace,
    of: &'a MeasuredRun,
    run: &'a Measurement,
    provenance: &'a Provenance,
}

/// A column: its name, and its value in a line.
type Column = (&'static str, fn(&RunLine<'_>) -> String);

/// The columns. Units stand in the names; columns that do not apply to a run are empty.
const COLUMNS: [Column; 37] = [
    ("experiment", |line| line.experiment.name.to_owned()),
    ("series", |line| line.series().name.to_owned()),
    ("axis", |line| line.experiment.axis.label().to_owned()),
    ("x", |line| line.point().x.to_string()),
    ("run", |line| (line.place.2 + 1).to_string()),
    ("beyond_cores", |line| line.point().is_beyond(line.provenance.sizes.cores).to_string()),
    ("workers", |line| line.run.workers.to_string()),
    ("seconds", |line| line.run.seconds.to_string()),
    ("committed", |line| line.run.committed.to_string()),
    ("transactions_per_second", |line| line.run.throughput_per_second.to_string()),
    ("aborted", |line| line.run.aborted.to_string()),
    ("aborts_per_second", |line| (line.run.aborted as f64 / line.run.seconds).to_string()),
    ("processor_seconds", |line| line.run.processor_seconds.to_string()),
    ("most_frequent_type", |line| text(line.run.most_frequent_type().map(|(name, _)| name))),
    ("latency_us_p50", |line| text(line.latency().map(|latency| latency.p50))),
    ("latency_us_p99", |line| text(line.latency().map(|latency| latency.p99))),
    ("stored_latency_ms_p50", |line| text(line.run.durable_latency_ms.map(|stored| stored.p50))),
    ("stored_latency_ms_p95", |line| text(line.run.durable_latency_ms.map(|stored| stored.p95))),
    ("stored_latency_ms_p99", |line| text(line.run.durable_latency_ms.map(|stored| stored.p99))),
    ("stored_latency_ms_max", |line| text(line.run.durable_latency_ms.map(|stored| stored.max))),
    ("log_bytes", |line| text(line.run.log_bytes)),
    ("checkpoint_bytes", |line| text(line.run.checkpoint_bytes)),
    ("checkpoint_seconds", |line| text(Metric::CheckpointSeconds.of(line.run))),
    ("memory_bytes_before", |line| line.run.memory.live_bytes_before.to_string()),
    ("memory_bytes", |line| line.run.memory.live_bytes.to_string()),
    ("slowest_half_second_share", |line| text(line.run.slowest_half_second())),
    ("in_parts_us", |line| text(line.run.in_parts_us)),
    ("recovery_seconds", |line| text(line.run.recovery.map(|recovery| recovery.seconds))),
    ("recovery_checkpoint_bytes", |line| text(line.run.recovery.map(|recovery| recovery.checkpoint_bytes))),
    ("recovery_log_bytes", |line| text(line.run.recovery.map(|recovery| recovery.log_bytes))),
    ("consistency_checks_passed", |line| line.run.consistency_checks.to_string()),
    ("transactions", |line| types_of(line.run)),
    ("command", |line| command_line(&line.of.arguments)),
    ("measured_at", |line| line.of.measured_at.clone()),
    ("program", |line| line.provenance.program.clone()),
    ("machine", |line| line.provenance.machine.clone()),
    ("timeline", |line| line.timeline()),
];

impl RunLine<'_> {
    fn series(&self) -> &Series {
        &self.experiment.series[self.place.0]
    }

    fn point(&self) -> &Point {
        &self.series().points[self.place.1]
    }

    /// The run in tenths of seconds, as JSON, of an experiment that is drawn over time.
    fn timeline(&self) -> String {
        let is_drawn = self.experiment.plots.iter().any(|plot| plot.kind == PlotKind::OverTime);
        let timeline = self.run.timeline();
        if is_drawn && !timeline.is_empty() { json(&timeline) } else { String::new() }
    }

    fn latency(&self) -> Option<Latency> {
        self.run.most_frequent_type().map(|(_, of_type)| of_type.latency_us)
    }
}

/// Returns every run in a line, with the command that made it, and when, by what and where that was.
pub(crate) fn csv_of_runs(experiment: &Experiment, results: &Results, provenance: &Provenance) -> String {
    let rows = results.runs().map(|(place, of)| {
        let line = RunLine { experiment, place, of, run: &of.measurement, provenance };
        COLUMNS.iter().map(|(_, column)| column(&line)).collect()
    });
    csv_of(COLUMNS.iter().map(|(name, _)| *name), rows)
}

/// Returns a table as CSV.
pub(crate) fn csv_of<'n>(
    columns: impl Iterator<Item = &'n str>,
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    let mut table = csv::Writer::from_writer(Vec::new());
    let header = columns.map(str::to_owned).collect();
    for row in std::iter::once(header).chain(rows) {
        table.write_record(row).unwrap_or_else(|error| unreachable!("written to memory: {error}"));
    }
    let bytes = table.into_inner().unwrap_or_else(|error| unreachable!("written to memory: {error}"));
    String::from_utf8(bytes).unwrap_or_else(|error| unreachable!("made of strings: {error}"))
}

/// The figures of the transaction types, as JSON.
fn types_of(run: &Measurement) -> String {
    json(&run.transactions)
}

fn json(figures: &impl Serialize) -> String {
    serde_json::to_string(figures).unwrap_or_else(|error| unreachable!("made of numbers: {error}"))
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
