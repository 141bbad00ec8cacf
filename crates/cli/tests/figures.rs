//! The program `ensilo figures` as its users run it.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

mod common;

use common::{ensilo, text};

fn new_directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ensilo-cli-figures-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}

#[test]
fn the_list_names_every_figure_with_its_time() {
    let output = ensilo(&["figures", "list"]);
    assert_eq!(output.status.code(), Some(0));
    let list = text(&output.stdout);
    for name in [
        "silo-4",
        "silo-5-6-7",
        "silo-8",
        "silo-9",
        "silo-10",
        "silo-space",
        "silo-11-regular",
        "silor-1",
        "silor-recovery",
        "ermia-1",
        "ermia-5",
    ] {
        let line = list.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap_or_default();
        assert!(line.contains(" s ") && line.contains('§') && line.contains(" runs "), "{name}: {list}");
    }
    assert!(list.lines().any(|line| line.starts_with("latency ") && line.contains(" runs ")), "{list}");
    let all = list.lines().last().unwrap();
    assert!(all.starts_with("all ") && all.contains(" runs ") && all.contains(" min "), "{list}");
}

/// The smallest runs that there are.
const TINY: [&str; 6] = ["--workers", "1", "--seconds", "0.1", "--runs", "1"];

#[test]
fn a_run_leaves_tables_plots_and_a_page_and_is_not_made_twice() {
    let out = new_directory("run");
    let run = [&["figures", "run", "silor-2-3", "--out", out.to_str().unwrap()], &TINY[..]].concat();
    let output = ensilo(&run);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let told = text(&output.stdout);
    assert!(told.contains("silor-2-3") && told.contains("here") && told.contains("index.html"), "{told}");
    assert!(text(&output.stderr).contains("2 runs, about"), "{}", text(&output.stderr));
    let page = std::fs::read_to_string(out.join("index.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("ensilo bench ycsb"));
    let table = std::fs::read_to_string(out.join("silor-2-3.csv")).unwrap();
    assert_eq!(table.lines().count(), 3, "{table}");
    let again = ensilo(&run);
    assert_eq!(again.status.code(), Some(0));
    assert!(text(&again.stderr).contains("0 runs") && text(&again.stderr).contains("2 are there already"));
    let other = ensilo(&[&run[..6], &["1", "--seconds", "0.2", "--runs", "1"]].concat());
    assert_eq!(other.status.code(), Some(2), "{}", text(&other.stderr));
    assert!(
        text(&other.stderr).contains("silor-2-3: 2 runs with other parameters"),
        "{}",
        text(&other.stderr)
    );
    assert_eq!(std::fs::read_to_string(out.join("silor-2-3.csv")).unwrap(), table);
    std::fs::remove_dir_all(out).unwrap();
}

#[test]
fn plots_are_drawn_again_from_the_tables_of_a_run() {
    let out = new_directory("draw");
    let directory = out.to_str().unwrap();
    let run = [&["figures", "run", "silor-2-3", "--out", directory], &TINY[..]].concat();
    assert_eq!(ensilo(&run).status.code(), Some(0));
    let (plot, table) = (out.join("silor-2-3-1.svg"), out.join("silor-2-3.csv"));
    let [drawn, runs] = [&plot, &table].map(|path| std::fs::read_to_string(path).unwrap());
    std::fs::write(&plot, "in an older style").unwrap();
    let output = ensilo(&["figures", "draw", "--out", directory]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let told = text(&output.stdout);
    assert!(told.contains("here") && told.contains(plot.to_str().unwrap()), "{told}");
    assert_eq!(std::fs::read_to_string(&plot).unwrap(), drawn);
    std::fs::write(&table, &runs[..runs.len() - 9]).unwrap();
    let damaged = ensilo(&["figures", "draw", "--out", directory]);
    assert_eq!(damaged.status.code(), Some(1));
    let told = text(&damaged.stderr);
    assert!(told.contains("silor-2-3.csv: its last line is cut short") && told.contains("copy"), "{told}");
    let nowhere = ensilo(&["figures", "draw", "--out", "nowhere"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(text(&nowhere.stderr).contains("nowhere has no table of runs"), "{}", text(&nowhere.stderr));
    std::fs::remove_dir_all(out).unwrap();
}

#[test]
fn the_picture_is_drawn_from_the_runs_of_a_comparison() {
    let out = new_directory("picture");
    let [picture, runs] = [out.join("picture.svg"), "../../docs/results/full/compare.csv".into()];
    let [picture, runs] = [&picture, &runs].map(|path| path.to_str().unwrap());
    let command = ["figures", "picture", "--runs", runs, "--out", picture];
    let output = ensilo(&command);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let svg = std::fs::read_to_string(picture).unwrap();
    assert!(
        svg.contains("up is better") && svg.contains("down is better") && svg.contains("sqlite"),
        "{svg}"
    );
    let unknown = ensilo(&[&command[..], &["--workload", "bananas"]].concat());
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains("no runs of bananas"), "{}", text(&unknown.stderr));
    std::fs::remove_dir_all(out).unwrap();
}

#[test]
fn growth_is_measured_at_the_smallest_scale_and_drawn_again() {
    let out = new_directory("growth");
    let [directory, page] = [out.join("results"), out.join("page.md")];
    let [directory, page] = [&directory, &page].map(|path| path.to_str().unwrap());
    let to = ["--out", directory, "--page", page];
    let output = ensilo(&[&["figures", "growth", "--scale", "tiny"], &to[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("Records in memory, transactions of one operation: grows like n^"));
    let written = std::fs::read_to_string(page).unwrap();
    for section in
        ["Records on disk", "Sessions", "Tables", "Secondary indexes", "Bytes of a row", "Instances"]
    {
        assert!(written.contains(&format!("## {section}")), "{section}: {written}");
    }
    assert!(written.contains("](results/growth-records-1.svg)") && !written.contains("Missing"), "{written}");
    assert!(out.join("results/growth-open-snapshot-2.svg").exists());
    std::fs::remove_file(page).unwrap();
    let again = ensilo(&[&["figures", "growth", "--draw"], &to[..]].concat());
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    assert_eq!(std::fs::read_to_string(page).unwrap(), written);
    let refused = ensilo(&[&["figures", "growth", "records", "--scale", "tiny"], &to[..]].concat());
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    std::fs::remove_dir_all(out).unwrap();
}

#[test]
fn latency_is_measured_beside_the_disk_and_kept() {
    let out = new_directory("latency");
    let tiny = ["--workers", "3,1", "--seconds", "0.1", "--runs", "1", "--out", out.to_str().unwrap()];
    let run = [&["figures", "run", "latency"], &tiny[..]].concat();
    let output = ensilo(&run);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let told = text(&output.stdout);
    let rows: Vec<Vec<&str>> = told.lines().map(|line| line.split_whitespace().take(3).collect()).collect();
    for row in [["ensilo", "1", "1"], ["ensilo", "3", "1"], ["disk", "1", "1"]] {
        assert!(rows.iter().any(|words| words[..] == row), "{row:?}: {told}");
    }
    assert_eq!(told.contains("--features peers"), !cfg!(feature = "peers"), "{told}");
    assert_eq!(rows.iter().any(|words| words[..] == ["redb", "3", "1"]), cfg!(feature = "peers"), "{told}");
    assert!(text(&output.stderr).contains(" runs, about "), "{}", text(&output.stderr));
    let page = std::fs::read_to_string(out.join("index.html")).unwrap();
    assert!(page.contains("id=\"latency\"") && page.contains("ensilo figures run latency"));
    let table = std::fs::read_to_string(out.join("latency.csv")).unwrap();
    assert_eq!(table.lines().filter(|line| line.starts_with("transfer-uniform,synced,3,ensilo,")).count(), 1);
    assert!((1..=3).all(|number| out.join(format!("latency-{number}.svg")).is_file()));
    let again = ensilo(&run);
    assert_eq!(again.status.code(), Some(2), "{}", text(&again.stderr));
    assert!(text(&again.stderr).contains("--replace"), "{}", text(&again.stderr));
    assert_eq!(std::fs::read_to_string(out.join("latency.csv")).unwrap(), table);
    let replaced = ensilo(&[&run[..], &["--replace"]].concat());
    assert_eq!(replaced.status.code(), Some(0), "{}", text(&replaced.stderr));
    std::fs::remove_dir_all(out).unwrap();
}

#[test]
fn the_model_tells_its_errors_and_leaves_tables_and_plots() {
    let out = new_directory("model");
    let output = ensilo(&["figures", "model", "--out", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let told = text(&output.stdout);
    assert!(
        told.contains("MemSilo+GlobalTID, nothing fitted") && told.contains("ycsb, global-tid"),
        "{told}"
    );
    assert!(told.contains("AMD EPYC"), "the machine of the costs: {told}");
    for file in
        ["index.html", "model-check.csv", "model.csv", "model-check.svg", "model-ycsb.svg", "model-tpcc.svg"]
    {
        assert!(out.join(file).exists() && told.contains(file), "{file}");
    }
    let missing = ensilo(&["figures", "model", "--out", out.to_str().unwrap(), "--counts", "nowhere.csv"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("nowhere.csv"));
    let costs = out.join("costs.csv");
    std::fs::write(&costs, "workload,system,instructions,alone_ns\nycsb,ensilo,1500,500\n").unwrap();
    let own =
        ensilo(&["figures", "model", "--out", out.to_str().unwrap(), "--costs", costs.to_str().unwrap()]);
    assert_eq!(own.status.code(), Some(0), "{}", text(&own.stderr));
    let told = text(&own.stdout);
    assert!(told.contains("costs.csv was measured on") && !told.contains("global-tid"), "{told}");
    std::fs::remove_dir_all(out).unwrap();
}

#[test]
fn the_shares_of_regions_are_drawn_and_judged() {
    let out = new_directory("regions");
    std::fs::create_dir_all(&out).unwrap();
    let shares = out.join("shares.csv");
    let header = "system,storage,workers,run,index,indirection,log,epochs,engine,workload,waiting,looks,transactions_per_second,cores,machine";
    let run = "ermia-snapshot,log,1,1,0.2,0.1,0.1,0.3,0.15,0.15,0,900,1000,1,somewhere else";
    std::fs::write(&shares, format!("{header}\n{run}\n")).unwrap();
    let draw =
        |shares: &str| ensilo(&["figures", "regions", "--out", out.to_str().unwrap(), "--shares", shares]);
    let output = draw(shares.to_str().unwrap());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let told = text(&output.stdout);
    assert!(told.contains("ERMIA-SI, with a log") && told.contains("somewhere else"), "{told}");
    assert!(told.contains("here 30.00 %: does not hold"), "{told}");
    for file in ["index.html", "ermia-11.csv", "ermia-11-1.svg"] {
        assert!(out.join(file).exists() && told.contains(file), "{file}");
    }
    assert!(std::fs::read_to_string(out.join("index.html")).unwrap().contains("ERMIA §4.4, figure 11"));
    let missing = draw("nowhere.csv");
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("nowhere.csv"));
    std::fs::remove_dir_all(out).unwrap();
}

#[test]
fn a_dry_run_shows_the_commands_and_does_nothing() {
    let out = new_directory("dry");
    let run =
        [&["figures", "run", "silo-8", "--dry-run", "--out", out.to_str().unwrap()], &TINY[..]].concat();
    let output = ensilo(&run);
    assert_eq!(output.status.code(), Some(0));
    let commands = text(&output.stdout);
    assert_eq!(commands.lines().count(), 12, "{commands}");
    assert!(commands.lines().all(|line| line.starts_with("ensilo bench tpcc ")), "{commands}");
    assert!(!out.exists());
}

#[test]
fn bad_parameters_are_usage_errors() {
    let bad: &[&[&str]] = &[
        &["figures"],
        &["figures", "run"],
        &["figures", "run", "silo-99"],
        &["figures", "run", "all", "--workers", "0"],
        &["figures", "run", "all", "--workers", "some"],
        &["figures", "run", "all", "--runs", "0"],
        &["figures", "run", "all", "--seconds", "0"],
        &["figures", "run", "all", "--seconds", "NaN"],
        &["figures", "run", "all", "--scale", "huge"],
        &["figures", "list", "silo-4"],
        &["figures", "run", "latency", "silo-4"],
        &["figures", "run", "latency", "--dry-run"],
    ];
    for arguments in bad {
        let output = ensilo(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[cfg(unix)]
/// An evaluation whose first run has begun and takes a minute, and what it will yet say.
fn long_run(out: &Path) -> (Child, Lines<BufReader<ChildStderr>>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ensilo"))
        .args(["figures", "run", "silor-2-3", "--workers", "1", "--seconds", "60"])
        .arg("--out")
        .arg(out)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut progress = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(progress.any(|line| line.is_ok_and(|line| line.starts_with("1/"))), "a line for each run");
    (child, progress)
}

#[test]
fn an_interrupt_ends_an_evaluation_that_can_be_taken_up_again() {
    let out = new_directory("interrupt");
    let (mut child, progress) = long_run(&out);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let rest: Vec<String> = progress.map_while(Result::ok).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
    assert!(!rest.iter().any(|line| line.starts_with("2/")), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("goes on from here")), "{rest:?}");
    assert!(out.join("index.html").is_file());
    std::fs::remove_dir_all(out).unwrap();
}

/// The processes whose parent is this one.
#[cfg(target_os = "linux")]
fn children_of(parent: u32) -> Vec<String> {
    let processes =
        std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let is_child = |process: &String| {
        // The second field is the name in parentheses, the fourth the parent.
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let after_name = stat.rsplit(')').next().unwrap_or_default().split_whitespace().nth(1);
        after_name.and_then(|field| field.parse::<u32>().ok()) == Some(parent)
    };
    processes.filter(|process| process.parse::<u32>().is_ok()).filter(is_child).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn a_second_interrupt_right_after_the_first_leaves_no_run_behind() {
    let out = new_directory("twice");
    let (mut child, _progress) = long_run(&out);
    let run = loop {
        if let [run] = &children_of(child.id())[..] {
            break run.clone();
        }
    };
    let twice = format!("kill -INT {0}; kill -INT {0}; sleep 0.005; kill -INT {0}", child.id());
    Command::new("sh").args(["-c", &twice]).stderr(Stdio::null()).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!PathBuf::from(format!("/proc/{run}")).exists(), "the run goes on");
    let _ = std::fs::remove_dir_all(out);
}

#[test]
fn an_unwritable_directory_is_an_error_before_the_first_run() {
    let file = new_directory("file");
    std::fs::write(&file, "").unwrap();
    let out = file.join("out");
    let output =
        ensilo(&[&["figures", "run", "silo-10", "--out", out.to_str().unwrap()], &TINY[..]].concat());
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    assert!(!told.lines().any(|line| line.starts_with("1/")), "{told}");
    std::fs::remove_file(file).unwrap();
}
