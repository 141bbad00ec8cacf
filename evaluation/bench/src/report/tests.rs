//! The report's fields and its text.

use serde_json::Value;

use super::*;
use crate::System;
use crate::driver::{AbortKind, Aborts, Check, DurabilityCounts, Interval, Measurements, Memory, RunResult};

/// The `n`-th tenth of a second. In the tenth of them a checkpoint is made, and half as much is done.
fn interval(n: u64) -> Interval {
    let checkpoint = n == 10;
    Interval {
        ended_at: n as f64 / 10.0,
        committed: if checkpoint { 50 } else { 100 },
        aborted: 1,
        durable_latency_ms_max: checkpoint.then_some(7.5),
        checkpoint,
    }
}

/// A run of two seconds in which the first type committed `committed` times and aborted once, the second nothing.
fn run_of(committed: u64) -> CheckedRun {
    let mut measurements = Measurements::new(2);
    for _ in 0..committed {
        measurements.record(0, true, &Aborts::default(), 1_000);
    }
    let mut aborts = Aborts::default();
    aborts.count(AbortKind::LockHeld);
    measurements.record(0, false, &aborts, 100_000);
    let memory = Memory {
        live_bytes: 10,
        mapped_bytes: 20,
        versions: 3,
        version_bytes: 300,
        by_table: vec![("stock".to_owned(), 7)],
    };
    let result = RunResult {
        seconds: 2.0,
        processor_seconds: 3.0,
        durability: None,
        measurements,
        timeline: (1..=20).map(interval).collect(),
        per_second: Vec::new(),
        memory_before: Memory::default(),
        memory_after: memory,
        interrupted: false,
    };
    CheckedRun {
        result,
        checks: vec![Check::new("3.3.2.1", "sums agree")],
        disk: None,
        recovery: None,
        timed_checkpoint: None,
    }
}

fn report(runs: &[CheckedRun]) -> Report {
    let subject = Subject {
        workload: "tpcc",
        system: System::Ensilo,
        transaction_types: &["new_order", "payment"],
        workers: 3,
        parameters: serde_json::json!({ "warehouses": 2 }),
    };
    Report::new(subject, runs)
}

#[test]
fn the_json_has_its_promised_names() {
    let json: Value = serde_json::from_str(&report(&[run_of(100)]).to_json()).unwrap();
    assert_eq!(json["workload"], "tpcc");
    assert_eq!(json["workers"], 3);
    assert_eq!(json["seconds"], 2.0);
    assert_eq!(json["committed"], 100);
    assert_eq!(json["aborted"], 1);
    assert_eq!(json["aborted_per_commit"], 0.01);
    assert_eq!(json["throughput_per_second"], 50.0);
    assert_eq!(json["memory_bytes"], 10);
    assert_eq!(json["consistency_checks"], 1);
    assert_eq!(json["consistency_failures"], 0);
    let new_order = &json["transactions"]["new_order"];
    assert_eq!(new_order["count"], 100);
    assert_eq!(new_order["aborted_of_one_max"], 1);
    assert_eq!(new_order["aborts"]["lock_held"]["count"], 1);
    assert!((new_order["aborts"]["lock_held"]["share"].as_f64().unwrap() - 1.0 / 101.0).abs() < 1e-9);
    for name in ["p50", "p95", "p99"] {
        let latency = new_order["latency_us"][name].as_f64().unwrap();
        assert!((0.99..1.02).contains(&latency), "{name} {latency}");
    }
    assert!(new_order["latency_us"]["p99_9"].as_f64().unwrap() > 90.0);
    assert_eq!(json["transactions"]["payment"]["count"], 0);
    assert_eq!(json["parameters"]["warehouses"], 2);
    assert_eq!(json["memory"]["by_table"]["stock"], 7);
    for name in ["machine", "build", "per_second", "runs", "interrupted", "consistency"] {
        assert!(!json[name].is_null(), "{name}");
    }
}

#[test]
fn a_durable_run_reports_its_log_and_its_recovery() {
    let mut run = run_of(100);
    run.result.measurements.record_stored(0, 4_000_000);
    run.result.durability = Some(DurabilityCounts {
        logged_transactions: 50,
        log_bytes: 10_000,
        log_syncs: 4,
        log_sync_seconds: 0.002,
        checkpoint_bytes: 77,
        next_recovery_seconds: 2.5,
        ..DurabilityCounts::default()
    });
    let recovery = |seconds: f64, transactions_lost| RecoveryReport {
        seconds,
        bytes: 5,
        checkpoint_bytes: 2,
        log_bytes: 3,
        checkpoint_rows: 1,
        log_writes: 1,
        mb_per_second: 1.0,
        transactions_lost,
        transactions: vec![SurvivalReport { transaction: "new_order", acknowledged: 7, found: 6 }],
    };
    let runs = [(0.5, 1), (2.0, 0)].map(|(seconds, lost)| CheckedRun {
        recovery: Some(recovery(seconds, lost)),
        disk: Some(DiskReport { sync_4_kib_ms: 0.2, sequential_mb_per_second: 300.0 }),
        ..run.clone()
    });
    let report = report(&runs);
    let json: Value = serde_json::from_str(&report.to_json()).unwrap();
    for name in ["p50", "p95", "p99"] {
        let latency = json["durable_latency_ms"][name].as_f64().unwrap();
        assert!((3.9..4.1).contains(&latency), "{name} {latency}");
    }
    assert_eq!((&json["log_bytes"], &json["checkpoint_bytes"]), (&10_000.into(), &77.into()));
    assert_eq!(json["durability"]["log_bytes_per_transaction"], 100.0);
    assert_eq!(json["durability"]["log_sync_ms_mean"], 0.5);
    let recovery = &json["recovery"];
    assert_eq!((&recovery["seconds"], &recovery["transactions_lost"]), (&2.0.into(), &1.into()));
    assert_eq!(
        (&recovery["bytes"], &recovery["checkpoint_bytes"], &recovery["log_bytes"]),
        (&5.into(), &2.into(), &3.into())
    );
    let text = report.to_text();
    for part in [
        "stored: after 4.0",
        "4 syncs",
        "recovery at the end: about 2.5 s, as assumed",
        "300 MB/s",
        "lost: 1",
        "new_order: 7 acknowledged, 6 there",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn each_run_has_its_timeline_and_its_worst_half_second() {
    let report = report(&[run_of(100), run_of(200)]);
    let json: Value = serde_json::from_str(&report.to_json()).unwrap();
    for run in json["runs"].as_array().unwrap() {
        let timeline = run["timeline"].as_array().unwrap();
        assert_eq!(timeline.len(), 20);
        let expected = serde_json::json!({
            "ended_at": 1.0, "committed": 50, "aborted": 1, "durable_latency_ms_max": 7.5, "checkpoint": true
        });
        assert_eq!(timeline[9], expected);
        assert_eq!(timeline[10]["durable_latency_ms_max"], Value::Null);
        assert_eq!(run["half_seconds"], json["half_seconds"]);
    }
    let half_seconds = &json["half_seconds"];
    let of_median = |name: &str| half_seconds[name]["of_median"].as_f64().unwrap();
    assert!((half_seconds["median_per_second"].as_f64().unwrap() - 1000.0).abs() < 1e-6);
    assert!((of_median("worst") - 0.9).abs() < 1e-6);
    assert!((of_median("worst_with_checkpoint") - 0.9).abs() < 1e-6);
    assert!((of_median("worst_without_checkpoint") - 1.0).abs() < 1e-6);
    let text = report.to_text();
    let line = "the worst half second had 90 % of the median one's throughput, at 1.";
    assert!(
        text.contains(line) && text.contains("90 % with a checkpoint under way, 100 % without"),
        "{text}"
    );
}

#[test]
fn several_runs_report_the_median_one() {
    let report = report(&[run_of(300), run_of(100), run_of(200)]);
    assert_eq!(report.committed, 200);
    assert_eq!(report.consistency_checks, 3);
    assert_eq!(report.runs.iter().map(|run| run.committed).collect::<Vec<_>>(), [300, 100, 200]);
    assert!(report.to_text().contains("median of 3 runs"));
}

#[test]
fn a_failed_check_is_named_with_its_numbers() {
    let mut run = run_of(1);
    run.checks[0].expect(false, || "warehouse 1: 5 is not 6".to_owned());
    let report = report(&[run]);
    assert_eq!(report.consistency_failures, 1);
    let text = report.to_text();
    assert!(text.contains("3.3.2.1") && text.contains("warehouse 1: 5 is not 6"), "{text}");
    assert!(report.to_json().contains("warehouse 1: 5 is not 6"));
}

#[test]
fn the_text_shows_each_type() {
    let text = report(&[run_of(1_234)]).to_text();
    assert!(!text.contains("payment"), "types that never ran are left out: {text}");
    for part in ["new_order", "1 234", "lock_held", "617 transactions/s", "all 1 checks passed"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
