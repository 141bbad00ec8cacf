//! What becomes of output that cannot be written: every command says so by its exit code.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs::File;
use std::process::{Command, Output, Stdio};

mod common;

use common::{TestDirectory, text};

/// Runs with this as standard output.
fn ensilo_into(output: impl Into<Stdio>, arguments: &[&str]) -> Output {
    let ensilo = Command::new(env!("CARGO_BIN_EXE_ensilo")).args(arguments).stdout(output).output();
    ensilo.unwrap()
}

fn full_device() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

/// A pipe that nobody reads.
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

const SMALL: [&str; 12] = [
    "--records",
    "500",
    "--workers",
    "1",
    "--prefault-mib",
    "0",
    "--seconds",
    "0.1",
    "--warmup",
    "0",
    "--quiet",
    "--no-check",
];

fn path_in(directory: &TestDirectory, name: &str) -> String {
    directory.join(name).to_str().unwrap().to_owned()
}

/// A small database, all of whose writes are in its log.
fn database(directory: &TestDirectory, name: &str) -> String {
    let path = path_in(directory, name);
    let place = ["bench", "ycsb", "--mix", "rmw=100", "--no-checkpoints", "--data-dir", &path];
    let made = ensilo_into(Stdio::piped(), &[&place, &SMALL[..]].concat());
    assert_eq!(made.status.code(), Some(0), "{}", String::from_utf8_lossy(&made.stderr));
    path
}

/// Every command that writes to standard output, with what it needs; `number` tells apart what it makes.
fn check_commands(number: usize, directory: &TestDirectory, check: &dyn Fn(&[&str])) {
    let path = database(directory, &format!("database-{number}"));
    let [copy, instances, figures, dumped, loaded] = ["copy", "instances", "figures", "dumped", "loaded"]
        .map(|name| path_in(directory, &format!("{name}-{number}")));
    let manifest = format!("{path}/MANIFEST");
    let bench = ["bench", "ycsb", "--memory"];
    let commands: &[&[&str]] = &[
        &["--help"],
        &["--version"],
        &["bench", "tpcc", "--help"],
        &[&bench, &SMALL[..]].concat(),
        &[&bench, &SMALL[..], &["--format", "json"]].concat(),
        &["figures", "list"],
        &["figures", "run", "silo-4", "--dry-run"],
        &["figures", "model", "--out", &figures],
        &["verify", &path],
        &["log", "verify", &path],
        &["log", "dump", &manifest],
        &["checkpoint", "list", &path],
        &["tables", &path],
        &["tables", &path, "usertable"],
        &["dump", &path, "usertable"],
        &["dump", &path, "usertable", "--format", "jsonl"],
        &["dump", &path, "--out", &dumped],
        &["load", &loaded, "--from", &dumped],
        &["stat", &path],
        &["backup", &path, &copy],
        &["islands", "redistribute", &path, &instances],
        &["checkpoint", "create", &path],
    ];
    for command in commands {
        check(command);
    }
}

#[test]
fn output_to_a_full_device_is_a_failure_of_every_command() {
    let directory = TestDirectory::new("full");
    check_commands(0, &directory, &|command| {
        let output = ensilo_into(full_device(), command);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command:?}: {error}");
        assert!(
            error.contains("cannot write to standard output: No space left on device"),
            "{command:?}: {error}"
        );
    });
}

#[test]
fn output_that_nobody_reads_ends_every_command_quietly() {
    let directory = TestDirectory::new("closed");
    check_commands(1, &directory, &|command| {
        let output = ensilo_into(closed_pipe(), command);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(141), "{command:?}: {error}");
        assert!(!error.contains("error") && !error.contains("panicked"), "{command:?}: {error}");
    });
}

#[test]
fn progress_that_cannot_be_shown_stops_no_run_and_is_no_success() {
    for standard_error in [Stdio::from(full_device()), closed_pipe()] {
        let small = SMALL.iter().filter(|argument| **argument != "--quiet");
        let run = ["bench", "ycsb", "--memory", "--format", "json"].iter().chain(small);
        let mut ensilo = Command::new(env!("CARGO_BIN_EXE_ensilo"));
        let output = ensilo.args(run).stderr(standard_error).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.starts_with(b"{") && output.stdout.ends_with(b"}\n"), "the report is whole");
    }
}

#[test]
fn an_error_keeps_its_exit_code_without_standard_error() {
    for (arguments, code) in [
        (&["verify", "/no/such/database"][..], 1),
        (&["bench", "ycsb", "--records", "0"], 2),
        (&["bench", "ycsb", "--system", "global-tid"], 2),
    ] {
        let ensilo =
            Command::new(env!("CARGO_BIN_EXE_ensilo")).args(arguments).stderr(full_device()).output();
        assert_eq!(ensilo.unwrap().status.code(), Some(code), "{arguments:?}");
    }
}
