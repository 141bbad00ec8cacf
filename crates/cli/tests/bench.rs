//! The program `ensilo bench` as its users run it.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

mod common;

use common::{ensilo, text};

/// A TPC-C database that loads in milliseconds.
const SMALL_TPCC: [&str; 6] = ["bench", "tpcc", "--items", "200", "--customers", "30"];
const SMALL_HYBRID: [&str; 6] = ["bench", "tpcc-hybrid", "--items", "200", "--customers", "30"];
const SMALL_STOCK: [&str; 4] = ["bench", "stock", "--items", "500"];
const SMALL_TPCB: [&str; 4] = ["bench", "tpcb", "--accounts", "500"];
const SMALL_YCSB: [&str; 4] = ["bench", "ycsb", "--records", "1000"];
/// The sizes of a TPC-E database that loads in a moment.
const SMALL_TPCE: [&str; 10] = [
    "--customers",
    "100",
    "--initial-trading-days",
    "1",
    "--scale-factor",
    "1440",
    "--daily-market-days",
    "30",
    "--news-bytes",
    "200",
];
const SHORT: [&str; 4] = ["--seconds", "0.3", "--warmup", "0.05"];
/// Two workers, short epochs, and no more memory than they need.
const MODEST: [&str; 6] = ["--workers", "2", "--epoch-ms", "1", "--prefault-mib", "0"];

/// Runs with `--format json` and returns what stdout holds, which is JSON alone.
fn json_of(arguments: &[&[&str]]) -> Value {
    let mut all = arguments.concat();
    all.extend(["--format", "json"]);
    let output = ensilo(&all);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("loading"), "progress goes to stderr");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn assert_common_fields(json: &Value, workload: &str) {
    assert_eq!(json["workload"], workload);
    assert!(json["system"].is_string());
    assert_eq!(json["workers"], 2);
    let committed = json["committed"].as_f64().unwrap();
    let seconds = json["seconds"].as_f64().unwrap();
    assert!(committed > 0.0 && (0.3..30.0).contains(&seconds));
    let throughput = json["throughput_per_second"].as_f64().unwrap();
    assert!((throughput * seconds - committed).abs() < 1e-3 * committed);
    assert!(json["aborted"].is_u64());
    assert!(json["memory_bytes"].as_u64().unwrap() > 100_000);
    assert!(json["consistency_checks"].as_u64().unwrap() > 0);
    assert_eq!(json["consistency_failures"], 0);
    assert!(json["machine"]["cores"].as_u64().unwrap() > 0);
    assert_eq!(json["build"]["version"], env!("CARGO_PKG_VERSION"));
    assert!(!json["per_second"].as_array().unwrap().is_empty());
    let timeline = json["runs"][0]["timeline"].as_array().unwrap();
    assert!(timeline.iter().map(|interval| interval["committed"].as_u64().unwrap()).sum::<u64>() > 0);
    assert!(timeline.iter().all(|interval| interval["checkpoint"].is_boolean()));
    let counts =
        json["transactions"].as_object().unwrap().values().map(|of_type| of_type["count"].as_u64().unwrap());
    assert_eq!(counts.sum::<u64>() as f64, committed);
}

#[test]
fn tpcc_reports_json_and_nothing_else_on_stdout() {
    let json = json_of(&[&SMALL_TPCC, &SHORT, &MODEST, &["--warehouses", "2"]]);
    assert_common_fields(&json, "tpcc");
    assert_eq!(json["consistency_checks"], 12);
    assert_eq!(json["parameters"]["warehouses"], 2);
    let new_order = &json["transactions"]["new_order"];
    assert!(new_order["aborts"].is_object());
    for percentile in ["p50", "p95", "p99", "p99_9"] {
        assert!(new_order["latency_us"][percentile].as_f64().unwrap() > 0.0, "{percentile}");
    }
}

#[test]
fn ycsb_reports_json_and_nothing_else_on_stdout() {
    let json = json_of(&[&SMALL_YCSB, &SHORT, &MODEST, &["--mix", "read=50,rmw=50", "--runs", "2"]]);
    assert_common_fields(&json, "ycsb");
    assert_eq!(json["consistency_checks"], 6);
    assert_eq!(json["runs"].as_array().unwrap().len(), 2);
    assert_eq!(json["parameters"]["mix"]["rmw"], 50.0);
}

#[test]
fn tpce_runs_on_both_engines_and_is_checked() {
    let json = json_of(&[&["bench", "tpce"], &SMALL_TPCE, &SHORT, &MODEST]);
    assert_common_fields(&json, "tpce");
    assert_eq!(json["consistency_checks"], 12);
    assert!(json["transactions"]["trade_result"]["count"].as_u64().unwrap() > 0);
    let hybrid =
        [&["bench", "tpce-hybrid", "--asset-eval-percent", "20", "--memory"], &SMALL_TPCE[..]].concat();
    for engine in [&["--engine", "ermia"][..], &["--engine", "ermia", "--isolation", "snapshot"]] {
        let json = json_of(&[&hybrid, &SHORT, &MODEST, engine]);
        assert_common_fields(&json, "tpce-hybrid");
        assert_eq!(json["consistency_checks"], 13);
        assert_eq!(json["parameters"]["asset_eval_percent"], 20);
        assert!(json["transactions"]["asset_eval"]["count"].as_u64().unwrap() > 0);
    }
}

/// The systems of a workload, and what they fail to go with.
#[test]
fn every_system_runs_and_is_checked() {
    let of_both = ["ensilo", "global-tid", "no-snapshots", "simple", "allocator", "overwrites", "no-gc"];
    let of_tpcc = ["partitioned-store", "split", "fast-ids"];
    for system in of_both.iter().chain(&of_tpcc) {
        let json = json_of(&[&SMALL_TPCC, &SHORT, &MODEST, &["--memory", "--system", system]]);
        assert_common_fields(&json, "tpcc");
        assert_eq!(json["system"], *system);
        assert_eq!(json["consistency_checks"], if *system == "fast-ids" { 11 } else { 12 });
    }
    for system in of_both.iter().chain(&["key-value"]) {
        let json = json_of(&[&SMALL_YCSB, &SHORT, &MODEST, &["--memory", "--system", system]]);
        assert_common_fields(&json, "ycsb");
        assert_eq!(json["system"], *system);
    }
}

/// The engines of the product with their isolation, as options and as the report says it.
const ENGINES: [(&[&str], &str, &str); 4] = [
    (&[], "silo", "serializable"),
    (&["--engine", "ermia"], "ermia", "serializable"),
    (&["--engine", "ermia", "--isolation", "snapshot"], "ermia", "snapshot"),
    (&["--engine", "2pl"], "2pl", "serializable"),
];

#[test]
fn order_entry_beside_a_long_transaction_runs_on_every_engine() {
    for (options, engine, isolation) in ENGINES {
        let hybrid = ["--memory", "--suppliers", "50", "--supplier-percent", "40", "--retries", "0"];
        let json = json_of(&[&SMALL_HYBRID, &SHORT, &MODEST, &hybrid, options]);
        assert_common_fields(&json, "tpcc-hybrid");
        assert_eq!((json["engine"].as_str(), json["isolation"].as_str()), (Some(engine), Some(isolation)));
        assert_eq!(json["consistency_checks"], 15);
        assert_eq!(json["parameters"]["supplier_percent"], 40);
        assert_eq!(json["parameters"]["database"]["retries"], 0);
        assert!(json["transactions"]["ch_q2"]["count"].as_u64().unwrap() > 0);
    }
}

#[test]
fn reads_and_updates_of_stocks_run_on_every_engine() {
    for (options, engine, isolation) in ENGINES {
        let stock = ["--memory", "--reads", "50", "--write-percent", "10"];
        let json = json_of(&[&SMALL_STOCK, &SHORT, &MODEST, &stock, options]);
        assert_common_fields(&json, "stock");
        assert_eq!((json["engine"].as_str(), json["isolation"].as_str()), (Some(engine), Some(isolation)));
        assert_eq!(json["consistency_checks"], 2);
        assert_eq!(json["parameters"]["reads"], 50);
    }
}

#[test]
fn a_bank_runs_on_every_engine() {
    let not_waiting = (&["--engine", "2pl-no-wait"][..], "2pl", "serializable");
    for (options, engine, isolation) in ENGINES.into_iter().chain([not_waiting]) {
        let json = json_of(&[&SMALL_TPCB, &SHORT, &MODEST, &["--memory", "--branches", "3"], options]);
        assert_common_fields(&json, "tpcb");
        assert_eq!((json["engine"].as_str(), json["isolation"].as_str()), (Some(engine), Some(isolation)));
        assert_eq!(json["consistency_checks"], 6);
        assert_eq!(json["parameters"]["branches"], 3);
        assert_eq!(json["parameters"]["remote_account_percent"], 15.0);
    }
}

#[test]
fn what_is_logged_can_be_chosen() {
    let bytes = |records: &str| {
        let longer = ["--seconds", "1", "--warmup", "0.05"];
        let json = json_of(&[&SMALL_TPCC, &longer, &MODEST, &["--log-records", records, "--no-checkpoints"]]);
        assert_durable_fields(&json);
        assert_eq!(json["parameters"]["log_records"], records);
        assert_eq!(json["checkpoint_bytes"], 0, "there are no checkpoints");
        // By what was stored in the run, not by what has committed in it.
        json["durability"]["log_bytes_per_logged_transaction"].as_f64()
    };
    let [small, patches, full] = ["small", "patches", "full"].map(bytes);
    assert!(small < patches && patches < full, "{small:?} {patches:?} {full:?}");
}

#[test]
fn a_system_that_does_not_go_with_the_rest_says_why() {
    let refused: &[(&[&str], &str)] = &[
        (&["tpcc", "--system", "global-tid"], "needs --memory"),
        (&["tpcc", "--system", "partitioned-store", "--data-dir", "somewhere"], "needs --memory"),
        (&["tpcc", "--memory", "--system", "key-value"], "no transactions"),
        (&["tpce", "--memory", "--system", "global-tid"], "does not run tpce"),
        (&["tpce", "--memory", "--system", "key-value"], "does not run tpce"),
        (&["tpce", "--memory", "--engine", "2pl-no-wait"], "does not run tpce"),
        (&["tpce", "--log-records", "full"], "--log-records"),
        (&["tpce-hybrid", "--memory", "--asset-eval-percent", "0"], "1..=100"),
        (&["tpce", "--memory", "--mix", "asset-eval=100"], "asset-eval"),
        (&["ycsb", "--memory", "--system", "partitioned-store"], "TPC-C"),
        (&["ycsb", "--memory", "--system", "split"], "TPC-C"),
        (&["ycsb", "--memory", "--system", "fast-ids"], "TPC-C"),
        (&["ycsb", "--memory", "--system", "key-value", "--mix", "e"], "single keys"),
        (&["ycsb", "--memory", "--system", "key-value", "--operations", "2"], "single keys"),
        (&["ycsb", "--memory", "--system", "simple", "--memory-limit-mib", "64"], "simple"),
        (&["ycsb", "--memory", "--system", "key-value", "--batch", "8"], "--batch is for the product"),
        (&["ycsb", "--memory", "--system", "global-tid", "--batch", "8"], "--batch is for the product"),
        (&["ycsb", "--memory", "--system", "no-gc", "--tables", "2"], "--tables is for the product"),
        (&["ycsb", "--memory", "--batch", "8", "--operations", "2"], "interleaved"),
        (&["ycsb", "--memory", "--tables", "8", "--operations", "2"], "one table"),
        (&["ycsb", "--memory", "--workers", "3", "--sessions", "2"], "fewer --sessions"),
        (&["ycsb", "--memory", "--batch", "0"], "--batch"),
        (&["ycsb", "--memory", "--indexes", "5"], "0..=4"),
        (&["ycsb", "--crash", "--hold-snapshot"], "--hold-snapshot"),
        (&["ycsb", "--memory", "--time-checkpoint"], "--time-checkpoint"),
        (&["ycsb", "--memory", "--system", "no-snapshots", "--hold-snapshot"], "no snapshots"),
        (&["tpcc", "--memory", "--system", "no-snapshots", "--read-only", "snapshot"], "no snapshots"),
        (&["tpcc", "--memory", "--system", "partitioned-store", "--read-only", "snapshot"], "no snapshots"),
        (&["tpcc", "--memory", "--partitions", "1"], "no --partitions"),
        (&["tpcc", "--memory", "--system", "split", "--warehouses", "2", "--partitions", "3"], "fewer"),
        (&["tpcc", "--log-records", "small", "--data-dir", "somewhere"], "nothing can be recovered"),
        (&["tpcc-hybrid", "--memory", "--system", "split"], "tpcc-hybrid"),
        (&["tpcc-hybrid", "--memory", "--supplier-percent", "0"], "1..=100"),
        (&["tpcc-hybrid", "--memory", "--isolation", "snapshot"], "--engine ermia"),
        (&["tpcb", "--memory", "--system", "key-value"], "does not run tpcb"),
        (&["tpcb", "--log-records", "full"], "--log-records full"),
        (&["tpcb", "--memory", "--remote-account-percent", "101"], "0..=100"),
        (&["tpcb", "--memory", "--islands", "2"], "ensilo bench tpcb-islands"),
        (&["tpcb", "--memory", "--multisite", "20"], "--multisite"),
        (&["tpcb-islands", "--engine", "2pl"], "--engine"),
        (&["stock", "--memory", "--system", "key-value"], "stock"),
        (&["stock", "--log-records", "full"], "--log-records full"),
        (&["stock", "--memory", "--write-percent", "101"], "0..=100"),
        (&["tpcc", "--log-records", "full", "--crash"], "--crash"),
        (&["tpcc", "--log-records", "full", "--memory"], "--memory"),
        (&["tpcc", "--logging", "per-operation"], "per transaction alone"),
        (&["tpcc", "--engine", "ermia", "--memory", "--logging", "per-operation"], "--memory"),
        (&["tpcc", "--no-checkpoints", "--checkpoint-interval", "1"], "--checkpoint-interval"),
        (&["tpcc", "--remote-item-percent", "101"], "0..=100"),
        (&["tpcc", "--system", "oracle"], "partitioned-store"),
    ];
    for (arguments, why) in refused {
        let output = ensilo(&[&["bench"][..], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let told = text(&output.stderr);
        assert!(told.contains(why) && told.contains("--help"), "{arguments:?}: {told}");
    }
}

#[test]
fn ycsb_runs_in_batches_by_sessions_on_indexed_tables_on_every_engine() {
    for engine in ["silo", "ermia", "2pl"] {
        let shape =
            ["--tables", "3", "--indexes", "1", "--sessions", "9", "--batch", "16", "--engine", engine];
        let json = json_of(&[&SMALL_YCSB, &SHORT, &MODEST, &shape, &["--memory", "--hold-snapshot"]]);
        assert_common_fields(&json, "ycsb");
        let parameters = &json["parameters"];
        let told = ["tables", "indexes", "sessions", "batch"].map(|name| parameters[name].as_u64().unwrap());
        assert_eq!(told, [3, 1, 9, 16], "{engine}");
        assert!(json["memory"]["by_table"]["usertable_2.by_field0"].as_u64().unwrap() > 0, "{json}");
        assert!(json["memory"]["versions"].as_u64().unwrap() > 0, "the snapshot needs them: {engine} {json}");
    }
}

#[test]
fn batches_on_disk_survive_a_crash_and_a_checkpoint_is_timed() {
    let json = json_of(&[&SMALL_YCSB, &SHORT, &MODEST, &["--batch", "8", "--crash", "--time-checkpoint"]]);
    assert_common_fields(&json, "ycsb");
    assert_durable_fields(&json);
    assert_eq!(json["recovery"]["transactions_lost"], 0);
    let checkpoint = &json["timed_checkpoint"];
    assert!(checkpoint["rows"].as_u64().unwrap() >= 1_000 && checkpoint["seconds"].as_f64().unwrap() > 0.0);
}

fn assert_durable_fields(json: &Value) {
    let latency = &json["durable_latency_ms"];
    let [p50, p95, p99] = ["p50", "p95", "p99"].map(|name| latency[name].as_f64().unwrap());
    assert!(0.0 < p50 && p50 <= p95 && p95 <= p99, "{latency}");
    // A request to the disk that has taken as long as half of the run may leave no other one in it.
    let is_held_up = latency["max"].as_f64().unwrap() > 150.0;
    assert!(is_held_up || json["log_bytes"].as_u64().unwrap() > 10_000);
    assert!(json["checkpoint_bytes"].is_u64());
    assert!(is_held_up || json["durability"]["log_syncs"].as_u64().unwrap() > 0);
    assert!(json["disk"]["sync_4_kib_ms"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_durable_database_lies_where_it_was_told_and_stays_there() {
    let directory = std::env::temp_dir().join(format!("ensilo-cli-data-{}", std::process::id()));
    let (data, log) = (directory.join("data"), directory.join("log"));
    let places = ["--data-dir", data.to_str().unwrap(), "--log-dir", log.to_str().unwrap()];
    let json = json_of(&[&SMALL_TPCC, &SHORT, &MODEST, &places, &["--log-compression", "lz4"]]);
    assert_common_fields(&json, "tpcc");
    assert_durable_fields(&json);
    assert!(json["recovery"].is_null());
    assert!(data.is_dir() && log.read_dir().unwrap().next().is_some());
    let again = ensilo(&[&SMALL_TPCC[..], &SHORT, &places].concat());
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("not empty"), "{}", text(&again.stderr));
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn in_memory_there_is_nothing_to_report_of_a_disk() {
    let json = json_of(&[&SMALL_YCSB, &SHORT, &MODEST, &["--memory"]]);
    assert_common_fields(&json, "ycsb");
    for name in ["durable_latency_ms", "log_bytes", "checkpoint_bytes", "recovery", "durability", "disk"] {
        assert!(json[name].is_null(), "{name}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_crash_loses_nothing_that_was_acknowledged() {
    let tpcc: &[&[&str]] = &[&SMALL_TPCC, &["--warehouses", "2"]];
    let tpce: &[&[&str]] = &[&["bench", "tpce"], &SMALL_TPCE];
    let ycsb: &[&[&str]] = &[&SMALL_YCSB, &["--mix", "read=30,rmw=50,insert=20"]];
    let hybrid: &[&[&str]] = &[&SMALL_HYBRID, &["--suppliers", "50", "--engine", "ermia"]];
    let bank: &[&[&str]] = &[&SMALL_TPCB, &["--engine", "2pl"]];
    let stock: &[&[&str]] = &[&SMALL_STOCK, &["--reads", "20", "--write-percent", "50"]];
    for (workload, counted) in [
        (tpcc, vec!["new_order", "payment", "delivery"]),
        (tpce, vec!["trade_order", "trade_result"]),
        (ycsb, vec!["rmw", "insert"]),
        (hybrid, vec!["new_order", "payment", "delivery"]),
        (bank, vec!["account_update"]),
        (stock, vec!["read_update"]),
    ] {
        let json =
            json_of(&[workload, &[&SHORT, &MODEST, &["--crash", "--checkpoint-interval", "0.1"]]].concat());
        assert_durable_fields(&json);
        assert_eq!(json["consistency_failures"], 0);
        let recovery = &json["recovery"];
        assert_eq!(recovery["transactions_lost"], 0);
        let [bytes, checkpoint, log] =
            ["bytes", "checkpoint_bytes", "log_bytes"].map(|name| recovery[name].as_u64().unwrap());
        assert!(log > 0 && bytes == checkpoint + log && recovery["seconds"].as_f64().unwrap() > 0.0);
        let survivals = recovery["transactions"].as_array().unwrap();
        assert_eq!(survivals.len(), counted.len());
        for (survival, name) in survivals.iter().zip(counted) {
            assert_eq!(survival["transaction"], name);
            assert!(survival["acknowledged"].as_u64().unwrap() > 0, "{recovery}");
        }
    }
}

#[test]
fn the_text_report_shows_types_and_checks() {
    let output = ensilo(&[&SMALL_TPCC[..], &SHORT, &MODEST].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report = text(&output.stdout);
    let parts = [
        "tpcc on ensilo (engine silo, isolation serializable)",
        "new_order",
        "p99.9",
        "transactions/s",
        "memory",
        "all 12 checks passed",
        "stored",
        "log:",
        "disk",
    ];
    for part in parts {
        assert!(report.contains(part), "{part}: {report}");
    }
}

#[test]
fn bad_parameters_are_usage_errors() {
    let bad: &[&[&str]] = &[
        &["bench", "tpcc", "--workers", "0"],
        &["bench", "tpcc", "--workers", "-1"],
        &["bench", "tpcc", "--warehouses", "0"],
        &["bench", "tpcc", "--warehouses", "70000"],
        &["bench", "tpcc", "--mix", ""],
        &["bench", "tpcc", "--mix", "45/43/4/4"],
        &["bench", "tpcc", "--mix", "45/43/4/4/5"],
        &["bench", "tpcc", "--mix", "45/43/4/4/x"],
        &["bench", "tpcc", "--mix", "buy=100"],
        &["bench", "tpcc", "--seconds", "0"],
        &["bench", "tpcc", "--seconds", "soon"],
        &["bench", "tpcc", "--warmup", "-1"],
        &["bench", "tpcc", "--runs", "0"],
        &["bench", "tpcc", "--format", "xml"],
        &["bench", "tpcc", "--read-only", "maybe"],
        &["bench", "tpcc", "--warehouse-choice", "90-10"],
        &["bench", "tpcc", "--epoch-ms", "0"],
        &["bench", "tpcc", "--memory", "--crash"],
        &["bench", "tpcc", "--memory", "--data-dir", "somewhere"],
        &["bench", "tpcc", "--checkpoint-interval", "0"],
        &["bench", "ycsb", "--log-compression", "zip"],
        &["bench", "tpcc", "--memory-limit-mib", "1"],
        &["bench", "tpcc", "--records", "5"],
        &["bench", "ycsb", "--records", "0"],
        &["bench", "ycsb", "--mix", "g"],
        &["bench", "ycsb", "--mix", "read=80,rmw=30"],
        &["bench", "ycsb", "--distribution", "normal"],
        &["bench", "ycsb", "--theta", "1"],
        &["bench", "ycsb", "--operations", "0"],
        &["bench", "ycsb", "--value-bytes", "7"],
        &["bench", "tpch"],
        &["bench"],
        &["run"],
        &[],
    ];
    for arguments in bad {
        let output = ensilo(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        let told = text(&output.stderr);
        assert!(told.contains("Usage") || told.contains("--help"), "{arguments:?}: {told}");
    }
}

#[test]
fn a_failure_of_the_database_is_reported() {
    let output = ensilo(&["bench", "tpcc", "--workers", "1", "--memory-limit-mib", "16", "--epoch-ms", "1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    assert!(text(&output.stderr).contains("memory"), "{}", text(&output.stderr));
}

#[test]
fn help_shows_examples() {
    for workload in ["tpcc", "tpcc-hybrid", "stock", "ycsb", "micro", "tpcb", "tpcb-islands", "tpcc-islands"]
    {
        let output = ensilo(&["bench", workload, "--help"]);
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output.stdout).contains("Examples:"), "{workload}");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_run_with_its_results() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let mut ensilo = Command::new(env!("CARGO_BIN_EXE_ensilo"))
            .args(SMALL_TPCC)
            .args(MODEST)
            .args(["--seconds", "8", "--warmup", "0", "--format", "json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let id = ensilo.id();
        let mut progress = BufReader::new(ensilo.stderr.take().unwrap()).lines();
        let mut told = Vec::new();
        let runs = progress.by_ref().map(Result::unwrap).any(|line| {
            told.push(line);
            told.last().is_some_and(|line| line.starts_with("run:"))
        });
        assert!(runs, "no line said that it runs, but {told:#?}");
        assert!(Command::new("kill").args([signal, &id.to_string()]).status().unwrap().success());
        // Its progress is read to the end, so that it never waits for a reader.
        progress.for_each(drop);
        let output = ensilo.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code));
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json["interrupted"], true);
        assert!(json["committed"].as_u64().unwrap() > 0);
        assert_eq!(json["consistency_checks"], 12);
        assert!(no_temporary_files_of(id), "an interrupted run leaves nothing behind");
    }
}

/// The processes that a process has started.
#[cfg(target_os = "linux")]
fn children_of(process: u32) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let of_thread = |thread: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(thread.unwrap().path().join("children")).unwrap_or_default()
    };
    let all: String = threads.map(of_thread).collect();
    all.split_whitespace().map(str::to_owned).collect()
}

/// Whatever instances do at that time: they say nothing, and the program says one line.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_ends_instances_and_leaves_no_files() {
    use std::os::unix::process::CommandExt as _;

    let stored = ["--durable", "--commit-unit", "epoch", "--width", "64"];
    for (stage, options) in [
        ("loading", &stored[..1]),
        ("running for", &stored),
        ("running for", &stored[..1]),
        ("running for", &[]),
    ] {
        let mut ensilo = Command::new(env!("CARGO_BIN_EXE_ensilo"))
            .args(["bench", "tpcb-islands", "--islands", "3", "--accounts", "20000", "--seconds", "60"])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // As a shell starts it: Ctrl-C is for all of the group.
            .process_group(0)
            .spawn()
            .unwrap();
        let id = ensilo.id();
        let mut progress = BufReader::new(ensilo.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(progress.any(|line| line.starts_with(stage)));
        let instances = children_of(id);
        assert_eq!(instances.len(), 3);
        let group = format!("-{id}");
        assert!(Command::new("kill").args(["-INT", "--", &group]).status().unwrap().success());
        // The instances hold it open until they have ended.
        let said: Vec<String> = progress.filter(|line| !line.is_empty()).collect();
        let said: Vec<&String> = said.iter().filter(|line| !line.starts_with("running for")).collect();
        assert_eq!(said, ["interrupted"], "{stage} {options:?}");
        let output = ensilo.wait_with_output().unwrap();
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(130), String::new()));
        assert!(no_temporary_files_of(id));
        for instance in instances {
            // One that has ended is there until somebody has taken note.
            let state = std::fs::read_to_string(format!("/proc/{instance}/stat")).unwrap_or_default();
            assert!(state.is_empty() || state.contains(") Z "), "an instance goes on: {state}");
        }
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_before_anything_is_measured_is_no_success() {
    let mut ensilo = Command::new(env!("CARGO_BIN_EXE_ensilo"))
        .args(["bench", "ycsb", "--records", "20000000", "--prefault-mib", "0", "--memory"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut progress = BufReader::new(ensilo.stderr.take().unwrap()).lines();
    assert!(progress.next().unwrap().unwrap().starts_with("loading"));
    assert!(Command::new("kill").args(["-INT", &ensilo.id().to_string()]).status().unwrap().success());
    let told: Vec<String> = progress.map_while(Result::ok).collect();
    let output = ensilo.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{told:?}");
    assert!(output.stdout.is_empty() && told.iter().any(|line| line.contains("before anything")), "{told:?}");
}

/// A run in `directory`, with this as `TMPDIR`: what it says on stderr, and its report.
#[cfg(target_os = "linux")]
fn run_in(directory: &std::path::Path, temporary: Option<&str>) -> (String, Value) {
    let mut ensilo = Command::new(env!("CARGO_BIN_EXE_ensilo"));
    ensilo.args(SMALL_YCSB).args(SHORT).args(MODEST).args(["--format", "json"]).current_dir(directory);
    match temporary {
        Some(named) => ensilo.env("TMPDIR", named),
        None => ensilo.env_remove("TMPDIR"),
    };
    let output = ensilo.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(directory.read_dir().unwrap().next().is_none(), "the directory that it began in stays as it is");
    (text(&output.stderr), serde_json::from_slice(&output.stdout).unwrap())
}

#[cfg(target_os = "linux")]
#[test]
fn a_temporary_database_never_lies_in_the_current_directory() {
    let began = std::env::temp_dir().join(format!("ensilo-cli-began-{}", std::process::id()));
    let empty = began.join("empty");
    std::fs::create_dir_all(&empty).unwrap();
    let (told, _) = run_in(&empty, None);
    assert!(!told.contains("warning"), "{told}");
    let named = began.join("named");
    run_in(&empty, named.to_str());
    assert!(named.read_dir().unwrap().next().is_none(), "made there, and removed");
    let in_memory = format!("/dev/shm/ensilo-cli-memory-{}", std::process::id());
    let (told, _) = run_in(&empty, Some(&in_memory));
    assert!(told.contains("warning") && told.contains("lies in memory") && told.contains("TMPDIR"), "{told}");
    std::fs::remove_dir(in_memory).unwrap();
    std::fs::remove_dir_all(began).unwrap();
}

#[test]
fn a_small_run_takes_little_memory() {
    let json = json_of(&[&SMALL_YCSB, &SHORT, &["--workers", "4", "--memory", "--mix", "rmw=100"]]);
    assert!(json["parameters"]["database"]["prefault_bytes"].as_u64().unwrap() < 64 << 20, "{json}");
}

/// Whether a process that was has left nothing among the temporary files.
fn no_temporary_files_of(id: u32) -> bool {
    let prefix = format!("ensilo-bench-{id}-");
    let roots = [std::env::temp_dir(), "/var/tmp".into()];
    let mut entries = roots.iter().filter_map(|root| root.read_dir().ok()).flatten().flatten();
    entries.all(|entry| !entry.file_name().to_string_lossy().starts_with(&prefix))
}
