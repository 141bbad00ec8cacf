//! The program `ensilo figures` as its users run it.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn ensilo(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ensilo")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

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
    ] {
        let line = list.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap_or_default();
        assert!(line.contains(" s ") && line.contains('§'), "{name}: {list}");
    }
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
    for file in ["model-check.csv", "model.csv", "model-check.svg", "model-ycsb.svg", "model-tpcc.svg"] {
        assert!(out.join(file).exists() && told.contains(file), "{file}");
    }
    let missing = ensilo(&["figures", "model", "--out", out.to_str().unwrap(), "--counts", "nowhere.csv"]);
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
    ];
    for arguments in bad {
        let output = ensilo(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_an_evaluation_that_can_be_taken_up_again() {
    let out = new_directory("interrupt");
    let mut child = Command::new(env!("CARGO_BIN_EXE_ensilo"))
        .args([
            "figures",
            "run",
            "silor-2-3",
            "--workers",
            "1",
            "--seconds",
            "60",
            "--out",
            out.to_str().unwrap(),
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut progress = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    assert!(progress.any(|line| line.is_ok_and(|line| line.starts_with("1/"))), "a line for each run");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let rest: Vec<String> = progress.map_while(Result::ok).collect();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{rest:?}");
    assert!(!rest.iter().any(|line| line.starts_with("2/")), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("goes on from here")), "{rest:?}");
    assert!(out.join("index.html").is_file());
    std::fs::remove_dir_all(out).unwrap();
}
