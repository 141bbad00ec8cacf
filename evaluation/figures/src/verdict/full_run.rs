//! What the claims come to over the runs that are kept in `docs/results/full`, beside what `docs/evaluation.md` says of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ensilo_bench::report::Machine;
use serde_json::{Value, json};

use super::*;
use crate::outcome::StoredOutcome;
use crate::sizes::{Overrides, Scale, Sizes};

const CORES: usize = 2;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// The experiments as they were run.
fn experiments() -> Vec<Experiment> {
    let machine = Machine { cpu: String::new(), cores: CORES, memory_bytes: 24 << 30, os: String::new() };
    let overrides = Overrides { seconds: Some(2.0), ..Overrides::default() };
    Experiment::all(&Sizes::new(Scale::Full, &machine, &overrides))
}

/// Where the runs of an experiment are kept, if there are any.
fn recorded(experiment: &Experiment) -> PathBuf {
    docs().join("results/full").join(format!("{}.csv", experiment.name))
}

/// The report that a row of a table was made of, as far as claims read it.
fn report(row: &BTreeMap<String, String>) -> Value {
    let number = |column: &str| row.get(column)?.parse::<f64>().ok();
    let whole = |column: &str| row.get(column)?.parse::<u64>().ok();
    let stored = number("stored_latency_ms_p50").map(|p50| {
        let [p95, p99, max] = ["p95", "p99", "max"].map(|part| number(&format!("stored_latency_ms_{part}")));
        json!({ "p50": p50, "p95": p95, "p99": p99, "max": max })
    });
    let recovery = number("recovery_seconds").map(|seconds| {
        let [checkpoint, log] =
            ["recovery_checkpoint_bytes", "recovery_log_bytes"].map(|column| whole(column).unwrap_or(0));
        json!({ "seconds": seconds, "bytes": checkpoint + log, "checkpoint_bytes": checkpoint, "log_bytes": log })
    });
    let checkpoints = number("checkpoint_seconds").map(|seconds| {
        json!({ "ended_at": seconds, "committed": 0, "aborted": 0, "checkpoint": true, "durable_latency_ms_max": null })
    });
    let steadiness =
        number("slowest_half_second_share").map(|of_median| json!({ "worst": { "of_median": of_median } }));
    json!({
        "workers": whole("workers"), "seconds": number("seconds"), "committed": whole("committed"),
        "aborted": whole("aborted"), "throughput_per_second": number("transactions_per_second"),
        "processor_seconds": number("processor_seconds"), "durable_latency_ms": stored,
        "log_bytes": whole("log_bytes"), "checkpoint_bytes": whole("checkpoint_bytes"),
        "memory": { "live_bytes": whole("memory_bytes"), "live_bytes_before": whole("memory_bytes_before") },
        "recovery": recovery, "consistency_checks": whole("consistency_checks_passed"), "interrupted": false,
        "transactions": types_of(row), "half_seconds": steadiness, "in_parts_us": number("in_parts_us"),
        "runs": [{ "timeline": checkpoints.into_iter().collect::<Vec<_>>() }],
    })
}

/// The figures of the transaction types; tables from before there was a column of them have none.
fn types_of(row: &BTreeMap<String, String>) -> Value {
    row.get("transactions").map_or_else(|| json!({}), |types| serde_json::from_str(types).unwrap())
}

/// The runs of an experiment.
fn results(experiment: &Experiment) -> Results {
    let mut table = csv::Reader::from_path(recorded(experiment)).unwrap();
    let mut results = Results::default();
    for row in table.deserialize::<BTreeMap<String, String>>() {
        let row = row.unwrap();
        let series = experiment.series_at(&row["series"]).unwrap();
        let x: f64 = row["x"].parse().unwrap();
        let point = experiment.series[series].points.iter().position(|point| point.x == x).unwrap();
        let repetition = row["run"].parse::<usize>().unwrap() - 1;
        let outcome = StoredOutcome::Measured(report(&row));
        results.add((series, point, repetition), Vec::new(), String::new(), outcome);
    }
    assert_eq!(results.missing_count(), 0, "{}", experiment.name);
    results
}

/// The rows that the evaluation's tables ought to have.
fn rows() -> Vec<(String, Ruling)> {
    let mut rows = Vec::new();
    for experiment in experiments().into_iter().filter(|experiment| recorded(experiment).exists()) {
        let results = results(&experiment);
        for claim in &experiment.claims {
            let verdict = judge(&experiment, claim, &results, CORES);
            let here = verdict.number_here(claim.unit).unwrap_or_default();
            let ruling = verdict.ruling.in_document();
            rows.push((format!("| {} | {here} | {ruling} |", claim.text), verdict.ruling));
        }
    }
    rows
}

#[test]
fn the_evaluation_says_what_follows_from_its_runs() {
    let evaluation = std::fs::read_to_string(docs().join("evaluation.md")).unwrap();
    let rows = rows();
    let missing: Vec<&str> = rows
        .iter()
        .map(|(row, _)| row.as_str())
        .filter(|row| !evaluation.lines().any(|line| line == *row))
        .collect();
    assert!(missing.is_empty(), "docs/evaluation.md lacks these lines:\n{}", missing.join("\n"));
    let count = |is: fn(&Ruling) -> bool| rows.iter().filter(|(_, ruling)| is(ruling)).count();
    let sum = format!(
        "Of {} claims, {} hold, {} do not, and {} cannot be told",
        rows.len(),
        count(|ruling| *ruling == Ruling::Holds),
        count(|ruling| *ruling == Ruling::DoesNotHold),
        count(|ruling| matches!(ruling, Ruling::Undecided(_)))
    );
    assert!(evaluation.contains(&sum), "docs/evaluation.md lacks this: {sum}");
}

#[test]
fn the_evaluation_names_what_has_not_been_run() {
    let evaluation = std::fs::read_to_string(docs().join("evaluation.md")).unwrap();
    let experiments = experiments();
    let missing: Vec<String> = experiments
        .iter()
        .filter(|experiment| !recorded(experiment).exists())
        .map(|experiment| format!("`{}`", experiment.name))
        .collect();
    let sentence = format!("No runs are kept of {}.", missing.join(", "));
    assert!(
        missing.is_empty() || evaluation.contains(&sentence),
        "docs/evaluation.md lacks this: {sentence}"
    );
}
